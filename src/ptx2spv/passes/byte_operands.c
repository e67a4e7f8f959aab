/* SPDX-License-Identifier: Apache-2.0 */
/* byte_operands: a byte of a word, multiplied by a power of two, in the form in which drivers find it: operations of AMD's GPUs before RDNA 3
 * take a byte of a register as their operand (targets with ptx2spv_target.short_offsets).
 * In:  SSA, lowered. No pass behind this one simplifies.   Out: the same.
 *
 *     a = shr.u32 word, 6                         a = shr.u32 word, 8
 *     b = and a, 1020                   =>        b = and a, 255
 *                                                 c = shl b, 2
 *
 * nvcc writes the left side for tables that bytes select. */
#include "ptx2spv/ir/builder.h"
#include "simplify.h"

enum { SHIFT_MAX = 8 };

/* k if the constant is 255 << k, else 0. */
static uint32_t find_scale(const struct ct_fn *fn, ct_value value)
{
    const struct ct_insn *mask = ct_constant_or_null(fn, value);

    for (uint32_t k = 1; mask && k <= SHIFT_MAX; k++)
        if (mask->imm == UINT64_C(255) << k)
            return k;
    return 0;
}

/* Whether the operation moves the lowest bit of a byte to place k. *place: where it was. */
static bool find_byte(const struct ct_fn *fn, const struct ct_insn *shift, uint32_t k, uint32_t *place)
{
    const bool is_left = shift && shift->op == CT_OP_SHL, is_right = shift && shift->op == CT_OP_SHR && !ptx_type_is_signed(shift->type);
    const struct ct_insn *amount = is_left || is_right ? ct_constant_or_null(fn, shift->operands[1]) : NULL;

    if (!amount || (is_left && amount->imm != k))
        return false;
    *place = is_left ? 0 : (uint32_t)amount->imm + k;
    return *place % 8 == 0 && *place <= 24;
}

static bool rewrite(struct ct_fn *fn, struct ct_insn *insn)
{
    struct ct_cursor at = {.fn = fn, .block = insn->block, .before = insn, .where = insn->where};
    const uint32_t k = find_scale(fn, insn->operands[1]);
    const struct ct_insn *shift = fn->values.v[insn->operands[0].i].def;
    ct_value byte;
    uint32_t place;

    if (!k || ct_width_of_value(fn, insn->results[0]) != CT_W_32 || !find_byte(fn, shift, k, &place))
        return false;
    byte = place ? ct_shr_imm(&at, shift->operands[0], place) : shift->operands[0];
    insn->op = CT_OP_SHL;
    insn->operands[0] = ct_and_imm(&at, byte, 255);
    insn->operands[1] = ct_const32(&at, k);
    return true;
}

enum ct_pass_result ct_pass_byte_operands(struct ct_fn *fn)
{
    bool changed = false;

    for (uint32_t b = 0; fn->target->short_offsets && b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            changed |= insn->op == CT_OP_AND && rewrite(fn, insn);
    if (!changed)
        return CT_PASS_UNCHANGED;
    ct_remove_dead(fn); /* the shifts */
    return CT_PASS_CHANGED;
}
