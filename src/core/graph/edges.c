/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of edges of nodes. */
#include "graph.h"

#include "core/base/log.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "graph"
#define FIRST_CAPACITY 4u

static struct ct_edge *find_or_null(const struct ct_edges *edges, const struct ct_graph_node *node)
{
    for (size_t i = 0; i < edges->count; i++)
        if (edges->list[i].node == node)
            return &edges->list[i];
    return NULL;
}

static bool reserve(struct ct_edges *edges)
{
    const size_t capacity = edges->capacity ? 2 * edges->capacity : FIRST_CAPACITY;
    struct ct_edge *list;

    if (edges->count < edges->capacity)
        return true;
    list = realloc(edges->list, capacity * sizeof *list);
    if (!list)
        return false;
    edges->list = list;
    edges->capacity = capacity;
    return true;
}

static void remove_from(struct ct_edges *edges, const struct ct_graph_node *node)
{
    struct ct_edge *edge = find_or_null(edges, node);
    struct ct_edge *end = edges->list + edges->count;

    if (!edge)
        return;
    memmove(edge, edge + 1, (size_t)(end - (edge + 1)) * sizeof *edge);
    edges->count--;
}

/* The shorter of the two lists that contain an edge is searched: a node may have thousands of dependents. */
struct ct_edge *ct_edge_find_or_null(const struct ct_graph_node *from, const struct ct_graph_node *to)
{
    return from->dependents.count < to->dependencies.count ? find_or_null(&from->dependents, to) : find_or_null(&to->dependencies, from);
}

static bool is_valid_data(const CUgraphEdgeData *data)
{
    static const unsigned char zeros[sizeof data->reserved];

    return data->type <= CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && data->from_port <= CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER &&
           data->to_port == 0 && memcmp(data->reserved, zeros, sizeof zeros) == 0;
}

CUresult ct_edge_add_locked(struct ct_graph_node *from, struct ct_graph_node *to, const CUgraphEdgeData *data_or_null)
{
    const CUgraphEdgeData none = {0}, data = data_or_null ? *data_or_null : none;

    if (from == to || ct_edge_find_or_null(from, to))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, from == to ? "a node cannot depend on itself" : "the edge exists already");
    if (!is_valid_data(&data))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "invalid edge data: ports %u and %u, type %u", data.from_port, data.to_port, data.type);
    if (!reserve(&from->dependents) || !reserve(&to->dependencies))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for an edge of a graph");
    from->dependents.list[from->dependents.count++] = (struct ct_edge){to, data};
    to->dependencies.list[to->dependencies.count++] = (struct ct_edge){from, data};
    return CUDA_SUCCESS;
}

void ct_edge_remove_locked(struct ct_graph_node *from, struct ct_graph_node *to)
{
    remove_from(&from->dependents, to);
    remove_from(&to->dependencies, from);
}

void ct_edges_remove_all_locked(struct ct_graph_node *node)
{
    for (size_t i = 0; i < node->dependencies.count; i++)
        remove_from(&node->dependencies.list[i].node->dependents, node);
    for (size_t i = 0; i < node->dependents.count; i++)
        remove_from(&node->dependents.list[i].node->dependencies, node);
    node->dependencies.count = node->dependents.count = 0;
}
