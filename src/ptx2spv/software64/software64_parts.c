/* SPDX-License-Identifier: Apache-2.0 */
#include "software64.h"

ct_value ct_magnitude64(struct ct_cursor *at, ct_value x)
{
    return ct_and_imm(at, x, ~CT_SIGN64);
}

ct_value ct_sign64(struct ct_cursor *at, ct_value x)
{
    return ct_and_imm(at, x, CT_SIGN64);
}

ct_value ct_is_nan64(struct ct_cursor *at, ct_value x)
{
    return ct_icmp_imm(at, PTX_U64, PTX_GT, ct_magnitude64(at, x), CT_INFINITE64);
}

ct_value ct_select_nan64(struct ct_cursor *at, ct_value condition, ct_value otherwise)
{
    return ct_select(at, condition, ct_const64(at, CT_NAN64), otherwise);
}

ct_value ct_shifted64(struct ct_cursor *at, enum ct_op op, ct_value x, ct_value amount)
{
    return ct_op2(at, op, PTX_U64, x, amount);
}

ct_value ct_sticky64(struct ct_cursor *at, ct_value x, ct_value condition)
{
    return ct_or(at, x, ct_select(at, condition, ct_const64(at, 1), ct_const64(at, 0)));
}

ct_value ct_shifted_sticky64(struct ct_cursor *at, ct_value x, ct_value amount)
{
    const ct_value kept = ct_shifted64(at, CT_OP_SHR, x, amount), back = ct_shifted64(at, CT_OP_SHL, kept, amount);

    return ct_sticky64(at, kept, ct_icmp(at, PTX_U64, PTX_NE, back, x));
}

/* Subnormals have the exponent of the least normal number, without its leading bit. */
struct ct_parts64 ct_parts64_of(struct ct_cursor *at, ct_value x)
{
    const ct_value magnitude = ct_magnitude64(at, x), exponent = ct_low32(at, ct_shr_imm(at, magnitude, CT_FRACTION_BITS64));
    const ct_value leading = ct_select(at, ct_equals(at, exponent, 0), ct_const64(at, 0), ct_const64(at, CT_SIGN64));

    return (struct ct_parts64){
        .significand = ct_or(at, ct_and_imm(at, ct_shl_imm(at, magnitude, CT_SPARE_BITS64), ~CT_SIGN64), leading),
        .exponent = ct_op2(at, CT_OP_MAX, PTX_U32, exponent, ct_const32(at, 1)),
    };
}

struct ct_parts64 ct_normalized64(struct ct_cursor *at, const struct ct_parts64 *x)
{
    const ct_value zeros = ct_op2(at, CT_OP_MIN, PTX_U32, ct_count_leading_zeros(at, x->significand), ct_const32(at, 63));

    return (struct ct_parts64){
        .significand = ct_shifted64(at, CT_OP_SHL, x->significand, zeros),
        .exponent = ct_sub(at, x->exponent, zeros),
    };
}

/* With an exponent below 1 the result is subnormal and keeps fewer bits. The leading bit of a normal result adds 1 to its exponent, and a carry out of
 * the significand adds another 1. */
ct_value ct_rounded_to(struct ct_cursor *at, unsigned fraction_bits, unsigned greatest_exponent, const struct ct_parts64 *x)
{
    const unsigned spare = 63 - fraction_bits;
    const ct_value zero = ct_const32(at, 0), missing = ct_op2(at, CT_OP_MAX, PTX_S32, ct_sub(at, ct_const32(at, 1), x->exponent), zero);
    const ct_value shift = ct_op2(at, CT_OP_MIN, PTX_S32, missing, ct_const32(at, 63));
    const ct_value bits = ct_shifted_sticky64(at, x->significand, shift), kept = ct_shr_imm(at, bits, spare);
    const ct_value rest = ct_and_imm(at, bits, (UINT64_C(1) << spare) - 1), last = ct_and_imm(at, kept, 1);
    const ct_value carry = ct_shr_imm(at, ct_add(at, ct_add_imm(at, rest, (UINT64_C(1) << (spare - 1)) - 1), last), spare);
    const ct_value above = ct_op2(at, CT_OP_MAX, PTX_S32, ct_add_imm(at, x->exponent, UINT64_MAX), zero);
    const ct_value magnitude = ct_add(at, ct_shl_imm(at, ct_zext64(at, above), fraction_bits), ct_add(at, kept, carry));
    const ct_value too_great = ct_icmp_imm(at, PTX_S32, PTX_GE, x->exponent, greatest_exponent);

    return ct_select(at, too_great, ct_const64(at, (uint64_t)greatest_exponent << fraction_bits), magnitude);
}

ct_value ct_rounded64(struct ct_cursor *at, ct_value sign, const struct ct_parts64 *x)
{
    return ct_or(at, sign, ct_rounded_to(at, CT_FRACTION_BITS64, CT_GREATEST_EXPONENT64, x));
}
