/* SPDX-License-Identifier: Apache-2.0 */
#include "round32.h"

enum { SIGNIFICAND_BITS = 25, GREATEST_EXPONENT = 255, BF16_FRACTION_BITS = 7 };

ct_value ct_one_if(struct ct_cursor *at, ct_value condition)
{
    return ct_select(at, condition, ct_const32(at, 1), ct_const32(at, 0));
}

static ct_value shifted(struct ct_cursor *at, enum ct_op op, ct_value x, ct_value amount)
{
    return ct_op2(at, op, PTX_U32, x, amount);
}

/* Subnormals are converted from integers. */
struct ct_parts32 ct_parts32_of(struct ct_cursor *at, ct_value magnitude)
{
    const ct_value is_subnormal = ct_icmp_imm(at, PTX_U32, PTX_LT, magnitude, UINT64_C(1) << CT_FRACTION_BITS32);
    const ct_value bits = ct_select(at, is_subnormal, ct_converted(at, CT_OP_ITOF, PTX_U32, PTX_F32, magnitude), magnitude);
    const ct_value moved = ct_select(at, is_subnormal, ct_const32(at, CT_BIAS32 + CT_FRACTION_BITS32 - 1), ct_const32(at, 0));

    return (struct ct_parts32){
        .fraction = ct_or_imm(at, ct_and_imm(at, bits, (1u << CT_FRACTION_BITS32) - 1), 1u << CT_FRACTION_BITS32),
        .exponent = ct_sub(at, ct_shr_imm(at, bits, CT_FRACTION_BITS32), moved),
    };
}

/* Whether the magnitude is rounded up. `rest` are the bits below the last one of `kept`, and `half` the upper one of these. */
static ct_value rounds_up(struct ct_cursor *at, enum ptx_rounding rounding, const struct ct_unrounded32 *x, ct_value kept, ct_value rest,
                          ct_value half)
{
    const ct_value is_negative = ct_icmp_imm(at, PTX_U32, PTX_NE, x->sign, 0);
    const ct_value loses = ct_or(at, x->is_inexact, ct_icmp_imm(at, PTX_U32, PTX_NE, rest, 0));
    ct_value is_tie, is_odd;

    if (rounding == PTX_RM)
        return ct_and(at, loses, is_negative);
    if (rounding == PTX_RP)
        return ct_and(at, loses, ct_not(at, is_negative));
    is_tie = ct_icmp(at, PTX_U32, PTX_EQ, rest, half);
    is_odd = ct_equals(at, ct_and_imm(at, kept, 1), 1);
    return ct_or(at, ct_icmp(at, PTX_U32, PTX_GT, rest, half), ct_and(at, is_tie, ct_or(at, x->is_inexact, is_odd)));
}

/* The result if the exponent is too great: infinity, or the greatest finite number. */
static ct_value overflowed(struct ct_cursor *at, enum ptx_rounding rounding, uint32_t infinity, ct_value sign)
{
    const ct_value infinite = ct_const32(at, infinity), greatest = ct_const32(at, infinity - 1);
    const ct_value is_negative = ct_icmp_imm(at, PTX_U32, PTX_NE, sign, 0);

    if (ct_rounds_to_nearest(rounding))
        return infinite;
    if (rounding == PTX_RZ)
        return greatest;
    return rounding == PTX_RM ? ct_select(at, is_negative, infinite, greatest) : ct_select(at, is_negative, greatest, infinite);
}

/* The magnitude, of so many fraction bits. With an exponent below 1 the result is subnormal and keeps fewer. A carry out of the significand increments
 * the exponent. */
static ct_value rounded_to(struct ct_cursor *at, uint32_t fraction_bits, enum ptx_rounding rounding, const struct ct_unrounded32 *x)
{
    const ct_value zero = ct_const32(at, 0), one = ct_const32(at, 1);
    const ct_value missing = ct_op2(at, CT_OP_MAX, PTX_S32, ct_sub(at, one, x->exponent), zero);
    const ct_value lost_bits =
        ct_add_imm(at, ct_op2(at, CT_OP_MIN, PTX_S32, missing, ct_const32(at, fraction_bits + 2)), SIGNIFICAND_BITS - 1 - fraction_bits);
    const ct_value kept = shifted(at, CT_OP_SHR, x->significand, lost_bits);
    const ct_value rest = ct_sub(at, x->significand, shifted(at, CT_OP_SHL, kept, lost_bits));
    const ct_value half = shifted(at, CT_OP_SHL, one, ct_add_imm(at, lost_bits, UINT64_MAX));
    const ct_value exponent = ct_op2(at, CT_OP_MIN, PTX_S32, x->exponent, ct_const32(at, GREATEST_EXPONENT));
    const ct_value above = ct_op2(at, CT_OP_MAX, PTX_S32, ct_add_imm(at, exponent, UINT64_MAX), zero); /* the upper bit of `kept` adds 1 */
    const ct_value too_great = ct_icmp_imm(at, PTX_S32, PTX_GE, exponent, GREATEST_EXPONENT);
    ct_value magnitude = ct_add(at, ct_shl_imm(at, above, fraction_bits), kept);

    if (rounding != PTX_RZ)
        magnitude = ct_add(at, magnitude, ct_one_if(at, rounds_up(at, rounding, x, kept, rest, half)));
    return ct_select(at, too_great, overflowed(at, rounding, GREATEST_EXPONENT << fraction_bits, x->sign), magnitude);
}

ct_value ct_rounded32(struct ct_cursor *at, enum ptx_rounding rounding, const struct ct_unrounded32 *x)
{
    return ct_or(at, rounded_to(at, CT_FRACTION_BITS32, rounding, x), x->sign);
}

ct_value ct_rounded_bf16(struct ct_cursor *at, const struct ct_unrounded32 *x)
{
    return ct_resize(at, ct_or(at, rounded_to(at, BF16_FRACTION_BITS, PTX_RN, x), ct_shr_imm(at, x->sign, 16)), PTX_U32, CT_W_16);
}

/* The greatest number below it becomes that number if it is rounded up. */
ct_value ct_is_tiny32(struct ct_cursor *at, enum ptx_rounding rounding, const struct ct_unrounded32 *x)
{
    const ct_value is_below = ct_icmp_imm(at, PTX_S32, PTX_LE, x->exponent, 0), kept = ct_shr_imm(at, x->significand, 1);
    const ct_value rest = ct_and_imm(at, x->significand, 1);
    ct_value carries;

    if (rounding == PTX_RZ)
        return is_below;
    carries = ct_and(at, ct_equals(at, x->exponent, 0), ct_equals(at, kept, (1u << (CT_FRACTION_BITS32 + 1)) - 1));
    carries = ct_and(at, carries, rounds_up(at, rounding, x, kept, rest, ct_const32(at, 1)));
    return ct_and(at, is_below, ct_not(at, carries));
}
