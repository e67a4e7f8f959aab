/* SPDX-License-Identifier: Apache-2.0 */
/* Sums, products, and a * b + c.
 *
 * A term that is shifted right to the unit of a greater one may lose bits; that it lost some is kept in its last bit (sticky). It then is so much
 * smaller that the sum or difference has enough bits left of that place to be rounded correctly. */
#include "software64.h"

enum {
    TERM_SHIFT = 62,      /* of the significand of c in 128 bits */
    PRODUCT_SPARE = 2,    /* bits above a product there, for the carry of a sum */
    LEAST_UNIT = -100000, /* of zero, below all others */
};

static ct_value is_infinite(struct ct_cursor *at, ct_value magnitude)
{
    return ct_equals(at, magnitude, CT_INFINITE64);
}

/* ---- sums ---- */

static ct_value sum(struct ct_cursor *at, ct_value a, ct_value b)
{
    const ct_value a_magnitude = ct_magnitude64(at, a), b_magnitude = ct_magnitude64(at, b);
    const ct_value exchanged = ct_icmp(at, PTX_U64, PTX_LT, a_magnitude, b_magnitude);
    const ct_value x = ct_select(at, exchanged, b, a), y = ct_select(at, exchanged, a, b); /* |x| >= |y| */
    const ct_value cancels = ct_icmp_imm(at, PTX_S64, PTX_LT, ct_xor(at, a, b), 0);
    const struct ct_parts64 high = ct_parts64_of(at, x), low = ct_parts64_of(at, y);
    const ct_value distance = ct_op2(at, CT_OP_MIN, PTX_U32, ct_sub(at, high.exponent, low.exponent), ct_const32(at, 63));
    const ct_value first = ct_shr_imm(at, high.significand, 1);
    const ct_value second = ct_shifted_sticky64(at, ct_shr_imm(at, low.significand, 1), distance);
    const struct ct_parts64 exact = {ct_select(at, cancels, ct_sub(at, first, second), ct_add(at, first, second)),
                                     ct_add_imm(at, high.exponent, 1)};
    const struct ct_parts64 normalized = ct_normalized64(at, &exact);
    const ct_value sign = ct_sign64(at, x), zero = ct_select(at, cancels, ct_const64(at, 0), sign);
    const ct_value finite = ct_select(at, ct_equals(at, exact.significand, 0), zero, ct_rounded64(at, sign, &normalized));
    const ct_value greatest = ct_magnitude64(at, x), is_special = ct_icmp_imm(at, PTX_U64, PTX_GE, greatest, CT_INFINITE64);
    const ct_value opposed = ct_and(at, cancels, is_infinite(at, ct_magnitude64(at, y)));
    const ct_value is_nan = ct_and(at, is_special, ct_or(at, opposed, ct_icmp_imm(at, PTX_U64, PTX_GT, greatest, CT_INFINITE64)));

    return ct_select_nan64(at, is_nan, ct_select(at, is_special, x, finite));
}

ct_value ct_software64_sum(struct ct_cursor *at, const struct ct_insn *insn)
{
    return sum(at, insn->operands[0], insn->operands[1]);
}

ct_value ct_software64_difference(struct ct_cursor *at, const struct ct_insn *insn)
{
    return sum(at, insn->operands[0], ct_xor_imm(at, insn->operands[1], CT_SIGN64));
}

/* ---- products ---- */

/* The product of infinities, zeros and NaNs, or `finite`. */
static ct_value with_special_factors(struct ct_cursor *at, ct_value a, ct_value b, ct_value sign, ct_value finite)
{
    const ct_value a_magnitude = ct_magnitude64(at, a), b_magnitude = ct_magnitude64(at, b);
    const ct_value infinite = ct_or(at, is_infinite(at, a_magnitude), is_infinite(at, b_magnitude));
    const ct_value zero = ct_or(at, ct_equals(at, a_magnitude, 0), ct_equals(at, b_magnitude, 0));
    const ct_value is_nan = ct_or(at, ct_or(at, ct_is_nan64(at, a), ct_is_nan64(at, b)), ct_and(at, infinite, zero));
    ct_value result = ct_select(at, zero, sign, finite);

    result = ct_select(at, infinite, ct_or_imm(at, sign, CT_INFINITE64), result);
    return ct_select_nan64(at, is_nan, result);
}

