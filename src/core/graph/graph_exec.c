/* SPDX-License-Identifier: Apache-2.0 */
/* Creation, launches and destruction of executable graphs. */
#include "graph_exec.h"
#include "graph_memory.h"
#include "graph_plan.h"
#include "launch_mark.h"

#include "core/base/log.h"
#include "core/base/process.h"

#include <stdlib.h>

#define CT_CHANNEL "graph"
#define KNOWN_FLAGS                                                                                                                        \
    (CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH |    \
     CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)

/* ---- creation ---- */

static size_t count_nodes(const struct ct_graph *graph)
{
    size_t count = graph->count;

    for (size_t i = 0; i < graph->count; i++)
        if (graph->nodes[i]->params.child)
            count += count_nodes(ct_node_child_or_null(graph->nodes[i]));
    return count;
}

/* Appends the nodes of a graph, and after each GRAPH node those of its child. */
static CUresult flatten(struct ct_graph_exec *exec, const struct ct_graph *graph)
{
    struct ct_graph_node **sorted = calloc(graph->count ? graph->count : 1, sizeof(*sorted));
    CUresult r = CUDA_SUCCESS;

    if (!sorted)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for %zu nodes of a graph", graph->count);
    if (!ct_graph_sort_locked(graph, sorted))
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "the graph has a cycle");
    for (size_t i = 0; i < graph->count && r == CUDA_SUCCESS; i++) {
        exec->steps[exec->n_steps++] = (struct ct_graph_step){.node = sorted[i], .id = sorted[i]->original_id};
        exec->has_memory |= ct_node_type_has_memory(sorted[i]->params.given.type);
        if (sorted[i]->params.child)
            r = flatten(exec, ct_node_child_or_null(sorted[i]));
    }
    free(sorted);
    return r;
}

/* The handle of the application's node with that id, in the graph or in a child graph. */
static CUgraphNode find_handle_locked(const struct ct_graph *graph, uint64_t id)
{
    CUgraphNode found = NULL;

    for (size_t i = 0; i < graph->count && !found; i++) {
        const struct ct_graph_node *node = graph->nodes[i];

        found = node->id == id ? node->object.handle : NULL;
        for (size_t k = 0; k < ct_node_graph_count(&node->params) && !found; k++)
            found = find_handle_locked(ct_node_graph(&node->params, k), id);
    }
    return found;
}

static CUgraphNode find_handle(const struct ct_graph *graph, uint64_t id)
{
    CUgraphNode found;

    ct_graphs_lock();
    found = find_handle_locked(graph, id);
    ct_graphs_unlock();
    return found;
}

static CUresult prepare_bodies(struct ct_branches *branches, struct ct_graph *graph, struct ct_instantiate_result *result); /* recursion */

static CUresult prepare_step(const struct ct_graph_step *step, struct ct_graph *graph, struct ct_instantiate_result *result)
{
    struct ct_branches *branches = ct_node_branches_or_null(step->node);

    return branches ? prepare_bodies(branches, graph, result) : ct_node_prepare(&step->node->params);
}

static CUresult prepare_steps(const struct ct_graph_exec *exec, struct ct_graph *graph, struct ct_instantiate_result *result)
{
    CUresult r = CUDA_SUCCESS;

    for (size_t i = 0; i < exec->n_steps && r == CUDA_SUCCESS; i++) {
        r = prepare_step(&exec->steps[i], graph, result);
        if (r == CUDA_SUCCESS || result->node)
            continue;
        result->node = find_handle(graph, exec->steps[i].id);
    }
    return r;
}

static void release_conditions(struct ct_graph_exec *exec)
{
    if (exec->conditions)
        ct_object_release(&exec->conditions->object);
    if (!exec->claimed)
        return;
    ct_graphs_lock();
    exec->claimed->is_claimed = false;
    ct_graphs_unlock();
    ct_object_release(&exec->claimed->object);
}

static void free_exec(struct ct_object *object)
{
    struct ct_graph_exec *exec = (struct ct_graph_exec *)object;

    ct_graph_plan_discard(exec->plan);
    ct_graph_memory_unclaim(exec);
    if (exec->graph)
        ct_graph_discard(exec->graph);
    if (exec->launched)
        ct_event_discard(exec->launched);
    release_conditions(exec);
    ct_exclusive_finish(&exec->use);
    free(exec->steps);
    free(exec);
}

static struct ct_graph_exec *make_or_null(uint64_t flags)
{
    struct ct_graph_exec *exec = calloc(1, sizeof *exec);

