/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Graph Management: nodes and their parameters.
 * Every function: NOT_INITIALIZED; INVALID_VALUE: a handle is not that of a graph or node, a node has another type, a pointer is NULL, a
 * dependency is not in the graph or is listed twice, or the parameters are invalid (as those of the function that does the same in a stream);
 * OUT_OF_MEMORY. Parameters are copied. Functions of older versions of CUDA differ only in their structs. */
#include "entry_points.h"

#include "core/base/log.h"
#include "core/graph/graph_memory.h"

#include <string.h>

#define CT_CHANNEL "graph"

/* ---- any type ---- */

static CUresult add_to_graph(CUgraphNode *out, struct ct_graph *graph, const struct ct_dependencies *dependencies, CUgraphNodeParams *given)
{
    struct ct_node_params params;
    CUresult r = ct_graph_params_init(&params, given);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_graph_memory_attach(graph, dependencies, &params);
    if (r == CUDA_SUCCESS)
        r = ct_graph_branches_attach(graph, &params);
    if (r == CUDA_SUCCESS) {
        if (given->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
            given->alloc.dptr = params.given.alloc.dptr;
        if (given->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
            given->conditional.phGraph_out = params.given.conditional.phGraph_out;
        if ((r = ct_graph_add_node(graph, dependencies, &params, out)) != CUDA_SUCCESS)
            ct_graph_memory_detach(&params);
    }
    if (r != CUDA_SUCCESS)
        ct_graph_params_undo(&params);
    return r;
}

/* given->alloc.dptr receives the address of memory that the node allocates, given->conditional.phGraph_out the bodies of the node. */
static CUresult add_any_node(CUgraphNode *out, CUgraph handle, const struct ct_dependencies *dependencies, CUgraphNodeParams *given)
{
    struct ct_graph *graph;
    CUresult r = ct_graph_lookup(handle, &graph);

    if (r != CUDA_SUCCESS)
        return r;
    r = out ? add_to_graph(out, graph, dependencies, given) : ct_fail(CUDA_ERROR_INVALID_VALUE, "phGraphNode is NULL");
    ct_graph_release(graph);
    return r;
}

static CUresult add_node(CUgraphNode *out, CUgraph handle, const struct ct_dependencies *dependencies, CUgraphNodeParams given)
{
    return add_any_node(out, handle, dependencies, &given);
}

static CUresult check_settable(const CUgraphNodeParams *given)
{
    if (given->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "the parameters of a conditional node cannot be changed");
    return ct_node_type_has_memory(given->type)
               ? ct_fail(CUDA_ERROR_INVALID_VALUE, "the parameters of a %s node cannot be changed", ct_node_type_name(given->type))
               : CUDA_SUCCESS;
}

static CUresult set_params(CUgraphNode handle, CUgraphNodeParams given)
{
    struct ct_node_params params;
    struct ct_graph_node *node;
    CUresult r = check_settable(&given);

    if (r != CUDA_SUCCESS || (r = ct_graph_node_lookup(handle, &node)) != CUDA_SUCCESS)
        return r;
    if ((r = ct_graph_params_init(&params, &given)) == CUDA_SUCCESS && (r = ct_graph_node_set_params(node, &params)) != CUDA_SUCCESS)
        ct_graph_params_undo(&params);
    ct_graph_node_release(node);
    return r;
}

static CUresult set_params_in(struct ct_graph_exec *exec, CUgraphNode handle, CUgraphNodeParams given)
{
    struct ct_node_params params;
    struct ct_graph_node *node;
    CUresult r = check_settable(&given);

    if (r == CUDA_SUCCESS && given.type == CU_GRAPH_NODE_TYPE_GRAPH && given.graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "a graph cannot be moved into an executable graph");
    if (r != CUDA_SUCCESS || (r = ct_graph_node_lookup(handle, &node)) != CUDA_SUCCESS)
        return r;
    if ((r = ct_graph_params_init(&params, &given)) == CUDA_SUCCESS && (r = ct_graph_exec_set_params(exec, node, &params)) != CUDA_SUCCESS)
        ct_node_params_finish(&params);
    ct_graph_node_release(node);
    return r;
}

static CUresult set_exec_params(CUgraphExec exec_handle, CUgraphNode handle, CUgraphNodeParams given)
{
    struct ct_graph_exec *exec;
    CUresult r = ct_graph_exec_lookup(exec_handle, &exec);

    if (r != CUDA_SUCCESS)
        return r;
    r = set_params_in(exec, handle, given);
    ct_graph_exec_release(exec);
    return r;
}

/* Reads the parameters of a node of that type. `is_valid`: the caller has a place for them. */
static CUresult get_params(CUgraphNode handle, CUgraphNodeType type, bool is_valid, CUgraphNodeParams *out)
{
    CUresult r = ct_graph_node_params(handle, type, out);

    return r == CUDA_SUCCESS && !is_valid ? ct_fail(CUDA_ERROR_INVALID_VALUE, "the place for the parameters is NULL") : r;
}

/* Calls a function with parameters that were converted to CUgraphNodeParams; NULL is not accepted. */
#define WITH_PARAMS(given, call) ((given) ? (call) : ct_fail(CUDA_ERROR_INVALID_VALUE, "the parameters of a node are NULL"))
#define DEPENDENCIES (&(struct ct_dependencies){dependencies, NULL, numDependencies})

/* cuGraphAddNode_v2. The only function that adds CONDITIONAL nodes: INVALID_VALUE also: the graph, or the one that contains it, has no such
 * condition, another node has it, or the number of bodies; INVALID_CONTEXT: ctx is NULL. */
CUresult CUDAAPI cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                   const CUgraphEdgeData *dependencyData, size_t numDependencies, CUgraphNodeParams *nodeParams)
{
    const struct ct_dependencies all = {dependencies, dependencyData, numDependencies};

    return WITH_PARAMS(nodeParams, add_any_node(phGraphNode, hGraph, &all, nodeParams));
}

/* cuGraphAddNode */
CUresult CUDAAPI cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                                CUgraphNodeParams *nodeParams)
{
    return WITH_PARAMS(nodeParams, add_any_node(phGraphNode, hGraph, DEPENDENCIES, nodeParams));
}

