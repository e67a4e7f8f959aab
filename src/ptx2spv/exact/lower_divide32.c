/* SPDX-License-Identifier: Apache-2.0 */
/* lower: correctly rounded f32 quotients and square roots on targets without 64-bit floats: Intel's GPUs from Tiger Lake to DG2, phones.
 *
 * The driver's quotient or root of the significands, which may be some ulps off (Vulkan allows 2.5 for a quotient, 4.5 for a root), is
 * converted to an integer of 25 bits and corrected by its remainder, in 32-bit integers that wrap around: the remainder itself is small. What is
 * left of it tells whether the integer is exact. The rounding, too, is by integers, so nothing depends on how the driver treats subnormals. */
#include "round32.h"

static ct_value to_float(struct ct_cursor *at, enum ptx_type from, ct_value x)
{
    return ct_converted(at, CT_OP_ITOF, from, PTX_F32, x);
}

static ct_value to_integer(struct ct_cursor *at, ct_value x)
{
    return ct_converted(at, CT_OP_FTOI, PTX_F32, PTX_S32, x);
}

static ct_value product(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_op2(at, CT_OP_MUL, PTX_U32, a, b);
}

/* The remainder divided by the denominator, by the driver, rounded down: one too many or too few where the quotient is close to an integer. A
 * conversion truncates, so what is negative would be up to two too many. */
static ct_value correction(struct ct_cursor *at, ct_value remainder, ct_value denominator)
{
    const ct_value quotient = ct_op2(at, CT_OP_FDIV, PTX_F32, to_float(at, PTX_S32, remainder), denominator);

    return ct_add(at, to_integer(at, quotient), ct_sar_imm(at, remainder, 31));
}

/* ---- quotients ---- */

static ct_value finite_quotient(struct ct_cursor *at, enum ptx_rounding rounding, ct_value sign, ct_value a, ct_value b)
{
    const struct ct_parts32 top = ct_parts32_of(at, a), bottom = ct_parts32_of(at, b);
    const ct_value is_less = ct_icmp(at, PTX_U32, PTX_LT, top.fraction, bottom.fraction);
    const ct_value numerator = ct_select(at, is_less, ct_shl_imm(at, top.fraction, 1), top.fraction); /* the quotient is in [1, 2) */
    const ct_value denominator = bottom.fraction, divisor = to_float(at, PTX_U32, denominator);
    const ct_value dividend = ct_op2(at, CT_OP_FMUL, PTX_F32, to_float(at, PTX_U32, numerator), ct_float_const(at, PTX_F32, 0x1p24));
    const ct_value first = to_integer(at, ct_op2(at, CT_OP_FDIV, PTX_F32, dividend, divisor));
    const ct_value scaled = ct_shl_imm(at, numerator, 24), rest = ct_sub(at, scaled, product(at, first, denominator));
    const ct_value step = correction(at, rest, divisor);
    const ct_value second = ct_add(at, first, step), remainder = ct_sub(at, rest, product(at, step, denominator));
    const ct_value is_above = ct_icmp_imm(at, PTX_S32, PTX_LT, remainder, 0);
    const ct_value is_below = ct_icmp(at, PTX_S32, PTX_GE, remainder, denominator);
    const ct_value significand = ct_sub(at, ct_add(at, second, ct_one_if(at, is_below)), ct_one_if(at, is_above));
    const struct ct_unrounded32 quotient = {
        .sign = sign,
        .significand = significand,
        .exponent = ct_sub(at, ct_add_imm(at, ct_sub(at, top.exponent, bottom.exponent), CT_BIAS32), ct_one_if(at, is_less)),
        .is_inexact = ct_icmp(at, PTX_U32, PTX_NE, product(at, significand, denominator), scaled),
    };

    return ct_rounded32(at, rounding, &quotient);
}

