/* SPDX-License-Identifier: Apache-2.0 */
/* Between the parts of the optimizer: fold.c computes, rules.c rewrites one instruction, simplify.c walks, cleanup.c removes. */
#ifndef PTX2SPV_SIMPLIFY_H
#define PTX2SPV_SIMPLIFY_H
/* Parts: cleanup.c, rules.c, ir/fold.c. */

#include "ptx2spv/ir/ir.h"

/* The instruction that makes a value, if it is an integer constant; else NULL. SSA. */
static inline struct ct_insn *ct_constant_or_null(const struct ct_fn *fn, ct_value value)
{
    struct ct_insn *def = fn->values.v[value.i].def;

    return def && def->op == CT_OP_CONST ? def : NULL;
}

/* Whether the phis of a block have the same operands for two of its predecessor entries. */
static inline bool ct_phis_agree(const struct ct_block *block, uint32_t a, uint32_t b)
{
    for (const struct ct_insn *phi = block->first; phi && phi->op == CT_OP_PHI; phi = phi->next)
        if (phi->operands[a].i != phi->operands[b].i)
            return false;
    return true;
}

/* Computes an operation on integer constants. False if an operand is not constant, the operation not an integer one, or the result
 * not defined (a shift or a division that the machine leaves open). */
bool ct_fold(const struct ct_fn *fn, const struct ct_insn *insn, uint64_t *out);
/* The same of one or two operands with given values, zero beyond their widths, whatever the instruction has. */
bool ct_fold_values(const struct ct_fn *fn, const struct ct_insn *insn, const uint64_t operands[2], uint64_t *out);

/* One step of simplification of a pure instruction: another value that stands for its only result (returned), or a change of the
 * instruction in place (*changed), or nothing. New instructions go before it. */
ct_value ct_apply_rules(struct ct_fn *fn, struct ct_insn *insn, bool *changed);

/* How the opposite of an ICMP or FCMP compares (enum ptx_compare); PTX_CMP_NONE: no comparison does. */
uint8_t ct_opposite_comparison(const struct ct_insn *comparison);

/* Everything that `simplify` does; `cleanup` does it again. True if something changed. */
bool ct_simplify(struct ct_fn *fn);

/* Takes out instructions that nothing needs. */
bool ct_remove_dead(struct ct_fn *fn);

#endif
