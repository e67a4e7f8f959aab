/* SPDX-License-Identifier: Apache-2.0 */
/* A set of nodes with the data of the edges from them. */
#ifndef CT_CORE_CAPTURE_NODES_H
#define CT_CORE_CAPTURE_NODES_H

#include "cuda.h"

#include <stdbool.h>
#include <stddef.h>

/* Zeros: the empty set. */
struct ct_capture_nodes {
    CUgraphNode *nodes;
    CUgraphEdgeData *data;
    size_t count, capacity;
};

/* Adds the nodes that the set lacks. OUT_OF_MEMORY: the set is unchanged. */
CUresult ct_capture_nodes_add(struct ct_capture_nodes *set, const CUgraphNode *nodes, const CUgraphEdgeData *data_or_null, size_t count);
void ct_capture_nodes_finish(struct ct_capture_nodes *set);

#endif