ct_value ct_lower_integer_quotient32(struct ct_lower *l, enum ptx_rounding rounding, ct_value a, ct_value b)
{
    struct ct_cursor *at = &l->at;
    const ct_value sign = ct_and_imm(at, ct_xor(at, a, b), CT_SIGN32);
    const ct_value top = ct_float_magnitude(at, PTX_F32, a), bottom = ct_float_magnitude(at, PTX_F32, b);
    const ct_value no_top = ct_equals(at, top, 0), no_bottom = ct_equals(at, bottom, 0);
    const ct_value infinite_top = ct_equals(at, top, CT_INFINITE32), infinite_bottom = ct_equals(at, bottom, CT_INFINITE32);
    const ct_value is_nan = ct_or(at, ct_float_is_nan(at, PTX_F32, a), ct_float_is_nan(at, PTX_F32, b));
    const ct_value is_undefined = ct_or(at, ct_and(at, no_top, no_bottom), ct_and(at, infinite_top, infinite_bottom));
    ct_value result = finite_quotient(at, rounding, sign, top, bottom);

    result = ct_select(at, ct_or(at, no_top, infinite_bottom), sign, result);
    result = ct_select(at, ct_or(at, infinite_top, no_bottom), ct_or_imm(at, sign, CT_INFINITE32), result);
    return ct_select(at, ct_or(at, is_nan, is_undefined), ct_const32(at, CT_NAN32), result);
}

/* ---- square roots ---- */

static ct_value positive_root(struct ct_cursor *at, enum ptx_rounding rounding, ct_value a)
{
    const struct ct_parts32 x = ct_parts32_of(at, a);
    const ct_value is_odd = ct_equals(at, ct_and_imm(at, x.exponent, 1), 0); /* the exponent without CT_BIAS32 */
    const ct_value radicand = ct_select(at, is_odd, ct_shl_imm(at, x.fraction, 1), x.fraction), scaled = ct_shl_imm(at, radicand, 25);
    const ct_value wide = ct_op2(at, CT_OP_FMUL, PTX_F32, to_float(at, PTX_U32, radicand), ct_float_const(at, PTX_F32, 0x1p25));
    const ct_value first = to_integer(at, ct_op1(at, CT_OP_FSQRT, PTX_F32, wide));
    const ct_value rest = ct_sub(at, scaled, product(at, first, first));
    const ct_value slope = to_float(at, PTX_S32, ct_shl_imm(at, first, 1));
    const ct_value second = ct_add(at, first, correction(at, rest, slope));
    const ct_value remainder = ct_sub(at, scaled, product(at, second, second));
    const ct_value is_above = ct_icmp_imm(at, PTX_S32, PTX_LT, remainder, 0);
    const ct_value is_below = ct_icmp(at, PTX_S32, PTX_GT, remainder, ct_shl_imm(at, second, 1));
    const ct_value root = ct_sub(at, ct_add(at, second, ct_one_if(at, is_below)), ct_one_if(at, is_above));
    const ct_value halved = ct_sar_imm(at, ct_sub(at, ct_add_imm(at, x.exponent, -(uint64_t)CT_BIAS32), ct_one_if(at, is_odd)), 1);
    const struct ct_unrounded32 result = {
        .sign = ct_const32(at, 0),
        .significand = root,
        .exponent = ct_add_imm(at, halved, CT_BIAS32),
        .is_inexact = ct_icmp(at, PTX_U32, PTX_NE, product(at, root, root), scaled),
    };

    return ct_rounded32(at, rounding, &result);
}

/* Zeros, infinity and NaN are their own roots; that of other negative numbers is NaN. */
ct_value ct_lower_integer_root32(struct ct_lower *l, enum ptx_rounding rounding, ct_value a)
{
    struct ct_cursor *at = &l->at;
    const ct_value is_usual = ct_icmp_imm(at, PTX_U32, PTX_LT, ct_add_imm(at, a, UINT64_MAX), CT_INFINITE32 - 1);
    const ct_value is_negative = ct_icmp_imm(at, PTX_U32, PTX_GT, a, CT_SIGN32);

    return ct_select(at, is_usual, positive_root(at, rounding, a), ct_select(at, is_negative, ct_const32(at, CT_NAN32), a));
}
