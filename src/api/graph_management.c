/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Graph Management: graphs, edges, executable graphs and user objects.
 * Every function: NOT_INITIALIZED; INVALID_VALUE: a handle is not that of a graph, node, executable graph or user object, or a pointer is NULL;
 * OUT_OF_MEMORY. Handles that were destroyed are recognized. The functions may be called by several threads at the same time. */
#include "entry_points.h"

#include "core/base/log.h"
#include "core/base/process.h"
#include "core/graph/capture_state.h"
#include "core/graph/graph_exec.h"

#define CT_CHANNEL "graph"

/* ---- graphs ---- */

/* cuGraphCreate. flags must be 0. */
CUresult CUDAAPI cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
    struct ct_graph *graph;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (!phGraph || flags)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "phGraph is %p, flags are 0x%x", (void *)phGraph, flags);
    r = ct_graph_create(true, &graph);
    if (r == CUDA_SUCCESS)
        *phGraph = graph->object.handle;
    return r;
}

/* cuGraphDestroy. Executable graphs continue to exist. INVALID_VALUE also: the graph belongs to a node. */
CUresult CUDAAPI cuGraphDestroy(CUgraph hGraph)
{
    struct ct_graph *graph;
    CUresult r = ct_graph_lookup(hGraph, &graph);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_graph_destroy(graph);
    ct_graph_release(graph);
    return r;
}

/* cuGraphClone. NOT_SUPPORTED: the graph has conditions or memory, or is the body of a conditional node. */
CUresult CUDAAPI cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
    struct ct_graph *graph, *clone;
    CUresult r = ct_graph_lookup(originalGraph, &graph);

    if (r != CUDA_SUCCESS)
        return r;
    r = phGraphClone ? ct_graph_clone(graph, true, &clone) : ct_fail(CUDA_ERROR_INVALID_VALUE, "phGraphClone is NULL");
    if (r == CUDA_SUCCESS)
        *phGraphClone = clone->object.handle;
    ct_graph_release(graph);
    return r;
}

/* cuGraphNodeFindInClone */
CUresult CUDAAPI cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph)
{
    struct ct_graph_node *node;
    struct ct_graph *clone;
    CUresult r = ct_graph_lookup(hClonedGraph, &clone);

    if (r != CUDA_SUCCESS)
        return r;
    if ((r = ct_graph_node_lookup(hOriginalNode, &node)) == CUDA_SUCCESS) {
        r = phNode ? ct_graph_find_in_clone(node, clone, phNode) : ct_fail(CUDA_ERROR_INVALID_VALUE, "phNode is NULL");
        ct_graph_node_release(node);
    }
    ct_graph_release(clone);
    return r;
}

/* cuGraphDebugDotPrint. flags: CU_GRAPH_DEBUG_DOT_FLAGS_*, which add details to the nodes. OPERATING_SYSTEM: the file cannot be written. */
CUresult CUDAAPI cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags)
{
    struct ct_graph *graph;
    CUresult r = ct_graph_lookup(hGraph, &graph);

    if (r != CUDA_SUCCESS)
        return r;
    r = path ? ct_graph_write_dot(graph, path, flags) : ct_fail(CUDA_ERROR_INVALID_VALUE, "path is NULL");
    ct_graph_release(graph);
    return r;
}

/* cuGraphConditionalHandleCreate. The handle is the address of a word that kernels set by cudaGraphSetConditional; one CONDITIONAL node of the
 * graph, of its child graphs or of bodies reads it. flags: 0, or CU_GRAPH_COND_ASSIGN_DEFAULT: each launch assigns the default; without that
 * the word is 0 first and keeps its value from one launch to the next. INVALID_CONTEXT: ctx is NULL or invalid. */
CUresult CUDAAPI cuGraphConditionalHandleCreate(CUgraphConditionalHandle *pHandle_out, CUgraph hGraph, CUcontext ctx,
                                                unsigned int defaultLaunchValue, unsigned int flags)
{
    struct ct_context *context;
    struct ct_graph *graph;
    CUresult r = ct_graph_lookup(hGraph, &graph);

    if (r != CUDA_SUCCESS)
        return r;
    if (!pHandle_out || flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "pHandle_out is %p, flags are 0x%x", (void *)pHandle_out, flags);
    else if (!ctx)
        r = ct_fail(CUDA_ERROR_INVALID_CONTEXT, "a condition without a context");
    else if ((r = ct_context_lookup(ctx, &context)) == CUDA_SUCCESS) {
        r = ct_condition_create(graph, context, defaultLaunchValue, flags & CU_GRAPH_COND_ASSIGN_DEFAULT, pHandle_out);
        ct_context_release(context);
    }
    ct_graph_release(graph);
    return r;
}

