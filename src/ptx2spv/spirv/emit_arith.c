/* SPDX-License-Identifier: Apache-2.0 */
/* Integer and predicate instructions (comparisons: emit_compare.c; products of twice the width: emit_products.c). SPIR-V integers are
 * declared without a sign: the instruction determines it. */
#include "emit.h"

static bool is_signed(const struct ct_insn *insn)
{
    return ptx_type_is_signed(insn->type);
}

/* Instructions that map to one SPIR-V instruction. of_bool 0: there is none for predicates. */
static const struct simple {
    uint16_t of_unsigned, of_signed, of_bool;
} simple[CT_OP_COUNT] = {
    [CT_OP_ADD] = {SpvOpIAdd, SpvOpIAdd, 0},
    [CT_OP_SUB] = {SpvOpISub, SpvOpISub, 0},
    [CT_OP_MUL] = {SpvOpIMul, SpvOpIMul, 0},
    [CT_OP_UDIV] = {SpvOpUDiv, SpvOpUDiv, 0},
    [CT_OP_SDIV] = {SpvOpSDiv, SpvOpSDiv, 0},
    [CT_OP_UREM] = {SpvOpUMod, SpvOpUMod, 0},
    [CT_OP_SREM] = {SpvOpSRem, SpvOpSRem, 0},
    [CT_OP_NEG] = {SpvOpSNegate, SpvOpSNegate, 0},
    [CT_OP_AND] = {SpvOpBitwiseAnd, SpvOpBitwiseAnd, SpvOpLogicalAnd},
    [CT_OP_OR] = {SpvOpBitwiseOr, SpvOpBitwiseOr, SpvOpLogicalOr},
    [CT_OP_XOR] = {SpvOpBitwiseXor, SpvOpBitwiseXor, SpvOpLogicalNotEqual},
    [CT_OP_NOT] = {SpvOpNot, SpvOpNot, 0},
    [CT_OP_POPC] = {SpvOpBitCount, SpvOpBitCount, 0},
    [CT_OP_SELECT] = {SpvOpSelect, SpvOpSelect, SpvOpSelect},
};

/* With the workaround, for a compiler that terminates the process at OpLogicalNot, it is a comparison. */
uint32_t ct_gen_not(struct ct_gen *g, uint32_t condition)
{
    if (ct_gen_works_around(g, PTX2SPV_WORKAROUND_LOGICAL_NOT))
        return GEN(g, SpvOpLogicalNotEqual, ct_gen_int_type(g, 1), condition, ct_spv_const_bool(&g->m, true));
    return GEN(g, SpvOpLogicalNot, ct_gen_int_type(g, 1), condition);
}

static void gen_simple(struct ct_gen *g, const struct ct_insn *insn)
{
    const unsigned bits = ct_gen_bits(g, insn->results[0]);
    const struct simple *row = &simple[insn->op];
    const uint32_t turned = ct_gen_byte_reversal_or_none(g, insn);
    uint32_t operands[3];

    for (uint32_t i = 0; i < insn->n_operands && i < 3; i++)
        operands[i] = ct_gen_use_chosen(g, insn, i);
    if (turned || (insn->op == CT_OP_NOT && bits == 1)) {
        ct_gen_define(g, insn->results[0], turned ? turned : ct_gen_not(g, operands[0]));
        return;
    }
    ct_gen_define(g, insn->results[0],
                  ct_spv_result(&g->m, CT_SPV_CODE,
                                bits == 1         ? row->of_bool
                                : is_signed(insn) ? row->of_signed
                                                  : row->of_unsigned,
                                ct_gen_int_type(g, bits), operands, insn->n_operands));
}

static void gen_shift(struct ct_gen *g, const struct ct_insn *insn)
{
    const SpvOp right = is_signed(insn) ? SpvOpShiftRightArithmetic : SpvOpShiftRightLogical;

    ct_gen_define(g, insn->results[0],
                  ct_gen_shift(g, insn->op == CT_OP_SHL ? SpvOpShiftLeftLogical : right, ct_gen_bits(g, insn->results[0]),
                               ct_gen_use(g, insn->operands[0]), ct_gen_use(g, insn->operands[1])));
}

