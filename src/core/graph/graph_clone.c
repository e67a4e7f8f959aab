/* SPDX-License-Identifier: Apache-2.0 */
/* Clones of graphs. */
#include "graph.h"

#include "core/base/log.h"

#define CT_CHANNEL "graph"

static CUresult clone_locked(const struct ct_graph *graph, bool publish, struct ct_graph **out);

static void adopt(struct ct_node_params *params, struct ct_graph *child)
{
    child->is_child = true;
    params->child = &child->object;
    params->given.graph.graph = child->object.handle;
}

static CUresult clone_bodies(const struct ct_branches *from, bool publish, struct ct_node_params *params)
{
    struct ct_branches *branches;
    CUresult r = ct_branches_make(from->type, from->count, from->condition, &branches);

    if (r != CUDA_SUCCESS)
        return r;
    params->branches = &branches->object;
    params->given.conditional.phGraph_out = branches->handles;
    for (unsigned i = 0; i < from->count && r == CUDA_SUCCESS; i++) {
        struct ct_graph *body = NULL;

        r = clone_locked(from->graphs[i], publish, &body);
        if (body)
            ct_branches_set(branches, i, body);
    }
    return r;
}

static CUresult clone_node(const struct ct_graph_node *from, bool publish, struct ct_graph_node *node)
{
    CUresult r = ct_node_params_copy(&node->params, &from->params);
    struct ct_graph *child = NULL;

    node->original_id = from->id;
    if (r == CUDA_SUCCESS && from->params.branches)
        return clone_bodies(ct_node_branches_or_null(from), publish, &node->params);
    if (r != CUDA_SUCCESS || !from->params.child)
        return r;
    r = clone_locked(ct_node_child_or_null(from), publish, &child);
    if (child) {
        adopt(&node->params, child);
        child->parent = node->graph;
    }
    return r;
}

static CUresult clone_nodes(const struct ct_graph *graph, bool publish, struct ct_graph *clone)
{
    CUresult r = CUDA_SUCCESS;

    for (size_t i = 0; i < graph->count && r == CUDA_SUCCESS; i++) {
        struct ct_graph_node *node;

        r = ct_graph_append_locked(clone, publish, &node);
        if (r == CUDA_SUCCESS)
            r = clone_node(graph->nodes[i], publish, node);
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

/* After a failure *out is what was cloned so far, or NULL: it is released without the lock. */
static CUresult clone_locked(const struct ct_graph *graph, bool publish, struct ct_graph **out)
{
    struct ct_graph *clone = NULL;
    CUresult r = ct_graph_create(publish, &clone);

    *out = clone;
    if (r != CUDA_SUCCESS)
        return r;
    r = clone_nodes(graph, publish, clone);
    if (r == CUDA_SUCCESS)
        r = clone_edges(graph, clone);
    return r == CUDA_SUCCESS ? ct_user_references_copy(&clone->users, &graph->users) : r;
}

CUresult ct_graph_clone(struct ct_graph *graph, bool publish, struct ct_graph **out)
{
    struct ct_graph *clone;
    CUresult r;

    clone = NULL;
    ct_graphs_lock();
    if (publish && graph->has_memory)
        r = ct_fail(CUDA_ERROR_NOT_SUPPORTED, "a graph that allocates or frees memory cannot be cloned");
    else if (publish && (graph->is_body || graph->conditions || ct_graph_is_conditional_locked(graph)))
        r = ct_fail(CUDA_ERROR_NOT_SUPPORTED, "neither bodies nor graphs with conditions can be cloned");
    else
        r = clone_locked(graph, publish, &clone);
    ct_graphs_unlock();
    if (r == CUDA_SUCCESS)
        *out = clone;
    else if (clone)
        ct_graph_discard(clone);
    return r;
}

static CUresult clone_child(struct ct_node_params *params, struct ct_graph *graph)
{
    struct ct_graph *clone;
    CUresult r;

    if (ct_graph_is_child(graph))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "a node owns the graph");
    if ((r = ct_graph_clone(graph, true, &clone)) == CUDA_SUCCESS)
        adopt(params, clone); /* no other thread has its handle yet */
    return r;
}

/* The reference of the application becomes that of the node. */
static CUresult move_child(struct ct_node_params *params, struct ct_graph *graph)
{
    CUresult r = CUDA_SUCCESS;

    ct_graphs_lock();
    if (graph->is_child)
        r = ct_fail(CUDA_ERROR_NOT_SUPPORTED, "a node owns the graph already");
    else if (graph->is_captured)
        r = ct_fail(CUDA_ERROR_ILLEGAL_STATE, "a capture adds nodes to the graph");
    else if (graph->conditions)
        r = ct_fail(CUDA_ERROR_NOT_SUPPORTED, "a graph with conditions cannot be moved into another");
    else
        adopt(params, graph);
    ct_graphs_unlock();
    return r;
}

static CUresult give_child(struct ct_node_params *params)
{
    const CUgraphChildGraphNodeOwnership ownership = params->given.graph.ownership;
    struct ct_graph *graph;
    CUresult r = ct_graph_lookup(params->given.graph.graph, &graph);

    if (r != CUDA_SUCCESS)
        return r;
    if (ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE)
        r = clone_child(params, graph);
    else if (ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
        r = move_child(params, graph);
    else
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "child graphs have no ownership %d", (int)ownership);
    ct_graph_release(graph);
    return r;
}

CUresult ct_graph_params_init(struct ct_node_params *out, const CUgraphNodeParams *given)
{
    CUresult r = ct_node_params_init(out, given);

    return r == CUDA_SUCCESS && given->type == CU_GRAPH_NODE_TYPE_GRAPH ? give_child(out) : r;
}

void ct_graph_params_undo(struct ct_node_params *params)
{
    struct ct_graph *moved = params->given.graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE ? (struct ct_graph *)params->child : NULL;

    if (params->given.type == CU_GRAPH_NODE_TYPE_GRAPH && moved) {
        ct_graphs_lock();
        moved->is_child = false;
        ct_graphs_unlock();
        params->child = NULL;
    }
    ct_node_params_finish(params);
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
