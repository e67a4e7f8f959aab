/* SPDX-License-Identifier: Apache-2.0 */
/* Analyses of the control-flow graph: predecessors, reverse postorder, dominators, natural loops. Each sets its property in fn->props;
 * code that changes the graph clears CT_PROP_GRAPH. */
#include "ir.h"

/* The incoming edges of all blocks: those of block b are from[first[b]] .. from[first[b + 1] - 1], in order of source and successor
 * number. */
struct in_edges {
    uint32_t *first;
    struct ct_block **from;
};

static struct in_edges collect_in_edges(struct ct_fn *fn)
{
    struct ct_arena *scratch = &fn->compilation->scratch;
    const uint32_t n = fn->blocks.n;
    struct in_edges edges = {.first = CT_ARENA_ARRAY(scratch, uint32_t, (size_t)n + 2)};

    /* The counts are stored two entries up: after the prefix sums first[b + 1] is where the edges of b begin; filling them in advances
     * it to where they end. */
    for (uint32_t b = 0; b < n; b++)
        for (uint32_t s = 0; s < fn->blocks.v[b]->n_succs; s++)
            edges.first[fn->blocks.v[b]->succs[s]->id + 2]++;
    for (uint32_t b = 0; b < n; b++)
        edges.first[b + 2] += edges.first[b + 1];
    edges.from = CT_ARENA_ARRAY(scratch, struct ct_block *, edges.first[n + 1]);
    for (uint32_t b = 0; b < n; b++)
        for (uint32_t s = 0; s < fn->blocks.v[b]->n_succs; s++)
            edges.from[edges.first[fn->blocks.v[b]->succs[s]->id + 1]++] = fn->blocks.v[b];
    return edges;
}

/* Keeps the predecessor entries `kept` (ascending), and the operands of the phis for them. */
static void keep_preds(struct ct_block *block, const uint32_t *kept, uint32_t n)
{
    for (struct ct_insn *phi = block->first; phi && phi->op == CT_OP_PHI; phi = phi->next) {
        uint32_t filled = 0;

        for (; filled < n && kept[filled] < phi->n_operands; filled++)
            phi->operands[filled] = phi->operands[kept[filled]];
        /* Operands beyond the known predecessors belong to new edges. */
        for (uint32_t i = block->preds.n; i < phi->n_operands; i++)
            phi->operands[filled++] = phi->operands[i];
        phi->n_operands = filled;
    }
    for (uint32_t i = 0; i < n; i++)
        block->preds.v[i] = block->preds.v[kept[i]];
    block->preds.n = n;
}

/* Removes known predecessors whose edge no longer exists, and appends new ones. `unmatched` counts edges by source id; it is zero before
 * and after. */
static void update_preds(struct ct_fn *fn, struct ct_block *block, struct ct_block *const *from, uint32_t n, uint32_t *unmatched)
{
    uint32_t *kept = block->preds.n ? CT_ARENA_ARRAY(&fn->compilation->scratch, uint32_t, block->preds.n) : NULL;
    uint32_t n_kept = 0;

    for (uint32_t i = 0; i < n; i++)
        unmatched[from[i]->id]++;
    for (uint32_t i = 0; i < block->preds.n; i++) {
        const struct ct_block *pred = block->preds.v[i];

        if (pred->id < fn->blocks.n && fn->blocks.v[pred->id] == pred && unmatched[pred->id] > 0) {
            unmatched[pred->id]--;
            kept[n_kept++] = i;
        }
    }
    if (n_kept < block->preds.n)
        keep_preds(block, kept, n_kept);
    for (uint32_t i = 0; i < n; i++)
        if (unmatched[from[i]->id] > 0) {
            unmatched[from[i]->id]--;
            *CT_PUSH(&fn->compilation->arena, &block->preds) = from[i];
        }
}

void ct_fn_compute_preds(struct ct_fn *fn)
{
    const struct in_edges edges = collect_in_edges(fn);
    uint32_t *unmatched = CT_ARENA_ARRAY(&fn->compilation->scratch, uint32_t, fn->blocks.n);

    for (uint32_t b = 0; b < fn->blocks.n; b++) {
        struct ct_block *block = fn->blocks.v[b];

        if (!(fn->props & CT_PROP_SSA))
            block->preds.n = 0;
        update_preds(fn, block, &edges.from[edges.first[b]], edges.first[b + 1] - edges.first[b], unmatched);
    }
}

