/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves the jumps of a new tree (structurize.c), in three traversals:
 *  1. retarget: each jump has a target: the point before a node, the next iteration of a loop, or the end of the thread. Several regions
 *     may end at the same point, so a jump takes the cheapest form: none (fall-through), a jump of the innermost loop, a return, or a
 *     break out of the innermost region that ends there.
 *  2. dissolve: scopes that no jump leaves any more are replaced by their contents.
 *  3. legalize: a jump for which SPIR-V has no branch sets a selector and leaves the innermost region or loop; a TEST after that region
 *     then continues the jump, and the traversal handles that jump when it reaches it. */
#include "ptx2spv/ir/structure.h"

struct point {
    enum { POINT_BEFORE, POINT_NEXT_ITERATION, POINT_END } kind;
    const struct ct_node *node; /* BEFORE: not a jump; NEXT_ITERATION: the loop */
};

struct info {
    struct point after;            /* the point that follows the node */
    struct ct_node *region, *loop; /* the innermost ones around the node */
    uint32_t depth;
    uint32_t breaks;   /* regions: number of jumps that leave them */
    uint32_t selector; /* regions: number + 1; 0: none */
    uint32_t n_tests;
};

struct resolver {
    struct ct_fn *fn;
    CT_VEC(struct info) info; /* indexed by node id */
};

static struct info *info_of(struct resolver *r, const struct ct_node *node)
{
    while (r->info.n <= node->id)
        (void)CT_PUSH(&r->fn->compilation->scratch, &r->info);
    return &r->info.v[node->id];
}

static bool same_point(struct point a, struct point b)
{
    return a.kind == b.kind && a.node == b.node;
}

/* The point that the end of the parent's list leads to. The parent was visited before. */
static struct point end_of_list(struct resolver *r, const struct ct_node *parent)
{
    if (!parent)
        return (struct point){POINT_END, NULL};
    if (parent->kind == CT_NODE_LOOP)
        return (struct point){POINT_NEXT_ITERATION, parent};
    return info_of(r, parent)->after;
}

static struct point target_of(struct resolver *r, const struct ct_node *jump)
{
    if (jump->kind == CT_NODE_RETURN)
        return (struct point){POINT_END, NULL};
    if (jump->kind == CT_NODE_CONTINUE)
        return (struct point){POINT_NEXT_ITERATION, jump->region};
    return info_of(r, jump->region)->after;
}

static struct point point_after(struct resolver *r, const struct ct_node *node)
{
    if (!node->next)
        return end_of_list(r, node->parent);
    if (ct_node_is_jump(node->next))
        return target_of(r, node->next);
    return (struct point){POINT_BEFORE, node->next};
}

/* Fills in the context of the node from its parent, which was visited before. */
static struct info *enter(struct resolver *r, const struct ct_node *node)
{
    struct ct_node *parent = node->parent;
    const struct info around = parent ? *info_of(r, parent) : (struct info){0};
    struct info *info = info_of(r, node);

    info->loop = parent && parent->kind == CT_NODE_LOOP ? parent : around.loop;
    info->region = parent && ct_node_is_region(parent) ? parent : around.region;
    info->depth = parent ? around.depth + 1 : 0;
    return info;
}

static void change_jump(struct ct_node *jump, enum ct_node_kind kind, struct ct_node *region)
{
    jump->kind = kind;
    jump->region = region;
}

/* Chooses the cheapest form of a jump to `target`, which is not the point that the end of the list leads to. */
static void choose_form(struct resolver *r, struct ct_node *jump, struct point target)
{
    struct ct_node *loop = info_of(r, jump)->loop;

    if (loop && target.kind == POINT_NEXT_ITERATION && target.node == loop) {
        change_jump(jump, CT_NODE_CONTINUE, loop);
    } else if (loop && same_point(info_of(r, loop)->after, target)) {
        change_jump(jump, CT_NODE_BREAK, loop);
    } else if (target.kind == POINT_END) {
        change_jump(jump, CT_NODE_RETURN, NULL);
    } else {
        struct ct_node *region = info_of(r, jump)->region;

        while (!same_point(info_of(r, region)->after, target) && !(target.kind == POINT_NEXT_ITERATION && target.node == region))
            region = info_of(r, region)->region;
        change_jump(jump, same_point(info_of(r, region)->after, target) ? CT_NODE_BREAK : CT_NODE_CONTINUE, region);
    }
    if (jump->kind == CT_NODE_BREAK)
        info_of(r, jump->region)->breaks++;
}

