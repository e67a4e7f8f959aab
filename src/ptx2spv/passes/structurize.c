/* SPDX-License-Identifier: Apache-2.0 */
/* structurize: turns the control-flow graph into a tree of ifs, loops and scopes (the structured form of ir.h).
 * In:  SSA, reducible graph.   Out: fn->body; blocks, SSA and analyses are unchanged.
 * How: Ramsey, "Beyond Relooper: Recursive Translation of Unstructured Control Flow to Structured Control Flow" (ICFP 2022), over the
 * dominator tree. Each block X is placed once: its straight-line code, then its branch, inside one scope for each block that follows it:
 *
 *     scope M2 { scope M1 { loop X { code of X; branch of X } } M1 } M2
 *
 * A jump to M1 leaves scope M1. A block with only one forward edge into it is placed directly in that branch. There are two changes against
 * the paper, for SPIR-V and for the reconvergence that PTX promises:
 *  - A block outside a loop is placed after the outermost loop that contains its immediate dominator but not the block, so that lanes
 *    which leave the loop in different iterations reconverge there. (The loop's header dominates every such block, and thus all of its
 *    predecessors.)
 *  - Jumps out of several regions at once become selectors and tests (structure_jumps.c).
 * A block that only returns is not placed: a jump to it becomes a return.
 *
 * Drivers accept a limited depth (llvmpipe of Mesa 25 crashes above 80 nested ifs, SPIR-V guarantees 1023), but flat code may have any
 * number of early exits and joins. Sequences keep the depth logarithmic in the size of the code, apart from nested loops. If many blocks
 * follow X, they are not placed after one scope each, but in parts of a sequence. A jump to M3 sets the sequence's selector to 3 and
 * leaves the part that it is in. A binary tree of guards finds the part where control continues:
 *
 *     scope { X }
 *     guard <= 3 {
 *         guard <= 1 { scope { M1 } }
 *         guard <= 3 { guard <= 2 { scope { M2 } }  guard <= 3 { scope { M3 } } }
 *     }
 *     exits
 *
 * Jumps lead forward, so a part sets the selector to a higher number before it ends at the next guard. Lanes that jump to the same part
 * reconverge before it, since each guard ends after the parts inside it. Jumps out of the sequence have numbers above those of the parts,
 * and are made at its end: Mesa places what follows a conditional jump inside the other branch, so jumps in a row would nest there.
 *
 * From a depth limit on, all blocks that follow X or a block that X dominates become parts of one sequence, and so do blocks that
 * would be placed too deep in their part. */
#include "ptx2spv/ir/structure.h"

#include <stdlib.h>

#define IS_PART 1 /* the `number` of a scope that is a part of a sequence */

/* A place in the tree. */
struct spot {
    struct ct_place place;
    uint32_t depth;
    struct sequence *sequence; /* the innermost one around the place; NULL: none */
    bool is_cut;               /* all blocks that follow the ones placed here are parts of the sequence */
};

struct sequence {
    uint32_t selector;
    uint32_t n;            /* number of parts and exits */
    struct ct_node *parts; /* the guard around all parts but the first */
    struct ct_node *last;  /* the last node before the first exit, which is the last one in the list: it needs no test */
    struct spot around;
};

struct task {
    struct ct_block *block;
    struct spot at;
};

struct number {
    const struct sequence *sequence; /* NULL: none */
    uint32_t number;
};

typedef CT_VEC(struct ct_block *) block_list;

struct builder {
    struct ct_fn *fn;
    struct ct_structure_limits limits;
    struct ct_arena *scratch;
    /* indexed by block id: */
    block_list *inner, *outer; /* blocks that are placed after the branch of this block, and after its loop; in reverse postorder */
    bool *follows;             /* the block is in one of those lists; others are placed where the jump to them is */
    struct ct_node **scope_of; /* the scope that a jump to this block leaves */
    struct number *part_of;    /* the part of a sequence that begins with this block */
    struct number *exit_of;    /* the exit of a sequence that was last used to jump to this block; the last element is for
                                  returns */
    struct ct_node **loop_of;  /* for headers: the loop */
    CT_VEC(struct task) tasks; /* blocks whose place is known */
    CT_VEC(struct sequence *) sequences;
};