void ct_fn_compute_rpo(struct ct_fn *fn)
{
    struct ct_arena *scratch = &fn->compilation->scratch;
    struct ct_block **stack = CT_ARENA_ARRAY(scratch, struct ct_block *, fn->blocks.n);
    struct ct_block **postorder = CT_ARENA_ARRAY(scratch, struct ct_block *, fn->blocks.n);
    uint32_t *left = CT_ARENA_ARRAY(scratch, uint32_t, fn->blocks.n);
    uint32_t depth = 0, done = 0;

    for (uint32_t b = 0; b < fn->blocks.n; b++) {
        fn->blocks.v[b]->rpo = UINT32_MAX;
        left[b] = UINT32_MAX; /* not visited */
    }
    stack[depth++] = fn->blocks.v[0];
    left[0] = fn->blocks.v[0]->n_succs;
    while (depth) {
        struct ct_block *block = stack[depth - 1];

        /* Successors are visited last to first, so that the one taken if the condition is true comes first in reverse postorder. */
        if (left[block->id] == 0) {
            postorder[done++] = block;
            depth--;
            continue;
        }
        struct ct_block *next = block->succs[--left[block->id]];
        if (left[next->id] == UINT32_MAX) {
            left[next->id] = next->n_succs;
            stack[depth++] = next;
        }
    }
    for (uint32_t i = 0; i < done; i++)
        postorder[i]->rpo = done - 1 - i;
    fn->props |= CT_PROP_RPO;
}

struct ct_block **ct_fn_rpo_blocks(struct ct_fn *fn, uint32_t *count)
{
    struct ct_block **order = CT_ARENA_ARRAY(&fn->compilation->scratch, struct ct_block *, fn->blocks.n);
    uint32_t n = 0;

    if (!(fn->props & CT_PROP_RPO))
        ct_fn_compute_rpo(fn);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        if (fn->blocks.v[b]->rpo != UINT32_MAX) {
            order[fn->blocks.v[b]->rpo] = fn->blocks.v[b];
            n++;
        }
    *count = n;
    return order;
}

void ct_fn_remove_unreachable(struct ct_fn *fn)
{
    uint32_t kept = 0;

    ct_fn_compute_rpo(fn);
    for (uint32_t b = 0; b < fn->blocks.n; b++) {
        struct ct_block *block = fn->blocks.v[b];

        if (block->rpo == UINT32_MAX) {
            block->id = UINT32_MAX;
            continue;
        }
        block->id = kept;
        fn->blocks.v[kept++] = block;
    }
    fn->blocks.n = kept;
    ct_fn_compute_preds(fn);
}

void ct_fn_detach_entry(struct ct_fn *fn)
{
    struct ct_block *entry = fn->blocks.v[0], *before;

    if (!entry->preds.n)
        return;
    before = ct_block_create(fn);
    fn->blocks.v[0] = before;
    fn->blocks.v[before->id] = entry;
    entry->id = before->id;
    before->id = 0;
    ct_insn_append(before, ct_insn_create(fn, CT_OP_BR, PTX_NONE, 0, 0));
    ct_block_set_succs(fn, before, 1, &entry);
    ct_fn_compute_preds(fn);
}

/* Dominators by the simple form of Lengauer and Tarjan, "A Fast Algorithm for Finding Dominators in a Flowgraph" (1979). Vertices are
 * the preorder numbers of a depth-first search. */
struct dominator_search {
    struct ct_block **blocks; /* by vertex */
    uint32_t *vertex;         /* by block id */
    uint32_t *parent, *semi, *idom;
    uint32_t *ancestor, *label; /* the forest of processed vertices: UINT32_MAX at its roots; label is the vertex with the least
                                   semidominator on the path to the root */
    uint32_t *bucket, *next;    /* lists of the vertices with a given semidominator; UINT32_MAX ends a list */
    uint32_t *path;             /* the stack of `evaluate` */
    uint32_t n;
};

static void visit(struct dominator_search *ds, struct ct_block *block, uint32_t parent)
{
    ds->vertex[block->id] = ds->n;
    ds->parent[ds->n] = parent;
    ds->blocks[ds->n++] = block;
}

