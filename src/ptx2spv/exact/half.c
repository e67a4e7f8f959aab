/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between f16 and f32 by integers, for devices without 16-bit floats: with them all operations on f16 are computed in f32. */
#include "lower.h"

enum {
    MOVED_BITS = 13,           /* between the fractions */
    REBIAS = (127 - 15) << 23, /* between the exponents, in an f32 */
    PLACES = 24,               /* the last bit of a subnormal f16 is 2^-24 */
    LEAST_NORMAL = 0x38800000, /* 2^-14 as f32 */
    INFINITE16 = 0x7c00,
    SIGN16 = 0x8000,
    UNIT_EXPONENT = 126, /* an f32 of this exponent would have a significand that counts units of 2^-24 */
};

static ct_value is_below(struct ct_cursor *at, ct_value x, uint32_t limit)
{
    return ct_icmp_imm(at, PTX_U32, PTX_LT, x, limit);
}

/* A subnormal is an integer times 2^-24. */
ct_value ct_half_widened(struct ct_cursor *at, ct_value x)
{
    const ct_value bits = ct_resize(at, x, PTX_U16, CT_W_32), magnitude = ct_and_imm(at, bits, SIGN16 - 1);
    const ct_value moved = ct_shl_imm(at, magnitude, MOVED_BITS), sign = ct_shl_imm(at, ct_and_imm(at, bits, SIGN16), 16);
    const ct_value places = ct_converted(at, CT_OP_ITOF, PTX_U32, PTX_F32, magnitude);
    const ct_value subnormal = ct_add_imm(at, places, -(uint64_t)(PLACES << 23));
    ct_value result = ct_select(at, is_below(at, magnitude, 1 << 10), subnormal, ct_add_imm(at, moved, REBIAS));

    result = ct_select(at, ct_equals(at, magnitude, 0), magnitude, result);
    result = ct_select(at, is_below(at, magnitude, INFINITE16), result, ct_or_imm(at, moved, 0x7f800000));
    return ct_or(at, result, sign);
}

/* The integer of units of 2^-24 that is nearest to a magnitude below 2^-14. */
static ct_value subnormal_of(struct ct_cursor *at, ct_value magnitude)
{
    const ct_value significand = ct_or_imm(at, ct_and_imm(at, magnitude, (1u << 23) - 1), 1u << 23);
    const ct_value distance = ct_sub(at, ct_const32(at, UNIT_EXPONENT), ct_shr_imm(at, magnitude, 23));
    const ct_value shift = ct_op2(at, CT_OP_MIN, PTX_U32, distance, ct_const32(at, 31)), one = ct_const32(at, 1);
    const ct_value kept = ct_op2(at, CT_OP_SHR, PTX_U32, significand, shift);
    const ct_value below_half = ct_add_imm(at, ct_op2(at, CT_OP_SHL, PTX_U32, one, ct_add_imm(at, shift, UINT64_MAX)), UINT64_MAX);
    const ct_value rounded = ct_add(at, ct_add(at, significand, below_half), ct_and_imm(at, kept, 1));

    return ct_op2(at, CT_OP_SHR, PTX_U32, rounded, shift);
}

ct_value ct_half_narrowed(struct ct_cursor *at, ct_value x)
{
    const ct_value magnitude = ct_and_imm(at, x, 0x7fffffff), sign = ct_shr_imm(at, ct_and_imm(at, x, 0x80000000), 16);
    const ct_value last = ct_and_imm(at, ct_shr_imm(at, magnitude, MOVED_BITS), 1);
    const ct_value rounded = ct_add(at, ct_add_imm(at, magnitude, (1u << (MOVED_BITS - 1)) - 1 - (uint64_t)REBIAS), last);
    const ct_value normal = ct_op2(at, CT_OP_MIN, PTX_U32, ct_shr_imm(at, rounded, MOVED_BITS), ct_const32(at, INFINITE16));
    ct_value result = ct_select(at, is_below(at, magnitude, LEAST_NORMAL), subnormal_of(at, magnitude), normal);

    result = ct_or(at, result, sign);
    result = ct_select(at, ct_float_is_nan(at, PTX_F32, x), ct_const32(at, ct_float_layout_of(PTX_F16)->nan), result);
    return ct_resize(at, result, PTX_U32, CT_W_16);
}
