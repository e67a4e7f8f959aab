/* SPDX-License-Identifier: Apache-2.0 */
/* A value of SSA that is computed in several places now: whoever read it reads what comes to him, by phis where ways meet. */
#ifndef PTX2SPV_SSA_REPAIR_H
#define PTX2SPV_SSA_REPAIR_H

#include "ir.h"

struct ct_ssa_repair {
    struct ct_fn *fn;
    ct_value x;         /* what was read */
    ct_value *at_end;   /* by block: what stands for x at its end, if it is computed there; the caller's to fill in */
    ct_value *at_start; /* by block: what stands for x at its start; found on the way */
};

/* For the blocks that there are now. In scratch memory. */
struct ct_ssa_repair ct_ssa_repair_begin(struct ct_fn *fn, ct_value x);
/* Every read of x in a block, of which none stands behind a place in it that computes x. Any way back from it must come to such places.
 * Predecessors must be known. */
void ct_ssa_repair_block(struct ct_ssa_repair *repair, struct ct_block *block);

/* A phi's operand for one more edge. */
void ct_phi_add_operand(struct ct_fn *fn, struct ct_insn *phi, ct_value x);

#endif
