/* SPDX-License-Identifier: Apache-2.0 */
#include "branches.h"

#include "core/base/log.h"
#include "graph.h"

#include <stdlib.h>

#define CT_CHANNEL "graph"

static void free_graphs(struct ct_branches *branches)
{
    for (unsigned i = 0; branches->graphs && i < branches->count; i++) {
        struct ct_graph *graph = branches->graphs[i];

        if (graph && graph->object.handle)
            (void)ct_object_unpublish(&graph->object);
        ct_graph_release(graph);
    }
    free(branches->graphs);
    free(branches->handles);
}

static void free_branches(struct ct_object *object)
{
    struct ct_branches *branches = (struct ct_branches *)object;

    for (unsigned i = 0; branches->execs && i < branches->count; i++)
        ct_object_release(branches->execs[i]);
    free(branches->execs);
    free_graphs(branches);
    if (branches->stream) {
        ct_stream_mark_destroyed(branches->stream);
        ct_object_release(&branches->stream->object);
    }
    ct_object_release(&branches->condition->object);
    free(branches);
}

CUresult ct_branches_make(CUgraphConditionalNodeType type, unsigned count, struct ct_condition *condition, struct ct_branches **out)
{
    struct ct_branches *branches = calloc(1, sizeof *branches);

    if (!branches)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a conditional node");
    ct_object_init(&branches->object, CT_OBJECT_NONE, free_branches);
    ct_object_retain(&condition->object);
    branches->condition = condition;
    branches->type = type;
    branches->count = count;
    branches->graphs = calloc(count, sizeof(*branches->graphs));
    branches->handles = calloc(count, sizeof *branches->handles);
    if (!branches->graphs || !branches->handles) {
        ct_object_release(&branches->object);
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for %u bodies of a conditional node", count);
    }
    *out = branches;
    return CUDA_SUCCESS;
}

void ct_branches_set(struct ct_branches *branches, unsigned i, struct ct_graph *graph)
{
    graph->is_child = true;
    graph->is_body = true;
    branches->graphs[i] = graph;
    branches->handles[i] = graph->object.handle;
}

struct ct_condition *ct_branches_replace_condition(struct ct_branches *branches, struct ct_condition *condition)
{
    struct ct_condition *before = branches->condition;

    branches->condition = condition;
    return before;
}

/* ---- nodes of the application ---- */

/* *out is retained. */
static CUresult find_condition(struct ct_graph *graph, const CUDA_CONDITIONAL_NODE_PARAMS *given, struct ct_condition **out)
{
    struct ct_condition *condition;

    ct_graphs_lock();
    if ((condition = ct_condition_or_null_locked(graph, given->handle)))
        ct_object_retain(&condition->object);
    ct_graphs_unlock();
    if (!condition)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the graph has no condition with the handle 0x%llx", (unsigned long long)given->handle);
    if (condition->context->object.handle != given->ctx) {
        ct_object_release(&condition->object);
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the condition belongs to another context than the node");
    }
    *out = condition;
    return CUDA_SUCCESS;
}

static CUresult create_bodies(struct ct_branches *branches)
{
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < branches->count && r == CUDA_SUCCESS; i++) {
        struct ct_graph *graph;

        if ((r = ct_graph_create(true, &graph)) == CUDA_SUCCESS)
            ct_branches_set(branches, i, graph);
    }
    return r;
}

CUresult ct_graph_branches_attach(struct ct_graph *graph, struct ct_node_params *params)
{
    CUDA_CONDITIONAL_NODE_PARAMS *given = &params->given.conditional;
    struct ct_condition *condition;
    struct ct_branches *branches;
    CUresult r;

    if (params->given.type != CU_GRAPH_NODE_TYPE_CONDITIONAL)
        return CUDA_SUCCESS;
    if ((r = find_condition(graph, given, &condition)) != CUDA_SUCCESS)
        return r;
    r = ct_branches_make(given->type, given->size, condition, &branches);
    ct_object_release(&condition->object);
    if (r != CUDA_SUCCESS)
        return r;
    params->branches = &branches->object;
    given->phGraph_out = branches->handles;
    return create_bodies(branches);
}
