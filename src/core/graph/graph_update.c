/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of executable graphs (Driver API: cuGraphExecUpdate, cuGraphExecKernelNodeSetParams and its kin). */
#include "graph_exec.h"

#include "core/base/log.h"

#define CT_CHANNEL "graph"

/* ---- one node ---- */

static CUresult find_step(const struct ct_graph_exec *exec, const struct ct_graph_node *node, struct ct_graph_step **out)
{
    struct ct_graph_step *step = ct_graph_exec_step_or_null(exec, node->id);

    if (!step)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the executable graph has no such node");
    *out = step;
    return CUDA_SUCCESS;
}

CUresult ct_graph_exec_set_params(struct ct_graph_exec *exec, const struct ct_graph_node *node, struct ct_node_params *params)
{
    struct ct_graph_step *step;
    CUresult r;

    ct_graph_exec_enter(exec);
    r = find_step(exec, node, &step);
    if (r == CUDA_SUCCESS && step->node->params.given.type != params->given.type)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "the node is a %s node", ct_node_type_name(step->node->params.given.type));
    if (r == CUDA_SUCCESS && params->child)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "a GRAPH node"); /* ct_graph_exec_set_child */
    if (r == CUDA_SUCCESS)
        ct_node_params_replace(&step->node->params, params);
    ct_graph_exec_leave(exec);
    if (r == CUDA_SUCCESS)
        ct_node_params_finish(params);
    return r;
}

static bool can_be_disabled(const struct ct_graph_step *step)
{
    const CUgraphNodeType type = step->node->params.given.type;

    return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY || type == CU_GRAPH_NODE_TYPE_MEMSET;
}

static CUresult find_switchable(const struct ct_graph_exec *exec, const struct ct_graph_node *node, struct ct_graph_step **out)
{
    CUresult r = find_step(exec, node, out);

    if (r == CUDA_SUCCESS && !can_be_disabled(*out))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a %s node cannot be disabled", ct_node_type_name((*out)->node->params.given.type));
    return r;
}

CUresult ct_graph_exec_set_enabled(struct ct_graph_exec *exec, const struct ct_graph_node *node, bool enabled)
{
    struct ct_graph_step *step;
    CUresult r;

    ct_graph_exec_enter(exec);
    r = find_switchable(exec, node, &step);
    if (r == CUDA_SUCCESS)
        step->disabled = !enabled;
    ct_graph_exec_leave(exec);
    return r;
}

CUresult ct_graph_exec_get_enabled(struct ct_graph_exec *exec, const struct ct_graph_node *node, bool *out)
{
    struct ct_graph_step *step;
    CUresult r;

    ct_graph_exec_enter(exec);
    r = find_switchable(exec, node, &step);
    if (r == CUDA_SUCCESS)
        *out = !step->disabled;
    ct_graph_exec_leave(exec);
    return r;
}

/* ---- all nodes ---- */

static bool has_same_edges(const struct ct_graph_node *a, const struct ct_graph_node *b)
{
    bool same = a->dependencies.count == b->dependencies.count;

    for (size_t i = 0; i < a->dependencies.count && same; i++)
        same = a->dependencies.list[i].node->index == b->dependencies.list[i].node->index;
    return same;
}

static bool has_same_branches(const struct ct_branches *a, const struct ct_branches *b)
{
    return a->type == b->type && a->count == b->count && a->condition->context == b->condition->context;
}