/* ---- nodes ---- */

/* cuGraphNodeGetType */
CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
    struct ct_graph_node *node;
    CUresult r = ct_graph_node_lookup(hNode, &node);

    if (r != CUDA_SUCCESS)
        return r;
    if (type)
        *type = node->params.given.type; /* never changes */
    else
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "type is NULL");
    ct_graph_node_release(node);
    return r;
}

/* cuGraphDestroyNode. The edges of the node are removed, too, and its bodies destroyed. INVALID_VALUE also: the node is in a child graph. */
CUresult CUDAAPI cuGraphDestroyNode(CUgraphNode hNode)
{
    struct ct_graph_node *node;
    CUresult r = ct_graph_node_lookup(hNode, &node);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_graph_remove_node(node);
    ct_graph_node_release(node);
    return r;
}

static CUresult list_nodes(CUgraph handle, bool only_roots, CUgraphNode *nodes, size_t *count)
{
    struct ct_graph *graph;
    CUresult r = ct_graph_lookup(handle, &graph);

    if (r != CUDA_SUCCESS)
        return r;
    r = count ? ct_graph_list_nodes(graph, only_roots, nodes, count) : ct_fail(CUDA_ERROR_INVALID_VALUE, "the number of nodes is NULL");
    ct_graph_release(graph);
    return r;
}

/* cuGraphGetNodes. With nodes NULL, *numNodes receives the number of nodes; otherwise it is the room in the array, of which elements that are
 * not needed become NULL. */
CUresult CUDAAPI cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
    return list_nodes(hGraph, false, nodes, numNodes);
}

/* cuGraphGetRootNodes. As cuGraphGetNodes, for nodes without dependencies. */
CUresult CUDAAPI cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
    return list_nodes(hGraph, true, rootNodes, numRootNodes);
}

/* ---- edges ---- */

/* cuGraphGetEdges_v2. As cuGraphGetNodes, for edges. LOSSY_QUERY: an edge has data, and edgeData is NULL. */
CUresult CUDAAPI cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edgeData, size_t *numEdges)
{
    const struct ct_edge_arrays arrays = {from, to, edgeData, numEdges};
    struct ct_graph *graph;
    CUresult r = ct_graph_lookup(hGraph, &graph);

    if (r != CUDA_SUCCESS)
        return r;
    if (!numEdges || !from != !to || (edgeData && !from))
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "of the arrays of edges only some are NULL");
    else
        r = ct_graph_list_edges(graph, &arrays);
    ct_graph_release(graph);
    return r;
}

/* cuGraphGetEdges */
CUresult CUDAAPI cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges)
{
    return cuGraphGetEdges_v2(hGraph, from, to, NULL, numEdges);
}

static CUresult list_edges_of(CUgraphNode handle, bool dependents, const struct ct_edge_arrays *arrays)
{
    struct ct_graph_node *node;
    CUresult r = ct_graph_node_lookup(handle, &node);

    if (r != CUDA_SUCCESS)
        return r;
    if (!arrays->count || (arrays->data && !arrays->from))
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "of the arrays of edges only some are NULL");
    else
        r = ct_graph_node_list_edges(node, dependents, arrays);
    ct_graph_node_release(node);
    return r;
}

/* cuGraphNodeGetDependencies_v2. As cuGraphGetEdges_v2. */
CUresult CUDAAPI cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies, CUgraphEdgeData *edgeData,
                                               size_t *numDependencies)
{
    return list_edges_of(hNode, false, &(struct ct_edge_arrays){dependencies, NULL, edgeData, numDependencies});
}

/* cuGraphNodeGetDependencies */
CUresult CUDAAPI cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies, size_t *numDependencies)
{
    return cuGraphNodeGetDependencies_v2(hNode, dependencies, NULL, numDependencies);
}

/* cuGraphNodeGetDependentNodes_v2. As cuGraphGetEdges_v2. */
CUresult CUDAAPI cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes, CUgraphEdgeData *edgeData,
                                                 size_t *numDependentNodes)
{
    return list_edges_of(hNode, true, &(struct ct_edge_arrays){dependentNodes, NULL, edgeData, numDependentNodes});
}

/* cuGraphNodeGetDependentNodes */
CUresult CUDAAPI cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes, size_t *numDependentNodes)
{
    return cuGraphNodeGetDependentNodes_v2(hNode, dependentNodes, NULL, numDependentNodes);
}

