/* SPDX-License-Identifier: Apache-2.0 */
/* A divergence analysis: which basic blocks all threads of a work-group reach together, and which values are the same for all of them.
 *
 * A register varies if one of its definitions reads something that differs between threads, or is in a block that only some of the threads
 * may reach. A block is divergent if it lies in the influence region of a branch on a varying register, that is between the branch and its
 * immediate post-dominator. A thread that ends counts as reaching the function's end, so the code after an early exit is divergent. The
 * two rules are applied until a fixed point is reached. The result is conservative: a block may be marked divergent that is not.
 *
 * These are data and control dependences as in Sampaio et al., "Divergence Analysis", 2013, without that paper's affine refinement and
 * with the control dependence applied to whole blocks. */
#include "sync.h"

struct analysis {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    bool *varying;    /* indexed by value */
    bool *divergent;  /* indexed by block id */
    bool *influences; /* indexed by block id: the blocks that depend on this one have been marked */
    uint32_t *above;  /* indexed by block id: a block on the way up the tree of post-dominators, at most the first one that is not marked;
                            its own id if it is not marked */
    uint32_t *depth;  /* indexed by block id: in that tree */
    CT_VEC(const struct ct_block *) work;
    uint32_t *post_idom; /* indexed by block id: id of the immediate post-dominator; n is a virtual exit */
    uint32_t *order;     /* indexed by block id: number in a postorder of the reversed graph */
    uint32_t n;
};

/* ---- post-dominators: Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm", on the reversed graph ---- */

/* Numbers the blocks from which the exit can be reached; the others (in endless loops) keep 0 and are treated as if they led to the
 * exit. */
static void number_reversed(struct analysis *a, struct ct_block **by_order)
{
    CT_VEC(struct ct_block *) stack = {0};
    uint32_t *next = CT_ARENA_ARRAY(a->scratch, uint32_t, a->n), n = 0;
    bool *seen = CT_ARENA_ARRAY(a->scratch, bool, a->n);

    for (uint32_t root = 0; root < a->n; root++) {
        struct ct_block *block = a->fn->blocks.v[root];

        if (block->n_succs || seen[root])
            continue;
        seen[root] = true;
        *CT_PUSH(a->scratch, &stack) = block;
        while (stack.n) {
            block = stack.v[stack.n - 1];
            if (next[block->id] < block->preds.n) {
                struct ct_block *pred = block->preds.v[next[block->id]++];

                if (seen[pred->id])
                    continue;
                seen[pred->id] = true;
                *CT_PUSH(a->scratch, &stack) = pred;
                continue;
            }
            stack.n--;
            by_order[n] = block;
            a->order[block->id] = ++n;
        }
    }
    a->order[a->n] = n + 1; /* the virtual exit */
}

static uint32_t intersect(const struct analysis *a, uint32_t x, uint32_t y)
{
    while (x != y) {
        if (a->order[x] < a->order[y])
            x = a->post_idom[x];
        else
            y = a->post_idom[y];
    }
    return x;
}

/* Blocks from which no exit can be reached are treated as if they led to the exit. */
static uint32_t meet_of(const struct analysis *a, uint32_t block)
{
    return a->post_idom[block] == UINT32_MAX ? a->n : a->post_idom[block];
}

/* The immediate post-dominator of a block has a higher number than the block. */
static void find_depths(struct analysis *a, struct ct_block *const *by_order)
{
    a->depth = CT_ARENA_ARRAY(a->scratch, uint32_t, (size_t)a->n + 1);
    for (uint32_t b = 0; b < a->n; b++)
        a->depth[b] = 1; /* if it has no number */
    for (uint32_t i = a->order[a->n] - 1; i-- > 0;)
        a->depth[by_order[i]->id] = a->depth[meet_of(a, by_order[i]->id)] + 1;
}

static void find_post_dominators(struct analysis *a)
{
    struct ct_block **by_order = CT_ARENA_ARRAY(a->scratch, struct ct_block *, a->n);
    bool changed = true;

    a->order = CT_ARENA_ARRAY(a->scratch, uint32_t, (size_t)a->n + 1);
    a->post_idom = CT_ARENA_ARRAY(a->scratch, uint32_t, (size_t)a->n + 1);
    number_reversed(a, by_order);
    for (uint32_t i = 0; i <= a->n; i++)
        a->post_idom[i] = UINT32_MAX;
    a->post_idom[a->n] = a->n;
    while (changed) {
        changed = false;
        for (uint32_t i = a->order[a->n] - 1; i-- > 0;) {
            const struct ct_block *block = by_order[i];
            uint32_t found = block->n_succs ? UINT32_MAX : a->n;

            for (uint32_t s = 0; s < block->n_succs; s++) {
                const uint32_t id = a->order[block->succs[s]->id] ? block->succs[s]->id : a->n;

                if (id == a->n || a->post_idom[id] != UINT32_MAX)
                    found = found == UINT32_MAX ? id : intersect(a, found, id);
            }
            if (found != a->post_idom[block->id]) {
                a->post_idom[block->id] = found;
                changed = true;
            }
        }
    }
    find_depths(a, by_order);
}

/* ---- varying values ---- */

