/* SPDX-License-Identifier: Apache-2.0 */
/* lockstep: whether a kernel's threads may pass its synchronization points in one fixed order, that of the basic blocks, where each loop is
 * repeated until all threads have left it (predicate.c generates that code). In register form; every point is the first instruction of its
 * block.
 *
 * That order is correct if threads that PTX brings together at a point are there in the same step. PTX pairs points by what they do, not by
 * where they are in the code: a shuffle in one branch meets one in another branch, or one of a later iteration of a thread that is behind.
 * In most kernels nothing of the kind can happen, and this is the proof:
 *
 *   An *anchor* is a point at which every lane of a warp waits: its mask is the constant of all lanes, or it is a barrier. A lane's n-th
 *   anchor meets the other lanes' n-th anchor. Assume that the lanes were together at one anchor. The blocks that they can reach from it
 *   without
 *   passing another anchor are a small part of the graph. If no two blocks in that part hold points of the same kind, and each block is
 *   reached in
 *   only one iteration of the loops around it, then the lanes are together at the next point, too, whichever branches they take, since any
 *   other
 *   pairing has no partner and is undefined. Points whose mask is not constant are no anchors: they may be anywhere in the part, once.
 *   Blocks that all threads of the block reach together, as divergence.c found, need no proof against each other.
 *   Barriers bring together threads of different warps: for them the same holds with barriers as the only anchors.
 *
 * A thread that has ended takes part in no point. activemask returns the lanes of the step, whichever they are. */
#include "sync.h"

enum { MAX_STEPS = 1 << 22, MAX_DEPTH = 31 };

struct reached {
    struct ct_block *block;
    uint32_t levels; /* bit d: the block is reached in the next iteration of a loop of depth d; bit 0: in the same iteration of all loops */
};

/* Points of one kind among those that were reached: `differ` if lanes at two of them may not be the same lanes. */
struct reached_kind {
    const struct ct_insn *insn;
    uint32_t chain;
    bool differ, divergent;
};

struct chain_end { /* indexed by value, the mask; see number_chains_from */
    uint32_t start, chain;
};

struct proof {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    const bool *divergent;
    bool barriers_only;
    bool *full;      /* indexed by value: the constant mask of all lanes */
    uint32_t *chain; /* indexed by block id: see number_chains_from */
    uint32_t n_chains;
    CT_VEC(struct reached_kind) kinds;
    uint32_t *visited;               /* indexed by block id: levels */
    const struct ct_block **seen_in; /* indexed by block id: head of the loop in which the block was last seen */
    CT_VEC(struct ct_block *) touched;
    CT_VEC(struct reached) reached;
    CT_VEC(struct reached) work; /* one level each */
    uint32_t steps;
};

/* ---- points ---- */

static const struct ct_insn *point_of(const struct proof *p, const struct ct_block *block)
{
    const struct ct_insn *insn = block->first;

    if (insn->op == CT_OP_BARRIER)
        return insn;
    return !p->barriers_only && ct_has_mask(insn->op) ? insn : NULL;
}

static bool is_anchor(const struct proof *p, const struct ct_insn *insn)
{
    return insn->op == CT_OP_BARRIER || p->full[ct_mask_of(insn).i];
}

/* The next block of straight-line code, or NULL. */
static struct ct_block *follower(const struct ct_block *block)
{
    return block->n_succs == 1 && block->succs[0]->preds.n == 1 ? block->succs[0] : NULL;
}

void ct_find_full_masks(const struct ct_fn *fn, bool *full)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            for (uint32_t i = 0; i < insn->n_results; i++)
                full[insn->results[i].i] = true;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = 0; b < fn->blocks.n; b++)
            for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next) {
                const bool is_full =
                    (insn->op == CT_OP_CONST && insn->imm == UINT32_MAX) || (insn->op == CT_OP_COPY && full[insn->operands[0].i]);

                for (uint32_t i = 0; i < insn->n_results && !is_full; i++) {
                    changed |= full[insn->results[i].i];
                    full[insn->results[i].i] = false;
                }
            }
    }
}

/* Straight-line code under one mask: the lanes that reach the first of its points also reach the others. Gives the points of one such
 * chain a number. `start`: a block that no other one precedes in straight-line code; `last`: by mask, the last point of a chain that may
 * go on, valid for this start. */
