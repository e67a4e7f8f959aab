/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between f64 and f32, and f64 and integers of 32 or 64 bits. */
#include "software64.h"

enum { FRACTION_BITS32 = 23, BIAS32 = 127, GREATEST_EXPONENT32 = 255, SPARE_BITS32 = 8 /* of 32, beside a significand */ };
#define SIGN32 UINT32_C(0x80000000)
#define INFINITE32 UINT32_C(0x7f800000)
#define NAN32 UINT32_C(0x7fffffff)

/* ---- floats ---- */

static ct_value widened(struct ct_cursor *at, ct_value x)
{
    const ct_value magnitude = ct_and_imm(at, x, ~SIGN32), exponent = ct_shr_imm(at, magnitude, FRACTION_BITS32);
    const ct_value sign = ct_shl_imm(at, ct_zext64(at, ct_and_imm(at, x, SIGN32)), 32), zero = ct_const32(at, 0);
    const ct_value leading = ct_select(at, ct_equals(at, exponent, 0), zero, ct_const32(at, SIGN32));
    const ct_value significand = ct_or(at, ct_and_imm(at, ct_shl_imm(at, magnitude, SPARE_BITS32), ~SIGN32), leading);
    const struct ct_parts64 parts = {
        ct_shl_imm(at, ct_zext64(at, significand), 32),
        ct_add_imm(at, ct_op2(at, CT_OP_MAX, PTX_U32, exponent, ct_const32(at, 1)), CT_BIAS64 - BIAS32),
    };
    const struct ct_parts64 normalized = ct_normalized64(at, &parts);
    const ct_value above = ct_shl_imm(at, ct_zext64(at, ct_add_imm(at, normalized.exponent, UINT64_MAX)), CT_FRACTION_BITS64);
    ct_value result = ct_add(at, above, ct_shr_imm(at, normalized.significand, CT_SPARE_BITS64)); /* exact */

    result = ct_select(at, ct_equals(at, magnitude, 0), ct_const64(at, 0), result);
    result = ct_select(at, ct_equals(at, magnitude, INFINITE32), ct_const64(at, CT_INFINITE64), result);
    return ct_select_nan64(at, ct_icmp_imm(at, PTX_U32, PTX_GT, magnitude, INFINITE32), ct_or(at, result, sign));
}

/* All subnormal f64 are too small for an f32. */
static ct_value narrowed(struct ct_cursor *at, ct_value x)
{
    const struct ct_parts64 parts = ct_parts64_of(at, x),
                            moved = {parts.significand, ct_add_imm(at, parts.exponent, (uint64_t)(BIAS32 - CT_BIAS64))};
    const ct_value sign = ct_low32(at, ct_shr_imm(at, ct_sign64(at, x), 32));
    const ct_value magnitude = ct_low32(at, ct_rounded_to(at, FRACTION_BITS32, GREATEST_EXPONENT32, &moved));

    return ct_select(at, ct_is_nan64(at, x), ct_const32(at, NAN32), ct_or(at, sign, magnitude));
}

ct_value ct_software64_float_to_float(struct ct_cursor *at, const struct ct_insn *insn)
{
    return insn->type == PTX_F64 ? narrowed(at, insn->operands[0]) : widened(at, insn->operands[0]);
}

/* ---- integers ---- */

/* Towards zero; the value is in range. */
ct_value ct_software64_float_to_integer(struct ct_cursor *at, const struct ct_insn *insn)
{
    const ct_value x = insn->operands[0], zero = ct_const64(at, 0);
    const struct ct_parts64 parts = ct_parts64_of(at, x);
    const ct_value places = ct_sub(at, ct_const32(at, CT_BIAS64 + 63), parts.exponent); /* of the significand behind the point */
    const ct_value shift = ct_op2(at, CT_OP_MIN, PTX_U32, places, ct_const32(at, 63));
    const ct_value is_small = ct_icmp_imm(at, PTX_U64, PTX_LT, ct_magnitude64(at, x), CT_ONE64);
    ct_value result = ct_select(at, is_small, zero, ct_shifted64(at, CT_OP_SHR, parts.significand, shift));

    if (ptx_type_is_signed(insn->type2))
        result = ct_select(at, ct_icmp_imm(at, PTX_S64, PTX_LT, x, 0), ct_sub(at, zero, result), result);
    return ct_resize(at, result, PTX_U64, ct_width_of(insn->type2));
}

ct_value ct_software64_integer_to_float(struct ct_cursor *at, const struct ct_insn *insn)
{
    const ct_value x = ct_resize(at, insn->operands[0], insn->type, CT_W_64), zero = ct_const64(at, 0);
    const ct_value sign = ptx_type_is_signed(insn->type) ? ct_sign64(at, x) : zero;
    const ct_value magnitude = ptx_type_is_signed(insn->type) ? ct_select(at, ct_equals(at, sign, 0), x, ct_sub(at, zero, x)) : x;
    const struct ct_parts64 parts = {magnitude, ct_const32(at, CT_BIAS64 + 63)}, normalized = ct_normalized64(at, &parts);

    return ct_select(at, ct_equals(at, magnitude, 0), zero, ct_rounded64(at, sign, &normalized));
}