    if (!exec)
        return NULL;
    ct_object_init(&exec->object, CT_OBJECT_GRAPH_EXEC, free_exec);
    ct_exclusive_init(&exec->use);
    exec->flags = flags;
    return exec;
}

/* Makes the steps of the executable graph's own graph, a clone of `graph` or of a body in it. */
static CUresult plan(struct ct_graph_exec *exec, struct ct_graph *graph, struct ct_instantiate_result *result)
{
    const size_t count = count_nodes(exec->graph); /* no other thread has the clone */
    CUresult r;

    exec->steps = calloc(count ? count : 1, sizeof *exec->steps);
    if (!exec->steps)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for %zu nodes of a graph", count);
    r = flatten(exec, exec->graph);
    if (r == CUDA_ERROR_INVALID_VALUE)
        result->result = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    if (r == CUDA_SUCCESS)
        r = ct_graph_memory_claim(exec);
    return r == CUDA_SUCCESS ? prepare_steps(exec, graph, result) : r;
}

static CUresult launch_steps(const struct ct_graph_exec *exec, struct ct_stream *stream)
{
    CUresult r = CUDA_SUCCESS;

    for (size_t i = 0; i < exec->n_steps && r == CUDA_SUCCESS; i++)
        if (!exec->steps[i].disabled)
            r = ct_node_execute(&exec->steps[i].node->params, stream);
    return r;
}

static CUresult launch_body(struct ct_object *exec, struct ct_stream *stream)
{
    return launch_steps((const struct ct_graph_exec *)exec, stream);
}

/* All nodes of bodies belong to the context of the condition. */
static CUresult check_contexts(const struct ct_graph_exec *body, const struct ct_context *context, struct ct_graph *graph,
                               struct ct_instantiate_result *result)
{
    CUresult r = CUDA_SUCCESS;

    for (size_t i = 0; i < body->n_steps && r == CUDA_SUCCESS; i++) {
        r = ct_node_params_check_context(&body->steps[i].node->params, context);
        if (r == CUDA_SUCCESS)
            continue;
        result->result = CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED;
        result->node = find_handle(graph, body->steps[i].id);
    }
    return r;
}

static CUresult prepare_body(struct ct_branches *branches, unsigned i, struct ct_graph *graph, struct ct_instantiate_result *result)
{
    struct ct_graph_exec *exec = make_or_null(0);
    CUresult r;

    if (!exec)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the body of a conditional node");
    exec->graph = branches->graphs[i];
    ct_object_retain(&exec->graph->object);
    branches->execs[i] = &exec->object;
    r = plan(exec, graph, result);
    return r == CUDA_SUCCESS ? check_contexts(exec, branches->condition->context, graph, result) : r;
}

static CUresult prepare_bodies(struct ct_branches *branches, struct ct_graph *graph, struct ct_instantiate_result *result)
{
    CUresult r = CUDA_SUCCESS;

    branches->launch = launch_body;
    if (!(branches->execs = calloc(branches->count, sizeof(*branches->execs))))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for %u bodies of a conditional node", branches->count);
    for (unsigned i = 0; i < branches->count && r == CUDA_SUCCESS; i++)
        r = prepare_body(branches, i, graph, result);
    return r;
}

static CUresult claim_conditions_locked(struct ct_graph_exec *exec, struct ct_condition_set *set)
{
    if (set->is_claimed)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "a graph with conditional nodes has an executable graph already");
    set->is_claimed = true;
    ct_object_retain(&set->object);
    exec->claimed = set;
    ct_object_retain(&set->object);
    exec->conditions = set;
    return CUDA_SUCCESS;
}

static CUresult take_conditions(struct ct_graph_exec *exec, struct ct_graph *graph, struct ct_instantiate_result *result)
{
    CUresult r;

    ct_graphs_lock();
    r = ct_graph_check_conditions_locked(graph, &result->result, &result->node);
    if (r == CUDA_SUCCESS && graph->conditions)
        r = claim_conditions_locked(exec, graph->conditions);
    ct_graphs_unlock();
    return r;
}

static CUresult fill(struct ct_graph_exec *exec, struct ct_graph *graph, struct ct_instantiate_result *result)
{
    CUresult r = take_conditions(exec, graph, result);

    if (r == CUDA_SUCCESS)
        r = ct_graph_clone(graph, false, &exec->graph);
    return r == CUDA_SUCCESS ? plan(exec, graph, result) : r;
}