/* cuGraphNodeSetParams */
CUresult CUDAAPI cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
    return WITH_PARAMS(nodeParams, set_params(hNode, *nodeParams));
}

/* cuGraphExecNodeSetParams */
CUresult CUDAAPI cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
    return WITH_PARAMS(nodeParams, set_exec_params(hGraphExec, hNode, *nodeParams));
}

/* ---- kernels ---- */

static CUgraphNodeParams of_kernel_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

    memcpy(&params.kernel, p, sizeof *p); /* the later structs begin with the members of this one */
    return params;
}

static CUgraphNodeParams of_kernel(const CUDA_KERNEL_NODE_PARAMS *p)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

    _Static_assert(sizeof *p == sizeof params.kernel, "the struct of version 2 is that of version 3");
    memcpy(&params.kernel, p, sizeof *p);
    return params;
}

/* cuGraphAddKernelNode_v2 */
CUresult CUDAAPI cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                                         const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    return WITH_PARAMS(nodeParams, add_node(phGraphNode, hGraph, DEPENDENCIES, of_kernel(nodeParams)));
}

/* cuGraphAddKernelNode */
CUresult CUDAAPI cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                                      const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    return WITH_PARAMS(nodeParams, add_node(phGraphNode, hGraph, DEPENDENCIES, of_kernel_v1(nodeParams)));
}

/* cuGraphKernelNodeGetParams_v2. The pointers refer to memory of the node, which the application may not change. */
CUresult CUDAAPI cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    CUgraphNodeParams params;
    CUresult r = get_params(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, &params);

    if (r == CUDA_SUCCESS)
        memcpy(nodeParams, &params.kernel, sizeof *nodeParams);
    return r;
}

/* cuGraphKernelNodeGetParams */
CUresult CUDAAPI cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    CUgraphNodeParams params;
    CUresult r = get_params(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, &params);

    if (r == CUDA_SUCCESS)
        memcpy(nodeParams, &params.kernel, sizeof *nodeParams);
    return r;
}

/* cuGraphKernelNodeSetParams_v2 */
CUresult CUDAAPI cuGraphKernelNodeSetParams_v2(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    return WITH_PARAMS(nodeParams, set_params(hNode, of_kernel(nodeParams)));
}

