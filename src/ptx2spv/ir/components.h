/* SPDX-License-Identifier: Apache-2.0 */
/* The cycles of a directed graph. */
#ifndef PTX2SPV_COMPONENTS_H
#define PTX2SPV_COMPONENTS_H

#include "ptx2spv/module/arena.h"

#include <stdint.h>

struct ct_graph {
    uint32_t n;                                                         /* its nodes are the numbers below n; the search begins at node 0 */
    uint32_t (*successor)(const void *user, uint32_t node, uint32_t i); /* UINT32_MAX: the node has no more than i successors */
    const void *user;
};
/* Indexed by node, in the arena: nodes of one cycle (of a strongly connected component) have the same number, from 1 to *out_count; 0: the node
 * is in no cycle, or not reached. */
uint32_t *ct_find_cycles(struct ct_arena *arena, const struct ct_graph *graph, uint32_t *out_count);

#endif