static bool only_returns(const struct ct_block *block)
{
    return block->first->op == CT_OP_RET || block->first->op == CT_OP_EXIT;
}

static uint32_t forward_edge_count(const struct ct_block *block)
{
    uint32_t n = 0;

    for (uint32_t p = 0; p < block->preds.n; p++)
        n += !ct_block_dominates(block, block->preds.v[p]);
    return n;
}

/* The header of the outermost loop that contains the block's immediate dominator but not the block; NULL if there is none. Every loop
 * that contains the block, except the one whose header it is, contains its dominator too, so comparing depths suffices. */
static struct ct_block *loop_left_by(const struct ct_block *block)
{
    const uint32_t common = block->loop_depth - (block->loop_head == block);
    struct ct_block *header = block->idom->loop_head;

    if (!header || header->loop_depth <= common)
        return NULL;
    while (header->loop_depth > common + 1)
        header = header->loop_parent;
    return header;
}

/* Decides for every block after which other block it is placed. */
static void find_followers(struct builder *b)
{
    uint32_t n;
    struct ct_block **order = ct_fn_rpo_blocks(b->fn, &n);

    for (uint32_t i = 1; i < n; i++) {
        struct ct_block *header = loop_left_by(order[i]);

        if (only_returns(order[i]) || (!header && forward_edge_count(order[i]) <= 1))
            continue;
        b->follows[order[i]->id] = true;
        *CT_PUSH(b->scratch, header ? &b->outer[header->id] : &b->inner[order[i]->idom->id]) = order[i];
    }
}

static bool is_placed_at_jump(const struct builder *b, const struct ct_block *from, const struct ct_block *to)
{
    return !b->follows[to->id] && !only_returns(to) && !ct_block_dominates(to, from);
}

static int compare_order(const void *a, const void *b)
{
    const struct ct_block *const *left = a, *const *right = b;

    return (*left)->rpo<(*right)->rpo ? -1 : (*left)->rpo>(*right)->rpo;
}

struct visit {
    struct ct_block *block;
    uint32_t depth; /* in its part */
};

struct cut {
    block_list parts;
    CT_VEC(struct visit) pending;
};

static void cut_before(struct builder *b, struct cut *cut, struct ct_block *block)
{
    b->follows[block->id] = true;
    *CT_PUSH(b->scratch, &cut->parts) = block;
    *CT_PUSH(b->scratch, &cut->pending) = (struct visit){block, 0};
}

/* Finds the blocks that begin a part if `root` and what it dominates is cut, outside of inner loops, in reverse postorder. `around_loop`:
 * the root is a loop as a whole, not the inside of the loop of which it is the header. */
static block_list find_parts(struct builder *b, struct ct_block *root, bool around_loop)
{
    struct cut cut = {0};

    *CT_PUSH(b->scratch, &cut.pending) = (struct visit){root, 0};
    while (cut.pending.n) {
        const struct visit at = cut.pending.v[--cut.pending.n];
        const bool is_loop = at.block->loop_head == at.block && (at.block != root || around_loop);
        const block_list *followers = is_loop ? &b->outer[at.block->id] : &b->inner[at.block->id];

        for (uint32_t i = 0; i < followers->n; i++)
            cut_before(b, &cut, followers->v[i]);
        for (uint32_t i = 0; i < at.block->n_succs && !is_loop; i++) {
            struct ct_block *to = at.block->succs[i];

            if (!is_placed_at_jump(b, at.block, to))
                continue;
            if (at.depth + 1 < b->limits.part_depth)
                *CT_PUSH(b->scratch, &cut.pending) = (struct visit){to, at.depth + 1};
            else
                cut_before(b, &cut, to);
        }
    }
    if (cut.parts.n)
        qsort(cut.parts.v, cut.parts.n, sizeof(struct ct_block *), compare_order);
    return cut.parts;
}

