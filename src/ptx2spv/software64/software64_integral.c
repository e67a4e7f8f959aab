/* SPDX-License-Identifier: Apache-2.0 */
/* f64 rounded to integers that are f64, compared, and their signs. */
#include "software64.h"

/* ---- integers ---- */

/* |x| rounded to a multiple of one: the bits of the fraction are cut off, after an addition that may carry into the exponent. Numbers below 1 have no
 * bit for that. `grows`: if the magnitude is rounded up when it has a fraction; CT_NO_VALUE: to the nearest, or the even one of two. */
static ct_value integral(struct ct_cursor *at, ct_value x, ct_value grows)
{
    const ct_value magnitude = ct_magnitude64(at, x), one = ct_const64(at, CT_ONE64), zero = ct_const64(at, 0);
    const ct_value exponent = ct_low32(at, ct_shr_imm(at, magnitude, CT_FRACTION_BITS64));
    const ct_value places = ct_sub(at, ct_const32(at, CT_BIAS64 + CT_FRACTION_BITS64), exponent); /* of the fraction */
    const ct_value shift = ct_op2(at, CT_OP_MIN, PTX_U32, places, ct_const32(at, CT_FRACTION_BITS64));
    const ct_value unit = ct_shifted64(at, CT_OP_SHL, ct_const64(at, 1), shift), below = ct_add_imm(at, unit, UINT64_MAX);
    const ct_value is_small = ct_icmp_imm(at, PTX_U64, PTX_LT, magnitude, CT_ONE64);
    const ct_value is_whole = ct_icmp_imm(at, PTX_S32, PTX_LE, places, 0);
    ct_value added, small, result;

    if (grows.i) {
        added = ct_select(at, grows, below, zero);
        small = ct_select(at, ct_and(at, grows, ct_not(at, ct_equals(at, magnitude, 0))), one, zero);
    } else {
        const ct_value last = ct_and_imm(at, ct_shifted64(at, CT_OP_SHR, magnitude, shift), 1);

        added = ct_add(at, ct_shr_imm(at, below, 1), last);
        small = ct_select(at, ct_icmp_imm(at, PTX_U64, PTX_GT, magnitude, CT_ONE64 - (UINT64_C(1) << CT_FRACTION_BITS64)), one, zero);
    }
    result = ct_and(at, ct_add(at, magnitude, added), ct_not(at, below));
    result = ct_select(at, is_small, small, ct_select(at, is_whole, magnitude, result));
    return ct_or(at, result, ct_sign64(at, x));
}

static ct_value is_negative(struct ct_cursor *at, ct_value x)
{
    return ct_icmp_imm(at, PTX_S64, PTX_LT, x, 0);
}

ct_value ct_software64_floor(struct ct_cursor *at, const struct ct_insn *insn)
{
    return integral(at, insn->operands[0], is_negative(at, insn->operands[0]));
}

ct_value ct_software64_ceiling(struct ct_cursor *at, const struct ct_insn *insn)
{
    return integral(at, insn->operands[0], ct_not(at, is_negative(at, insn->operands[0])));
}

ct_value ct_software64_truncated(struct ct_cursor *at, const struct ct_insn *insn)
{
    return integral(at, insn->operands[0], ct_emit_const(at, CT_W_PRED, 0));
}

ct_value ct_software64_nearest_integer(struct ct_cursor *at, const struct ct_insn *insn)
{
    return integral(at, insn->operands[0], CT_NO_VALUE);
}

/* ---- comparisons ---- */

/* A signed integer in the order of the numbers; both zeros are 0. */
static ct_value ordered(struct ct_cursor *at, ct_value x)
{
    const ct_value sign = ct_sar_imm(at, x, 63);

    return ct_sub(at, ct_xor(at, ct_magnitude64(at, x), sign), sign);
}

static ct_value compared(struct ct_cursor *at, enum ptx_compare compare, ct_value a, ct_value b)
{
    static const uint8_t of_numbers[] = {
        [PTX_EQ] = PTX_EQ,  [PTX_NE] = PTX_NE,  [PTX_LT] = PTX_LT,  [PTX_LE] = PTX_LE,  [PTX_GT] = PTX_GT,  [PTX_GE] = PTX_GE,
        [PTX_EQU] = PTX_EQ, [PTX_NEU] = PTX_NE, [PTX_LTU] = PTX_LT, [PTX_LEU] = PTX_LE, [PTX_GTU] = PTX_GT, [PTX_GEU] = PTX_GE,
    };
    const ct_value has_nan = ct_or(at, ct_is_nan64(at, a), ct_is_nan64(at, b));
    ct_value holds;

    if (compare == PTX_NAN)
        return has_nan;
    if (compare == PTX_NUM)
        return ct_not(at, has_nan);
    holds = ct_icmp(at, PTX_S64, (enum ptx_compare)of_numbers[compare], ordered(at, a), ordered(at, b));
    return compare >= PTX_EQU ? ct_or(at, holds, has_nan) : ct_and(at, holds, ct_not(at, has_nan));
}

ct_value ct_software64_comparison(struct ct_cursor *at, const struct ct_insn *insn)
{
    return compared(at, insn->compare, insn->operands[0], insn->operands[1]);
}

/* The other operand if one is a NaN. */
static ct_value extreme(struct ct_cursor *at, enum ptx_compare compare, ct_value a, ct_value b)
{
    return ct_select(at, ct_or(at, compared(at, compare, a, b), ct_is_nan64(at, b)), a, b);
}

ct_value ct_software64_minimum(struct ct_cursor *at, const struct ct_insn *insn)
{
    return extreme(at, PTX_LT, insn->operands[0], insn->operands[1]);
}

ct_value ct_software64_maximum(struct ct_cursor *at, const struct ct_insn *insn)
{
    return extreme(at, PTX_GT, insn->operands[0], insn->operands[1]);
}

/* ---- signs ---- */

ct_value ct_software64_negated(struct ct_cursor *at, const struct ct_insn *insn)
{
    return ct_xor_imm(at, insn->operands[0], CT_SIGN64);
}

ct_value ct_software64_magnitude(struct ct_cursor *at, const struct ct_insn *insn)
{
    return ct_magnitude64(at, insn->operands[0]);
}