/* cuGraphKernelNodeSetParams */
CUresult CUDAAPI cuGraphKernelNodeSetParams(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    return WITH_PARAMS(nodeParams, set_params(hNode, of_kernel_v1(nodeParams)));
}

/* cuGraphExecKernelNodeSetParams_v2 */
CUresult CUDAAPI cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    return WITH_PARAMS(nodeParams, set_exec_params(hGraphExec, hNode, of_kernel(nodeParams)));
}

/* cuGraphExecKernelNodeSetParams */
CUresult CUDAAPI cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    return WITH_PARAMS(nodeParams, set_exec_params(hGraphExec, hNode, of_kernel_v1(nodeParams)));
}

/* Looks up a kernel node and calls a function with its parameters, with the lock of graphs held. */
static CUresult with_kernel(CUgraphNode handle, CUresult (*use)(struct ct_node_params *, void *), void *user)
{
    struct ct_graph_node *node;
    CUresult r = ct_graph_node_lookup(handle, &node);

    if (r != CUDA_SUCCESS)
        return r;
    ct_graphs_lock();
    r = node->params.given.type == CU_GRAPH_NODE_TYPE_KERNEL
            ? use(&node->params, user)
            : ct_fail(CUDA_ERROR_INVALID_VALUE, "a %s node, not a KERNEL node", ct_node_type_name(node->params.given.type));
    ct_graphs_unlock();
    ct_graph_node_release(node);
    return r;
}

struct attribute_query {
    CUkernelNodeAttrID id;
    CUkernelNodeAttrValue *out;
};

static CUresult get_attribute(struct ct_node_params *params, void *query)
{
    const struct attribute_query *q = query;

    return ct_node_params_get_attribute(params, q->id, q->out);
}

static CUresult set_attribute(struct ct_node_params *params, void *attribute)
{
    return ct_node_params_set_attribute(params, attribute);
}

/* Copies the attributes to parameters of the caller's own, without the arguments. */
static CUresult read_attributes(struct ct_node_params *params, void *out)
{
    return ct_node_params_copy_attributes(out, params);
}

static CUresult write_attributes(struct ct_node_params *params, void *from)
{
    return ct_node_params_copy_attributes(params, from);
}

/* cuGraphKernelNodeGetAttribute. Attributes that were not set are 0. */
CUresult CUDAAPI cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, CUkernelNodeAttrValue *value_out)
{
    if (!value_out)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "value_out is NULL");
    return with_kernel(hNode, get_attribute, &(struct attribute_query){attr, value_out});
}

/* cuGraphKernelNodeSetAttribute. CU_LAUNCH_ATTRIBUTE_COOPERATIVE and CLUSTER_DIMENSION have an effect; others are hints, as in
 * cuLaunchKernelEx. NOT_SUPPORTED: nodes that kernels update. */
CUresult CUDAAPI cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue *value)
{
    if (!value)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "value is NULL");
    return with_kernel(hNode, set_attribute, &(CUlaunchAttribute){.id = attr, .value = *value});
}

/* cuGraphKernelNodeCopyAttributes */
CUresult CUDAAPI cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
    struct ct_node_params copies = {.attributes = NULL};
    CUresult r = with_kernel(src, read_attributes, &copies);

    if (r == CUDA_SUCCESS)
        r = with_kernel(dst, write_attributes, &copies);
    ct_node_params_finish(&copies);
    return r;
}

/* ---- copies ---- */

static CUgraphNodeParams of_memcpy(const CUDA_MEMCPY3D *p, CUcontext context)
{
    return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEMCPY, .memcpy = {.copyCtx = context, .copyParams = *p}};
}

/* cuGraphAddMemcpyNode */
CUresult CUDAAPI cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                                      const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    return WITH_PARAMS(copyParams, add_node(phGraphNode, hGraph, DEPENDENCIES, of_memcpy(copyParams, ctx)));
}

/* cuGraphMemcpyNodeGetParams */
CUresult CUDAAPI cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
{
    CUgraphNodeParams params;
    CUresult r = get_params(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, nodeParams, &params);

    if (r == CUDA_SUCCESS)
        *nodeParams = params.memcpy.copyParams;
    return r;
}