static struct ct_node *append(struct builder *b, struct spot *at, enum ct_node_kind kind)
{
    return ct_node_append(b->fn, &at->place, ct_node_create(b->fn, kind));
}

static struct spot inside(const struct spot *at, struct ct_node *node, uint32_t slot)
{
    struct spot spot = *at;

    spot.place = (struct ct_place){.parent = node, .slot = slot};
    spot.depth++;
    return spot;
}

static void push_task(struct builder *b, struct ct_block *block, struct spot at)
{
    *CT_PUSH(b->scratch, &b->tasks) = (struct task){block, at};
}

/* Opens one scope per follower, the last follower's outermost. Afterwards `at` is inside all of them. */
static void open_scopes(struct builder *b, struct spot *at, const block_list *followers)
{
    for (uint32_t i = followers->n; i-- > 0;) {
        struct ct_node *scope = append(b, at, CT_NODE_SCOPE);

        b->scope_of[followers->v[i]->id] = scope;
        push_task(b, followers->v[i], *at);
        *at = inside(at, scope, 0);
    }
}

/* ---- sequences ---- */

/* Creates a node whose contents are executed if the selector is at most `number` (GUARD), or exactly `number` (TEST). */
static struct ct_node *create_test(struct builder *b, enum ct_node_kind kind, const struct sequence *sequence, uint32_t number)
{
    struct ct_node *test = ct_node_create(b->fn, kind);

    test->variable = sequence->selector;
    test->number = number;
    return test;
}

static struct ct_node *append_guard(struct builder *b, struct spot *at, uint32_t last)
{
    return ct_node_append(b->fn, &at->place, create_test(b, CT_NODE_GUARD, at->sequence, last));
}

static struct spot open_part(struct builder *b, struct spot *at)
{
    struct ct_node *scope = append(b, at, CT_NODE_SCOPE);

    scope->number = IS_PART;
    return inside(at, scope, 0);
}

/* Opens parts number first .. first + n - 1, where the selector is one of these numbers. Part i + 1 begins with blocks[i]. A part may set
 * the selector to a number beyond all of them, so the second half has a guard as well. */
static void open_parts(struct builder *b, struct spot at, struct ct_block *const *blocks, uint32_t first, uint32_t n)
{
    const uint32_t half = n / 2;

    if (n == 1) {
        b->part_of[blocks[first - 1]->id] = (struct number){at.sequence, first};
        push_task(b, blocks[first - 1], open_part(b, &at));
        return;
    }
    open_parts(b, inside(&at, append_guard(b, &at, first + half - 1), 0), blocks, first, half);
    open_parts(b, inside(&at, append_guard(b, &at, first + n - 1), 0), blocks, first + half, n - half);
}

/* Opens one part per follower after a first part. Afterwards `at` is inside the first one. */
static void open_sequence(struct builder *b, struct spot *at, const block_list *followers)
{
    struct sequence *sequence = CT_ARENA_NEW(b->scratch, struct sequence);
    struct spot first;

    *sequence = (struct sequence){.selector = b->fn->n_selectors++, .n = followers->n + 1, .around = *at};
    *CT_PUSH(b->scratch, &b->sequences) = sequence;
    at->sequence = sequence;
    first = open_part(b, at);
    sequence->parts = sequence->last = append_guard(b, at, followers->n);
    open_parts(b, inside(at, sequence->parts, 0), followers->v, 1, followers->n);
    *at = first;
}

/* Sequences without exits always continue with one of their parts. */
static void dissolve_guards(struct builder *b)
{
    for (uint32_t i = 0; i < b->sequences.n; i++)
        if (b->sequences.v[i]->last == b->sequences.v[i]->parts && !b->sequences.v[i]->parts->next)
            ct_node_dissolve(b->fn, b->sequences.v[i]->parts);
}

