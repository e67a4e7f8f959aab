/* SPDX-License-Identifier: Apache-2.0 */
/* lower: cvt with a float as source or destination (PTX ISA, "cvt").
 *
 * The conversions of SPIR-V are relied on only for what they guarantee: integers to the nearest float, floats that are in range towards
 * zero, floats to wider ones. Everything else is clamped, rounded or adjusted around them. bf16 is the upper half of an f32. */
#include "lower.h"

static enum ptx_type from_type(const struct ct_lower *l)
{
    return l->insn->type;
}

static enum ptx_type to_type(const struct ct_lower *l)
{
    return l->insn->type2;
}

/* ---- float to float ---- */

ct_value ct_bf16_widened(struct ct_cursor *at, ct_value x)
{
    return ct_shl_imm(at, ct_resize(at, x, PTX_U16, CT_W_32), 16);
}

/* Rounds the discarded bits by an addition below the kept ones; the carry may go into the exponent, and up to infinity. */
static ct_value to_bf16(struct ct_cursor *at, enum ptx_rounding rounding, ct_value x)
{
    const ct_value nan = ct_const32(at, ct_float_layout_of(PTX_BF16)->nan);
    ct_value upper;

    if (rounding == PTX_RZ) {
        upper = ct_shr_imm(at, x, 16);
    } else if (!ct_rounds_to_nearest(rounding)) { /* on one side of zero, away from zero if any discarded bit is set */
        const ct_value is_negative = ct_icmp_imm(at, PTX_S32, PTX_LT, x, 0);
        const ct_value grows = rounding == PTX_RM ? is_negative : ct_not(at, is_negative);

        upper = ct_shr_imm(at, ct_add(at, x, ct_select(at, grows, ct_const32(at, 0xffff), ct_const32(at, 0))), 16);
    } else {
        const ct_value last = ct_and_imm(at, ct_shr_imm(at, x, 16), 1);

        upper = ct_shr_imm(at, ct_add(at, ct_add_imm(at, x, 0x7fff), last), 16);
    }
    return ct_resize(at, ct_select(at, ct_float_is_nan(at, PTX_F32, x), nan, upper), PTX_U32, CT_W_16);
}

/* f64: adding and subtracting 2^52 gives the nearest integer; greater numbers have no fraction. This is explicit code because drivers'
 * own instructions are wrong (lavapipe 25.0.7: trunc beyond 2^31, roundEven of ties). The sign of zero is kept. */
static ct_value rounded_to_integer64(struct ct_cursor *at, unsigned rounding, ct_value x)
{
    const ct_value limit = ct_float_const(at, PTX_F64, 0x1p52), one = ct_float_const(at, PTX_F64, 1.0);
    const ct_value magnitude = ct_float_magnitude(at, PTX_F64, x), sign = ct_and_imm(at, x, UINT64_C(1) << 63);
    const ct_value has_fraction = ct_fcmp(at, PTX_F64, PTX_LT, magnitude, limit);
    const ct_value nearest = ct_float2(at, CT_OP_FSUB, PTX_F64, ct_float2(at, CT_OP_FADD, PTX_F64, magnitude, limit), limit);
    const ct_value is_negative = ct_icmp_imm(at, PTX_S64, PTX_LT, x, 0);
    const ct_value too_great = ct_fcmp(at, PTX_F64, PTX_GT, nearest, magnitude),
                   too_small = ct_fcmp(at, PTX_F64, PTX_LT, nearest, magnitude);
    const ct_value no = ct_emit_const(at, CT_W_PRED, 0);
    ct_value up = no, down = no, result;

    if (rounding == PTX_RZI)
        down = too_great;
    else if (rounding == PTX_RMI || rounding == PTX_RPI) {
        const ct_value grows = rounding == PTX_RMI ? is_negative : ct_not(at, is_negative); /* away from zero */

        up = ct_and(at, grows, too_small);
        down = ct_and(at, ct_not(at, grows), too_great);
    }
    result = ct_select(at, up, ct_float2(at, CT_OP_FADD, PTX_F64, nearest, one), nearest);
    result = ct_select(at, down, ct_float2(at, CT_OP_FSUB, PTX_F64, nearest, one), result);
    return ct_select(at, has_fraction, ct_or(at, result, sign), x);
}

static ct_value rounded_to_integer(struct ct_cursor *at, enum ptx_type type, unsigned rounding, ct_value x)
{
    static const uint8_t ops[] = {[PTX_RNI] = CT_OP_FRINT, [PTX_RZI] = CT_OP_FTRUNC, [PTX_RMI] = CT_OP_FFLOOR, [PTX_RPI] = CT_OP_FCEIL};

    if (rounding < PTX_RNI || rounding > PTX_RPI)
        return x;
    return type == PTX_F64 && at->fn->target->float64 ? rounded_to_integer64(at, rounding, x) : ct_op1(at, ops[rounding], type, x);
}

/* f16 and bf16 are processed as f32, which represents all of them. */
static enum ptx_type working_type(enum ptx_type type)
{
    return type == PTX_F16 || type == PTX_BF16 ? PTX_F32 : type;
}