static void number_chains_from(struct proof *p, struct ct_block *start, struct chain_end *last)
{
    for (struct ct_block *block = start; block; block = follower(block)) {
        struct chain_end *end = ct_has_mask(block->first->op) ? &last[ct_mask_of(block->first).i] : NULL;

        if (end && end->start == start->id + 1)
            p->chain[block->id] = end->chain;
        else
            p->chain[block->id] = ++p->n_chains;
        if (end)
            *end = (struct chain_end){start->id + 1, p->chain[block->id]};
        for (const struct ct_insn *insn = block->first; insn; insn = insn->next)
            for (uint32_t i = 0; i < insn->n_results; i++)
                last[insn->results[i].i].start = 0; /* another mask from here on */
    }
}

static void number_chains(struct proof *p)
{
    struct chain_end *last = CT_ARENA_ARRAY(p->scratch, struct chain_end, p->fn->values.n);

    for (uint32_t b = 0; b < p->fn->blocks.n; b++) {
        struct ct_block *block = p->fn->blocks.v[b];

        if (block->preds.n != 1 || follower(block->preds.v[0]) != block)
            number_chains_from(p, block, last);
    }
}

static bool is_same_kind(const struct ct_insn *x, const struct ct_insn *y)
{
    if (x->op != y->op || x->op == CT_OP_BARRIER)
        return x->op == y->op;
    return x->mode == y->mode && x->type == y->type && x->operation == y->operation;
}

/* ---- loops ---- */

static const struct ct_block *loop_at_depth(const struct ct_block *block, uint32_t depth)
{
    const struct ct_block *head = block->loop_head;

    while (head && head->loop_depth > depth)
        head = head->loop_parent;
    return head && head->loop_depth == depth ? head : NULL;
}

static bool is_back_edge(const struct ct_block *from, const struct ct_block *to)
{
    return to->loop_head == to && ct_block_dominates(to, from);
}

/* The depth of the outermost loop around `to` whose back edge was taken. */
static uint32_t level_after(const struct ct_block *from, const struct ct_block *to, uint32_t level)
{
    if (is_back_edge(from, to) && (!level || to->loop_depth < level))
        level = to->loop_depth;
    return level && loop_at_depth(to, level) == loop_at_depth(from, level) ? level : 0;
}

/* ---- traversals ---- */

static void push(struct proof *p, struct ct_block *block, uint32_t level)
{
    if (p->visited[block->id] >> level & 1)
        return;
    if (!p->visited[block->id])
        *CT_PUSH(p->scratch, &p->touched) = block;
    p->visited[block->id] |= 1u << level;
    *CT_PUSH(p->scratch, &p->work) = (struct reached){block, level};
}

static void push_successors(struct proof *p, const struct ct_block *block, uint32_t level)
{
    for (uint32_t s = 0; s < block->n_succs; s++)
        push(p, block->succs[s], level_after(block, block->succs[s], level));
    p->steps++;
}

/* Collects in `reached` the points that threads can reach from the position after `start` without passing an anchor. */
static void traverse(struct proof *p, const struct ct_block *start)
{
    for (uint32_t i = 0; i < p->touched.n; i++)
        p->visited[p->touched.v[i]->id] = 0;
    p->touched.n = p->reached.n = p->work.n = 0;
    push_successors(p, start, 0);
    while (p->work.n && p->steps < MAX_STEPS) {
        const struct reached at = p->work.v[--p->work.n];
        const struct ct_insn *point = point_of(p, at.block);

        if (!point || !is_anchor(p, point))
            push_successors(p, at.block, at.levels);
    }
    for (uint32_t i = 0; i < p->touched.n; i++)
        if (point_of(p, p->touched.v[i]))
            *CT_PUSH(p->scratch, &p->reached) = (struct reached){p->touched.v[i], p->visited[p->touched.v[i]->id]};
}

static struct reached_kind *find_kind(struct proof *p, const struct ct_insn *insn)
{
    for (uint32_t i = 0; i < p->kinds.n; i++, p->steps++)
        if (is_same_kind(p->kinds.v[i].insn, insn))
            return &p->kinds.v[i];
    *CT_PUSH(p->scratch, &p->kinds) = (struct reached_kind){.insn = insn};
    return &p->kinds.v[p->kinds.n - 1];
}