/* The significand of a product of two significands has 127 or 128 bits, of which the lower half is sticky only. */
ct_value ct_software64_product(struct ct_cursor *at, const struct ct_insn *insn)
{
    const ct_value a = insn->operands[0], b = insn->operands[1], sign = ct_sign64(at, ct_xor(at, a, b));
    const struct ct_parts64 a_parts = ct_parts64_of(at, a), b_parts = ct_parts64_of(at, b);
    const struct ct_parts64 x = ct_normalized64(at, &a_parts), y = ct_normalized64(at, &b_parts);
    const struct ct_wide wide = ct_wide_product(at, x.significand, y.significand);
    const struct ct_parts64 product = {ct_sticky64(at, wide.high, ct_not(at, ct_equals(at, wide.low, 0))),
                                       ct_add_imm(at, ct_add(at, x.exponent, y.exponent), (uint64_t)(1 - CT_BIAS64))};
    const ct_value is_short = ct_icmp_imm(at, PTX_S64, PTX_GE, product.significand, 0);
    const struct ct_parts64 normalized = {
        ct_select(at, is_short, ct_shl_imm(at, product.significand, 1), product.significand),
        ct_select(at, is_short, ct_add_imm(at, product.exponent, UINT64_MAX), product.exponent),
    };

    return with_special_factors(at, a, b, sign, ct_rounded64(at, sign, &normalized));
}

/* ---- a * b + c ---- */

/* magnitude * 2^unit; the sign is its bit. */
struct term {
    struct ct_wide magnitude;
    ct_value unit, sign;
};

static struct term make_term(struct ct_cursor *at, struct ct_wide magnitude, ct_value unit, ct_value sign)
{
    return (struct term){magnitude, ct_select(at, ct_wide_is_zero(at, magnitude), ct_const32(at, (uint32_t)LEAST_UNIT), unit), sign};
}

static struct term product_term(struct ct_cursor *at, ct_value a, ct_value b)
{
    const struct ct_parts64 a_parts = ct_parts64_of(at, a), b_parts = ct_parts64_of(at, b);
    const struct ct_parts64 x = ct_normalized64(at, &a_parts), y = ct_normalized64(at, &b_parts);
    const struct ct_wide whole = ct_wide_product(at, x.significand, y.significand);
    const ct_value low = ct_or(at, ct_shr_imm(at, whole.low, PRODUCT_SPARE), ct_shl_imm(at, whole.high, 64 - PRODUCT_SPARE));
    const ct_value unit = ct_add_imm(at, ct_add(at, x.exponent, y.exponent), (uint64_t)(-2 * (CT_BIAS64 + 63) + PRODUCT_SPARE));

    return make_term(at, (struct ct_wide){low, ct_shr_imm(at, whole.high, PRODUCT_SPARE)}, unit, ct_sign64(at, ct_xor(at, a, b)));
}

static struct term addend_term(struct ct_cursor *at, ct_value c)
{
    const struct ct_parts64 parts = ct_parts64_of(at, c), x = ct_normalized64(at, &parts);
    const struct ct_wide magnitude = {ct_shl_imm(at, x.significand, TERM_SHIFT), ct_shr_imm(at, x.significand, 64 - TERM_SHIFT)};

    return make_term(at, magnitude, ct_add_imm(at, x.exponent, (uint64_t)(-(CT_BIAS64 + 63) - TERM_SHIFT)), ct_sign64(at, c));
}

static struct term select_term(struct ct_cursor *at, ct_value condition, const struct term *yes, const struct term *no)
{
    return (struct term){ct_wide_select(at, condition, yes->magnitude, no->magnitude), ct_select(at, condition, yes->unit, no->unit),
                         ct_select(at, condition, yes->sign, no->sign)};
}