static ct_value unpacked(struct ct_cursor *at, enum ptx_type type, ct_value x)
{
    return type == PTX_BF16 ? ct_bf16_widened(at, x) : ct_float_resized(at, type, working_type(type), x);
}

/* Converts x from a working type to any type that is not wider. f64 is converted to 16 bits through an f32 rounded to odd, which avoids
 * double rounding. */
static ct_value packed(struct ct_lower *l, enum ptx_type from, enum ptx_type to, enum ptx_rounding rounding, ct_value x)
{
    struct ct_cursor *at = &l->at;

    if (from == PTX_F64 && (to == PTX_F16 || to == PTX_BF16)) {
        x = ct_float_narrowed_to_odd(at, PTX_F64, PTX_F32, x);
        from = PTX_F32;
    }
    if (to == PTX_BF16) {
        return to_bf16(at, rounding, x);
    }
    if (ptx_type_bits(from) <= ptx_type_bits(to))
        return ct_float_resized(at, from, to, x);
    return ct_float_narrowed(at, from, to, rounding, x);
}

ct_value ct_bf16_narrowed(struct ct_lower *l, enum ptx_type from, ct_value x)
{
    return packed(l, from, PTX_BF16, PTX_RN, x);
}

static ct_value float_source(struct ct_lower *l)
{
    const enum ptx_type from = from_type(l);
    const ct_value x = l->insn->ftz && from == PTX_F32 ? ct_lower_operand(l, 0, from) : l->insn->operands[0];

    return unpacked(&l->at, from, x);
}

static ct_value float_to_float(struct ct_lower *l)
{
    struct ct_cursor *at = &l->at;
    const enum ptx_type from = from_type(l), to = to_type(l), working = working_type(from);
    const unsigned rounding = l->insn->rounding;
    const bool is_integral = rounding >= PTX_RNI && rounding <= PTX_RPI;
    ct_value x = l->insn->operands[0], tiny = CT_NO_VALUE;

    if (from == to && !is_integral && !l->insn->sat)
        return l->insn->ftz && from == PTX_F32 ? ct_lower_operand(l, 0, from) : ct_copy(at, x);
    x = rounded_to_integer(at, working, rounding, float_source(l));
    if (l->insn->sat)
        x = ct_float_saturated(at, working, x);
    if (l->insn->ftz && from == PTX_F64)
        tiny = ct_is_tiny64(at, rounding, x);
    x = packed(l, working, to, is_integral ? PTX_RND_NONE : rounding, x);
    if (tiny.i)
        return ct_select(at, tiny, ct_and_imm(at, x, ct_float_layout_of(to)->sign), x);
    return l->insn->ftz && to == PTX_F32 ? ct_float_flushed(at, to, x) : x;
}

/* ---- float to integer ---- */

/* The result for NaN: zero, but only the sign bit set if the source is f64 or the destination has 64 bits (PTX ISA, "cvt"). */
static uint64_t nan_result(enum ptx_type from, enum ptx_type to)
{
    return from == PTX_F64 || ptx_type_bits(to) == 64 ? UINT64_C(1) << (ptx_type_bits(to) - 1) : 0;
}

static double power_of_two(unsigned exponent)
{
    double power = 1.0;

    while (exponent--)
        power *= 2.0;
    return power;
}

/* x truncated and clamped to the range of `to`. The instruction itself gets only operands that are in range. */
static ct_value clamped_to_integer(struct ct_cursor *at, enum ptx_type working, enum ptx_type to, uint64_t nan, ct_value x)
{
    const bool is_signed = ptx_type_is_signed(to);
    const unsigned bits = ptx_type_bits(to), magnitude_bits = bits - is_signed;
    const enum ptx_type whole = bits == 64 ? (is_signed ? PTX_S64 : PTX_U64) : is_signed ? PTX_S32 : PTX_U32;
    const uint64_t greatest = magnitude_bits == 64 ? UINT64_MAX : (UINT64_C(1) << magnitude_bits) - 1;
    const double limit = power_of_two(magnitude_bits);
    const ct_value is_above = ct_fcmp(at, working, PTX_GE, x, ct_float_const(at, working, limit));
    const ct_value is_below = ct_fcmp(at, working, PTX_LT, x, ct_float_const(at, working, is_signed ? -limit : 0.0));
    const ct_value is_nan = ct_float_is_nan(at, working, x);
    const ct_value outside = ct_or(at, ct_or(at, is_above, is_below), is_nan);
    ct_value result = ct_converted(at, CT_OP_FTOI, working, whole, ct_select(at, outside, ct_const_like(at, x, 0), x));

    result = ct_select(at, is_above, ct_const_like(at, result, greatest), result);
    if (is_signed)
        result = ct_select(at, is_below, ct_const_like(at, result, ~greatest), result);
    return nan ? ct_select(at, is_nan, ct_const_like(at, result, nan), result) : result;
}