uint32_t ct_gen_widened(struct ct_gen *g, const struct ct_insn *insn, uint32_t operand, unsigned bits)
{
    const ct_value value = insn->operands[operand];

    return ct_gen_resize(g, ct_gen_use(g, value), ct_gen_bits(g, value), bits, is_signed(insn));
}

static void gen_minmax(struct ct_gen *g, const struct ct_insn *insn)
{
    const enum ct_ext which =
        insn->op == CT_OP_MIN ? (is_signed(insn) ? CT_EXT_SMIN : CT_EXT_UMIN) : (is_signed(insn) ? CT_EXT_SMAX : CT_EXT_UMAX);
    const uint32_t operands[] = {ct_gen_use(g, insn->operands[0]), ct_gen_use(g, insn->operands[1])};

    ct_gen_define(g, insn->results[0], ct_gen_ext(g, which, ct_gen_int_type(g, ct_gen_bits(g, insn->results[0])), operands, 2));
}

/* Extension from 8 bits reads the low byte of a wider value. */
static void gen_ext8(struct ct_gen *g, const struct ct_insn *insn)
{
    const unsigned bits = ct_gen_bits(g, insn->results[0]);
    uint32_t id = ct_gen_resize(g, ct_gen_use(g, insn->operands[0]), ct_gen_bits(g, insn->operands[0]), bits, false);

    if (is_signed(insn)) {
        id = ct_gen_shift_by(g, SpvOpShiftLeftLogical, bits, id, bits - 8);
        id = ct_gen_shift_by(g, SpvOpShiftRightArithmetic, bits, id, bits - 8);
    } else {
        id = GEN(g, SpvOpBitwiseAnd, ct_gen_int_type(g, bits), id, ct_spv_const_int(&g->m, bits, 0xff));
    }
    ct_gen_define(g, insn->results[0], id);
}

static void gen_resize(struct ct_gen *g, const struct ct_insn *insn)
{
    if (insn->op == CT_OP_EXT && ptx_type_bits(insn->type) == 8)
        gen_ext8(g, insn);
    else
        ct_gen_define(g, insn->results[0], ct_gen_widened(g, insn, 0, ct_gen_bits(g, insn->results[0])));
}

static void gen_pack(struct ct_gen *g, const struct ct_insn *insn)
{
    uint32_t parts[4];

    for (uint32_t i = 0; i < insn->n_operands && i < 4; i++)
        parts[i] = ct_gen_use(g, insn->operands[i]);
    ct_gen_define(g, insn->results[0], ct_gen_pack(g, parts, insn->n_operands, ct_gen_bits(g, insn->operands[0])));
}

static void gen_unpack(struct ct_gen *g, const struct ct_insn *insn)
{
    const unsigned part_bits = ct_gen_bits(g, insn->operands[0]) / insn->n_results;
    uint32_t parts[4];

    ct_gen_unpack(g, ct_gen_use(g, insn->operands[0]), insn->n_results, part_bits, parts);
    for (uint32_t i = 0; i < insn->n_results && i < 4; i++)
        if (insn->results[i].i)
            ct_gen_define(g, insn->results[i], parts[i]);
}

void ct_gen_integer(struct ct_gen *g, const struct ct_insn *insn)
{
    switch (insn->op) {
    case CT_OP_ICMP:
        ct_gen_compare(g, insn);
        break;
    case CT_OP_MULWIDE:
    case CT_OP_MULHI:
        ct_gen_product(g, insn);
        break;
    case CT_OP_MIN:
    case CT_OP_MAX:
        gen_minmax(g, insn);
        break;
    case CT_OP_SHL:
    case CT_OP_SHR:
        gen_shift(g, insn);
        break;
    case CT_OP_CLZ:
        ct_gen_define(g, insn->results[0], g->dialect->leading_zeros(g, ct_gen_use(g, insn->operands[0])));
        break;
    case CT_OP_BREV:
        ct_gen_define(g, insn->results[0], g->dialect->reverse_bits(g, ct_gen_use(g, insn->operands[0])));
        break;
    case CT_OP_TRUNC:
    case CT_OP_EXT:
        gen_resize(g, insn);
        break;
    case CT_OP_PACK:
        gen_pack(g, insn);
        break;
    case CT_OP_UNPACK:
        gen_unpack(g, insn);
        break;
    default:
        gen_simple(g, insn);
        break; /* those of the table: ct_gen_insn passes no other */
    }
}
