/* SPDX-License-Identifier: Apache-2.0 */
/* build: cvt (PTX ISA, "cvt"). Integer conversions are built here; a conversion with a float type on at least one side remains one FCVT
 * until `lower`. */
#include "build_convert.h"

/* The limits of an integer type as 64-bit values. */
static uint64_t greatest(enum ptx_type type)
{
    const unsigned bits = ptx_type_bits(type) - ptx_type_is_signed(type);

    return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

static uint64_t least(enum ptx_type type)
{
    return ptx_type_is_signed(type) ? ~greatest(type) : 0;
}

/* .sat: clamps x, a 64-bit number of type `from`, to the limits of `to`. */
static ct_value clamped(struct ct_build *b, ct_value x, enum ptx_type from, enum ptx_type to)
{
    struct ct_cursor *at = &b->at;

    if (ptx_type_is_signed(from) && (int64_t)least(from) < (int64_t)least(to))
        x = ct_op2(at, CT_OP_MAX, PTX_S64, x, ct_const64(at, least(to)));
    if (greatest(from) > greatest(to))
        x = ct_op2(at, CT_OP_MIN, ptx_type_is_signed(from) ? PTX_S64 : PTX_U64, x, ct_const64(at, greatest(to)));
    return x;
}

/* The result is extended to its register by the signedness of `to`; an 8-bit result is truncated and extended again. */
static void convert_integer(struct ct_build *b, enum ptx_type to, enum ptx_type from)
{
    struct ct_cursor *at = &b->at;
    ct_value x = ct_extend_in_place(at, ct_build_source(b, 1, from), from);

    if (b->insn->mods.sat)
        x = clamped(b, ct_resize(at, x, from, CT_W_64), from, to);
    x = ct_extend_in_place(at, ct_resize(at, x, from, ct_width_of(to)), to);
    ct_build_result(b, x, to);
}

ct_value ct_build_float_converted(struct ct_build *b, enum ptx_type to, enum ptx_type from, ct_value x)
{
    const struct ptx_modifiers *mods = &b->insn->mods;
    struct ct_insn *insn = ct_emit_insn(&b->at, CT_OP_FCVT, from, 1, 1);

    insn->type2 = to;
    insn->rounding = mods->rounding;
    insn->ftz = mods->ftz;
    insn->sat = mods->sat;
    insn->operands[0] = x;
    insn->results[0] = ct_value_create(b->fn, ct_width_of(to));
    return insn->results[0];
}

/* .satfinite: infinity, and values that would become infinity, become the greatest finite number of that sign. */
static ct_value clamp_to_finite(struct ct_build *b, enum ptx_type type, ct_value x)
{
    struct ct_cursor *at = &b->at;
    const uint32_t infinity = type == PTX_F16 ? 0x7c00 : 0x7f80;
    const ct_value is_infinite = ct_equals(at, ct_and_imm(at, x, 0x7fff), infinity);

    return ct_select(at, is_infinite, ct_or_imm(at, ct_and_imm(at, x, 0x8000), infinity - 1), x);
}

static ct_value convert_float(struct ct_build *b, enum ptx_type to, enum ptx_type from, ct_value x)
{
    const struct ptx_modifiers *mods = &b->insn->mods;
    ct_value result = ct_build_float_converted(b, to, from, x);

    if (mods->satfinite)
        result = clamp_to_finite(b, to, result);
    return mods->relu ? ct_build_relu(b, to, result) : result;
}

/* cvt.f16x2.f32 d, a, b: a becomes the upper half, b the lower half. */
static void convert_pair(struct ct_build *b, enum ptx_type half)
{
    const enum ptx_type from = b->insn->types[1];
    const ct_value high = convert_float(b, half, from, ct_build_source(b, 1, from));
    const ct_value low = convert_float(b, half, from, ct_build_source(b, 2, from));

    ct_build_result(b, ct_pack2(&b->at, low, high), PTX_B32);
}

static bool is_plain(enum ptx_type type)
{
    return !ptx_type_is_float(type) || type == PTX_F16 || type == PTX_F32 || type == PTX_F64 || type == PTX_BF16;
}

/* Converts to or from a type that no target has. False: neither type is one. */
static bool convert_narrow(struct ct_build *b, enum ptx_type to, enum ptx_type from)
{
    if (ct_build_is_narrow(to))
        ct_build_to_narrow(b, to, from);
    else if (ct_build_is_narrow(from))
        ct_build_from_narrow(b, from);
    else if (to == PTX_TF32)
        ct_build_to_tf32(b);
    else
        return false;
    return true;
}

void ct_build_cvt(struct ct_build *b)
{
    const enum ptx_type to = b->insn->types[0], from = b->insn->types[1];
    const struct ptx_modifiers *mods = &b->insn->mods;

    if (mods->mode == PTX_MODE_PACK) {
        ct_build_pack(b);
    } else if (mods->rounding == PTX_RS || b->insn->n_types > 2) {
        ct_build_unsupported(b, NULL);
    } else if (convert_narrow(b, to, from)) {
        return;
    } else if ((to == PTX_F16X2 || to == PTX_BF16X2) && from == PTX_F32 && b->insn->n_operands == 3) {
        convert_pair(b, to == PTX_F16X2 ? PTX_F16 : PTX_BF16);
    } else if (!is_plain(to) || !is_plain(from) || b->insn->n_operands != 2) {
        ct_build_unsupported(b, NULL);
    } else if (ptx_type_is_float(to) || ptx_type_is_float(from)) {
        ct_build_result(b, convert_float(b, to, from, ct_build_source(b, 1, from)), to);
    } else {
        convert_integer(b, to, from);
    }
}