static ct_value float_to_integer(struct ct_lower *l)
{
    struct ct_cursor *at = &l->at;
    const enum ptx_type from = from_type(l), to = to_type(l), working = working_type(from);
    const unsigned rounding = l->insn->rounding;
    ct_value x = float_source(l);

    if (rounding != PTX_RND_NONE && rounding != PTX_RZI) /* the instruction itself truncates */
        x = rounded_to_integer(at, working, rounding, x);
    return ct_resize(at, clamped_to_integer(at, working, to, nan_result(from, to), x), PTX_U32, ct_width_of(to));
}

/* ---- integer to float ---- */

static bool is_long(enum ptx_type type)
{
    return ptx_type_bits(type) == 64;
}

/* Integers to floats of fewer bits with directed rounding: the nearest float is converted back to an integer and compared with x. The
 * nearest float is beyond every integer of the type only at the upper end of the range. */
static ct_value directed_from_integer(struct ct_cursor *at, enum ptx_type from, enum ptx_type to, enum ptx_rounding rounding, ct_value x)
{
    const ct_value nearest = ct_converted(at, CT_OP_ITOF, from, to, x);
    const ct_value limit = ct_float_const(at, to, power_of_two(ptx_type_bits(from) - ptx_type_is_signed(from)));
    const ct_value is_beyond = ct_fcmp(at, to, PTX_GE, nearest, limit);
    const ct_value back = ct_converted(at, CT_OP_FTOI, to, from, ct_select(at, is_beyond, ct_const_like(at, nearest, 0), nearest));
    const ct_value is_less = ct_icmp(at, from, PTX_LT, x, back), is_greater = ct_icmp(at, from, PTX_GT, x, back);

    return ct_adjusted(at, to, rounding, nearest, ct_or(at, is_beyond, is_less), ct_and(at, is_greater, ct_not(at, is_beyond)));
}

/* f16 ends at 65504: integers beyond 2^17 round like 2^17, and all others are exact in f32. */
static ct_value integer_to_half(struct ct_lower *l, enum ptx_type from, enum ptx_rounding rounding, ct_value x)
{
    struct ct_cursor *at = &l->at;

    if (ptx_type_is_signed(from))
        x = ct_op2(at, CT_OP_MAX, from, x, ct_const_like(at, x, -(UINT64_C(1) << 17)));
    x = ct_op2(at, CT_OP_MIN, from, x, ct_const_like(at, x, UINT64_C(1) << 17));
    return packed(l, PTX_F32, PTX_F16, rounding, ct_converted(at, CT_OP_ITOF, PTX_S32, PTX_F32, ct_low32(at, x)));
}

/* 32-bit integers are exact in f64, others are rounded to odd on the way to bf16 (which has 8 bits): truncated, and the last bit is set if that lost
 * anything. */
static ct_value integer_to_bf16(struct ct_lower *l, enum ptx_type from, enum ptx_rounding rounding, ct_value x)
{
    struct ct_cursor *at = &l->at;
    const enum ptx_type working = l->fn->target->float64 ? PTX_F64 : PTX_F32;
    ct_value truncated, back, loses;

    if (!is_long(from) && working == PTX_F64)
        return packed(l, working, PTX_BF16, rounding, ct_converted(at, CT_OP_ITOF, from, working, x));
    truncated = directed_from_integer(at, from, working, PTX_RZ, x);
    back = ct_converted(at, CT_OP_FTOI, working, from, truncated);
    loses = ct_icmp(at, from, PTX_NE, back, x);
    return packed(l, working, PTX_BF16, rounding,
                  ct_or(at, truncated, ct_select(at, loses, ct_const_like(at, truncated, 1), ct_const_like(at, truncated, 0))));
}

static ct_value integer_to_float(struct ct_lower *l)
{
    struct ct_cursor *at = &l->at;
    const enum ptx_rounding rounding = l->insn->rounding;
    const enum ptx_type to = to_type(l);
    enum ptx_type from = from_type(l);
    ct_value x = ct_extend_in_place(at, l->insn->operands[0], from), result;

    if (ptx_type_bits(from) < 32) {
        x = ct_resize(at, x, from, CT_W_32);
        from = ptx_type_is_signed(from) ? PTX_S32 : PTX_U32;
    }
    if (to == PTX_F16)
        result = integer_to_half(l, from, rounding, x);
    else if (to == PTX_BF16)
        result = integer_to_bf16(l, from, rounding, x);
    else if (ct_rounds_to_nearest(rounding) || (to == PTX_F64 && !is_long(from)))
        result = ct_converted(at, CT_OP_ITOF, from, to, x);
    else if (is_long(from) || !l->fn->target->float64)
        result = directed_from_integer(at, from, to, rounding, x);
    else
        result = packed(l, PTX_F64, to, rounding, ct_converted(at, CT_OP_ITOF, from, PTX_F64, x));
    return l->insn->sat ? ct_float_saturated(at, to, result) : result;
}

ct_value ct_lower_conversion(struct ct_lower *l)
{
    if (!ptx_type_is_float(from_type(l)))
        return integer_to_float(l);
    return ptx_type_is_float(to_type(l)) ? float_to_float(l) : float_to_integer(l);
}