/* Opens what the blocks that follow this one need: after its branch, or after the loop of which it is the header. */
static void open_followers(struct builder *b, struct spot *at, struct ct_block *block, bool around_loop)
{
    block_list followers = around_loop ? b->outer[block->id] : b->inner[block->id];

    if (at->is_cut) /* they have been opened */
        return;
    at->is_cut = at->depth >= b->limits.depth;
    if (at->is_cut)
        followers = find_parts(b, block, around_loop);
    if (followers.n > (at->is_cut ? 1 : b->limits.scopes))
        open_sequence(b, at, &followers);
    else
        open_scopes(b, at, &followers);
}

/* ---- jumps ---- */

struct jump {
    enum ct_node_kind kind;
    struct ct_node *region;
    struct number part; /* the jump leads to this part; .sequence NULL: it leaves the region */
    uint32_t id;        /* index in exit_of */
};

static struct jump jump_to(const struct builder *b, const struct ct_block *from, const struct ct_block *to)
{
    if (only_returns(to))
        return (struct jump){.kind = CT_NODE_RETURN, .id = b->fn->blocks.n};
    if (ct_block_dominates(to, from))
        return (struct jump){.kind = CT_NODE_CONTINUE, .region = b->loop_of[to->id], .id = to->id};
    return (struct jump){.kind = CT_NODE_BREAK, .region = b->scope_of[to->id], .part = b->part_of[to->id], .id = to->id};
}

/* The part of the innermost sequence around `at`, if the jump leaves it; else NULL. */
static struct ct_node *part_left_by(const struct spot *at, const struct jump *jump)
{
    struct ct_node *node = at->sequence ? at->place.parent : NULL;

    while (node && !(node->kind == CT_NODE_SCOPE && node->number == IS_PART)) {
        if (node == jump->region)
            return NULL;
        node = node->parent;
    }
    return node;
}

static uint32_t number_in_sequence(struct builder *b, struct sequence *sequence, const struct jump *jump);

static void place_jump(struct builder *b, struct spot at, const struct jump *jump)
{
    struct ct_node *part = part_left_by(&at, jump);

    if (part) {
        const uint32_t number = number_in_sequence(b, at.sequence, jump);
        struct ct_node *set = append(b, &at, CT_NODE_SET);

        set->variable = at.sequence->selector;
        set->number = number;
    }
    append(b, &at, part ? CT_NODE_BREAK : jump->kind)->region = part ? part : jump->region;
}

static void place_exit(struct builder *b, struct sequence *sequence, const struct jump *jump, uint32_t number)
{
    struct spot at = sequence->around;

    at.place.last = sequence->last;
    if (sequence->last->next) {
        struct ct_node *test = create_test(b, CT_NODE_TEST, sequence, number);

        ct_node_insert_after(sequence->last, test);
        sequence->last = test;
        at = inside(&at, test, 0);
    }
    place_jump(b, at, jump);
}

/* The number that stands for the jump, which leaves a part of the sequence. */
static uint32_t number_in_sequence(struct builder *b, struct sequence *sequence, const struct jump *jump)
{
    struct number exit = b->exit_of[jump->id];

    if (jump->part.sequence == sequence)
        return jump->part.number;
    if (exit.sequence != sequence) {
        exit = (struct number){sequence, sequence->n++};
        place_exit(b, sequence, jump, exit.number);
        b->exit_of[jump->id] = exit;
    }
    return exit.number;
}

/* ---- blocks ---- */

static void place_edge(struct builder *b, struct spot at, const struct ct_block *from, struct ct_block *to)
{
    const struct jump jump = jump_to(b, from, to);

    if (is_placed_at_jump(b, from, to))
        push_task(b, to, at);
    else
        place_jump(b, at, &jump);
}

