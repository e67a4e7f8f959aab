/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of the structured form: the links between its nodes. Walks do not recurse, since a tree may be as deep as the input is long
 * until its jumps are resolved. */
#include "structure.h"

static uint32_t list_count(const struct ct_node *node)
{
    switch (node->kind) {
    case CT_NODE_IF:
        return 2;
    case CT_NODE_SWITCH:
        return node->n_cases;
    case CT_NODE_LOOP:
    case CT_NODE_SCOPE:
    case CT_NODE_TEST:
    case CT_NODE_GUARD:
        return 1;
    case CT_NODE_BLOCK:
    case CT_NODE_BREAK:
    case CT_NODE_CONTINUE:
    case CT_NODE_RETURN:
    case CT_NODE_UNREACHABLE:
    case CT_NODE_SET:
        return 0;
    }
    return 0;
}

static struct ct_node *const *list_of(const struct ct_node *parent, uint32_t slot)
{
    if (parent->kind == CT_NODE_SWITCH)
        return &parent->cases[slot];
    return slot ? &parent->else_list : &parent->then_list;
}

/* The head of a list; parent NULL: fn->body. */
static struct ct_node **list_head(struct ct_fn *fn, struct ct_node *parent, uint32_t slot)
{
    return parent ? (struct ct_node **)list_of(parent, slot) : &fn->body;
}

struct ct_node *ct_node_create(struct ct_fn *fn, enum ct_node_kind kind)
{
    struct ct_node *node = CT_ARENA_NEW(&fn->compilation->arena, struct ct_node);

    node->kind = kind;
    node->id = fn->n_nodes++;
    return node;
}

struct ct_node *ct_node_append(struct ct_fn *fn, struct ct_place *at, struct ct_node *node)
{
    node->parent = at->parent;
    node->slot = at->slot;
    node->prev = at->last;
    if (at->last)
        at->last->next = node;
    else
        *list_head(fn, at->parent, at->slot) = node;
    at->last = node;
    return node;
}

void ct_node_insert_before(struct ct_fn *fn, struct ct_node *place, struct ct_node *node)
{
    node->parent = place->parent;
    node->slot = place->slot;
    node->next = place;
    node->prev = place->prev;
    if (place->prev)
        place->prev->next = node;
    else
        *list_head(fn, place->parent, place->slot) = node;
    place->prev = node;
}

void ct_node_insert_after(struct ct_node *place, struct ct_node *node)
{
    node->parent = place->parent;
    node->slot = place->slot;
    node->prev = place;
    node->next = place->next;
    if (place->next)
        place->next->prev = node;
    place->next = node;
}

void ct_node_remove(struct ct_fn *fn, struct ct_node *node)
{
    if (node->prev)
        node->prev->next = node->next;
    else
        *list_head(fn, node->parent, node->slot) = node->next;
    if (node->next)
        node->next->prev = node->prev;
}

void ct_node_dissolve(struct ct_fn *fn, struct ct_node *scope)
{
    struct ct_node *last = scope->then_list;

    if (!last) {
        ct_node_remove(fn, scope);
        return;
    }
    for (struct ct_node *node = last; node; node = node->next) {
        node->parent = scope->parent;
        node->slot = scope->slot;
        last = node;
    }
    last->next = scope->next;
    if (scope->next)
        scope->next->prev = last;
    scope->then_list->prev = scope->prev;
    if (scope->prev)
        scope->prev->next = scope->then_list;
    else
        *list_head(fn, scope->parent, scope->slot) = scope->then_list;
}

/* The first node of the first non-empty list from number `slot` on. */
static struct ct_node *first_from(const struct ct_node *node, uint32_t slot)
{
    for (; slot < list_count(node); slot++)
        if (*list_of(node, slot))
            return *list_of(node, slot);
    return NULL;
}

struct ct_node *ct_node_after(const struct ct_node *node)
{
    for (; node; node = node->parent) {
        struct ct_node *next = node->next;

        if (!next && node->parent)
            next = first_from(node->parent, node->slot + 1);
        if (next)
            return next;
    }
    return NULL;
}

struct ct_node *ct_node_next(const struct ct_node *node)
{
    struct ct_node *inside = first_from(node, 0);

    return inside ? inside : ct_node_after(node);
}
