/* SPDX-License-Identifier: Apache-2.0 */
/* Signs that are turned in kernels with barriers.
 *
 * Intel's OpenCL runtime for CPUs (2026.2) cuts kernels apart at their barriers and keeps in memory what is used behind one. Of an fneg
 * that is used behind a barrier, as its operand is, it repeats the fneg there and forgets the operand: the result is whatever the stack
 * holds with its sign turned. Where the fneg is used by a second operation, its compiler ends the process. Of some 150 operations
 * (tests/oracle/regressions/signs_turned_before_barriers.ptx has those that failed) only this one suffers, with every instruction set.
 *
 * LLVM makes an fneg of everything that amounts to one: a float's bits with the sign bit added, subtracted, or put in by an exclusive or;
 * with "or" behind fabs; a product with -1, a quotient by -1, -0 - x, and a choice between factors of 1 and -1. What these have in common
 * is a constant that is the sign bit alone, or -1, so the compiler does not get to see those: they go through an exclusive or with a zero
 * that it cannot know. It takes one instruction of integers per use, in kernels with barriers of targets that have
 * PTX2SPV_WORKAROUND_LOST_SIGNS. */
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

uint32_t ct_gen_hidden(struct ct_gen *g, unsigned bits, uint32_t id)
{
    return GEN(g, SpvOpBitwiseXor, ct_gen_int_type(g, bits), id, ct_gen_secret_zero(g, bits));
}
