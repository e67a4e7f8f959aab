/* SPDX-License-Identifier: Apache-2.0 */
/* lower: a * b + c of f32 with directed rounding, and of bf16, on targets without 64-bit floats (lower_divide32.c).
 *
 * The product of two significands and the third one are integers of 62 bits. What has the smaller unit is shifted right to that of the other. If it loses
 * bits it is so much smaller that their sum or difference keeps more than the 25 bits which are rounded; that some were lost is one bit of information. */
#include "round32.h"

enum {
    PRODUCT_SHIFT = 14,                    /* a product has 46 to 48 bits */
    TERM_SHIFT = 38,                       /* a significand 24 */
    UNIT = CT_BIAS32 + CT_FRACTION_BITS32, /* the last bit of a significand is 2^(exponent - UNIT) */
    LEAST_UNIT = -4096,                    /* of zero, below all others */
    REST_BITS = 39,                        /* of 64, below those that are rounded */
};

/* magnitude * 2^unit. The magnitude has 64 bits, the unit 32, and the sign is its bit in an f32. */
struct term {
    ct_value sign, magnitude, unit;
};

static struct term make_term(struct ct_cursor *at, ct_value sign, ct_value is_zero, ct_value magnitude, ct_value unit)
{
    return (struct term){
        .sign = sign,
        .magnitude = ct_select(at, is_zero, ct_const64(at, 0), magnitude),
        .unit = ct_select(at, is_zero, ct_const32(at, (uint32_t)LEAST_UNIT), unit),
    };
}

static ct_value is_zero(struct ct_cursor *at, ct_value x)
{
    return ct_equals(at, ct_float_magnitude(at, PTX_F32, x), 0);
}

static ct_value sign_of(struct ct_cursor *at, ct_value x)
{
    return ct_and_imm(at, x, CT_SIGN32);
}

static struct term product(struct ct_cursor *at, ct_value a, ct_value b)
{
    const struct ct_parts32 x = ct_parts32_of(at, ct_float_magnitude(at, PTX_F32, a)),
                            y = ct_parts32_of(at, ct_float_magnitude(at, PTX_F32, b));
    const ct_value magnitude = ct_op2(at, CT_OP_MUL, PTX_U64, ct_zext64(at, x.fraction), ct_zext64(at, y.fraction));
    const ct_value unit = ct_add_imm(at, ct_add(at, x.exponent, y.exponent), (uint64_t)(-2 * UNIT - PRODUCT_SHIFT));

    return make_term(at, sign_of(at, ct_xor(at, a, b)), ct_or(at, is_zero(at, a), is_zero(at, b)), ct_shl_imm(at, magnitude, PRODUCT_SHIFT),
                     unit);
}

static struct term addend(struct ct_cursor *at, ct_value c)
{
    const struct ct_parts32 x = ct_parts32_of(at, ct_float_magnitude(at, PTX_F32, c));

    return make_term(at, sign_of(at, c), is_zero(at, c), ct_shl_imm(at, ct_zext64(at, x.fraction), TERM_SHIFT),
                     ct_add_imm(at, x.exponent, (uint64_t)(-UNIT - TERM_SHIFT)));
}

static ct_value shifted(struct ct_cursor *at, enum ct_op op, ct_value x, ct_value amount)
{
    return ct_op2(at, op, PTX_U64, x, amount);
}

/* The sum rounded down; *is_inexact: it is above that, by less than its unit. The magnitude is 0 only if the sum is. */
static struct term sum_of(struct ct_cursor *at, const struct term *x, const struct term *y, ct_value *is_inexact)
{
    const ct_value difference = ct_sub(at, x->unit, y->unit), y_first = ct_icmp_imm(at, PTX_S32, PTX_LT, difference, 0);
    const ct_value distance = ct_select(at, y_first, ct_sub(at, ct_const32(at, 0), difference), difference);
    const ct_value shift = ct_op2(at, CT_OP_MIN, PTX_S32, distance, ct_const32(at, 63));
    const ct_value high = ct_select(at, y_first, y->magnitude, x->magnitude), low = ct_select(at, y_first, x->magnitude, y->magnitude);
    const ct_value high_sign = ct_select(at, y_first, y->sign, x->sign), low_sign = ct_select(at, y_first, x->sign, y->sign);
    const ct_value kept = shifted(at, CT_OP_SHR, low, shift), back = shifted(at, CT_OP_SHL, kept, shift);
    const ct_value cancels = ct_icmp(at, PTX_U32, PTX_NE, high_sign, low_sign), is_negative = ct_icmp(at, PTX_U64, PTX_LT, high, kept);
    const ct_value loses = ct_icmp(at, PTX_U64, PTX_NE, back, low);
    const ct_value borrowed = ct_sub(at, ct_sub(at, high, kept), ct_zext64(at, ct_one_if(at, loses)));
    const ct_value remainder = ct_select(at, is_negative, ct_sub(at, kept, high), borrowed);