static bool is_divergence_source(const struct ct_insn *insn)
{
    switch (insn->op) {
    case CT_OP_SYSVAL:
        return (insn->sreg >= CT_SYS_TID_X && insn->sreg <= CT_SYS_TID_Z) || insn->sreg == CT_SYS_TID_LINEAR || insn->sreg == CT_SYS_LANEID;
    case CT_OP_LOAD:
        return insn->space != CT_SPACE_PARAM && !(insn->read_only && insn->space == CT_SPACE_GLOBAL);
    default:
        return insn->op == CT_OP_ATOM || insn->op == CT_OP_SAMPLE || insn->op == CT_OP_CLOCK || insn->op == CT_OP_UNDEF ||
               insn->op == CT_OP_LANEREAD || insn->op == CT_OP_BALLOT || insn->op == CT_OP_MATRIXMAD || insn->op == CT_OP_MATRIXLOAD ||
               ct_is_warp_op(insn->op);
    }
}

bool ct_is_reached_variously(const struct ct_divergence *divergence, const struct ct_block *block)
{
    for (uint32_t i = 0; i < block->preds.n; i++) {
        const struct ct_block *pred = block->preds.v[i];

        if (divergence->blocks[pred->id] || (pred->n_succs > 1 && pred->last->n_operands && divergence->values[pred->last->operands[0].i]))
            return true;
    }
    return false;
}

static bool insn_varies(const struct analysis *a, const struct ct_insn *insn)
{
    const struct ct_divergence so_far = {a->divergent, a->varying};

    if (insn->op == CT_OP_PHI && ct_is_reached_variously(&so_far, insn->block))
        return true;
    if (a->divergent[insn->block->id] || is_divergence_source(insn))
        return true;
    if (insn->op == CT_OP_BARRIER)
        return false; /* bar.red: all threads that take part get the same result */
    for (uint32_t i = 0; i < insn->n_operands; i++)
        if (insn->operands[i].i && a->varying[insn->operands[i].i])
            return true;
    return false;
}

static bool propagate_to_values(struct analysis *a)
{
    bool changed = false;

    for (uint32_t b = 0; b < a->n; b++)
        for (const struct ct_insn *insn = a->fn->blocks.v[b]->first; insn; insn = insn->next) {
            if (!insn->n_results || !insn_varies(a, insn))
                continue;
            for (uint32_t i = 0; i < insn->n_results; i++) {
                changed |= insn->results[i].i && !a->varying[insn->results[i].i];
                a->varying[insn->results[i].i] = true;
            }
        }
    return changed;
}

/* ---- divergent blocks ---- */

/* The first block from this one up the tree that is not marked. */
static uint32_t first_unmarked(struct analysis *a, uint32_t block)
{
    uint32_t found = block;

    while (a->above[found] != found)
        found = a->above[found];
    while (block != found) { /* shortens the path for the next search */
        const uint32_t next = a->above[block];

        a->above[block] = found;
        block = next;
    }
    return found;
}

/* Marks the blocks that are control-dependent on this one: those up the tree from its successors to its immediate post-dominator, without
 * the latter. */
static void mark_dependent(struct analysis *a, const struct ct_block *block)
{
    const uint32_t meet = meet_of(a, block->id);

    if (a->influences[block->id])
        return;
    a->influences[block->id] = true;
    for (uint32_t s = 0; s < block->n_succs; s++)
        for (uint32_t at = first_unmarked(a, block->succs[s]->id); a->depth[at] > a->depth[meet]; at = first_unmarked(a, at)) {
            a->divergent[at] = true;
            a->above[at] = meet_of(a, at);
            *CT_PUSH(a->scratch, &a->work) = a->fn->blocks.v[at];
        }
}

/* Marks the blocks between the branch that ends `block` and its immediate post-dominator. They are those that depend on the branch, on one
 * of these, and so on; so each block is visited only once, however many regions it is in. */
static void mark_influence_region(struct analysis *a, const struct ct_block *block)
{
    mark_dependent(a, block);
    while (a->work.n)
        mark_dependent(a, a->work.v[--a->work.n]);
}

static bool propagate_to_blocks(struct analysis *a)
{
    bool changed = false;

    for (uint32_t b = 0; b < a->n; b++) {
        const struct ct_block *block = a->fn->blocks.v[b];

        if (a->influences[b] || block->n_succs < 2 || !block->last->n_operands || !a->varying[block->last->operands[0].i])
            continue;
        mark_influence_region(a, block);
        changed = true;
    }
    return changed;
}

struct ct_divergence ct_find_divergence(struct ct_fn *fn)
{
    struct analysis a = {.fn = fn, .scratch = &fn->compilation->scratch};

    ct_fn_remove_unreachable(fn);
    a.n = fn->blocks.n;
    a.varying = CT_ARENA_ARRAY(a.scratch, bool, fn->values.n + 1);
    a.divergent = CT_ARENA_ARRAY(a.scratch, bool, a.n);
    a.influences = CT_ARENA_ARRAY(a.scratch, bool, a.n);
    a.above = CT_ARENA_ARRAY(a.scratch, uint32_t, (size_t)a.n + 1);
    for (uint32_t b = 0; b <= a.n; b++)
        a.above[b] = b;
    find_post_dominators(&a);
    for (bool changed = true; changed;) {
        changed = propagate_to_values(&a);
        changed |= propagate_to_blocks(&a);
    }
    return (struct ct_divergence){a.divergent, a.varying};
}

const bool *ct_find_divergent_blocks(struct ct_fn *fn)
{
    return ct_find_divergence(fn).blocks;
}