static CUresult change_edges(CUgraph handle, bool add, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
                             size_t count)
{
    struct ct_graph *graph;
    CUresult r = ct_graph_lookup(handle, &graph);

    if (r != CUDA_SUCCESS)
        return r;
    r = add ? ct_graph_add_edges(graph, from, to, data, count) : ct_graph_remove_edges(graph, from, to, data, count);
    ct_graph_release(graph);
    return r;
}

/* cuGraphAddDependencies_v2. All edges are added, or none. INVALID_VALUE also: an edge exists already. Ports and types of edges are stored, and
 * treated as full dependencies. */
CUresult CUDAAPI cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edgeData,
                                           size_t numDependencies)
{
    return change_edges(hGraph, true, from, to, edgeData, numDependencies);
}

/* cuGraphAddDependencies */
CUresult CUDAAPI cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, size_t numDependencies)
{
    return change_edges(hGraph, true, from, to, NULL, numDependencies);
}

/* cuGraphRemoveDependencies_v2. INVALID_VALUE also: an edge does not exist, or has other data. */
CUresult CUDAAPI cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                              const CUgraphEdgeData *edgeData, size_t numDependencies)
{
    return change_edges(hGraph, false, from, to, edgeData, numDependencies);
}

/* cuGraphRemoveDependencies */
CUresult CUDAAPI cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, size_t numDependencies)
{
    return change_edges(hGraph, false, from, to, NULL, numDependencies);
}

/* ---- executable graphs ---- */

static CUresult instantiate(CUgraphExec *out, CUgraph handle, unsigned long long flags, struct ct_instantiate_result *result)
{
    struct ct_graph *graph;
    CUresult r;

    *result = (struct ct_instantiate_result){.result = CUDA_GRAPH_INSTANTIATE_ERROR};
    if ((r = ct_graph_lookup(handle, &graph)) != CUDA_SUCCESS)
        return r;
    r = out ? ct_graph_instantiate(graph, flags, out, result) : ct_fail(CUDA_ERROR_INVALID_VALUE, "phGraphExec is NULL");
    ct_graph_release(graph);
    return r;
}

/* cuGraphInstantiateWithFlags. The executable graph is a snapshot of the graph; its kernels are compiled now. flags:
 * CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH, _UPLOAD and _USE_NODE_PRIORITY, which have no effect. INVALID_VALUE also: the graph has a
 * cycle, a condition has no node, or a body has a node that it may not have; NOT_SUPPORTED: CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH, a kernel
 * that cannot be compiled, or a graph with conditions or memory has an executable graph already. */
CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
    struct ct_instantiate_result result;

    return instantiate(phGraphExec, hGraph, flags, &result);
}

/* cuGraphInstantiate_v2. Nothing is written to the log buffer except a terminating 0. */
CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
                                       size_t bufferSize)
{
    struct ct_instantiate_result result;
    CUresult r = instantiate(phGraphExec, hGraph, 0, &result);

    if (phErrorNode)
        *phErrorNode = result.node;
    if (logBuffer && bufferSize)
        logBuffer[0] = 0;
    return r;
}

/* cuGraphInstantiate */
CUresult CUDAAPI cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
    return cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

/* cuGraphInstantiateWithParams. As cuGraphInstantiateWithFlags; hErrNode_out and result_out say which node failed and why. */
CUresult CUDAAPI cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    struct ct_instantiate_result result;
    CUresult r;

    if (!instantiateParams)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "instantiateParams is NULL");
    r = instantiate(phGraphExec, hGraph, instantiateParams->flags, &result);
    instantiateParams->result_out = result.result;
    instantiateParams->hErrNode_out = result.node;
    return r;
}

/* cuGraphExecGetFlags. The flags of the instantiation. */
CUresult CUDAAPI cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
    struct ct_graph_exec *exec;
    CUresult r = ct_graph_exec_lookup(hGraphExec, &exec);

    if (r != CUDA_SUCCESS)
        return r;
    if (flags)
        *flags = exec->flags;
    else
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "flags is NULL");
    ct_graph_exec_release(exec);
    return r;
}

/* cuGraphExecDestroy. Launches continue. */
CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    struct ct_graph_exec *exec;
    CUresult r = ct_graph_exec_lookup(hGraphExec, &exec);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_graph_exec_destroy(exec);
    ct_graph_exec_release(exec);
    return r;
}