/* The context of a node that gets new parameters without one. */
static CUcontext context_of(CUgraphNode handle)
{
    struct ct_graph_node *node;
    CUcontext context = NULL;

    if (ct_graph_node_lookup(handle, &node) != CUDA_SUCCESS)
        return NULL;
    ct_graphs_lock();
    if (node->params.given.type == CU_GRAPH_NODE_TYPE_MEMCPY)
        context = node->params.given.memcpy.copyCtx;
    else if (node->params.given.type == CU_GRAPH_NODE_TYPE_MEMSET)
        context = node->params.given.memset.ctx;
    ct_graphs_unlock();
    ct_graph_node_release(node);
    return context;
}

/* cuGraphMemcpyNodeSetParams */
CUresult CUDAAPI cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
    return WITH_PARAMS(nodeParams, set_params(hNode, of_memcpy(nodeParams, context_of(hNode))));
}

/* cuGraphExecMemcpyNodeSetParams */
CUresult CUDAAPI cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    return WITH_PARAMS(copyParams, set_exec_params(hGraphExec, hNode, of_memcpy(copyParams, ctx)));
}

/* ---- memset ---- */

static CUgraphNodeParams of_memset(const CUDA_MEMSET_NODE_PARAMS *p, CUcontext context)
{
    return (CUgraphNodeParams){
        .type = CU_GRAPH_NODE_TYPE_MEMSET,
        .memset = {p->dst, p->pitch, p->value, p->elementSize, p->width, p->height, context},
    };
}

/* cuGraphAddMemsetNode. Width and height are in elements, the pitch is in bytes. */
CUresult CUDAAPI cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                                      const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
    return WITH_PARAMS(memsetParams, add_node(phGraphNode, hGraph, DEPENDENCIES, of_memset(memsetParams, ctx)));
}

/* cuGraphMemsetNodeGetParams */
CUresult CUDAAPI cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
    CUgraphNodeParams params;
    CUresult r = get_params(hNode, CU_GRAPH_NODE_TYPE_MEMSET, nodeParams, &params);

    if (r == CUDA_SUCCESS)
        memcpy(nodeParams, &params.memset, sizeof *nodeParams); /* the later struct begins with the members of this one */
    return r;
}

/* cuGraphMemsetNodeSetParams */
CUresult CUDAAPI cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
    return WITH_PARAMS(nodeParams, set_params(hNode, of_memset(nodeParams, context_of(hNode))));
}

/* cuGraphExecMemsetNodeSetParams */
CUresult CUDAAPI cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *memsetParams,
                                                CUcontext ctx)
{
    return WITH_PARAMS(memsetParams, set_exec_params(hGraphExec, hNode, of_memset(memsetParams, ctx)));
}

/* ---- host functions ---- */

static CUgraphNodeParams of_host(const CUDA_HOST_NODE_PARAMS *p)
{
    return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_HOST, .host = {p->fn, p->userData}};
}

/* cuGraphAddHostNode */
CUresult CUDAAPI cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                                    const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    return WITH_PARAMS(nodeParams, add_node(phGraphNode, hGraph, DEPENDENCIES, of_host(nodeParams)));
}

/* cuGraphHostNodeGetParams */
CUresult CUDAAPI cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams)
{
    CUgraphNodeParams params;
    CUresult r = get_params(hNode, CU_GRAPH_NODE_TYPE_HOST, nodeParams, &params);

    if (r == CUDA_SUCCESS)
        *nodeParams = (CUDA_HOST_NODE_PARAMS){params.host.fn, params.host.userData};
    return r;
}

/* cuGraphHostNodeSetParams */
CUresult CUDAAPI cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    return WITH_PARAMS(nodeParams, set_params(hNode, of_host(nodeParams)));
}

/* cuGraphExecHostNodeSetParams */
CUresult CUDAAPI cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    return WITH_PARAMS(nodeParams, set_exec_params(hGraphExec, hNode, of_host(nodeParams)));
}

/* ---- child graphs, and nodes without work ---- */

static CUgraphNodeParams of_child(CUgraph child)
{
    return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE}};
}

/* cuGraphAddChildGraphNode. The node gets a clone of the graph. */
CUresult CUDAAPI cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                                          CUgraph childGraph)
{
    return add_node(phGraphNode, hGraph, DEPENDENCIES, of_child(childGraph));
}

