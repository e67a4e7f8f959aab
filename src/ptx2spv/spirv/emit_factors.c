/* SPDX-License-Identifier: Apache-2.0 */
/* Fused multiply-adds of constants (PTX2SPV_WORKAROUND_CONSTANT_FACTORS).
 *
 * lavapipe of Mesa 26 makes LLVM's fmuladd of Fma, which the processor computes with one rounding. But fmuladd need not have it: if both factors are
 * constants, LLVM replaces it by the sum of their product, which is rounded before. That concerns constants of the program, the sizes of the block, which
 * are constants once a pipeline is created, and what LLVM makes of them when it has unrolled a loop. Where both factors may be such values, one is combined
 * with a zero that no driver can know. */
#include "emit.h"

#include "ptx2spv/passes/simplify.h"

/* Values that specialization constants give: they are the same for all launches of a pipeline. */
static bool is_set_with_pipeline(enum ct_sysval sreg)
{
    switch ((unsigned)sreg) {
    case CT_SYS_NTID_X:
    case CT_SYS_NTID_Y:
    case CT_SYS_NTID_Z:
    case CT_SYS_BLOCK_THREADS:
    case CT_SYS_SHARED_BYTES:
    case CT_SYS_DYNAMIC_SHARED_BYTES:
    case CT_SYS_EXCHANGE_BASE:
    case CT_SYS_MATRIX_BASE:
        return true;
    default:
        return false;
    }
}

static bool may_know_any(const struct ct_gen *g, const struct ct_insn *insn, uint32_t first)
{
    for (uint32_t i = first; i < insn->n_operands; i++)
        if (g->driver_may_know[insn->operands[i].i])
            return true;
    return false;
}

static bool may_know_all(const struct ct_gen *g, const struct ct_insn *insn)
{
    for (uint32_t i = 0; i < insn->n_operands; i++)
        if (!g->driver_may_know[insn->operands[i].i])
            return false;
    return true;
}

/* Whether the driver may know an instruction's results. A selection may be known for some iterations of a loop or ways to a place. Local memory may become
 * values, and functions are inlined. */
static bool may_know_results(const struct ct_gen *g, const struct ct_insn *insn)
{
    switch ((unsigned)insn->op) {
    case CT_OP_SYSVAL:
        return is_set_with_pipeline(insn->sreg);
    case CT_OP_LOAD:
        return insn->space == CT_SPACE_LOCAL;
    case CT_OP_PHI:
        return may_know_any(g, insn, 0);
    case CT_OP_SELECT:
        return may_know_any(g, insn, 1);
    default:
        return ct_insn_is_pure(insn) && may_know_all(g, insn);
    }
}

static bool note_results(struct ct_gen *g, const struct ct_insn *insn)
{
    bool changed = false;

    if (!insn->n_results || !may_know_results(g, insn))
        return false;
    for (uint32_t r = 0; r < insn->n_results; r++) {
        changed |= !g->driver_may_know[insn->results[r].i];
        g->driver_may_know[insn->results[r].i] = true;
    }
    return changed;
}

void ct_gen_find_factors(struct ct_gen *g)
{
    bool changed = true;

    g->driver_may_know = CT_ARENA_ARRAY(&g->fn->compilation->scratch, bool, g->fn->values.n);
    g->driver_may_know[CT_NO_VALUE.i] = true; /* undefined */
    while (changed) {
        changed = false;
        for (uint32_t b = 0; b < g->fn->blocks.n; b++)
            for (const struct ct_insn *insn = g->fn->blocks.v[b]->first; insn; insn = insn->next)
                changed |= note_results(g, insn);
    }
}

bool ct_gen_hides_factor(const struct ct_gen *g, const struct ct_insn *insn)
{
    return insn->op == CT_OP_FFMA && g->driver_may_know && g->driver_may_know[insn->operands[0].i] &&
           g->driver_may_know[insn->operands[1].i];
}