static void number_vertices(struct dominator_search *ds, struct ct_fn *fn)
{
    struct ct_block **stack = CT_ARENA_ARRAY(&fn->compilation->scratch, struct ct_block *, fn->blocks.n);
    uint32_t *next = CT_ARENA_ARRAY(&fn->compilation->scratch, uint32_t, fn->blocks.n);
    uint32_t depth = 0;

    for (uint32_t b = 0; b < fn->blocks.n; b++)
        ds->vertex[b] = UINT32_MAX;
    stack[depth++] = fn->blocks.v[0];
    visit(ds, fn->blocks.v[0], 0);
    while (depth) {
        const struct ct_block *block = stack[depth - 1];

        if (next[block->id] == block->n_succs) {
            depth--;
            continue;
        }
        struct ct_block *succ = block->succs[next[block->id]++];
        if (ds->vertex[succ->id] == UINT32_MAX) {
            visit(ds, succ, ds->vertex[block->id]);
            stack[depth++] = succ;
        }
    }
}

/* EVAL: the vertex with the least semidominator on the path from v to the root of its tree. Compresses that path. */
static uint32_t evaluate(struct dominator_search *ds, uint32_t v)
{
    uint32_t n = 0;

    if (ds->ancestor[v] == UINT32_MAX)
        return v;
    for (uint32_t at = v; ds->ancestor[ds->ancestor[at]] != UINT32_MAX; at = ds->ancestor[at])
        ds->path[n++] = at;
    while (n) {
        const uint32_t at = ds->path[--n], above = ds->ancestor[at];

        if (ds->semi[ds->label[above]] < ds->semi[ds->label[at]])
            ds->label[at] = ds->label[above];
        ds->ancestor[at] = ds->ancestor[above];
    }
    return ds->label[v];
}

static void find_semidominators(struct dominator_search *ds)
{
    for (uint32_t w = ds->n; w-- > 1;) {
        const uint32_t parent = ds->parent[w];

        for (uint32_t p = 0; p < ds->blocks[w]->preds.n; p++) {
            const uint32_t v = ds->vertex[ds->blocks[w]->preds.v[p]->id];

            if (v != UINT32_MAX && ds->semi[evaluate(ds, v)] < ds->semi[w])
                ds->semi[w] = ds->semi[evaluate(ds, v)];
        }
        ds->next[w] = ds->bucket[ds->semi[w]];
        ds->bucket[ds->semi[w]] = w;
        ds->ancestor[w] = parent;
        for (uint32_t v = ds->bucket[parent]; v != UINT32_MAX; v = ds->next[v]) {
            const uint32_t u = evaluate(ds, v);

            ds->idom[v] = ds->semi[u] < ds->semi[v] ? u : parent;
        }
        ds->bucket[parent] = UINT32_MAX;
    }
    for (uint32_t w = 1; w < ds->n; w++)
        if (ds->idom[w] != ds->semi[w])
            ds->idom[w] = ds->idom[ds->idom[w]];
}

static uint32_t *new_array(struct ct_fn *fn)
{
    return CT_ARENA_ARRAY(&fn->compilation->scratch, uint32_t, fn->blocks.n);
}

static void find_dominators(struct ct_fn *fn)
{
    struct dominator_search ds = {
        .blocks = CT_ARENA_ARRAY(&fn->compilation->scratch, struct ct_block *, fn->blocks.n),
        .vertex = new_array(fn),
        .parent = new_array(fn),
        .semi = new_array(fn),
        .idom = new_array(fn),
        .ancestor = new_array(fn),
        .label = new_array(fn),
        .bucket = new_array(fn),
        .next = new_array(fn),
        .path = new_array(fn),
    };

    number_vertices(&ds, fn);
    for (uint32_t v = 0; v < ds.n; v++) {
        ds.semi[v] = ds.label[v] = v;
        ds.ancestor[v] = ds.bucket[v] = UINT32_MAX;
    }
    find_semidominators(&ds);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        fn->blocks.v[b]->idom = NULL;
    for (uint32_t w = 1; w < ds.n; w++)
        ds.blocks[w]->idom = ds.blocks[ds.idom[w]];
}

