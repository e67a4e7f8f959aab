/* SPDX-License-Identifier: Apache-2.0 */
/* Edges of graphs, and queries about the structure. */
#include "graph.h"

#include "core/base/log.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "graph"

/* ---- changes by the application ---- */

struct edge_request {
    struct ct_graph *graph;
    const CUgraphNode *from, *to;
    const CUgraphEdgeData *data;
};

static CUresult add_one(const struct edge_request *request, size_t i)
{
    struct ct_graph_node *from = ct_graph_node_or_null_locked(request->graph, request->from[i]),
                         *to = ct_graph_node_or_null_locked(request->graph, request->to[i]);

    if (!from || !to)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "edge %zu does not join two nodes of the graph", i);
    return ct_edge_add_locked(from, to, request->data ? &request->data[i] : NULL);
}

static void take_back(const struct edge_request *request, size_t i)
{
    ct_edge_remove_locked(ct_graph_node_or_null_locked(request->graph, request->from[i]),
                          ct_graph_node_or_null_locked(request->graph, request->to[i]));
}

static CUresult check_arrays(const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    return count && (!from || !to) ? ct_fail(CUDA_ERROR_INVALID_VALUE, "%zu edges, but a list is NULL", count) : CUDA_SUCCESS;
}

CUresult ct_graph_add_edges(struct ct_graph *graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
                            size_t count)
{
    const struct edge_request request = {graph, from, to, data};
    CUresult r = check_arrays(from, to, count);
    size_t added = 0;

    if (r != CUDA_SUCCESS)
        return r;
    ct_graphs_lock();
    while (added < count && (r = add_one(&request, added)) == CUDA_SUCCESS)
        added++;
    while (r != CUDA_SUCCESS && added)
        take_back(&request, --added);
    ct_graphs_unlock();
    return r;
}

static bool has_data(const struct ct_edge *edge, const CUgraphEdgeData *data_or_null)
{
    const CUgraphEdgeData none = {0};

    return memcmp(&edge->data, data_or_null ? data_or_null : &none, sizeof none) == 0;
}

static CUresult check_removal(const struct edge_request *request, size_t i)
{
    struct ct_graph_node *from = ct_graph_node_or_null_locked(request->graph, request->from[i]),
                         *to = ct_graph_node_or_null_locked(request->graph, request->to[i]);
    const struct ct_edge *edge = from && to ? ct_edge_find_or_null(from, to) : NULL;

    if (!edge || !has_data(edge, request->data ? &request->data[i] : NULL))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "edge %zu is not in the graph", i);
    return CUDA_SUCCESS;
}

CUresult ct_graph_remove_edges(struct ct_graph *graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
                               size_t count)
{
    const struct edge_request request = {graph, from, to, data};
    CUresult r = check_arrays(from, to, count);

    if (r != CUDA_SUCCESS)
        return r;
    ct_graphs_lock();
    if (graph->has_memory)
        r = ct_fail(CUDA_ERROR_NOT_SUPPORTED, "edges cannot be removed from a graph that allocates or frees memory");
    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = check_removal(&request, i);
    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++)
        take_back(&request, i);
    ct_graphs_unlock();
    return r;
}

/* ---- queries ---- */

/* Writes into the application's arrays; counts also what does not fit. */
struct writer {
    const struct ct_edge_arrays *arrays;
    size_t room, count;
    bool loses_data;
};

static void write_edge(struct writer *writer, const struct ct_graph_node *from, const struct ct_graph_node *to, const CUgraphEdgeData *data)
{
    const struct ct_edge_arrays *out = writer->arrays;
    const size_t i = writer->count++;
    const CUgraphEdgeData none = {0};

    if (i >= writer->room)
        return;
    if (out->from)
        out->from[i] = from->object.handle;
    if (out->to)
        out->to[i] = to->object.handle;
    if (out->data)
        out->data[i] = *data;
    else if (memcmp(data, &none, sizeof none) != 0)
        writer->loses_data = true;
}

static struct writer begin_list(const struct ct_edge_arrays *out)
{
    const bool writes = out->from || out->to;