static CUgraphExecUpdateResult compare_nodes(const struct ct_graph_node *old, const struct ct_graph_node *new)
{
    if (old->params.given.type != new->params.given.type)
        return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    if (old->params.branches && !has_same_branches(ct_node_branches_or_null(old), ct_node_branches_or_null(new)))
        return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
    if (!has_same_edges(old, new))
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    if (ct_node_params_cooperate(&old->params) != ct_node_params_cooperate(&new->params))
        return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static bool compare_locked(const struct ct_graph *old, const struct ct_graph *new, CUgraphExecUpdateResultInfo *out); /* recursion */

/* Whether the graphs that the nodes own have the same structure. */
static bool compare_inside_locked(const struct ct_node_params *old, const struct ct_node_params *new, CUgraphExecUpdateResultInfo *out)
{
    bool same = true;

    for (size_t i = 0; i < ct_node_graph_count(old) && same; i++)
        same = compare_locked(ct_node_graph(old, i), ct_node_graph(new, i), out);
    return same;
}

/* Whether `new` has the structure of `old`; *out receives the first difference. Nodes correspond by the order of their creation. */
static bool compare_locked(const struct ct_graph *old, const struct ct_graph *new, CUgraphExecUpdateResultInfo *out)
{
    CUgraphExecUpdateResult result = old->count == new->count ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;

    for (size_t i = 0; i < old->count && result == CU_GRAPH_EXEC_UPDATE_SUCCESS; i++) {
        result = compare_nodes(old->nodes[i], new->nodes[i]);
        if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
            out->errorNode = new->nodes[i]->object.handle;
        else if (!compare_inside_locked(&old->nodes[i]->params, &new->nodes[i]->params, out))
            return false;
    }
    out->result = result;
    return result == CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static void exchange(struct ct_node_params *a, struct ct_node_params *b)
{
    const struct ct_node_params before = *a;

    *a = *b;
    *b = before;
}

/* The graphs have the same structure. Child graphs and bodies stay, since steps refer to their nodes. */
static void exchange_all(struct ct_graph *graph, struct ct_graph *with)
{
    for (size_t i = 0; i < graph->count; i++) {
        struct ct_node_params *ours = &graph->nodes[i]->params, *theirs = &with->nodes[i]->params;

        if (ours->branches)
            ct_branches_exchange_conditions((struct ct_branches *)ours->branches, (struct ct_branches *)theirs->branches);
        else if (!ours->child)
            exchange(ours, theirs);
        for (size_t k = 0; k < ct_node_graph_count(ours); k++)
            exchange_all(ct_node_graph(ours, k), ct_node_graph(theirs, k));
    }
}

static CUresult check_update(const struct ct_graph *old, const struct ct_graph *new, CUgraphExecUpdateResultInfo *out)
{
    bool same;

    *out = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_SUCCESS};
    ct_graphs_lock();
    same = compare_locked(old, new, out);
    ct_graphs_unlock();
    return same ? CUDA_SUCCESS
                : ct_fail(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the graph differs from the executable graph (update result %d)",
                          (int)out->result);
}

static CUresult prepare_all(const struct ct_graph_exec *exec);

static CUresult prepare_inside(const struct ct_branches *branches)
{
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; branches && i < branches->count && r == CUDA_SUCCESS; i++)
        r = prepare_all((const struct ct_graph_exec *)branches->execs[i]);
    return r;
}

static CUresult prepare_all(const struct ct_graph_exec *exec)
{
    CUresult r = CUDA_SUCCESS;

    for (size_t i = 0; i < exec->n_steps && r == CUDA_SUCCESS; i++) {
        r = ct_node_prepare(&exec->steps[i].node->params);
        if (r == CUDA_SUCCESS)
            r = prepare_inside(ct_node_branches_or_null(exec->steps[i].node));
    }
    return r;
}

/* `old` is the executable graph's, or that of one of its GRAPH nodes. */
static CUresult update(struct ct_graph_exec *exec, struct ct_graph *old, struct ct_graph *new, CUgraphExecUpdateResultInfo *out)
{
    struct ct_graph *clone = NULL;
    CUresult r = check_update(old, new, out);

    if (r == CUDA_SUCCESS && (r = ct_graph_clone(new, false, &clone)) == CUDA_SUCCESS &&
        (r = check_update(old, clone, out)) == CUDA_SUCCESS) /* the graph may have changed meanwhile */
        exchange_all(old, clone);
    if (r == CUDA_SUCCESS)
        r = prepare_all(exec);
    if (clone)
        ct_graph_discard(clone);
    return r;
}

/* Kernels of the new graph set its conditions. */
static void exchange_sets(struct ct_graph_exec *exec, const struct ct_graph *graph)
{
    struct ct_condition_set *before = exec->conditions;

    ct_graphs_lock();
    if ((exec->conditions = graph->conditions))
        ct_object_retain(&exec->conditions->object);
    ct_graphs_unlock();
    if (before)
        ct_object_release(&before->object);
}

CUresult ct_graph_exec_update(struct ct_graph_exec *exec, struct ct_graph *graph, CUgraphExecUpdateResultInfo *out)
{
    CUresult r;

    if (graph->is_body) /* never changes */
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the graph is the body of a conditional node");
    ct_graph_exec_enter(exec);
    r = update(exec, exec->graph, graph, out);
    if (r == CUDA_SUCCESS)
        exchange_sets(exec, graph);
    ct_graph_exec_leave(exec);
    return r;
}

CUresult ct_graph_exec_set_child(struct ct_graph_exec *exec, const struct ct_graph_node *node, struct ct_graph *graph)
{
    CUgraphExecUpdateResultInfo info;
    struct ct_graph_step *step;
    CUresult r;

    ct_graph_exec_enter(exec);
    r = find_step(exec, node, &step);
    if (r == CUDA_SUCCESS && !step->node->params.child)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "the node is a %s node", ct_node_type_name(step->node->params.given.type));
    if (r == CUDA_SUCCESS)
        r = update(exec, ct_node_child_or_null(step->node), graph, &info);
    ct_graph_exec_leave(exec);
    return r;
}