/* cuGraphChildGraphNodeGetGraph. The graph belongs to the node; changes of it are changes of the node. */
CUresult CUDAAPI cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
    CUgraphNodeParams params;
    CUresult r = get_params(hNode, CU_GRAPH_NODE_TYPE_GRAPH, phGraph, &params);

    if (r == CUDA_SUCCESS)
        *phGraph = params.graph.graph;
    return r;
}

/* cuGraphAddEmptyNode. A node that does nothing, to which many others can be ordered with few edges. */
CUresult CUDAAPI cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies)
{
    return add_node(phGraphNode, hGraph, DEPENDENCIES, (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EMPTY});
}

/* ---- events ---- */

static CUgraphNodeParams of_record(CUevent event)
{
    return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {event}};
}

static CUgraphNodeParams of_wait(CUevent event)
{
    return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {event}};
}

/* cuGraphAddEventRecordNode. INVALID_HANDLE: the event does not exist. */
CUresult CUDAAPI cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                           size_t numDependencies, CUevent event)
{
    return add_node(phGraphNode, hGraph, DEPENDENCIES, of_record(event));
}

/* cuGraphEventRecordNodeGetEvent */
CUresult CUDAAPI cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
    CUgraphNodeParams params;
    CUresult r = get_params(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_out, &params);

    if (r == CUDA_SUCCESS)
        *event_out = params.eventRecord.event;
    return r;
}

/* cuGraphEventRecordNodeSetEvent. INVALID_HANDLE: the event does not exist. */
CUresult CUDAAPI cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event)
{
    return set_params(hNode, of_record(event));
}

/* cuGraphExecEventRecordNodeSetEvent. INVALID_HANDLE: the event does not exist. */
CUresult CUDAAPI cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)
{
    return set_exec_params(hGraphExec, hNode, of_record(event));
}

/* cuGraphAddEventWaitNode. The node waits for the last record of the event when the graph is launched. INVALID_HANDLE: the event does not
 * exist. */
CUresult CUDAAPI cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                                         CUevent event)
{
    return add_node(phGraphNode, hGraph, DEPENDENCIES, of_wait(event));
}

/* cuGraphEventWaitNodeGetEvent */
CUresult CUDAAPI cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
    CUgraphNodeParams params;
    CUresult r = get_params(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_out, &params);

    if (r == CUDA_SUCCESS)
        *event_out = params.eventWait.event;
    return r;
}

/* cuGraphEventWaitNodeSetEvent. INVALID_HANDLE: the event does not exist. */
CUresult CUDAAPI cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event)
{
    return set_params(hNode, of_wait(event));
}

/* cuGraphExecEventWaitNodeSetEvent. INVALID_HANDLE: the event does not exist. */
CUresult CUDAAPI cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)
{
    return set_exec_params(hGraphExec, hNode, of_wait(event));
}

/* ---- signals of external semaphores ---- */

static CUgraphNodeParams of_signals(const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *p)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL};

    _Static_assert(sizeof *p == sizeof params.extSemSignal, "the struct of version 1 is that of version 2");
    memcpy(&params.extSemSignal, p, sizeof *p);
    return params;
}

/* cuGraphAddExternalSemaphoresSignalNode. The semaphores are looked up when the node is executed. */
CUresult CUDAAPI cuGraphAddExternalSemaphoresSignalNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                                        size_t numDependencies, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *nodeParams)
{
    return WITH_PARAMS(nodeParams, add_node(phGraphNode, hGraph, DEPENDENCIES, of_signals(nodeParams)));
}

/* cuGraphExternalSemaphoresSignalNodeGetParams. The arrays are memory of the node, which the application may not change. */
CUresult CUDAAPI cuGraphExternalSemaphoresSignalNodeGetParams(CUgraphNode hNode, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *params_out)
{
    CUgraphNodeParams params;
    CUresult r = get_params(hNode, CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL, params_out, &params);

    if (r == CUDA_SUCCESS)
        memcpy(params_out, &params.extSemSignal, sizeof *params_out);
    return r;
}

