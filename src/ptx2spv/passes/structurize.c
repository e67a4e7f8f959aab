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
 * A block that only returns is not placed: a jump to it becomes a return. */
#include "ptx2spv/ir/structure.h"

struct task {
    struct ct_block *block;
    struct ct_place place;
};

typedef CT_VEC(struct ct_block *) block_list;

struct builder {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    /* indexed by block id: */
    block_list *inner, *outer; /* blocks that are placed after the branch of this block, and after its loop; in reverse postorder */
    struct ct_node **scope_of; /* the scope that a jump to this block leaves; NULL: the block is placed where the jump is */
    struct ct_node **loop_of;  /* for headers: the loop */
    CT_VEC(struct task) tasks; /* blocks whose place is known */
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

        if (only_returns(order[i]))
            continue;
        if (header)
            *CT_PUSH(b->scratch, &b->outer[header->id]) = order[i];
        else if (forward_edge_count(order[i]) > 1)
            *CT_PUSH(b->scratch, &b->inner[order[i]->idom->id]) = order[i];
    }
}

static struct ct_node *append(struct builder *b, struct ct_place *at, enum ct_node_kind kind)
{
    return ct_node_append(b->fn, at, ct_node_create(b->fn, kind));
}

static void push_task(struct builder *b, struct ct_block *block, struct ct_place place)
{
    *CT_PUSH(b->scratch, &b->tasks) = (struct task){block, place};
}

/* Opens one scope per follower, the last follower's outermost. Afterwards `at` is inside all of them. */
static void open_scopes(struct builder *b, struct ct_place *at, const block_list *followers)
{
    for (uint32_t i = followers->n; i-- > 0;) {
        struct ct_node *scope = append(b, at, CT_NODE_SCOPE);

        b->scope_of[followers->v[i]->id] = scope;
        push_task(b, followers->v[i], *at);
        *at = (struct ct_place){.parent = scope};
    }
}

static void place_edge(struct builder *b, struct ct_place at, const struct ct_block *from, struct ct_block *to)
{
    if (only_returns(to)) {
        append(b, &at, CT_NODE_RETURN);
    } else if (ct_block_dominates(to, from)) {
        append(b, &at, CT_NODE_CONTINUE)->region = b->loop_of[to->id];
    } else if (b->scope_of[to->id]) {
        append(b, &at, CT_NODE_BREAK)->region = b->scope_of[to->id];
    } else {
        push_task(b, to, at);
    }
}

static void place_switch(struct builder *b, struct ct_place at, const struct ct_block *block)
{
    struct ct_node *node = append(b, &at, CT_NODE_SWITCH);

    node->condition = block->last->operands[0];
    node->n_cases = block->n_succs;
    node->cases = CT_ARENA_ARRAY(&b->fn->compilation->arena, struct ct_node *, block->n_succs);
    for (uint32_t i = 0; i < block->n_succs; i++)
        place_edge(b, (struct ct_place){.parent = node, .slot = i}, block, block->succs[i]);
}

static void place_if(struct builder *b, struct ct_place at, const struct ct_block *block)
{
    struct ct_node *node = append(b, &at, CT_NODE_IF);

    node->condition = block->last->operands[0];
    place_edge(b, (struct ct_place){.parent = node, .slot = 0}, block, block->succs[0]);
    place_edge(b, (struct ct_place){.parent = node, .slot = 1}, block, block->succs[1]);
}

static void place_branch(struct builder *b, struct ct_place at, const struct ct_block *block)
{
    bool same = true;

    for (uint32_t i = 1; i < block->n_succs; i++)
        same &= block->succs[i] == block->succs[0];
    if (block->n_succs == 0)
        append(b, &at, block->last->op == CT_OP_UNREACHABLE ? CT_NODE_UNREACHABLE : CT_NODE_RETURN);
    else if (same)
        place_edge(b, at, block, block->succs[0]);
    else if (block->last->op == CT_OP_SWITCH)
        place_switch(b, at, block);
    else
        place_if(b, at, block);
}

static void place_block(struct builder *b, const struct task *task)
{
    struct ct_block *block = task->block;
    struct ct_place at = task->place;

    open_scopes(b, &at, &b->outer[block->id]);
    if (block->loop_head == block) {
        struct ct_node *loop = append(b, &at, CT_NODE_LOOP);

        loop->header = block;
        b->loop_of[block->id] = loop;
        at = (struct ct_place){.parent = loop};
    }
    append(b, &at, CT_NODE_BLOCK)->block = block;
    open_scopes(b, &at, &b->inner[block->id]);
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

enum ct_pass_result ct_pass_structurize(struct ct_fn *fn)
{
    struct builder b = {.fn = fn, .scratch = &fn->compilation->scratch};
    const uint32_t n = fn->blocks.n;

    refresh_analyses(fn);
    b.inner = CT_ARENA_ARRAY(b.scratch, block_list, n);
    b.outer = CT_ARENA_ARRAY(b.scratch, block_list, n);
    b.scope_of = CT_ARENA_ARRAY(b.scratch, struct ct_node *, n);
    b.loop_of = CT_ARENA_ARRAY(b.scratch, struct ct_node *, n);
    fn->body = NULL;
    fn->n_nodes = fn->n_selectors = 0;
    find_followers(&b);
    push_task(&b, fn->blocks.v[0], (struct ct_place){0});
    while (b.tasks.n) {
        const struct task task = b.tasks.v[--b.tasks.n];

        place_block(&b, &task);
    }
    if (!ct_structure_resolve_jumps(fn))
        return CT_PASS_FAILED;
    fn->props |= CT_PROP_STRUCTURED;
    return CT_PASS_CHANGED;
}
