/* SPDX-License-Identifier: Apache-2.0 */
/* SSA repair: finds the definition that reaches a read by walking back through the predecessors, as the recursive look-up of variables
 * does in Braun et al., "Simple and Efficient Construction of Static Single Assignment Form" (CC 2013), with all blocks sealed. Each
 * block with several predecessors on the way gets a phi; `simplify` removes the trivial ones (whose operands are all one value). */
#include "ssa_repair.h"

struct ct_ssa_repair ct_ssa_repair_begin(struct ct_fn *fn, ct_value x)
{
    struct ct_arena *scratch = &fn->compilation->scratch;

    return (struct ct_ssa_repair){.fn = fn,
                                  .x = x,
                                  .at_end = CT_ARENA_ARRAY(scratch, ct_value, fn->blocks.n),
                                  .at_start = CT_ARENA_ARRAY(scratch, ct_value, fn->blocks.n)};
}

static ct_value at_start(struct ct_ssa_repair *repair, struct ct_block *block);

static ct_value at_end(struct ct_ssa_repair *repair, struct ct_block *block)
{
    return repair->at_end[block->id].i ? repair->at_end[block->id] : at_start(repair, block);
}

static ct_value at_start(struct ct_ssa_repair *repair, struct ct_block *block)
{
    struct ct_fn *fn = repair->fn;
    struct ct_insn *phi;

    if (repair->at_start[block->id].i)
        return repair->at_start[block->id];
    if (block->preds.n == 1)
        return repair->at_start[block->id] = at_end(repair, block->preds.v[0]);
    phi = ct_insn_create(fn, CT_OP_PHI, PTX_NONE, 1, block->preds.n);
    ct_insn_insert_before(block->first, phi);
    phi->results[0] = repair->at_start[block->id] = ct_value_create(fn, ct_width_of_value(fn, repair->x));
    fn->values.v[phi->results[0].i].def = phi;
    for (uint32_t p = 0; p < block->preds.n; p++)
        phi->operands[p] = at_end(repair, block->preds.v[p]);
    return phi->results[0];
}

void ct_ssa_repair_block(struct ct_ssa_repair *repair, struct ct_block *block)
{
    for (struct ct_insn *insn = block->first; insn; insn = insn->next)
        for (uint32_t i = 0; i < insn->n_operands; i++)
            if (insn->operands[i].i == repair->x.i)
                insn->operands[i] = insn->op == CT_OP_PHI ? at_end(repair, block->preds.v[i]) : at_start(repair, block);
}

void ct_phi_add_operand(struct ct_fn *fn, struct ct_insn *phi, ct_value x)
{
    ct_value *operands = CT_ARENA_ARRAY(&fn->compilation->arena, ct_value, phi->n_operands + 1);

    for (uint32_t i = 0; i < phi->n_operands; i++)
        operands[i] = phi->operands[i];
    operands[phi->n_operands++] = x;
    phi->operands = operands;
}
