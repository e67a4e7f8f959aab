/* SPDX-License-Identifier: Apache-2.0 */
/* Types of the emitted module, and conversions between integers that preserve their meaning. */
#include "emit.h"

uint32_t ct_gen_int_type(struct ct_gen *g, unsigned bits)
{
    switch (bits) {
    case 1:
        return ct_spv_type_bool(&g->m);
    case 8:
        ct_gen_need(g, g->target->int8, "8-bit integers");
        break;
    case 16:
        ct_gen_need(g, g->target->int16, "16-bit integers");
        break;
    case 64:
        ct_gen_need(g, g->target->int64, "64-bit integers");
        break;
    }
    return ct_spv_type_int(&g->m, bits);
}

uint32_t ct_gen_float_type(struct ct_gen *g, unsigned bits)
{
    if (bits == 16)
        ct_gen_need(g, g->target->float16, "16-bit floats");
    if (bits == 64)
        ct_gen_need(g, g->target->float64, "64-bit floats");
    g->float_widths |= bits == 16 ? 1 : bits == 32 ? 2 : 4;
    return ct_spv_type_float(&g->m, bits);
}

uint32_t ct_gen_ext(struct ct_gen *g, enum ct_ext which, uint32_t type, const uint32_t *operands, uint32_t n)
{
    uint32_t words[5] = {g->m.extended, g->dialect->extended[which]};

    for (uint32_t i = 0; i < n; i++)
        words[i + 2] = operands[i];
    return ct_spv_result(&g->m, CT_SPV_CODE, SpvOpExtInst, type, words, n + 2);
}

uint32_t ct_gen_resize(struct ct_gen *g, uint32_t id, unsigned from, unsigned to, bool is_signed)
{
    if (from == to)
        return id;
    return GEN(g, is_signed && to > from ? SpvOpSConvert : SpvOpUConvert, ct_gen_int_type(g, to), id);
}

uint32_t ct_gen_shift(struct ct_gen *g, SpvOp op, unsigned bits, uint32_t x, uint32_t distance)
{
    return GEN(g, op, ct_gen_int_type(g, bits), x,
               g->dialect->shift_amounts_have_operand_width ? ct_gen_resize(g, distance, 32, bits, false) : distance);
}

uint32_t ct_gen_shift_by(struct ct_gen *g, SpvOp op, unsigned bits, uint32_t x, unsigned distance)
{
    const unsigned distance_bits = g->dialect->shift_amounts_have_operand_width ? bits : 32;

    return GEN(g, op, ct_gen_int_type(g, bits), x, ct_spv_const_int(&g->m, distance_bits, distance));
}

uint32_t ct_gen_pack(struct ct_gen *g, const uint32_t *parts, unsigned n, unsigned part_bits)
{
    const uint32_t vector = ct_spv_type_vector(&g->m, ct_gen_int_type(g, part_bits), n);
    const uint32_t composed = ct_spv_result(&g->m, CT_SPV_CODE, SpvOpCompositeConstruct, vector, parts, n);

    return GEN(g, SpvOpBitcast, ct_gen_int_type(g, n * part_bits), composed);
}

void ct_gen_unpack(struct ct_gen *g, uint32_t id, unsigned n, unsigned part_bits, uint32_t *parts)
{
    const uint32_t part = ct_gen_int_type(g, part_bits);
    const uint32_t vector = GEN(g, SpvOpBitcast, ct_spv_type_vector(&g->m, part, n), id);

    for (unsigned i = 0; i < n; i++)
        parts[i] = GEN(g, SpvOpCompositeExtract, part, vector, i);
}
