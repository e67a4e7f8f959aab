/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between the parts of the optimizer: fold.c evaluates constant expressions, rules.c rewrites one instruction, simplify.c
 * traverses the function, cleanup.c removes dead code. */
#ifndef PTX2SPV_SIMPLIFY_H
#define PTX2SPV_SIMPLIFY_H
/* Parts: cleanup.c, rules.c, ir/fold.c. */

#include "ptx2spv/ir/ir.h"

/* Whether the phis of a block have the same operands for two of its predecessors. */
static inline bool ct_phis_agree(const struct ct_block *block, uint32_t a, uint32_t b)
{
    for (const struct ct_insn *phi = block->first; phi && phi->op == CT_OP_PHI; phi = phi->next)
        if (phi->operands[a].i != phi->operands[b].i)
            return false;
    return true;
}

/* Evaluates an operation on integer constants. False if an operand is not constant, if the operation is not an integer operation, or if
 * the result is undefined (a shift or a division whose result depends on the machine). */
bool ct_fold(const struct ct_fn *fn, const struct ct_insn *insn, uint64_t *out);
/* The same for an instruction of one or two operands, with the given values in place of its own operands; the values are zero-extended
 * from the operands' widths. */
bool ct_fold_values(const struct ct_fn *fn, const struct ct_insn *insn, const uint64_t operands[2], uint64_t *out);

/* One step of simplification of a pure instruction. It returns a value that replaces the instruction's only result, or changes the
 * instruction in place (*changed), or does nothing. New instructions are inserted before it. */
ct_value ct_apply_rules(struct ct_fn *fn, struct ct_insn *insn, bool *changed);

/* The comparison (enum ptx_compare) that is the negation of an ICMP or FCMP; PTX_CMP_NONE if there is none. */
uint8_t ct_opposite_comparison(const struct ct_insn *comparison);

/* Everything that the pass `simplify` does; `cleanup` calls it again. True if something changed. */
bool ct_simplify(struct ct_fn *fn);

/* Removes instructions whose results are never used. */
bool ct_remove_dead(struct ct_fn *fn);

#endif