static void retarget(struct resolver *r)
{
    struct ct_node *next;

    for (struct ct_node *node = r->fn->body; node; node = next) {
        enter(r, node);
        if (!ct_node_is_jump(node)) {
            const struct point after = point_after(r, node);

            info_of(r, node)->after = after;
            next = ct_node_next(node);
            continue;
        }
        next = ct_node_after(node);
        if (same_point(target_of(r, node), end_of_list(r, node->parent)))
            ct_node_remove(r->fn, node);
        else
            choose_form(r, node, target_of(r, node));
    }
}

static bool is_empty_if(const struct ct_node *node)
{
    return node->kind == CT_NODE_IF && !node->then_list && !node->else_list;
}

static void dissolve(struct resolver *r)
{
    struct ct_node *next;

    for (struct ct_node *node = r->fn->body; node; node = next) {
        next = ct_node_next(node);
        if (node->kind == CT_NODE_SCOPE && !info_of(r, node)->breaks)
            ct_node_dissolve(r->fn, node);
        while (next && is_empty_if(next)) {
            struct ct_node *empty = next;

            next = ct_node_next(empty);
            ct_node_remove(r->fn, empty);
        }
    }
}

static bool is_direct(struct resolver *r, const struct ct_node *jump)
{
    const struct info *info = info_of(r, jump);

    return jump->region == info->loop || (jump->kind == CT_NODE_BREAK && jump->region == info->region);
}

/* Gives the region a selector, which is 0 unless a jump out of several regions leaves the region. */
static void give_selector(struct resolver *r, struct ct_node *region)
{
    struct ct_node *set = ct_node_create(r->fn, CT_NODE_SET);

    set->variable = r->fn->n_selectors++;
    ct_node_insert_before(r->fn, region, set);
    info_of(r, region)->selector = set->variable + 1;
}

/* The selector value that represents this jump out of several regions. Creates its TEST after the region for the first such jump. */
static uint32_t number_of_jump(struct resolver *r, struct ct_node *left, const struct ct_node *jump)
{
    struct ct_node *last = left;

    if (!info_of(r, left)->selector)
        give_selector(r, left);
    for (uint32_t i = 0; i < info_of(r, left)->n_tests; i++) {
        last = last->next;
        if (last->then_list->kind == jump->kind && last->then_list->region == jump->region)
            return last->number;
    }
    struct ct_node *test = ct_node_create(r->fn, CT_NODE_TEST);
    struct ct_node *rest = ct_node_create(r->fn, jump->kind);

    test->variable = info_of(r, left)->selector - 1;
    test->number = ++info_of(r, left)->n_tests;
    ct_node_insert_after(last, test);
    rest->region = jump->region;
    ct_node_append(r->fn, &(struct ct_place){.parent = test}, rest);
    return test->number;
}

static void make_indirect(struct resolver *r, struct ct_node *jump)
{
    const struct info info = *info_of(r, jump);
    const bool leaves_loop = info.loop && info_of(r, jump->region)->depth < info_of(r, info.loop)->depth;
    struct ct_node *left = leaves_loop ? info.loop : info.region;
    struct ct_node *set = ct_node_create(r->fn, CT_NODE_SET);

    set->number = number_of_jump(r, left, jump);
    set->variable = info_of(r, left)->selector - 1;
    ct_node_insert_before(r->fn, jump, set);
    change_jump(jump, CT_NODE_BREAK, left);
}

static bool legalize(struct resolver *r)
{
    struct ct_location where = {0};

    for (struct ct_node *node = r->fn->body; node; node = ct_node_next(node)) {
        if (node->kind == CT_NODE_BLOCK)
            where = node->block->last->where;
        if (enter(r, node)->depth > CT_NODE_DEPTH_MAX)
            return ct_error(r->fn->compilation, where, PTX2SPV_UNSUPPORTED, "control flow is nested more than %d levels deep",
                            CT_NODE_DEPTH_MAX);
        if ((node->kind == CT_NODE_BREAK || node->kind == CT_NODE_CONTINUE) && !is_direct(r, node))
            make_indirect(r, node);
    }
    return true;
}

bool ct_structure_resolve_jumps(struct ct_fn *fn)
{
    struct resolver r = {.fn = fn};

    retarget(&r);
    dissolve(&r);
    return legalize(&r);
}
