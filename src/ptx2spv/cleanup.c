/* SPDX-License-Identifier: Apache-2.0 */
/* cleanup: what the passes since `simplify` left behind goes.
 * In:  SSA, lowered.   Out: the same, simplified once more, with nothing dead.
 * An instruction lives if it has an effect or something that lives reads one of its results. */
#include "simplify.h"

/* Loads that nobody reads are not missed, unless they order other accesses or watch a device. */
static bool is_removable(const struct ct_insn *insn)
{
    return ct_insn_is_pure(insn) || (insn->op == CT_OP_LOAD && (insn->semantics == PTX_SEM_NONE || insn->semantics == PTX_WEAK));
}

struct marker {
    struct ct_fn *fn;
    bool *live; /* by value */
    CT_VEC(struct ct_insn *) work;
};

static void mark_operands(struct marker *m, const struct ct_insn *insn)
{
    for (uint32_t i = 0; i < insn->n_operands; i++) {
        const ct_value value = insn->operands[i];
        struct ct_insn *def = m->fn->values.v[value.i].def;

        if (!value.i || m->live[value.i])
            continue;
        m->live[value.i] = true;
        if (def && is_removable(def)) /* the others are roots themselves */
            *CT_PUSH(&m->fn->compilation->scratch, &m->work) = def;
    }
}

static bool is_live(const struct marker *m, const struct ct_insn *insn)
{
    if (!is_removable(insn))
        return true;
    for (uint32_t r = 0; r < insn->n_results; r++)
        if (m->live[insn->results[r].i])
            return true;
    return false;
}

bool ct_remove_dead(struct ct_fn *fn)
{
    struct marker m = {.fn = fn};
    bool changed = false;

    ct_fn_compute_defs(fn);
    m.live = CT_ARENA_ARRAY(&fn->compilation->scratch, bool, fn->values.n);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (!is_removable(insn))
                mark_operands(&m, insn);
    while (m.work.n)
        mark_operands(&m, m.work.v[--m.work.n]);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first, *next; insn; insn = next) {
            next = insn->next;
            if (is_live(&m, insn))
                continue;
            ct_insn_remove(insn);
            changed = true;
        }
    return changed;
}

enum ct_pass_result ct_pass_cleanup(struct ct_fn *fn)
{
    return ct_simplify(fn) ? CT_PASS_CHANGED : CT_PASS_UNCHANGED;
}
