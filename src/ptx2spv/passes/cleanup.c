/* SPDX-License-Identifier: Apache-2.0 */
/* cleanup: removes what the passes since `simplify` have made redundant.
 * In:  SSA, lowered.   Out: the same, simplified once more, without dead instructions and without blocks that contain only a jump, unless
 *      the phis of the jump's target need the block to distinguish two edges of one branch.
 * An instruction is live if it has a side effect or if a live instruction uses one of its results. */
#include "simplify.h"

#include <string.h>

/* A load whose result is unused is removed, unless it orders other accesses or may observe a device (volatile). */
static bool is_removable(const struct ct_insn *insn)
{
    return ct_insn_is_pure(insn) || (insn->op == CT_OP_LOAD && (insn->semantics == PTX_SEM_NONE || insn->semantics == PTX_WEAK));
}

struct marker {
    struct ct_fn *fn;
    bool *live; /* indexed by value */
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

/* ---- blocks that contain only a jump ---- */

static bool only_jumps(const struct ct_block *block)
{
    return block->first->op == CT_OP_BR && block->succs[0] != block;
}

/* Whether an edge from `pred` to `to` may carry the phi operands of entry number `entry` of to's predecessors: there is no edge between
 * them yet, or it carries the same operands. */
static bool may_jump_to(const struct ct_block *pred, const struct ct_block *to, uint32_t entry)
{
    for (uint32_t p = 0; p < to->preds.n; p++)
        if (to->preds.v[p] == pred && !ct_phis_agree(to, p, entry))
            return false;
    return true;
}

static void reserve_phi_operands(struct ct_fn *fn, struct ct_block *block, uint32_t n)
{
    for (struct ct_insn *phi = block->first; phi && phi->op == CT_OP_PHI; phi = phi->next) {
        ct_value *grown = CT_ARENA_ARRAY(&fn->compilation->arena, ct_value, phi->n_operands + n);

        memcpy(grown, phi->operands, phi->n_operands * sizeof *grown);
        phi->operands = grown;
    }
}

/* Redirects predecessor number `p` of the empty block to the block's successor. The phis have room for one more operand. */
static void bypass(struct ct_fn *fn, struct ct_block *empty, uint32_t p, uint32_t entry)
{
    struct ct_block *pred = empty->preds.v[p], *to = empty->succs[0];
    uint32_t s = 0;

    while (pred->succs[s] != empty)
        s++;
    pred->succs[s] = to;
    *CT_PUSH(&fn->compilation->arena, &to->preds) = pred;
    for (struct ct_insn *phi = to->first; phi && phi->op == CT_OP_PHI; phi = phi->next) {
        phi->operands[phi->n_operands] = phi->operands[entry];
        phi->n_operands++;
    }
    ct_block_drop_pred(empty, p);
}

static bool forward_block(struct ct_fn *fn, struct ct_block *empty)
{
    struct ct_block *to = empty->succs[0];
    const uint32_t n = empty->preds.n;
    uint32_t entry = 0;

    while (to->preds.v[entry] != empty)
        entry++;
    reserve_phi_operands(fn, to, n);
    for (uint32_t p = n; p-- > 0;)
        if (may_jump_to(empty->preds.v[p], to, entry))
            bypass(fn, empty, p, entry);
    return empty->preds.n < n;
}

/* B: br C   =>   every block that jumps to B jumps to C. The operands of C's phis for the edge from B are defined above B, hence above
 * all predecessors of B. */
static bool forward_blocks(struct ct_fn *fn)
{
    bool changed = false;

    for (uint32_t b = 1; b < fn->blocks.n; b++)
        if (only_jumps(fn->blocks.v[b]))
            changed |= forward_block(fn, fn->blocks.v[b]);
    if (changed) {
        fn->props &= ~(uint32_t)CT_PROP_GRAPH;
        ct_fn_remove_unreachable(fn);
    }
    return changed;
}

enum ct_pass_result ct_pass_cleanup(struct ct_fn *fn)
{
    bool changed = ct_simplify(fn);

    if (forward_blocks(fn)) { /* two successors of a branch may be the same block now */
        ct_simplify(fn);
        changed = true;
    }
    return changed ? CT_PASS_CHANGED : CT_PASS_UNCHANGED;
}
