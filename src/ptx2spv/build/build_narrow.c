/* SPDX-License-Identifier: Apache-2.0 */
/* build: cvt to and from 8-bit floats (e4m3, e5m2) and tf32, and cvt.pack (PTX ISA, "cvt", "cvt.pack"). No target has these types: their
 * encodings are computed from those of f32 by integer arithmetic; the float additions below are exact, or round once. */
#include "build_convert.h"

/* ---- 8-bit floats ---- */

struct narrow_format {
    uint32_t fraction_bits, exponent_distance; /* bias of f32 minus its own bias */
    uint32_t least_normal;                     /* the least normal number, as f32 */
    uint32_t aligner;                          /* the f32 whose unit in the last place is that of subnormals */
    uint32_t greatest;                         /* the greatest finite number, in its own encoding */
};

/* e4m3 has no infinity and one NaN, 0x7f; e5m2 has more NaNs, of which cvt gives 0x7f. */
enum { NARROW_NAN = 0x7f, F32_INFINITY = 0x7f800000, F32_FRACTION_BITS = 23 };
static const struct narrow_format e4m3 = {3, 127 - 7, 0x3c800000, 0x46800000, 0x7e}, e5m2 = {2, 127 - 15, 0x38800000, 0x43000000, 0x7b};

bool ct_build_is_narrow(enum ptx_type type)
{
    return type == PTX_E4M3X2 || type == PTX_E5M2X2;
}

static const struct narrow_format *format_of(enum ptx_type type)
{
    return type == PTX_E4M3X2 ? &e4m3 : &e5m2;
}

/* Rounds the magnitude of an f32 to nearest even at bit `drop`; the rounding may carry into the exponent. */
static ct_value rounded_at(struct ct_cursor *at, ct_value magnitude, unsigned drop)
{
    const ct_value last = ct_and_imm(at, ct_shr_imm(at, magnitude, drop), 1);

    return ct_add(at, ct_add_imm(at, magnitude, (UINT64_C(1) << (drop - 1)) - 1), last);
}

/* Converts x, an f32, to 8 bits, to nearest even; values that are too large become the greatest number (.satfinite, which is required). */
static ct_value narrowed(struct ct_build *b, const struct narrow_format *format, ct_value x)
{
    struct ct_cursor *at = &b->at;
    const unsigned drop = F32_FRACTION_BITS - format->fraction_bits;
    const ct_value magnitude = ct_and_imm(at, x, 0x7fffffff), sign = ct_and_imm(at, ct_shr_imm(at, x, 24), 0x80);
    const ct_value is_nan = ct_icmp_imm(at, PTX_U32, PTX_GT, magnitude, F32_INFINITY);
    const ct_value is_small = ct_icmp_imm(at, PTX_U32, PTX_LT, magnitude, format->least_normal);
    const ct_value aligned = ct_op2_ignoring_subnormals(at, CT_OP_FADD, magnitude, ct_const32(at, format->aligner));
    const ct_value subnormal = ct_add_imm(at, aligned, -(uint64_t)format->aligner & UINT32_MAX);
    const ct_value normal = ct_add_imm(at, ct_shr_imm(at, rounded_at(at, magnitude, drop), drop),
                                       -(uint64_t)(format->exponent_distance << format->fraction_bits) & UINT32_MAX);
    ct_value result = ct_op2(at, CT_OP_MIN, PTX_U32, ct_select(at, is_small, subnormal, normal), ct_const32(at, format->greatest));

    if (b->insn->mods.relu)
        result = ct_select(at, ct_equals(at, sign, 0), result, ct_const32(at, 0));
    else
        result = ct_or(at, result, sign);
    return ct_select(at, is_nan, ct_const32(at, NARROW_NAN), result);
}

/* Converts the low 8 bits of x to f32. A subnormal is encoded as the normal number with the least exponent, from which that power of two
 * is subtracted. */
static ct_value widened(struct ct_cursor *at, const struct narrow_format *format, ct_value x)
{
    const unsigned up = F32_FRACTION_BITS - format->fraction_bits;
    const ct_value magnitude = ct_and_imm(at, x, 0x7f), sign = ct_shl_imm(at, ct_and_imm(at, x, 0x80), 24);
    const ct_value is_subnormal = ct_icmp_imm(at, PTX_U32, PTX_LT, magnitude, 1u << format->fraction_bits);
    const ct_value bits = ct_add_imm(at, ct_shl_imm(at, magnitude, up), (uint64_t)format->exponent_distance << F32_FRACTION_BITS);
    const ct_value least = ct_add_imm(at, bits, UINT64_C(1) << F32_FRACTION_BITS);
    const ct_value subnormal = ct_op2_ignoring_subnormals(at, CT_OP_FSUB, least, ct_const32(at, format->least_normal));
    const uint32_t first_nan = format == &e4m3 ? 0x7f : 0x7d;
    ct_value result = ct_select(at, is_subnormal, subnormal, bits);

    if (format == &e5m2) /* the greatest exponent: infinity and NaN */
        result = ct_select(at, ct_equals(at, magnitude, 0x7c), ct_const32(at, F32_INFINITY), result);
    result = ct_or(at, result, sign);
    return ct_select(at, ct_icmp_imm(at, PTX_U32, PTX_GE, magnitude, first_nan), ct_const32(at, 0x7fffffff), result);
}

