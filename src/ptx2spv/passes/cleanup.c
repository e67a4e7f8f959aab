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

/* An edge that there is or was: which of the source's successors it is, and which of the target's predecessors; of several edges between
 * two blocks, the first one. The indices stay correct while blocks are forwarded: the successors of a block keep their places, and only
 * empty blocks lose predecessors, for which the second index is not used. */
struct edge {
    uint32_t from, to; /* 1 + block id; 0: the entry of the table is free */
    uint32_t successor, predecessor;
};

struct forwarding {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    struct edge *edges; /* hash table */
    uint32_t n_edges, size;
    uint32_t *room; /* indexed by block id: number of operands that its phis can take on */
};

static struct edge *find_edge(const struct forwarding *f, uint32_t from, uint32_t to)
{
    uint32_t at = (uint32_t)(((uint64_t)from << 32 | to) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (f->size - 1);

    while (f->edges[at].from && (f->edges[at].from != from + 1 || f->edges[at].to != to + 1))
        at = (at + 1) & (f->size - 1);
    return &f->edges[at];
}

static void note_edge(struct forwarding *f, uint32_t from, uint32_t to, uint32_t successor, uint32_t predecessor);

static void grow_edges(struct forwarding *f)
{
    const struct forwarding before = *f;

    f->size = f->size ? 2 * f->size : 64;
    f->edges = CT_ARENA_ARRAY(f->scratch, struct edge, f->size);
    f->n_edges = 0;
    for (uint32_t i = 0; i < before.size; i++)
        if (before.edges[i].from)
            note_edge(f, before.edges[i].from - 1, before.edges[i].to - 1, before.edges[i].successor, before.edges[i].predecessor);
}

static void note_edge(struct forwarding *f, uint32_t from, uint32_t to, uint32_t successor, uint32_t predecessor)
{
    struct edge *edge;

    if (2 * f->n_edges >= f->size)
        grow_edges(f);
    edge = find_edge(f, from, to);
    if (edge->from) {
        edge->successor = successor < edge->successor ? successor : edge->successor;
        return;
    }
    *edge = (struct edge){from + 1, to + 1, successor, predecessor};
    f->n_edges++;
}

static void note_edges(struct forwarding *f)
{
    for (uint32_t b = 0; b < f->fn->blocks.n; b++)
        for (uint32_t s = 0; s < f->fn->blocks.v[b]->n_succs; s++)
            note_edge(f, b, f->fn->blocks.v[b]->succs[s]->id, s, UINT32_MAX);
    for (uint32_t b = 0; b < f->fn->blocks.n; b++)
        for (uint32_t p = f->fn->blocks.v[b]->preds.n; p-- > 0;)
            find_edge(f, f->fn->blocks.v[b]->preds.v[p]->id, b)->predecessor = p;
}

/* Whether an edge from `pred` to `to` may carry the phi operands of entry number `entry` of to's predecessors: there is no edge between
 * them yet, or it carries the same operands. */
static bool may_jump_to(const struct forwarding *f, const struct ct_block *pred, const struct ct_block *to, uint32_t entry)
{
    const struct edge *edge = find_edge(f, pred->id, to->id);

    return to->first->op != CT_OP_PHI || !edge->from || ct_phis_agree(to, edge->predecessor, entry);
}

/* Makes room for n more operands; more than that, since other blocks may be forwarded to this one. */
static void reserve_phi_operands(struct forwarding *f, struct ct_block *block, uint32_t n)
{
    const uint32_t more = n > block->preds.n ? n : block->preds.n;

    if (f->room[block->id] >= n)
        return;
    f->room[block->id] = more;
    for (struct ct_insn *phi = block->first; phi && phi->op == CT_OP_PHI; phi = phi->next) {
        ct_value *grown = CT_ARENA_ARRAY(&f->fn->compilation->arena, ct_value, phi->n_operands + more);

        memcpy(grown, phi->operands, phi->n_operands * sizeof *grown);
        phi->operands = grown;
    }
}

/* Redirects predecessor number `p` of the empty block to the block's successor. The phis have room for one more operand. */
static void bypass(struct forwarding *f, struct ct_block *empty, uint32_t p, uint32_t entry)
{
    struct ct_block *pred = empty->preds.v[p], *to = empty->succs[0];
    struct edge *edge = find_edge(f, pred->id, empty->id);

    while (pred->succs[edge->successor] != empty)
        edge->successor++;
    pred->succs[edge->successor] = to;
    note_edge(f, pred->id, to->id, edge->successor, to->preds.n);
    *CT_PUSH(&f->fn->compilation->arena, &to->preds) = pred;
    for (struct ct_insn *phi = to->first; phi && phi->op == CT_OP_PHI; phi = phi->next) {
        phi->operands[phi->n_operands] = phi->operands[entry];
        phi->n_operands++;
    }
    f->room[to->id]--;
    ct_block_drop_pred(empty, p);
}

static bool forward_block(struct forwarding *f, struct ct_block *empty)
{
    struct ct_block *to = empty->succs[0];
    const uint32_t n = empty->preds.n, entry = find_edge(f, empty->id, to->id)->predecessor;

    reserve_phi_operands(f, to, n);
    for (uint32_t p = n; p-- > 0;)
        if (may_jump_to(f, empty->preds.v[p], to, entry))
            bypass(f, empty, p, entry);
    return empty->preds.n < n;
}

/* B: br C   =>   every block that jumps to B jumps to C. The operands of C's phis for the edge from B are defined above B, hence above
 * all predecessors of B. */
static bool forward_blocks(struct ct_fn *fn)
{
    struct forwarding f = {.fn = fn, .scratch = &fn->compilation->scratch};
    bool changed = false;

    f.room = CT_ARENA_ARRAY(f.scratch, uint32_t, fn->blocks.n);
    note_edges(&f);
    for (uint32_t b = 1; b < fn->blocks.n; b++)
        if (only_jumps(fn->blocks.v[b]))
            changed |= forward_block(&f, fn->blocks.v[b]);
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