    *is_inexact = loses;
    return (struct term){
        .sign = ct_select(at, ct_and(at, cancels, is_negative), low_sign, high_sign),
        .magnitude = ct_select(at, cancels, remainder, ct_add(at, high, kept)),
        .unit = ct_select(at, y_first, y->unit, x->unit),
    };
}

static struct ct_unrounded32 normalized(struct ct_cursor *at, const struct term *x, ct_value is_inexact)
{
    const ct_value zeros = ct_op2(at, CT_OP_MIN, PTX_U32, ct_count_leading_zeros(at, x->magnitude), ct_const32(at, 63));
    const ct_value bits = shifted(at, CT_OP_SHL, x->magnitude, zeros);
    const ct_value rest = ct_and_imm(at, bits, (UINT64_C(1) << REST_BITS) - 1);

    return (struct ct_unrounded32){
        .sign = x->sign,
        .significand = ct_low32(at, ct_shr_imm(at, bits, REST_BITS)),
        .exponent = ct_sub(at, ct_add_imm(at, x->unit, 63 + CT_BIAS32), zeros),
        .is_inexact = ct_or(at, is_inexact, ct_icmp_imm(at, PTX_U64, PTX_NE, rest, 0)),
    };
}

/* The results that are not finite, and `result` otherwise: all f32. */
static ct_value with_special_values(struct ct_cursor *at, ct_value a, ct_value b, ct_value c, ct_value result)
{
    const ct_value sign = sign_of(at, ct_xor(at, a, b)), c_is_infinite = ct_equals(at, ct_float_magnitude(at, PTX_F32, c), CT_INFINITE32);
    const ct_value is_infinite = ct_or(at, ct_equals(at, ct_float_magnitude(at, PTX_F32, a), CT_INFINITE32),
                                       ct_equals(at, ct_float_magnitude(at, PTX_F32, b), CT_INFINITE32));
    const ct_value of_zero = ct_and(at, is_infinite, ct_or(at, is_zero(at, a), is_zero(at, b)));
    const ct_value opposed = ct_and(at, ct_and(at, is_infinite, c_is_infinite), ct_icmp(at, PTX_U32, PTX_NE, sign, sign_of(at, c)));
    const ct_value is_nan =
        ct_or(at, ct_float_is_nan(at, PTX_F32, a), ct_or(at, ct_float_is_nan(at, PTX_F32, b), ct_float_is_nan(at, PTX_F32, c)));

    result = ct_select(at, c_is_infinite, c, result);
    result = ct_select(at, is_infinite, ct_or_imm(at, sign, CT_INFINITE32), result);
    return ct_select(at, ct_or(at, is_nan, ct_or(at, of_zero, opposed)), ct_const32(at, CT_NAN32), result);
}

/* An exact sum of 0 is -0 if both terms are, and with .rm unless both are +0. */
static ct_value zero_of(struct ct_cursor *at, enum ptx_rounding rounding, const struct term *x, const struct term *y)
{
    return rounding == PTX_RM ? ct_or(at, x->sign, y->sign) : ct_and(at, x->sign, y->sign);
}

/* a * b + c of finite numbers, not yet rounded. */
struct exact_sum {
    ct_value is_zero, zero; /* and the zero that it is then */
    struct ct_unrounded32 unrounded;
};

static struct exact_sum exact_sum(struct ct_cursor *at, enum ptx_rounding rounding, ct_value a, ct_value b, ct_value c)
{
    const struct term x = product(at, a, b), y = addend(at, c);
    ct_value is_inexact;
    const struct term sum = sum_of(at, &x, &y, &is_inexact);

    return (struct exact_sum){ct_equals(at, sum.magnitude, 0), zero_of(at, rounding, &x, &y), normalized(at, &sum, is_inexact)};
}

ct_value ct_lower_integer_fused32(struct ct_lower *l, enum ptx_rounding rounding, ct_value a, ct_value b, ct_value c)
{
    struct ct_cursor *at = &l->at;
    const struct exact_sum sum = exact_sum(at, rounding, a, b, c);
    const ct_value finite = ct_select(at, sum.is_zero, sum.zero, ct_rounded32(at, rounding, &sum.unrounded));
    const ct_value result = with_special_values(at, a, b, c, finite);

    if (l->insn->ftz) /* the sum means nothing if a term is infinite or a NaN */
        l->tiny = ct_and(at, ct_is_tiny32(at, rounding, &sum.unrounded),
                         ct_icmp_imm(at, PTX_U32, PTX_LT, ct_float_magnitude(at, PTX_F32, result), CT_INFINITE32));
    return result;
}

ct_value ct_lower_integer_fused_bf16(struct ct_lower *l, ct_value a, ct_value b, ct_value c)
{
    struct ct_cursor *at = &l->at;
    const struct exact_sum sum = exact_sum(at, PTX_RN, a, b, c);
    const ct_value rounded = ct_bf16_widened(at, ct_rounded_bf16(at, &sum.unrounded));

    return ct_bf16_narrowed(l, PTX_F32, with_special_values(at, a, b, c, ct_select(at, sum.is_zero, sum.zero, rounded)));
}