ct_value ct_build_widened(struct ct_build *b, enum ptx_type type, ct_value x)
{
    return widened(&b->at, format_of(type), x);
}

/* cvt.e4m3x2.f32 d, a, b: a becomes the upper byte; cvt.e4m3x2.f16x2 d, a keeps the order. */
void ct_build_to_narrow(struct ct_build *b, enum ptx_type to, enum ptx_type from)
{
    struct ct_cursor *at = &b->at;
    ct_value low, high;

    if (from == PTX_F32) {
        high = ct_build_source(b, 1, PTX_F32);
        low = ct_build_source(b, 2, PTX_F32);
    } else {
        ct_unpack2(at, ct_build_source(b, 1, PTX_B32), &low, &high);
        low = ct_build_float_converted(b, PTX_F32, PTX_F16, low);
        high = ct_build_float_converted(b, PTX_F32, PTX_F16, high);
    }
    high = narrowed(b, format_of(to), high);
    low = narrowed(b, format_of(to), low);
    ct_build_result(b, ct_resize(at, ct_or(at, ct_shl_imm(at, high, 8), low), PTX_U32, CT_W_16), PTX_B16);
}

/* cvt.f16x2.e4m3x2 d, a: all conversions are exact. */
void ct_build_from_narrow(struct ct_build *b, enum ptx_type from)
{
    struct ct_cursor *at = &b->at;
    const ct_value both = ct_resize(at, ct_build_source(b, 1, PTX_B16), PTX_U16, CT_W_32);
    ct_value halves[2];

    for (unsigned i = 0; i < 2; i++) {
        const ct_value x = widened(at, format_of(from), i ? ct_shr_imm(at, both, 8) : both);

        halves[i] = ct_build_float_converted(b, PTX_F16, PTX_F32, x);
        if (b->insn->mods.relu)
            halves[i] = ct_build_relu(b, PTX_F16, halves[i]);
    }
    ct_build_result(b, ct_pack2(at, halves[0], halves[1]), PTX_B32);
}

/* ---- tf32: f32 with 10 bits of fraction ---- */

enum { TF32_DROP = 13, TF32_GREATEST = 0x7f7fe000 };

void ct_build_to_tf32(struct ct_build *b)
{
    struct ct_cursor *at = &b->at;
    const struct ptx_modifiers *mods = &b->insn->mods;
    const ct_value x = ct_build_source(b, 1, PTX_F32), magnitude = ct_and_imm(at, x, 0x7fffffff), sign = ct_and_imm(at, x, 0x80000000);
    const ct_value is_nan = ct_icmp_imm(at, PTX_U32, PTX_GT, magnitude, F32_INFINITY);
    ct_value result = magnitude;

    if (mods->rounding == PTX_RN)
        result = rounded_at(at, magnitude, TF32_DROP);
    else if (mods->rounding == PTX_RNA)
        result = ct_add_imm(at, magnitude, UINT64_C(1) << (TF32_DROP - 1));
    result = ct_and_imm(at, result, ~((UINT64_C(1) << TF32_DROP) - 1) & UINT32_MAX);
    if (mods->satfinite)
        result = ct_op2(at, CT_OP_MIN, PTX_U32, result, ct_const32(at, TF32_GREATEST));
    if (mods->relu)
        result = ct_select(at, ct_equals(at, sign, 0), result, ct_const32(at, 0));
    else
        result = ct_or(at, result, sign);
    ct_build_result(b, ct_select(at, is_nan, ct_const32(at, 0x7fffffff), result), PTX_B32);
}

/* ---- cvt.pack ---- */

/* a and b, clamped to `bits` bits, are packed side by side; below 16 bits, c is shifted up above them. */
void ct_build_pack(struct ct_build *b)
{
    struct ct_cursor *at = &b->at;
    const bool is_signed = ptx_pack_is_signed(&b->insn->mods, b->insn->types[0]);
    const unsigned bits = ptx_pack_bits(&b->insn->mods, b->insn->types[0]);
    const uint64_t mask = (UINT64_C(1) << bits) - 1, greatest = is_signed ? mask >> 1 : mask, least = is_signed ? ~greatest : 0;
    ct_value parts[2], result;

    for (unsigned i = 0; i < 2; i++) {
        ct_value x = ct_build_source(b, 1 + i, PTX_S32);

        x = ct_op2(at, CT_OP_MAX, PTX_S32, x, ct_const32(at, (uint32_t)least));
        x = ct_op2(at, CT_OP_MIN, PTX_S32, x, ct_const32(at, (uint32_t)greatest));
        parts[i] = ct_and_imm(at, x, mask);
    }
    result = ct_or(at, ct_shl_imm(at, parts[0], bits), parts[1]);
    if (bits < 16)
        result = ct_or(at, ct_shl_imm(at, ct_build_source(b, 3, PTX_B32), 2 * bits), result);
    ct_build_result(b, result, PTX_B32);
}