CUresult ct_graph_instantiate(struct ct_graph *graph, uint64_t flags, CUgraphExec *out, struct ct_instantiate_result *result)
{
    struct ct_graph_exec *exec;
    CUresult r;

    *result = (struct ct_instantiate_result){.result = CUDA_GRAPH_INSTANTIATE_ERROR};
    if (flags & ~(uint64_t)KNOWN_FLAGS)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "flags 0x%llx", (unsigned long long)flags);
    if (ct_graph_is_child(graph))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "a node owns the graph");
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "graphs that kernels launch are not supported");
    if (!(exec = make_or_null(flags)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for an executable graph");
    r = fill(exec, graph, result);
    if (r == CUDA_SUCCESS)
        r = ct_object_publish(&exec->object);
    if (r == CUDA_SUCCESS) {
        *out = exec->object.handle;
        result->result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    }
    ct_object_release(&exec->object);
    return r;
}

CUresult ct_graph_exec_lookup(CUgraphExec handle, struct ct_graph_exec **out)
{
    struct ct_object *object;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    object = ct_object_find_or_null(CT_OBJECT_GRAPH_EXEC, handle);
    if (!object)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%p is not an executable graph", (void *)handle);
    *out = (struct ct_graph_exec *)object;
    return CUDA_SUCCESS;
}

void ct_graph_exec_release(struct ct_graph_exec *exec)
{
    ct_object_release(&exec->object);
}

/* ---- steps ---- */

static struct ct_graph_step *find_in_bodies(const struct ct_branches *branches, uint64_t id)
{
    struct ct_graph_step *found = NULL;

    for (unsigned i = 0; branches && i < branches->count && !found; i++)
        found = ct_graph_exec_step_or_null((const struct ct_graph_exec *)branches->execs[i], id);
    return found;
}

struct ct_graph_step *ct_graph_exec_step_or_null(const struct ct_graph_exec *exec, uint64_t id)
{
    struct ct_graph_step *found = NULL;

    for (size_t i = 0; i < exec->n_steps && !found; i++)
        found = exec->steps[i].id == id ? &exec->steps[i] : find_in_bodies(ct_node_branches_or_null(exec->steps[i].node), id);
    return found;
}

/* ---- launches ---- */

static CUresult launch_in_order(struct ct_graph_exec *exec, struct ct_stream *stream)
{
    CUresult r = ct_graph_memory_check_launch(exec, stream);

    if (r == CUDA_SUCCESS)
        r = ct_launch_mark_follow(exec->launched, stream);
    if (r == CUDA_SUCCESS)
        r = ct_graph_plan_prepare(exec, stream);
    if (r == CUDA_SUCCESS)
        r = ct_graph_plan_launch(exec, stream);
    return r == CUDA_SUCCESS ? ct_launch_mark_record(&exec->launched, stream) : r;
}

static CUresult launch(struct ct_graph_exec *exec, struct ct_stream *stream)
{
    CUresult r, ended;

    if (!exec->conditions)
        return launch_in_order(exec, stream);
    if ((r = ct_conditions_begin(exec->conditions, stream)) != CUDA_SUCCESS)
        return r;
    r = launch_in_order(exec, stream);
    ended = ct_conditions_end(exec->conditions, stream);
    return r == CUDA_SUCCESS ? ended : r;
}

CUresult ct_graph_exec_launch(struct ct_graph_exec *exec, struct ct_stream *stream)
{
    CUresult r;

    ct_exclusive_enter(&exec->use);
    r = launch(exec, stream);
    ct_exclusive_leave(&exec->use);
    return r;
}

CUresult ct_graph_exec_upload(struct ct_graph_exec *exec, struct ct_stream *stream)
{
    CUresult r;

    ct_exclusive_enter(&exec->use);
    r = ct_graph_plan_prepare(exec, stream);
    ct_exclusive_leave(&exec->use);
    return r;
}

/* ---- destruction ---- */

/* If the context of the last launch was destroyed, its work is complete. */
static void await_last_launch(const struct ct_graph_exec *exec)
{
    struct ct_context *context;

    if (!exec->launched || ct_context_use(context = ct_event_context(exec->launched)) != CUDA_SUCCESS)
        return;
    (void)ct_event_synchronize(exec->launched);
    ct_context_release(context);
}

CUresult ct_graph_exec_destroy(struct ct_graph_exec *exec)
{
    if (ct_object_unpublish(&exec->object) != CUDA_SUCCESS)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the executable graph was destroyed");
    if (exec->graph->users.count) {
        ct_exclusive_enter(&exec->use);
        await_last_launch(exec);
        ct_exclusive_leave(&exec->use);
    }
    return CUDA_SUCCESS;
}
