/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: nodes with parameters, and edges between them (Driver API: Graph Management). One lock guards the structure of all graphs; it is
 * never held while a command is enqueued, memory is freed or a kernel is compiled. */
#ifndef CT_CORE_GRAPH_H
#define CT_CORE_GRAPH_H
/* Parts: edges.c, graph_edges.c, graph_clone.c, graph_conditional.c, graph_dot.c. */

#include "branches.h"
#include "core/base/object.h"
#include "node_params.h"
#include "user_object.h"

struct ct_graph;
struct ct_graph_node;

/* One end of an edge. */
struct ct_edge {
    struct ct_graph_node *node;
    CUgraphEdgeData data;
};
struct ct_edges {
    struct ct_edge *list;
    size_t count, capacity;
};

/* The graph holds a reference to each of its nodes. */
struct ct_graph_node {
    struct ct_object object;
    struct ct_graph *graph; /* NULL: the node was destroyed */
    size_t index;           /* in graph->nodes */
    uint64_t id;            /* never reused in the process */
    uint64_t original_id;   /* the id of the node of which this one is a clone; 0: none */
    bool is_changed;        /* a node of an executable graph: its parameters are not those of the plan (graph_plan.h) */
    struct ct_node_params params;
    struct ct_edges dependencies, dependents;
};

struct ct_graph {
    struct ct_object object;
    struct ct_graph_node **nodes; /* in the order of their creation */
    size_t count, capacity;
    struct ct_graph *parent; /* the graph of the node that owns it, or NULL; borrowed */
    bool is_child;           /* owned by a GRAPH or CONDITIONAL node: the application must not destroy it */
    bool is_body;            /* owned by a CONDITIONAL node */
    bool has_memory;         /* nodes allocate or free memory (graph_memory.h): it loses neither nodes nor edges, and has no clones */
    bool is_captured;        /* a capture adds nodes to it (capture.h): neither it nor its nodes can be destroyed */
    uint64_t id;
    struct ct_user_references users;
    struct ct_condition_set *conditions; /* of the outermost graph; NULL: none was created. A reference */
};

/* The graph of a GRAPH node, which is its child; NULL for other types. */
static inline struct ct_graph *ct_node_child_or_null(const struct ct_graph_node *node)
{
    return (struct ct_graph *)node->params.child;
}

/* The bodies of a CONDITIONAL node; NULL for other types. */
static inline struct ct_branches *ct_node_branches_or_null(const struct ct_graph_node *node)
{
    return (struct ct_branches *)node->params.branches;
}

/* The graphs that a node owns: its child, or its bodies. */
static inline size_t ct_node_graph_count(const struct ct_node_params *params)
{
    return params->child ? 1 : params->branches ? ((const struct ct_branches *)params->branches)->count : 0;
}

static inline struct ct_graph *ct_node_graph(const struct ct_node_params *params, size_t i)
{
    return params->child ? (struct ct_graph *)params->child : ((const struct ct_branches *)params->branches)->graphs[i];
}

bool ct_graph_is_child(const struct ct_graph *graph);
/* With the lock held: the outermost graph that contains it. */
static inline struct ct_graph *ct_graph_root_locked(struct ct_graph *graph)
{
    while (graph->parent)
        graph = graph->parent;
    return graph;
}

/* The lock of all graphs' structure. */
void ct_graphs_lock(void);
void ct_graphs_unlock(void);

/* Creates a graph, with a handle if `publish`. OUT_OF_MEMORY. */
CUresult ct_graph_create(bool publish, struct ct_graph **out);
/* Invalidates the graph's handle and releases the reference of its owner. With the last reference, its nodes are destroyed. The caller holds no
 * lock. INVALID_VALUE: a node owns the graph, or it was destroyed already; ILLEGAL_STATE: a capture adds nodes to it. */
CUresult ct_graph_destroy(struct ct_graph *graph);
/* The same for a graph that the application has not seen, or whose handle is invalid already. */
void ct_graph_discard(struct ct_graph *graph);
/* The graph or node of a handle, retained. INVALID_VALUE: it does not exist; NOT_INITIALIZED. */
CUresult ct_graph_lookup(CUgraph handle, struct ct_graph **out);
CUresult ct_graph_node_lookup(CUgraphNode handle, struct ct_graph_node **out);
/* With the lock held: the node of a handle, borrowed from the graph; NULL: it is not in the graph. */
struct ct_graph_node *ct_graph_node_or_null_locked(const struct ct_graph *graph, CUgraphNode handle);
void ct_graph_release(struct ct_graph *graph);          /* takes NULL */
void ct_graph_node_release(struct ct_graph_node *node); /* takes NULL */

/* The nodes on which a new node depends; edge_data may be NULL. */
struct ct_dependencies {
    const CUgraphNode *nodes;
    const CUgraphEdgeData *edge_data;
    size_t count;
};
/* Adds a node. It takes over `params` on success. INVALID_VALUE: a dependency is not a node of the graph, or is listed twice; the
 * graph would contain itself. */
CUresult ct_graph_add_node(struct ct_graph *graph, const struct ct_dependencies *dependencies, struct ct_node_params *params,
                           CUgraphNode *out);
/* Removes the node and its edges, and invalidates its handle. INVALID_VALUE: it was removed already, or is in a child graph; ILLEGAL_STATE: a
 * capture adds nodes to the graph; NOT_SUPPORTED: the graph has memory nodes. */