/* Whether lanes at this point might be paired with those at another one. */
static bool may_meet_another(struct proof *p, const struct ct_block *block)
{
    struct reached_kind *kind = find_kind(p, block->first);

    kind->differ |= kind->chain && (block->first->op == CT_OP_BARRIER || kind->chain != p->chain[block->id]);
    kind->divergent |= p->divergent[block->id];
    kind->chain = p->chain[block->id];
    return kind->differ && kind->divergent;
}

static bool stay_together_from(struct proof *p, const struct ct_block *start)
{
    traverse(p, start);
    p->kinds.n = 0;
    for (uint32_t i = 0; i < p->reached.n; i++) {
        const struct reached *a = &p->reached.v[i];

        if (p->divergent[a->block->id] && (a->levels & (a->levels - 1)))
            return false;
        if (may_meet_another(p, a->block))
            return false;
    }
    return p->steps < MAX_STEPS;
}

/* Whether an iteration of the loop may pass no anchor. */
static bool has_iteration_without_anchor(struct proof *p, const struct ct_block *head)
{
    CT_VEC(const struct ct_block *) work = {0};

    *CT_PUSH(p->scratch, &work) = head;
    while (work.n) {
        const struct ct_block *block = work.v[--work.n];
        const struct ct_insn *point = point_of(p, block);

        if (point && is_anchor(p, point))
            continue;
        for (uint32_t s = 0; s < block->n_succs; s++) {
            const struct ct_block *to = block->succs[s];

            if (to == head)
                return true;
            if (p->seen_in[to->id] == head || loop_at_depth(to, head->loop_depth) != head)
                continue;
            p->seen_in[to->id] = head;
            p->steps++;
            *CT_PUSH(p->scratch, &work) = to;
        }
    }
    return false;
}

/* In loops around divergent points, every iteration passes an anchor. */
static bool iterations_are_separated(struct proof *p)
{
    bool *checked = CT_ARENA_ARRAY(p->scratch, bool, p->fn->blocks.n);

    for (uint32_t b = 0; b < p->fn->blocks.n; b++) {
        const struct ct_block *block = p->fn->blocks.v[b];

        if (!point_of(p, block) || !p->divergent[b])
            continue;
        for (const struct ct_block *head = block->loop_head; head && !checked[head->id]; head = head->loop_parent) {
            checked[head->id] = true;
            if (head->loop_depth > MAX_DEPTH || p->steps > MAX_STEPS || has_iteration_without_anchor(p, head))
                return false;
        }
    }
    return true;
}

static bool prove(struct ct_fn *fn, const bool *divergent, bool barriers_only)
{
    struct proof p = {.fn = fn, .scratch = &fn->compilation->scratch, .divergent = divergent, .barriers_only = barriers_only};

    p.full = CT_ARENA_ARRAY(p.scratch, bool, fn->values.n + 1);
    p.visited = CT_ARENA_ARRAY(p.scratch, uint32_t, fn->blocks.n);
    p.chain = CT_ARENA_ARRAY(p.scratch, uint32_t, fn->blocks.n);
    p.seen_in = CT_ARENA_ARRAY(p.scratch, const struct ct_block *, fn->blocks.n);
    ct_find_full_masks(fn, p.full);
    number_chains(&p);
    if (!iterations_are_separated(&p) || !stay_together_from(&p, fn->blocks.v[0]))
        return false;
    for (uint32_t b = 0; b < fn->blocks.n; b++) {
        const struct ct_insn *point = point_of(&p, fn->blocks.v[b]);

        if (point && is_anchor(&p, point) && !stay_together_from(&p, fn->blocks.v[b]))
            return false;
    }
    return true;
}

/* In every loop, either the head is not divergent, or all of its blocks are; and the depths fit the levels of a traversal. */
static bool loops_are_simple(const struct ct_fn *fn, const bool *divergent)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++) {
        if (fn->blocks.v[b]->loop_depth > MAX_DEPTH)
            return false;
        for (const struct ct_block *head = fn->blocks.v[b]->loop_head; head; head = head->loop_parent)
            if (divergent[head->id] && !divergent[b])
                return false;
    }
    return true;
}

bool ct_runs_in_lockstep(struct ct_fn *fn, const bool *divergent)
{
    ct_fn_compute_rpo(fn);
    ct_fn_compute_dominators(fn);
    if (!ct_fn_is_reducible(fn))
        return false;
    ct_fn_compute_loops(fn);
    return loops_are_simple(fn, divergent) && prove(fn, divergent, true) && prove(fn, divergent, false);
}
