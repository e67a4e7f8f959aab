/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of executable graphs (Driver API: cuGraphExecUpdate, cuGraphExecKernelNodeSetParams and its kin). */
#include "graph_exec.h"
#include "graph_plan.h"

#include "core/base/log.h"

#include <stdlib.h>

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

    ct_exclusive_enter(&exec->use);
    r = find_step(exec, node, &step);
    if (r == CUDA_SUCCESS && step->node->params.given.type != params->given.type)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "the node is a %s node", ct_node_type_name(step->node->params.given.type));
    if (r == CUDA_SUCCESS && params->child)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "a GRAPH node"); /* ct_graph_exec_set_child */
    if (r == CUDA_SUCCESS) {
        step->node->is_changed |= !ct_node_params_equal(&step->node->params, params);
        ct_node_params_replace(&step->node->params, params);
    }
    ct_exclusive_leave(&exec->use);
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

    ct_exclusive_enter(&exec->use);
    r = find_switchable(exec, node, &step);
    if (r == CUDA_SUCCESS && step->disabled == enabled) {
        step->disabled = !enabled;
        ct_graph_plan_discard(exec->plan);
        exec->plan = NULL;
    }
    ct_exclusive_leave(&exec->use);
    return r;
}

CUresult ct_graph_exec_get_enabled(struct ct_graph_exec *exec, const struct ct_graph_node *node, bool *out)
{
    struct ct_graph_step *step;
    CUresult r;

    ct_exclusive_enter(&exec->use);
    r = find_switchable(exec, node, &step);
    if (r == CUDA_SUCCESS)
        *out = !step->disabled;
    ct_exclusive_leave(&exec->use);
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

/* New parameters of a node of the executable graph, or another condition for a conditional one, whose bodies stay. */
struct change {
    struct ct_graph_node *node;
    struct ct_node_params params;
    struct ct_condition *condition; /* a reference; NULL: the node is of another type */
};
struct changes {
    struct change *list;
    size_t count, capacity;
};

static CUresult add_change(struct changes *changes, struct ct_graph_node *node, const struct ct_graph_node *by)
{
    struct change *change;

    if (changes->count == changes->capacity) {
        const size_t capacity = changes->capacity ? 2 * changes->capacity : 16;
        struct change *list = realloc(changes->list, capacity * sizeof *list);

        if (!list)
            return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the changes of a graph");
        changes->list = list;
        changes->capacity = capacity;
    }
    change = &changes->list[changes->count++];
    *change = (struct change){.node = node};
    if (!by->params.branches)
        return ct_node_params_copy(&change->params, &by->params);
    change->condition = ct_node_branches_or_null(by)->condition;
    ct_object_retain(&change->condition->object);
    return CUDA_SUCCESS;
}

/* The graphs have the same structure. Child graphs and bodies stay, since steps refer to their nodes. */
static CUresult collect_locked(const struct ct_graph *old, const struct ct_graph *new, struct changes *changes)
{
    CUresult r = CUDA_SUCCESS;

    for (size_t i = 0; i < old->count && r == CUDA_SUCCESS; i++) {
        struct ct_graph_node *node = old->nodes[i];
        const struct ct_graph_node *other = new->nodes[i];

        if (!node->params.child && !ct_node_params_equal(&node->params, &other->params))
            r = add_change(changes, node, other);
        for (size_t k = 0; k < ct_node_graph_count(&node->params) && r == CUDA_SUCCESS; k++)
            r = collect_locked(ct_node_graph(&node->params, k), ct_node_graph(&other->params, k), changes);
    }
    return r;
}

static CUresult find_changes(const struct ct_graph *old, const struct ct_graph *new, struct changes *changes,
                             CUgraphExecUpdateResultInfo *out)
{
    bool same;
    CUresult r = CUDA_SUCCESS;

    *out = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_SUCCESS};
    ct_graphs_lock();
    same = compare_locked(old, new, out);
    if (same)
        r = collect_locked(old, new, changes);
    ct_graphs_unlock();
    return same ? r
                : ct_fail(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the graph differs from the executable graph (update result %d)",
                          (int)out->result);
}

/* Exchanges the parameters or the condition with those of the node, which the list then has. */
static void apply(struct change *change)
{
    const struct ct_node_params before = change->node->params;

    if (change->condition) {
        change->condition = ct_branches_replace_condition(ct_node_branches_or_null(change->node), change->condition);
        return;
    }
    change->node->params = change->params;
    change->params = before;
    change->node->is_changed = true;
}

static void finish_change(struct change *change)
{
    if (change->condition)
        ct_object_release(&change->condition->object);
    else
        ct_node_params_finish(&change->params);
}

/* `old` is the executable graph's, or that of one of its GRAPH nodes. */
static CUresult update(struct ct_graph *old, struct ct_graph *new, CUgraphExecUpdateResultInfo *out)
{
    struct changes changes = {NULL, 0, 0};
    CUresult r = find_changes(old, new, &changes, out);

    for (size_t i = 0; i < changes.count && r == CUDA_SUCCESS; i++)
        apply(&changes.list[i]);
    for (size_t i = 0; i < changes.count && r == CUDA_SUCCESS; i++)
        r = ct_node_prepare(&changes.list[i].node->params);
    for (size_t i = 0; i < changes.count; i++)
        finish_change(&changes.list[i]);
    free(changes.list);
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
    ct_exclusive_enter(&exec->use);
    r = update(exec->graph, graph, out);
    if (r == CUDA_SUCCESS)
        exchange_sets(exec, graph);
    ct_exclusive_leave(&exec->use);
    return r;
}

CUresult ct_graph_exec_set_child(struct ct_graph_exec *exec, const struct ct_graph_node *node, struct ct_graph *graph)
{
    CUgraphExecUpdateResultInfo info;
    struct ct_graph_step *step;
    CUresult r;

    ct_exclusive_enter(&exec->use);
    r = find_step(exec, node, &step);
    if (r == CUDA_SUCCESS && !step->node->params.child)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "the node is a %s node", ct_node_type_name(step->node->params.given.type));
    if (r == CUDA_SUCCESS)
        r = update(ct_node_child_or_null(step->node), graph, &info);
    ct_exclusive_leave(&exec->use);
    return r;
}
