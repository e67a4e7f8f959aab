/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of the structured form: creating, linking and walking nodes (ir.h defines them), and the steps of structurize. */
#ifndef PTX2SPV_STRUCTURE_H
#define PTX2SPV_STRUCTURE_H
/* Parts: passes/structure_jumps.c. */

#include "ir.h"

/* An insertion point in the tree: a list and its current last node. */
struct ct_place {
    struct ct_node *parent; /* NULL: the function's list */
    uint32_t slot;
    struct ct_node *last; /* NULL: the list is empty */
};

static inline bool ct_node_is_region(const struct ct_node *node)
{
    return node->kind == CT_NODE_LOOP || node->kind == CT_NODE_SCOPE || node->kind == CT_NODE_SWITCH;
}

static inline bool ct_node_is_jump(const struct ct_node *node)
{
    return node->kind == CT_NODE_BREAK || node->kind == CT_NODE_CONTINUE || node->kind == CT_NODE_RETURN;
}

struct ct_node *ct_node_create(struct ct_fn *fn, enum ct_node_kind kind);
struct ct_node *ct_node_append(struct ct_fn *fn, struct ct_place *at, struct ct_node *node);
void ct_node_insert_before(struct ct_fn *fn, struct ct_node *place, struct ct_node *node);
void ct_node_insert_after(struct ct_node *place, struct ct_node *node);
void ct_node_remove(struct ct_fn *fn, struct ct_node *node);
/* Replaces a SCOPE by the nodes of its list. */
void ct_node_dissolve(struct ct_fn *fn, struct ct_node *scope);

/* The next node in preorder, and the next one that is not a descendant of this one; NULL at the end. */
struct ct_node *ct_node_next(const struct ct_node *node);
struct ct_node *ct_node_after(const struct ct_node *node);

/* When structurize makes sequences (structurize.c). */
struct ct_structure_limits {
    uint32_t scopes;     /* if more blocks follow the same block; scopes and their tests would grow quadratically */
    uint32_t depth;      /* if a block is that deep in the tree */
    uint32_t part_depth; /* depth of the parts of the latter sequences */
};
/* The pass with other limits, for tests. */
enum ct_pass_result ct_structurize_within(struct ct_fn *fn, struct ct_structure_limits limits);

/* Step two of structurize: removes jumps that control reaches by falling through anyway, dissolves scopes that no jump leaves, and
 * replaces the remaining jumps that SPIR-V has no branch for by selectors. False after an error was reported (the tree is too deep). */
bool ct_structure_resolve_jumps(struct ct_fn *fn);

#endif