/* cuGraphExternalSemaphoresSignalNodeSetParams */
CUresult CUDAAPI cuGraphExternalSemaphoresSignalNodeSetParams(CUgraphNode hNode, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *nodeParams)
{
    return WITH_PARAMS(nodeParams, set_params(hNode, of_signals(nodeParams)));
}

/* cuGraphExecExternalSemaphoresSignalNodeSetParams */
CUresult CUDAAPI cuGraphExecExternalSemaphoresSignalNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                                  const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *nodeParams)
{
    return WITH_PARAMS(nodeParams, set_exec_params(hGraphExec, hNode, of_signals(nodeParams)));
}

/* ---- waits for external semaphores ---- */

static CUgraphNodeParams of_waits(const CUDA_EXT_SEM_WAIT_NODE_PARAMS *p)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT};

    _Static_assert(sizeof *p == sizeof params.extSemWait, "the struct of version 1 is that of version 2");
    memcpy(&params.extSemWait, p, sizeof *p);
    return params;
}

/* cuGraphAddExternalSemaphoresWaitNode. The semaphores are looked up when the node is executed. */
CUresult CUDAAPI cuGraphAddExternalSemaphoresWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                                      size_t numDependencies, const CUDA_EXT_SEM_WAIT_NODE_PARAMS *nodeParams)
{
    return WITH_PARAMS(nodeParams, add_node(phGraphNode, hGraph, DEPENDENCIES, of_waits(nodeParams)));
}

/* cuGraphExternalSemaphoresWaitNodeGetParams. The arrays are memory of the node, which the application may not change. */
CUresult CUDAAPI cuGraphExternalSemaphoresWaitNodeGetParams(CUgraphNode hNode, CUDA_EXT_SEM_WAIT_NODE_PARAMS *params_out)
{
    CUgraphNodeParams params;
    CUresult r = get_params(hNode, CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT, params_out, &params);

    if (r == CUDA_SUCCESS)
        memcpy(params_out, &params.extSemWait, sizeof *params_out);
    return r;
}

/* cuGraphExternalSemaphoresWaitNodeSetParams */
CUresult CUDAAPI cuGraphExternalSemaphoresWaitNodeSetParams(CUgraphNode hNode, const CUDA_EXT_SEM_WAIT_NODE_PARAMS *nodeParams)
{
    return WITH_PARAMS(nodeParams, set_params(hNode, of_waits(nodeParams)));
}

/* cuGraphExecExternalSemaphoresWaitNodeSetParams */
CUresult CUDAAPI cuGraphExecExternalSemaphoresWaitNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                                const CUDA_EXT_SEM_WAIT_NODE_PARAMS *nodeParams)
{
    return WITH_PARAMS(nodeParams, set_exec_params(hGraphExec, hNode, of_waits(nodeParams)));
}

/* ---- batches of memory operations ---- */

static CUgraphNodeParams of_operations(const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};

    _Static_assert(sizeof *p == sizeof params.memOp, "the struct of version 1 is that of version 2");
    memcpy(&params.memOp, p, sizeof *p);
    return params;
}

/* cuGraphAddBatchMemOpNode. As cuStreamBatchMemOp. */
CUresult CUDAAPI cuGraphAddBatchMemOpNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                                          const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    return WITH_PARAMS(nodeParams, add_node(phGraphNode, hGraph, DEPENDENCIES, of_operations(nodeParams)));
}

/* cuGraphBatchMemOpNodeGetParams. The arrays are memory of the node, which the application may not change. */
CUresult CUDAAPI cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode, CUDA_BATCH_MEM_OP_NODE_PARAMS *params_out)
{
    CUgraphNodeParams params;
    CUresult r = get_params(hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, params_out, &params);

    if (r == CUDA_SUCCESS)
        memcpy(params_out, &params.memOp, sizeof *params_out);
    return r;
}

/* cuGraphBatchMemOpNodeSetParams */
CUresult CUDAAPI cuGraphBatchMemOpNodeSetParams(CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    return WITH_PARAMS(nodeParams, set_params(hNode, of_operations(nodeParams)));
}

/* cuGraphExecBatchMemOpNodeSetParams */
CUresult CUDAAPI cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                    const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    return WITH_PARAMS(nodeParams, set_exec_params(hGraphExec, hNode, of_operations(nodeParams)));
}
