/* SPDX-License-Identifier: Apache-2.0 */
/* rejoin: what a place reads of a value that was computed in one place and is in several now, found by walking back from it. Each block on
 * the way where ways meet gets a phi, which `simplify` takes out again where all that meets is one value. */
#include "rejoin.h"

struct ct_rejoin ct_rejoin_begin(struct ct_fn *fn, ct_value x)
{
    struct ct_arena *scratch = &fn->compilation->scratch;

    return (struct ct_rejoin){.fn = fn,
                              .x = x,
                              .at_end = CT_ARENA_ARRAY(scratch, ct_value, fn->blocks.n),
                              .at_start = CT_ARENA_ARRAY(scratch, ct_value, fn->blocks.n)};
}

static ct_value at_start(struct ct_rejoin *rejoin, struct ct_block *block);

static ct_value at_end(struct ct_rejoin *rejoin, struct ct_block *block)
{
    return rejoin->at_end[block->id].i ? rejoin->at_end[block->id] : at_start(rejoin, block);
}

static ct_value at_start(struct ct_rejoin *rejoin, struct ct_block *block)
{
    struct ct_fn *fn = rejoin->fn;
    struct ct_insn *phi;

    if (rejoin->at_start[block->id].i)
        return rejoin->at_start[block->id];
    if (block->preds.n == 1)
        return rejoin->at_start[block->id] = at_end(rejoin, block->preds.v[0]);
    phi = ct_insn_create(fn, CT_OP_PHI, PTX_NONE, 1, block->preds.n);
    ct_insn_insert_before(block->first, phi);
    phi->results[0] = rejoin->at_start[block->id] = ct_value_create(fn, ct_width_of_value(fn, rejoin->x));
    fn->values.v[phi->results[0].i].def = phi;
    for (uint32_t p = 0; p < block->preds.n; p++)
        phi->operands[p] = at_end(rejoin, block->preds.v[p]);
    return phi->results[0];
}

void ct_rejoin_block(struct ct_rejoin *rejoin, struct ct_block *block)
{
    for (struct ct_insn *insn = block->first; insn; insn = insn->next)
        for (uint32_t i = 0; i < insn->n_operands; i++)
            if (insn->operands[i].i == rejoin->x.i)
                insn->operands[i] = insn->op == CT_OP_PHI ? at_end(rejoin, block->preds.v[i]) : at_start(rejoin, block);
}

void ct_phi_add_operand(struct ct_fn *fn, struct ct_insn *phi, ct_value x)
{
    ct_value *operands = CT_ARENA_ARRAY(&fn->compilation->arena, ct_value, phi->n_operands + 1);

    for (uint32_t i = 0; i < phi->n_operands; i++)
        operands[i] = phi->operands[i];
    operands[phi->n_operands++] = x;
    phi->operands = operands;
}
