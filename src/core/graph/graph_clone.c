/* SPDX-License-Identifier: Apache-2.0 */
/* Clones of graphs. */
#include "graph.h"

#include "core/base/log.h"

#define CT_CHANNEL "graph"

static CUresult clone_nodes(const struct ct_graph *graph, bool publish, struct ct_graph *clone)
{
    CUresult r = CUDA_SUCCESS;

    for (size_t i = 0; i < graph->count && r == CUDA_SUCCESS; i++) {
        struct ct_graph_node *node;

        if ((r = ct_graph_append_locked(clone, publish, &node)) != CUDA_SUCCESS)
            return r;
        node->original_id = graph->nodes[i]->id;
        r = ct_node_params_copy_locked(&node->params, &graph->nodes[i]->params, publish);
    }
    return r;
}

/* The nodes of the clone have the same indices. */
static CUresult clone_edges(const struct ct_graph *graph, struct ct_graph *clone)
{
    CUresult r = CUDA_SUCCESS;

    for (size_t i = 0; i < graph->count; i++) {
        const struct ct_edges *edges = &graph->nodes[i]->dependents;

        for (size_t k = 0; k < edges->count && r == CUDA_SUCCESS; k++)
            r = ct_edge_add_locked(clone->nodes[i], clone->nodes[edges->list[k].node->index], &edges->list[k].data);
    }
    return r;
}

CUresult ct_graph_clone_locked(const struct ct_graph *graph, bool publish, struct ct_graph **out)
{
    struct ct_graph *clone = NULL;
    CUresult r = ct_graph_create(publish, &clone);

    *out = clone;
    if (r != CUDA_SUCCESS)
        return r;
    clone->original_id = graph->id;
    r = clone_nodes(graph, publish, clone);
    if (r == CUDA_SUCCESS)
        r = clone_edges(graph, clone);
    return r == CUDA_SUCCESS ? ct_user_references_copy(&clone->users, &graph->users) : r;
}

CUresult ct_graph_clone(struct ct_graph *graph, bool publish, struct ct_graph **out)
{
    struct ct_graph *clone;
    CUresult r;

    ct_graphs_lock();
    r = ct_graph_clone_locked(graph, publish, &clone);
    ct_graphs_unlock();
    if (r == CUDA_SUCCESS)
        *out = clone;
    else if (clone)
        ct_graph_destroy(clone);
    return r;
}

CUresult ct_graph_find_in_clone(const struct ct_graph_node *node, const struct ct_graph *clone, CUgraphNode *out)
{
    CUgraphNode found = NULL;

    ct_graphs_lock();
    for (size_t i = 0; i < clone->count && !found; i++)
        if (clone->nodes[i]->original_id == node->id)
            found = clone->nodes[i]->object.handle;
    ct_graphs_unlock();
    if (!found)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the graph has no clone of the node");
    *out = found;
    return CUDA_SUCCESS;
}