static CUresult use_in_stream(CUgraphExec handle, CUstream stream_handle, const char *call,
                              CUresult (*use)(struct ct_graph_exec *, struct ct_stream *))
{
    struct ct_graph_exec *exec;
    struct ct_stream *stream;
    CUresult r = ct_graph_exec_lookup(handle, &exec);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_stream_lookup_uncaptured(stream_handle, call, &stream);
    if (r == CUDA_SUCCESS) {
        r = use(exec, stream);
        ct_stream_release(stream);
    }
    ct_graph_exec_release(exec);
    return r;
}

/* cuGraphLaunch. Enqueues the nodes in the stream, after the previous launch of the same executable graph. INVALID_HANDLE: the stream does not
 * exist, or a function, event or array of a node does not exist any more; STREAM_CAPTURE_UNSUPPORTED: the stream is captured. */
CUresult CUDAAPI cuGraphLaunch(CUgraphExec hGraph, CUstream hStream)
{
    return use_in_stream(hGraph, hStream, "cuGraphLaunch", ct_graph_exec_launch);
}

/* cuGraphUpload. Records what the next launch in a stream of the same context replays. Nothing is enqueued in the stream. */
CUresult CUDAAPI cuGraphUpload(CUgraphExec hGraph, CUstream hStream)
{
    return use_in_stream(hGraph, hStream, "cuGraphUpload", ct_graph_exec_upload);
}

/* ---- updates ---- */

static CUresult update(CUgraphExec exec_handle, CUgraph handle, CUgraphExecUpdateResultInfo *out)
{
    struct ct_graph_exec *exec;
    struct ct_graph *graph;
    CUresult r = ct_graph_exec_lookup(exec_handle, &exec);

    *out = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_ERROR};
    if (r != CUDA_SUCCESS)
        return r;
    r = ct_graph_lookup(handle, &graph);
    if (r == CUDA_SUCCESS) {
        r = ct_graph_exec_update(exec, graph, out);
        ct_graph_release(graph);
    }
    ct_graph_exec_release(exec);
    return r;
}

/* cuGraphExecUpdate_v2. The executable graph takes over the parameters of all nodes, and the conditions, of a graph with the same structure: the
 * same nodes, created in the same order, with the same edges and bodies. GRAPH_EXEC_UPDATE_FAILURE: *resultInfo says what differs; nothing was changed. */
CUresult CUDAAPI cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo)
{
    if (!resultInfo)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "resultInfo is NULL");
    return update(hGraphExec, hGraph, resultInfo);
}

/* cuGraphExecUpdate */
CUresult CUDAAPI cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
                                   CUgraphExecUpdateResult *updateResult_out)
{
    CUgraphExecUpdateResultInfo info;
    CUresult r = update(hGraphExec, hGraph, &info);

    if (hErrorNode_out)
        *hErrorNode_out = info.errorNode;
    if (updateResult_out)
        *updateResult_out = info.result;
    return r;
}

static CUresult with_node(CUgraphExec exec_handle, CUgraphNode node_handle,
                          CUresult (*use)(struct ct_graph_exec *, const struct ct_graph_node *, void *), void *user)
{
    struct ct_graph_exec *exec;
    struct ct_graph_node *node;
    CUresult r = ct_graph_exec_lookup(exec_handle, &exec);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_graph_node_lookup(node_handle, &node);
    if (r == CUDA_SUCCESS) {
        r = use(exec, node, user);
        ct_graph_node_release(node);
    }
    ct_graph_exec_release(exec);
    return r;
}

static CUresult set_child(struct ct_graph_exec *exec, const struct ct_graph_node *node, void *graph)
{
    return ct_graph_exec_set_child(exec, node, graph);
}

/* cuGraphExecChildGraphNodeSetParams. The graph must have the structure of the node's graph. */
CUresult CUDAAPI cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph)
{
    struct ct_graph *graph;
    CUresult r = ct_graph_lookup(childGraph, &graph);

    if (r != CUDA_SUCCESS)
        return r;
    r = with_node(hGraphExec, hNode, set_child, graph);
    ct_graph_release(graph);
    return r;
}

static CUresult set_enabled(struct ct_graph_exec *exec, const struct ct_graph_node *node, void *enabled)
{
    return ct_graph_exec_set_enabled(exec, node, *(const unsigned *)enabled != 0);
}

static CUresult get_enabled(struct ct_graph_exec *exec, const struct ct_graph_node *node, void *out)
{
    bool enabled;
    CUresult r = ct_graph_exec_get_enabled(exec, node, &enabled);

    if (r == CUDA_SUCCESS)
        *(unsigned *)out = enabled;
    return r;
}

/* cuGraphNodeSetEnabled. A node that is disabled does nothing until it is enabled again. INVALID_VALUE also: the node is neither a kernel nor a
 * copy nor a memset. */
