/* SPDX-License-Identifier: Apache-2.0 */
/* Creation and destruction of graphs and nodes.
 *
 * What a removed node owns is released after the lock: child graphs take the lock again, and user objects call the application. */
#include "graph.h"

#include "core/base/log.h"
#include "core/base/process.h"

#include <stdlib.h>

#define CT_CHANNEL "graph"
#define FIRST_CAPACITY 16u

static struct ct_mutex lock = CT_MUTEX_INITIALIZER(CT_RANK_GRAPHS);

void ct_graphs_lock(void)
{
    ct_mutex_lock(&lock);
}

void ct_graphs_unlock(void)
{
    ct_mutex_unlock(&lock);
}

static uint64_t next_id(void)
{
    static atomic_ullong last; /* relaxed: only its uniqueness matters */

    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

/* ---- graphs ---- */

static void unpublish(struct ct_object *object)
{
    if (object->handle)
        (void)ct_object_unpublish(object);
}

static void set_parent_locked(const struct ct_node_params *params, struct ct_graph *parent)
{
    for (size_t i = 0; i < ct_node_graph_count(params); i++)
        if (ct_node_graph(params, i))
            ct_node_graph(params, i)->parent = parent;
}

static void free_graph(struct ct_object *object)
{
    struct ct_graph *graph = (struct ct_graph *)object;

    ct_graphs_lock(); /* other threads may have found nodes by their handles */
    for (size_t i = 0; i < graph->count; i++) {
        graph->nodes[i]->graph = NULL;
        set_parent_locked(&graph->nodes[i]->params, NULL);
        unpublish(&graph->nodes[i]->object);
    }
    ct_graphs_unlock();
    for (size_t i = 0; i < graph->count; i++)
        ct_object_release(&graph->nodes[i]->object);
    ct_user_references_finish(&graph->users);
    if (graph->conditions)
        ct_object_release(&graph->conditions->object);
    free(graph->nodes);
    free(graph);
}

CUresult ct_graph_create(bool publish, struct ct_graph **out)
{
    struct ct_graph *graph = calloc(1, sizeof *graph);
    CUresult r = CUDA_SUCCESS;

    if (!graph)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a graph");
    ct_object_init(&graph->object, CT_OBJECT_GRAPH, free_graph);
    graph->id = next_id();
    if (publish)
        r = ct_object_publish(&graph->object);
    if (r == CUDA_SUCCESS)
        *out = graph;
    else
        ct_object_release(&graph->object);
    return r;
}

bool ct_graph_is_child(const struct ct_graph *graph)
{
    bool is_child;

    ct_graphs_lock();
    is_child = graph->is_child;
    ct_graphs_unlock();
    return is_child;
}

CUresult ct_graph_destroy(struct ct_graph *graph)
{
    bool is_child, is_captured;

    ct_graphs_lock();
    is_child = graph->is_child;
    is_captured = graph->is_captured;
    ct_graphs_unlock();
    if (is_child)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the graph belongs to a node of another graph");
    if (is_captured)
        return ct_fail(CUDA_ERROR_ILLEGAL_STATE, "a capture adds nodes to the graph");
    if (ct_object_unpublish(&graph->object) != CUDA_SUCCESS) /* another thread destroys it, too */
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the graph was destroyed");
    ct_object_release(&graph->object);
    return CUDA_SUCCESS;
}

void ct_graph_discard(struct ct_graph *graph)
{
    unpublish(&graph->object);
    ct_object_release(&graph->object);
}

CUresult ct_graph_lookup(CUgraph handle, struct ct_graph **out)
{
    struct ct_object *object;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    object = ct_object_find_or_null(CT_OBJECT_GRAPH, handle);
    if (!object)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%p is not a graph", (void *)handle);
    *out = (struct ct_graph *)object;
    return CUDA_SUCCESS;
}

void ct_graph_release(struct ct_graph *graph)
{
    if (graph)
        ct_object_release(&graph->object);
}

/* ---- nodes ---- */

static void free_node(struct ct_object *object)
{
    struct ct_graph_node *node = (struct ct_graph_node *)object;

    ct_node_params_finish(&node->params);
    free(node->dependencies.list);
    free(node->dependents.list);
    free(node);
}

CUresult ct_graph_node_lookup(CUgraphNode handle, struct ct_graph_node **out)
{
    struct ct_object *object;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    object = ct_object_find_or_null(CT_OBJECT_GRAPH_NODE, handle);
    if (!object)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%p is not a node of a graph", (void *)handle);
    *out = (struct ct_graph_node *)object;
    return CUDA_SUCCESS;
}

void ct_graph_node_release(struct ct_graph_node *node)
{
    if (node)
        ct_object_release(&node->object);
}

/* A node with a handle has a reference of the handle table while the lock is held, so none is released for the last time here. */
struct ct_graph_node *ct_graph_node_or_null_locked(const struct ct_graph *graph, CUgraphNode handle)
{
    struct ct_graph_node *node = (struct ct_graph_node *)ct_object_find_or_null(CT_OBJECT_GRAPH_NODE, handle);

    ct_graph_node_release(node);
    return node && node->graph == graph ? node : NULL;
}

static bool reserve(struct ct_graph *graph)
{
    const size_t capacity = graph->capacity ? 2 * graph->capacity : FIRST_CAPACITY;
    struct ct_graph_node **nodes;

    if (graph->count < graph->capacity)
        return true;
    nodes = realloc(graph->nodes, capacity * sizeof(*nodes));
    if (!nodes)
        return false;
    graph->nodes = nodes;
    graph->capacity = capacity;
    return true;
}

CUresult ct_graph_append_locked(struct ct_graph *graph, bool publish, struct ct_graph_node **out)
{
    struct ct_graph_node *node = reserve(graph) ? calloc(1, sizeof *node) : NULL;
    CUresult r = CUDA_SUCCESS;

    if (!node)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a node of a graph");
    ct_object_init(&node->object, CT_OBJECT_GRAPH_NODE, free_node);
    node->params.given.type = CU_GRAPH_NODE_TYPE_EMPTY;
    if (publish && (r = ct_object_publish(&node->object)) != CUDA_SUCCESS) {
        ct_object_release(&node->object);
        return r;
    }
    node->graph = graph;
    node->id = next_id();
    node->index = graph->count;
    graph->nodes[graph->count++] = node;
    *out = node;
    return CUDA_SUCCESS;
}

static void take_out_locked(struct ct_graph_node *node)
{
    struct ct_graph *graph = node->graph;

    ct_edges_remove_all_locked(node);
    graph->count--;
    for (size_t i = node->index; i < graph->count; i++) {
        graph->nodes[i] = graph->nodes[i + 1];
        graph->nodes[i]->index = i;
    }
    node->graph = NULL;
    set_parent_locked(&node->params, NULL);
    unpublish(&node->object);
}

static CUresult depend_locked(struct ct_graph_node *node, const struct ct_dependencies *dependencies)
{
    CUresult r = CUDA_SUCCESS;

    for (size_t i = 0; i < dependencies->count && r == CUDA_SUCCESS; i++) {
        const CUgraphEdgeData *data = dependencies->edge_data ? &dependencies->edge_data[i] : NULL;
        struct ct_graph_node *from = ct_graph_node_or_null_locked(node->graph, dependencies->nodes[i]);

        r = from ? ct_edge_add_locked(from, node, data) : ct_fail(CUDA_ERROR_INVALID_VALUE, "dependency %zu is not a node of the graph", i);
    }
    return r;
}

/* Whether a graph is the other one, or one of its child graphs. */
static bool contains_locked(const struct ct_graph *graph, const struct ct_graph *other)
{
    if (graph == other)
        return true;
    for (size_t i = 0; i < graph->count; i++)
        if (graph->nodes[i]->params.child && contains_locked(ct_node_child_or_null(graph->nodes[i]), other))
            return true;
    return false;
}

static CUresult check_child_locked(const struct ct_graph *graph, const struct ct_node_params *params)
{
    const struct ct_graph *child = (const struct ct_graph *)params->child;

    return child && contains_locked(child, graph) ? ct_fail(CUDA_ERROR_INVALID_VALUE, "a graph cannot contain itself") : CUDA_SUCCESS;
}

CUresult ct_graph_add_node(struct ct_graph *graph, const struct ct_dependencies *dependencies, struct ct_node_params *params,
                           CUgraphNode *out)
{
    struct ct_graph_node *node, *failed = NULL;
    CUresult r;

    if (dependencies->count && !dependencies->nodes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%zu dependencies, but the list is NULL", dependencies->count);
    ct_graphs_lock();
    r = check_child_locked(graph, params);
    if (r == CUDA_SUCCESS)
        r = ct_graph_check_condition_locked(graph, params);
    if (r == CUDA_SUCCESS)
        r = ct_graph_append_locked(graph, true, &node);
    if (r == CUDA_SUCCESS && (r = depend_locked(node, dependencies)) != CUDA_SUCCESS) {
        take_out_locked(node);
        failed = node;
    }
    if (r == CUDA_SUCCESS) {
        graph->has_memory |= params->allocation || (params->child && ((const struct ct_graph *)params->child)->has_memory);
        node->params = *params;
        set_parent_locked(params, graph);
        *params = (struct ct_node_params){0};
        *out = node->object.handle;
    }
    ct_graphs_unlock();
    ct_graph_node_release(failed);
    return r;
}

CUresult ct_graph_remove_node(struct ct_graph_node *node)
{
    CUresult r = CUDA_SUCCESS;

    ct_graphs_lock();
    if (!node->graph || (node->graph->is_child && !node->graph->is_body))
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "the node was destroyed, or is in a child graph");
    else if (node->graph->has_memory)
        r = ct_fail(CUDA_ERROR_NOT_SUPPORTED, "nodes cannot be removed from a graph that allocates or frees memory");
    else if (node->graph->is_captured)
        r = ct_fail(CUDA_ERROR_ILLEGAL_STATE, "a capture adds nodes to the graph");
    else
        take_out_locked(node);
    ct_graphs_unlock();
    if (r == CUDA_SUCCESS)
        ct_object_release(&node->object); /* the graph's reference */
    return r;
}

CUresult ct_graph_node_params(CUgraphNode handle, CUgraphNodeType type, CUgraphNodeParams *out)
{
    struct ct_graph_node *node;
    CUresult r = ct_graph_node_lookup(handle, &node);

    if (r != CUDA_SUCCESS)
        return r;
    ct_graphs_lock();
    *out = node->params.given;
    ct_graphs_unlock();
    ct_graph_node_release(node);
    if (out->type != type)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a %s node, not a %s node", ct_node_type_name(out->type), ct_node_type_name(type));
    return CUDA_SUCCESS;
}

CUresult ct_graph_node_set_params(struct ct_graph_node *node, struct ct_node_params *params)
{
    CUresult r;

    ct_graphs_lock();
    if (!node->graph || node->params.given.type != params->given.type) {
        ct_graphs_unlock();
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the parameters are those of a %s node", ct_node_type_name(params->given.type));
    }
    if ((r = check_child_locked(node->graph, params)) != CUDA_SUCCESS) {
        ct_graphs_unlock();
        return r;
    }
    ct_node_params_replace(&node->params, params);
    set_parent_locked(&node->params, node->graph);
    set_parent_locked(params, NULL);
    ct_graphs_unlock();
    ct_node_params_finish(params);
    return CUDA_SUCCESS;
}