static void place_arms(struct builder *b, struct spot at, enum ct_node_kind kind, const struct ct_block *block)
{
    struct ct_node *node = append(b, &at, kind);

    node->condition = block->last->operands[0];
    if (kind == CT_NODE_SWITCH) {
        node->n_cases = block->n_succs;
        node->cases = CT_ARENA_ARRAY(&b->fn->compilation->arena, struct ct_node *, block->n_succs);
    }
    for (uint32_t i = 0; i < block->n_succs; i++)
        place_edge(b, inside(&at, node, i), block, block->succs[i]);
}

static void place_end(struct builder *b, struct spot at, const struct ct_block *block)
{
    const struct jump jump = {.kind = CT_NODE_RETURN, .id = b->fn->blocks.n};

    if (block->last->op == CT_OP_UNREACHABLE)
        append(b, &at, CT_NODE_UNREACHABLE);
    else
        place_jump(b, at, &jump);
}

static void place_branch(struct builder *b, struct spot at, const struct ct_block *block)
{
    bool same = true;

    for (uint32_t i = 1; i < block->n_succs; i++)
        same &= block->succs[i] == block->succs[0];
    if (block->n_succs == 0)
        place_end(b, at, block);
    else if (same)
        place_edge(b, at, block, block->succs[0]);
    else
        place_arms(b, at, block->last->op == CT_OP_SWITCH ? CT_NODE_SWITCH : CT_NODE_IF, block);
}

static void place_block(struct builder *b, const struct task *task)
{
    struct ct_block *block = task->block;
    struct spot at = task->at;

    if (block->loop_head == block) {
        struct ct_node *loop;

        open_followers(b, &at, block, true);
        loop = append(b, &at, CT_NODE_LOOP);
        loop->header = block;
        b->loop_of[block->id] = loop;
        at = inside(&at, loop, 0);
        at.is_cut = false;
    }
    append(b, &at, CT_NODE_BLOCK)->block = block;
    open_followers(b, &at, block, false);
    place_branch(b, at, block);
}

static void refresh_analyses(struct ct_fn *fn)
{
    if (!(fn->props & CT_PROP_RPO))
        ct_fn_compute_rpo(fn);
    if (!(fn->props & CT_PROP_DOM))
        ct_fn_compute_dominators(fn);
    if (!(fn->props & CT_PROP_LOOPS))
        ct_fn_compute_loops(fn);
}

enum ct_pass_result ct_structurize_within(struct ct_fn *fn, struct ct_structure_limits limits)
{
    struct builder b = {.fn = fn, .limits = limits, .scratch = &fn->compilation->scratch};
    const uint32_t n = fn->blocks.n;

    refresh_analyses(fn);
    b.inner = CT_ARENA_ARRAY(b.scratch, block_list, n);
    b.outer = CT_ARENA_ARRAY(b.scratch, block_list, n);
    b.follows = CT_ARENA_ARRAY(b.scratch, bool, n);
    b.scope_of = CT_ARENA_ARRAY(b.scratch, struct ct_node *, n);
    b.part_of = CT_ARENA_ARRAY(b.scratch, struct number, n);
    b.exit_of = CT_ARENA_ARRAY(b.scratch, struct number, n + 1);
    b.loop_of = CT_ARENA_ARRAY(b.scratch, struct ct_node *, n);
    fn->body = NULL;
    fn->n_nodes = fn->n_selectors = 0;
    find_followers(&b);
    push_task(&b, fn->blocks.v[0], (struct spot){0});
    while (b.tasks.n) {
        const struct task task = b.tasks.v[--b.tasks.n];

        place_block(&b, &task);
    }
    dissolve_guards(&b);
    if (!ct_structure_resolve_jumps(fn))
        return CT_PASS_FAILED;
    fn->props |= CT_PROP_STRUCTURED;
    return CT_PASS_CHANGED;
}

enum ct_pass_result ct_pass_structurize(struct ct_fn *fn)
{
    return ct_structurize_within(fn, (struct ct_structure_limits){.scopes = 32, .depth = 32, .part_depth = 16});
}
