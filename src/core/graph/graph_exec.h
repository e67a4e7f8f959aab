/* SPDX-License-Identifier: Apache-2.0 */
/* Executable graphs. An executable graph contains a clone of its graph, and the clone's nodes in the order of their execution. */
#ifndef CT_CORE_GRAPH_EXEC_H
#define CT_CORE_GRAPH_EXEC_H
/* Parts: graph_execute.c, graph_update.c. */

struct ct_graph_plan;

#include "core/base/exclusive.h"
#include "core/launch/launch.h"
#include "core/stream/event.h"
#include "core/stream/stream.h"
#include "graph.h"

/* A node of an executable graph. The nodes of a child graph follow their GRAPH node. */
struct ct_graph_step {
    struct ct_graph_node *node; /* of the clone; borrowed */
    uint64_t id;                /* of the application's node */
    bool disabled;
};

struct ct_graph_exec {
    struct ct_object object;
    struct ct_graph *graph;
    struct ct_graph_step *steps;
    size_t n_steps;
    uint64_t flags;            /* CUDA_GRAPH_INSTANTIATE_FLAG_* */
    bool has_memory;           /* nodes allocate or free memory */
    struct ct_object **claims; /* references to the allocations of its nodes (graph_memory.h) */
    size_t n_claims;
    struct ct_exclusive use;    /* of the thread that launches or changes the graph */
    struct ct_event *launched;  /* recorded after each launch; NULL: never launched */
    struct ct_graph_plan *plan; /* of the last launch; NULL: the next one makes it (graph_plan.h) */
    /* Those that a launch assigns, and those of the graph, which has one executable graph at a time: an update replaces only the former. Both
     * are references, and NULL if there are none. Bodies have the conditions of the outermost executable graph. */
    struct ct_condition_set *conditions, *claimed;
};

/* Why an executable graph could not be created: the result, and the application's node. */
struct ct_instantiate_result {
    CUgraphInstantiateResult result;
    CUgraphNode node;
};
/* Creates an executable graph with a handle, and compiles its kernels. INVALID_VALUE: unknown flags, the graph has a cycle, or it breaks a rule of graph_conditional.c; NOT_SUPPORTED:
 * CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH, the graph is a child graph, or the graph allocates memory or has conditions, and has an executable graph; errors of the compilation; OUT_OF_MEMORY. *result is always written. */
CUresult ct_graph_instantiate(struct ct_graph *graph, uint64_t flags, CUgraphExec *out, struct ct_instantiate_result *result);
/* INVALID_VALUE: it does not exist; NOT_INITIALIZED. */
CUresult ct_graph_exec_lookup(CUgraphExec handle, struct ct_graph_exec **out);
void ct_graph_exec_release(struct ct_graph_exec *exec);
/* Invalidates the handle. Launches continue; the call waits for them only if the graph holds user objects. */
CUresult ct_graph_exec_destroy(struct ct_graph_exec *exec);

/* Enqueues all nodes in the stream, after the previous launch of the same executable graph. */
CUresult ct_graph_exec_launch(struct ct_graph_exec *exec, struct ct_stream *stream);
/* Does in advance what the next launch in the stream's context would do once. */
CUresult ct_graph_exec_upload(struct ct_graph_exec *exec, struct ct_stream *stream);

/* The step of an application's node, or NULL. The caller has entered. */
struct ct_graph_step *ct_graph_exec_step_or_null(const struct ct_graph_exec *exec, uint64_t id);

/* ---- graph_execute.c ---- */

/* Compiles what the node executes, in its context or the current one. INVALID_VALUE: it has none, and no context is current. */
CUresult ct_node_prepare(const struct ct_node_params *params);
CUresult ct_node_execute(const struct ct_node_params *params, struct ct_stream *stream);

/* ---- graph_update.c ---- */

/* Replaces the parameters of a node by others of the same type, which it takes over on success. INVALID_VALUE: the node is not one of the
 * graph, or of another type. Launches that were enqueued keep the old ones. */
CUresult ct_graph_exec_set_params(struct ct_graph_exec *exec, const struct ct_graph_node *node, struct ct_node_params *params);
/* Replaces the parameters of the nodes of a GRAPH node's graph by those of a graph with the same structure.
 * GRAPH_EXEC_UPDATE_FAILURE: it has another structure; INVALID_VALUE: the node is not a GRAPH node of the graph. */
CUresult ct_graph_exec_set_child(struct ct_graph_exec *exec, const struct ct_graph_node *node, struct ct_graph *graph);
/* Enables or disables a kernel, copy or memset node. INVALID_VALUE: another node. */
CUresult ct_graph_exec_set_enabled(struct ct_graph_exec *exec, const struct ct_graph_node *node, bool enabled);
CUresult ct_graph_exec_get_enabled(struct ct_graph_exec *exec, const struct ct_graph_node *node, bool *out);
/* Takes over the parameters of all nodes of a graph with the same structure. GRAPH_EXEC_UPDATE_FAILURE: *out_result says why, and nothing was
 * changed. */
CUresult ct_graph_exec_update(struct ct_graph_exec *exec, struct ct_graph *graph, CUgraphExecUpdateResultInfo *out_result);

#endif