/* The term with the greater unit comes first; the difference is negative only if the units differ by little, so that nothing is lost. */
static struct term sum_of(struct ct_cursor *at, const struct term *x, const struct term *y)
{
    const ct_value exchanged = ct_icmp(at, PTX_S32, PTX_LT, x->unit, y->unit);
    const struct term high = select_term(at, exchanged, y, x), low = select_term(at, exchanged, x, y);
    const ct_value distance = ct_op2(at, CT_OP_MIN, PTX_U32, ct_sub(at, high.unit, low.unit), ct_const32(at, 127));
    const struct ct_wide shifted = ct_wide_shifted_sticky(at, low.magnitude, distance), zero = {ct_const64(at, 0), ct_const64(at, 0)};
    const ct_value cancels = ct_icmp(at, PTX_U64, PTX_NE, high.sign, low.sign);
    const struct ct_wide difference = ct_wide_difference(at, high.magnitude, shifted);
    const ct_value is_negative = ct_icmp_imm(at, PTX_S64, PTX_LT, difference.high, 0);
    const struct ct_wide remainder = ct_wide_select(at, is_negative, ct_wide_difference(at, zero, difference), difference);
    const struct ct_wide sum = ct_wide_sum(at, high.magnitude, shifted);

    return (struct term){
        .magnitude = ct_wide_select(at, cancels, remainder, sum),
        .unit = high.unit,
        .sign = ct_select(at, ct_and(at, cancels, is_negative), low.sign, high.sign),
    };
}

/* A sum of 0 is -0 only if both terms are. */
static ct_value rounded_sum(struct ct_cursor *at, const struct term *x, const struct term *y)
{
    const struct term sum = sum_of(at, x, y);
    const ct_value zeros = ct_op2(at, CT_OP_MIN, PTX_U32, ct_wide_count_zeros(at, sum.magnitude), ct_const32(at, 127));
    const struct ct_wide bits = ct_wide_shifted_left(at, sum.magnitude, zeros);
    const struct ct_parts64 parts = {
        ct_sticky64(at, bits.high, ct_not(at, ct_equals(at, bits.low, 0))),
        ct_sub(at, ct_add_imm(at, sum.unit, 127 + CT_BIAS64), zeros),
    };
    const ct_value finite = ct_rounded64(at, sum.sign, &parts);

    return ct_select(at, ct_wide_is_zero(at, sum.magnitude), ct_and(at, x->sign, y->sign), finite);
}

ct_value ct_software64_fused(struct ct_cursor *at, const struct ct_insn *insn)
{
    const ct_value a = insn->operands[0], b = insn->operands[1], c = insn->operands[2];
    const struct term product = product_term(at, a, b), addend = addend_term(at, c);
    const ct_value a_magnitude = ct_magnitude64(at, a), b_magnitude = ct_magnitude64(at, b);
    const ct_value infinite = ct_or(at, is_infinite(at, a_magnitude), is_infinite(at, b_magnitude));
    const ct_value zero = ct_or(at, ct_equals(at, a_magnitude, 0), ct_equals(at, b_magnitude, 0));
    const ct_value c_infinite = is_infinite(at, ct_magnitude64(at, c));
    const ct_value opposed = ct_and(at, ct_and(at, infinite, c_infinite), ct_icmp(at, PTX_U64, PTX_NE, product.sign, addend.sign));
    const ct_value some_nan = ct_or(at, ct_or(at, ct_is_nan64(at, a), ct_is_nan64(at, b)), ct_is_nan64(at, c));
    const ct_value is_nan = ct_or(at, some_nan, ct_or(at, opposed, ct_and(at, infinite, zero)));
    ct_value result = ct_select(at, c_infinite, c, rounded_sum(at, &product, &addend));

    result = ct_select(at, infinite, ct_or_imm(at, product.sign, CT_INFINITE64), result);
    return ct_select_nan64(at, is_nan, result);
}