CUresult CUDAAPI cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled)
{
    return with_node(hGraphExec, hNode, set_enabled, &isEnabled);
}

/* cuGraphNodeGetEnabled */
CUresult CUDAAPI cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int *isEnabled)
{
    if (!isEnabled)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "isEnabled is NULL");
    return with_node(hGraphExec, hNode, get_enabled, isEnabled);
}

/* ---- user objects ---- */

/* cuUserObjectCreate. `destroy` is called when the last reference is released. flags must be CU_USER_OBJECT_NO_DESTRUCTOR_SYNC: calls do not
 * wait for `destroy` in other threads. */
CUresult CUDAAPI cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy, unsigned int initialRefcount, unsigned int flags)
{
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (!object_out || !destroy || initialRefcount == 0 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a user object with %u references and flags 0x%x, or a NULL argument", initialRefcount,
                       flags);
    return ct_user_object_create(destroy, ptr, initialRefcount, object_out);
}

static CUresult change_count(CUuserObject handle, unsigned count, CUresult (*change)(struct ct_user_object *, unsigned))
{
    struct ct_user_object *object;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS || (r = ct_user_object_lookup(handle, &object)) != CUDA_SUCCESS)
        return r;
    r = count ? change(object, count) : ct_fail(CUDA_ERROR_INVALID_VALUE, "0 references");
    ct_user_object_release(object);
    return r;
}

/* cuUserObjectRetain. INVALID_VALUE also: count is 0. */
CUresult CUDAAPI cuUserObjectRetain(CUuserObject object, unsigned int count)
{
    return change_count(object, count, ct_user_object_add);
}

/* cuUserObjectRelease. INVALID_VALUE also: count is 0, or there are fewer references. */
CUresult CUDAAPI cuUserObjectRelease(CUuserObject object, unsigned int count)
{
    return change_count(object, count, ct_user_object_remove);
}

/* Gives the graph references to the object: the caller's (move), or new ones. */
static CUresult give_references(struct ct_graph *graph, struct ct_user_object *object, unsigned count, bool move)
{
    CUresult r = move ? CUDA_SUCCESS : ct_user_object_add(object, count);

    if (r != CUDA_SUCCESS)
        return r;
    ct_graphs_lock();
    r = ct_user_references_note(&graph->users, object, count);
    ct_graphs_unlock();
    if (r != CUDA_SUCCESS && !move)
        (void)ct_user_object_remove(object, count);
    return r;
}

static CUresult take_references(struct ct_graph *graph, struct ct_user_object *object, unsigned count)
{
    CUresult r;

    ct_graphs_lock();
    r = ct_user_references_forget(&graph->users, object, count);
    ct_graphs_unlock();
    return r == CUDA_SUCCESS ? ct_user_object_remove(object, count) : r;
}

struct pair {
    struct ct_graph *graph;
    struct ct_user_object *object;
};

static CUresult look_up_pair(CUgraph graph, CUuserObject object, unsigned count, struct pair *out)
{
    CUresult r = ct_graph_lookup(graph, &out->graph);

    if (r != CUDA_SUCCESS)
        return r;
    r = count ? ct_user_object_lookup(object, &out->object) : ct_fail(CUDA_ERROR_INVALID_VALUE, "0 references");
    if (r != CUDA_SUCCESS)
        ct_graph_release(out->graph);
    return r;
}

static void release_pair(const struct pair *pair)
{
    ct_user_object_release(pair->object);
    ct_graph_release(pair->graph);
}

/* cuGraphRetainUserObject. The graph, its clones and executable graphs hold references. flags: 0, or CU_GRAPH_USER_OBJECT_MOVE: the references
 * of the caller go to the graph. INVALID_VALUE also: count is 0. */
CUresult CUDAAPI cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags)
{
    struct pair pair;
    CUresult r = look_up_pair(graph, object, count, &pair);

    if (r != CUDA_SUCCESS)
        return r;
    if (flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "flags 0x%x", flags);
    else
        r = give_references(pair.graph, pair.object, count, flags == CU_GRAPH_USER_OBJECT_MOVE);
    release_pair(&pair);
    return r;
}

/* cuGraphReleaseUserObject. INVALID_VALUE also: the graph has fewer references. */
CUresult CUDAAPI cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
    struct pair pair;
    CUresult r = look_up_pair(graph, object, count, &pair);

    if (r != CUDA_SUCCESS)
        return r;
    r = take_references(pair.graph, pair.object, count);
    release_pair(&pair);
    return r;
}