/* Numbers the dominator tree: a block's interval contains those of its children. In `order`, parents come before children. */
static void number_tree(struct ct_fn *fn, struct ct_block **order, uint32_t n)
{
    uint32_t *size = CT_ARENA_ARRAY(&fn->compilation->scratch, uint32_t, n);
    uint32_t *next = CT_ARENA_ARRAY(&fn->compilation->scratch, uint32_t, n);

    for (uint32_t i = n; i-- > 0;) {
        size[i]++;
        if (i)
            size[order[i]->idom->rpo] += size[i];
    }
    for (uint32_t i = 0; i < n; i++) {
        struct ct_block *block = order[i];

        block->dom_pre = i ? next[block->idom->rpo] : 0;
        block->dom_post = block->dom_pre + size[i] - 1;
        next[i] = block->dom_pre + 1;
        if (i)
            next[block->idom->rpo] += size[i];
    }
}

void ct_fn_compute_dominators(struct ct_fn *fn)
{
    uint32_t n;
    struct ct_block **order = ct_fn_rpo_blocks(fn, &n);

    find_dominators(fn);
    number_tree(fn, order, n);
    fn->props |= CT_PROP_DOM;
}

bool ct_block_dominates(const struct ct_block *a, const struct ct_block *b)
{
    return a->dom_pre <= b->dom_pre && b->dom_post <= a->dom_post;
}

bool ct_loop_contains(const struct ct_block *header, const struct ct_block *block)
{
    const struct ct_block *head = block->loop_head;

    while (head && head != header)
        head = head->loop_parent;
    return head == header;
}

bool ct_fn_is_reducible(struct ct_fn *fn)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++) {
        const struct ct_block *block = fn->blocks.v[b];

        for (uint32_t s = 0; block->rpo != UINT32_MAX && s < block->n_succs; s++)
            if (block->succs[s]->rpo <= block->rpo && !ct_block_dominates(block->succs[s], block))
                return false;
    }
    return true;
}

/* The header of the outermost loop found so far that contains a block, or the block itself. */
static struct ct_block *outermost(struct ct_block *block)
{
    struct ct_block *head = block->loop_head;

    while (head && head->loop_parent)
        head = head->loop_parent;
    return head ? head : block;
}

/* Collects a natural loop: all blocks that reach the header's back edges without passing through the header. Inner loops were found
 * before and are taken as a whole. */
static void collect_loop(struct ct_block *header, struct ct_block **work)
{
    uint32_t n = 0;

    for (uint32_t p = 0; p < header->preds.n; p++)
        if (header->preds.v[p]->rpo != UINT32_MAX && ct_block_dominates(header, header->preds.v[p])) {
            header->loop_head = header;
            break;
        }
    if (header->loop_head != header)
        return;
    work[n++] = header;
    while (n) {
        const struct ct_block *block = work[--n];

        for (uint32_t p = 0; p < block->preds.n; p++) {
            struct ct_block *pred = block->preds.v[p];

            if (pred->rpo == UINT32_MAX || (block == header && !ct_block_dominates(header, pred)))
                continue;
            pred = outermost(pred);
            if (pred == header)
                continue;
            if (pred->loop_head)
                pred->loop_parent = header;
            else
                pred->loop_head = header;
            work[n++] = pred;
        }
    }
}

void ct_fn_compute_loops(struct ct_fn *fn)
{
    uint32_t n;
    struct ct_block **order = ct_fn_rpo_blocks(fn, &n);
    struct ct_block **work = CT_ARENA_ARRAY(&fn->compilation->scratch, struct ct_block *, n);

    for (uint32_t b = 0; b < fn->blocks.n; b++) {
        fn->blocks.v[b]->loop_head = fn->blocks.v[b]->loop_parent = NULL;
        fn->blocks.v[b]->loop_depth = 0;
    }
    for (uint32_t i = n; i-- > 0;)
        collect_loop(order[i], work);
    for (uint32_t i = 0; i < n; i++) {
        struct ct_block *block = order[i];

        if (block->loop_head == block)
            block->loop_depth = block->loop_parent ? block->loop_parent->loop_depth + 1 : 1;
        else if (block->loop_head)
            block->loop_depth = block->loop_head->loop_depth;
    }
    fn->props |= CT_PROP_LOOPS;
}
