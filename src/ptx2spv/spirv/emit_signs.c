/* SPDX-License-Identifier: Apache-2.0 */
/* Negations in kernels with barriers.
 *
 * Intel's OpenCL runtime for CPUs (2026.2) splits kernels at their barriers and stores in memory what is used after one. For an fneg that
 * is used after a barrier, as its operand is, it repeats the fneg there but does not store the operand: the result is the negation of
 * whatever the stack contains. If the fneg is used by a second operation, its compiler terminates the process. Of some 150 operations
 * (tests/oracle/regressions/negations_before_barriers.ptx has those that failed) only this one is affected, with every instruction set.
 *
 * LLVM turns every equivalent form into an fneg: a float's bits with the sign bit added, subtracted, or inverted by an exclusive or;
 * with "or" after fabs; a product with -1, a quotient by -1, -0 - x, and a selection between factors of 1 and -1. All of these contain
 * a constant that is the sign bit alone, or -1, so the compiler must not see those constants: they go through an exclusive or with an
 * opaque zero. It takes one integer instruction per use, in kernels with barriers of targets that have PTX2SPV_WORKAROUND_LOST_SIGNS. */
#include "emit.h"

bool ct_gen_must_hide_signs(const struct ct_fn *fn)
{
    if (!(fn->target->workarounds & PTX2SPV_WORKAROUND_LOST_SIGNS))
        return false;
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (insn->op == CT_OP_BARRIER)
                return true;
    return false;
}

bool ct_gen_is_hidden_sign(const struct ct_gen *g, unsigned bits, uint64_t constant)
{
    return g->hides_signs && (ct_gen_float_kind(constant, bits) & (CT_FLOAT_MINUS_ZERO | CT_FLOAT_MINUS_ONE));
}

uint32_t ct_gen_opaque(struct ct_gen *g, unsigned bits, uint32_t id)
{
    return GEN(g, SpvOpBitwiseXor, ct_gen_int_type(g, bits), id, ct_gen_opaque_zero(g, bits));
}
