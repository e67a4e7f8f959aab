/* SPDX-License-Identifier: Apache-2.0 */
/* Repairs SSA form after a value got several definitions (for example because its block was copied): each read gets the definition that
 * reaches it, through phis where control-flow paths join. */
#ifndef PTX2SPV_SSA_REPAIR_H
#define PTX2SPV_SSA_REPAIR_H

#include "ir.h"

struct ct_ssa_repair {
    struct ct_fn *fn;
    ct_value x;         /* the value with the single definition that the reads still name */
    ct_value *at_end;   /* by block: the definition of x at the block's end, if the block has one; filled in by the caller */
    ct_value *at_start; /* by block: the definition of x that reaches the block's start; found on demand */
};

/* Prepares the repair of x for the blocks that exist now. Uses scratch memory. */
struct ct_ssa_repair ct_ssa_repair_begin(struct ct_fn *fn, ct_value x);
/* Rewrites every read of x in `block`. None of the reads may follow a definition of x in the same block, and a definition must lie on
 * every path from the entry to it. Predecessors must be up to date. */
void ct_ssa_repair_block(struct ct_ssa_repair *repair, struct ct_block *block);

/* Appends a phi's operand for a new edge. */
void ct_phi_add_operand(struct ct_fn *fn, struct ct_insn *phi, ct_value x);

#endif