CUresult ct_graph_remove_node(struct ct_graph_node *node);
/* The parameters of a node. INVALID_VALUE: it does not exist, or is of another type. */
CUresult ct_graph_node_params(CUgraphNode handle, CUgraphNodeType type, CUgraphNodeParams *out);
/* Replaces the parameters of a node by others of the same type, which it takes over on success. INVALID_VALUE: another type. */
CUresult ct_graph_node_set_params(struct ct_graph_node *node, struct ct_node_params *params);

/* ---- edges.c: with the lock held ---- */

struct ct_edge *ct_edge_find_or_null(const struct ct_graph_node *from, const struct ct_graph_node *to);
/* OUT_OF_MEMORY; INVALID_VALUE: the edge exists. */
CUresult ct_edge_add_locked(struct ct_graph_node *from, struct ct_graph_node *to, const CUgraphEdgeData *data_or_null);
void ct_edge_remove_locked(struct ct_graph_node *from, struct ct_graph_node *to);
void ct_edges_remove_all_locked(struct ct_graph_node *node);

/* ---- graph_edges.c ---- */

/* Adds or removes `count` edges, all or none. INVALID_VALUE: a node is not in the graph; an edge exists already, or does not exist. */
CUresult ct_graph_add_edges(struct ct_graph *graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
                            size_t count);
CUresult ct_graph_remove_edges(struct ct_graph *graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
                               size_t count);

/* Arrays of the application with room for *count elements, any of which may be NULL. With all NULL, *count receives the number of elements.
 * Otherwise they are filled, the rest with zeros, and *count receives how many are filled. */
struct ct_edge_arrays {
    CUgraphNode *from, *to;
    CUgraphEdgeData *data; /* NULL: INVALID_VALUE if an edge has data other than zeros (LOSSY_QUERY as in CUDA) */
    size_t *count;
};
CUresult ct_graph_list_edges(struct ct_graph *graph, const struct ct_edge_arrays *out);
CUresult ct_graph_node_list_edges(struct ct_graph_node *node, bool dependents, const struct ct_edge_arrays *out);
CUresult ct_graph_list_nodes(struct ct_graph *graph, bool only_roots, CUgraphNode *nodes, size_t *count);
/* Sorts the nodes such that each follows its dependencies; nodes without an order between them stay in the order of their creation. `out` has
 * room for all nodes. False: the graph has a cycle. */
bool ct_graph_sort_locked(const struct ct_graph *graph, struct ct_graph_node **out);

/* Sets the elements of `marks`, one for each node of the graph, for the nodes and all on which they depend. Handles of other nodes are ignored.
 * False: out of memory. */
bool ct_graph_mark_ancestors_locked(const struct ct_graph *graph, const CUgraphNode *nodes, size_t count, bool *marks);

/* ---- graph_clone.c ---- */

/* As ct_node_params_init; a GRAPH node gets a clone of its graph, or the graph itself (CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE). NOT_SUPPORTED: a node owns
 * the graph already, or it has memory nodes and would be cloned. */
CUresult ct_graph_params_init(struct ct_node_params *out, const CUgraphNodeParams *params);
/* Finishes the parameters of a node that was not added; a graph that was moved belongs to the application again. */
void ct_graph_params_undo(struct ct_node_params *params);
/* Copies nodes, edges, child graphs and references to user objects. `publish`: the clone and its nodes get handles. NOT_SUPPORTED: it would be published, and the graph has
 * memory nodes or conditions, or is a body; OUT_OF_MEMORY. */
CUresult ct_graph_clone(struct ct_graph *graph, bool publish, struct ct_graph **out);
/* With the lock held: appends a node without parameters. OUT_OF_MEMORY. */
CUresult ct_graph_append_locked(struct ct_graph *graph, bool publish, struct ct_graph_node **out);
/* The handle of the clone's node of which `node` is the original. INVALID_VALUE: there is none. */
CUresult ct_graph_find_in_clone(const struct ct_graph_node *node, const struct ct_graph *clone, CUgraphNode *out);

/* ---- branches.c ---- */

/* For the parameters of a CONDITIONAL node that is about to be added: finds its condition, and creates its bodies. A no-op for other types.
 * INVALID_VALUE: the graph has no such condition, or it belongs to another context; OUT_OF_MEMORY. */
CUresult ct_graph_branches_attach(struct ct_graph *graph, struct ct_node_params *params);

/* ---- graph_conditional.c ---- */

/* With the lock held: whether a node may have the condition. INVALID_VALUE: another node has it. */
CUresult ct_graph_check_condition_locked(struct ct_graph *graph, const struct ct_node_params *params);
/* With the lock held: whether the graph contains CONDITIONAL nodes, at any level. */
bool ct_graph_is_conditional_locked(const struct ct_graph *graph);
/* With the lock held, for the instantiation: whether all conditions have nodes, and bodies only nodes that they may have. INVALID_VALUE:
 * *out_result says why, and *out_node which node is not allowed. */
CUresult ct_graph_check_conditions_locked(const struct ct_graph *graph, CUgraphInstantiateResult *out_result, CUgraphNode *out_node);

/* ---- graph_dot.c ---- */

/* Writes the graph in the DOT language; flags: CU_GRAPH_DEBUG_DOT_FLAGS_*. OPERATING_SYSTEM: the file cannot be written. */
CUresult ct_graph_write_dot(struct ct_graph *graph, const char *path, unsigned flags);

#endif
