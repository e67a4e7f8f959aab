/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for graphs with CONDITIONAL nodes (CUDA C++ Programming Guide, "Conditional Graph Nodes"). Which error is returned when is what
 * NVIDIA's driver 580 does. */
#include "graph.h"

#include "core/base/log.h"

#define CT_CHANNEL "graph"

static bool has_condition(const struct ct_node_params *params, const struct ct_condition *condition)
{
    return params->branches && ((const struct ct_branches *)params->branches)->condition == condition;
}

/* Whether a node of the graph has the condition, at any level. */
static bool uses_condition(const struct ct_graph *graph, const struct ct_condition *condition)
{
    bool uses = false;

    for (size_t i = 0; i < graph->count && !uses; i++) {
        const struct ct_node_params *params = &graph->nodes[i]->params;

        uses = has_condition(params, condition);
        for (size_t k = 0; k < ct_node_graph_count(params) && !uses; k++)
            uses = uses_condition(ct_node_graph(params, k), condition);
    }
    return uses;
}

CUresult ct_graph_check_condition_locked(struct ct_graph *graph, const struct ct_node_params *params)
{
    if (params->branches && uses_condition(ct_graph_root_locked(graph), ((const struct ct_branches *)params->branches)->condition))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "another node has the condition");
    return CUDA_SUCCESS;
}

bool ct_graph_is_conditional_locked(const struct ct_graph *graph)
{
    bool found = false;

    for (size_t i = 0; i < graph->count && !found; i++) {
        const struct ct_node_params *params = &graph->nodes[i]->params;

        found = params->branches || (params->child && ct_graph_is_conditional_locked(ct_node_graph(params, 0)));
    }
    return found;
}

static bool is_allowed_in_bodies(CUgraphNodeType type)
{
    switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_GRAPH:
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return true;
    default:
        return false;
    }
}

/* The first node in a body, at any level, that bodies may not have; or NULL. */
static const struct ct_graph_node *find_forbidden_or_null(const struct ct_graph *graph, bool is_in_body)
{
    const struct ct_graph_node *found = NULL;

    for (size_t i = 0; i < graph->count && !found; i++) {
        const struct ct_node_params *params = &graph->nodes[i]->params;

        if (is_in_body && !is_allowed_in_bodies(params->given.type))
            found = graph->nodes[i];
        for (size_t k = 0; k < ct_node_graph_count(params) && !found; k++)
            found = find_forbidden_or_null(ct_node_graph(params, k), is_in_body || params->branches);
    }
    return found;
}

CUresult ct_graph_check_conditions_locked(const struct ct_graph *graph, CUgraphInstantiateResult *out_result, CUgraphNode *out_node)
{
    const struct ct_condition *condition = graph->conditions ? graph->conditions->first : NULL;
    const struct ct_graph_node *forbidden = find_forbidden_or_null(graph, false);

    if (forbidden) {
        *out_result = CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
        *out_node = forbidden->object.handle;
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a %s node in the body of a conditional node",
                       ct_node_type_name(forbidden->params.given.type));
    }
    for (; condition; condition = condition->next)
        if (!uses_condition(graph, condition)) {
            *out_result = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "a condition has no node");
        }
    return CUDA_SUCCESS;
}