    return (struct writer){.arrays = out, .room = writes ? *out->count : 0};
}

static CUresult end_list(const struct writer *writer)
{
    const struct ct_edge_arrays *out = writer->arrays;

    for (size_t i = writer->count; i < writer->room; i++) {
        if (out->from)
            out->from[i] = NULL;
        if (out->to)
            out->to[i] = NULL;
    }
    if (!writer->room || writer->count < writer->room)
        *out->count = writer->count;
    return writer->loses_data ? ct_fail(CUDA_ERROR_LOSSY_QUERY, "an edge has data, for which there is no array") : CUDA_SUCCESS;
}

CUresult ct_graph_list_edges(struct ct_graph *graph, const struct ct_edge_arrays *out)
{
    struct writer writer = begin_list(out);

    ct_graphs_lock();
    for (size_t i = 0; i < graph->count; i++)
        for (size_t k = 0; k < graph->nodes[i]->dependents.count; k++)
            write_edge(&writer, graph->nodes[i], graph->nodes[i]->dependents.list[k].node, &graph->nodes[i]->dependents.list[k].data);
    ct_graphs_unlock();
    return end_list(&writer);
}

CUresult ct_graph_node_list_edges(struct ct_graph_node *node, bool dependents, const struct ct_edge_arrays *out)
{
    const struct ct_edges *edges = dependents ? &node->dependents : &node->dependencies;
    struct writer writer = begin_list(out);

    ct_graphs_lock();
    for (size_t i = 0; i < edges->count; i++)
        write_edge(&writer, edges->list[i].node, edges->list[i].node, &edges->list[i].data);
    ct_graphs_unlock();
    return end_list(&writer);
}

CUresult ct_graph_list_nodes(struct ct_graph *graph, bool only_roots, CUgraphNode *nodes, size_t *count)
{
    static const CUgraphEdgeData none;
    const struct ct_edge_arrays out = {.from = nodes, .count = count};
    struct writer writer = begin_list(&out);

    ct_graphs_lock();
    for (size_t i = 0; i < graph->count; i++)
        if (!only_roots || graph->nodes[i]->dependencies.count == 0)
            write_edge(&writer, graph->nodes[i], graph->nodes[i], &none);
    ct_graphs_unlock();
    return end_list(&writer);
}

/* A. B. Kahn, Topological sorting of large networks, 1962. `out` is the queue. */
bool ct_graph_sort_locked(const struct ct_graph *graph, struct ct_graph_node **out)
{
    size_t *missing = calloc(graph->count ? graph->count : 1, sizeof *missing); /* dependencies that are not in `out` yet */
    size_t sorted = 0;

    if (!missing)
        return false;
    for (size_t i = 0; i < graph->count; i++)
        if ((missing[i] = graph->nodes[i]->dependencies.count) == 0)
            out[sorted++] = graph->nodes[i];
    for (size_t i = 0; i < sorted; i++)
        for (size_t k = 0; k < out[i]->dependents.count; k++)
            if (--missing[out[i]->dependents.list[k].node->index] == 0)
                out[sorted++] = out[i]->dependents.list[k].node;
    free(missing);
    return sorted == graph->count;
}

/* Appends the node if it is not marked. */
static size_t mark(struct ct_graph_node *node, struct ct_graph_node **marked, size_t n, bool *marks)
{
    if (node && !marks[node->index]) {
        marks[node->index] = true;
        marked[n++] = node;
    }
    return n;
}

bool ct_graph_mark_ancestors_locked(const struct ct_graph *graph, const CUgraphNode *nodes, size_t count, bool *marks)
{
    struct ct_graph_node **marked = calloc(graph->count + 1, sizeof(*marked));
    size_t n = 0;

    if (!marked)
        return false;
    for (size_t i = 0; i < count; i++)
        n = mark(ct_graph_node_or_null_locked(graph, nodes[i]), marked, n, marks);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < marked[i]->dependencies.count; k++)
            n = mark(marked[i]->dependencies.list[k].node, marked, n, marks);
    free(marked);
    return true;
}
