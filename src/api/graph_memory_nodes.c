/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Graph Management: nodes that allocate and free memory, and the memory of graphs (core/graph/graph_memory.h). Sizes are in bytes.
 * Every function: NOT_INITIALIZED; INVALID_VALUE: a pointer is NULL. */
#include "entry_points.h"

#include "core/base/log.h"
#include "core/device/device.h"
#include "core/graph/graph.h"
#include "core/pool/kept_block.h"

#define CT_CHANNEL "graph"

/* cuGraphAddMemAllocNode. nodeParams->dptr receives the address. INVALID_VALUE: the size is 0, a device or a type of memory that does not exist;
 * NOT_SUPPORTED: memory that is not on a device, is shared with other processes or accessible to other devices; OUT_OF_MEMORY; and the errors of
 * cuGraphAddNode. */
CUresult CUDAAPI cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                                        CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    CUresult r;

    if (!nodeParams)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "nodeParams is NULL");
    params.alloc = (CUDA_MEM_ALLOC_NODE_PARAMS_v2){.poolProps = nodeParams->poolProps,
                                                   .accessDescs = nodeParams->accessDescs,
                                                   .accessDescCount = nodeParams->accessDescCount,
                                                   .bytesize = nodeParams->bytesize};
    r = cuGraphAddNode(phGraphNode, hGraph, dependencies, numDependencies, &params);
    if (r == CUDA_SUCCESS)
        nodeParams->dptr = params.alloc.dptr;
    return r;
}

/* cuGraphAddMemFreeNode. INVALID_VALUE: no graph allocates memory at dptr, or a node frees it already; and the errors of cuGraphAddNode. */
CUresult CUDAAPI cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                                       CUdeviceptr dptr)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free.dptr = dptr};

    return cuGraphAddNode(phGraphNode, hGraph, dependencies, numDependencies, &params);
}

/* cuGraphMemAllocNodeGetParams. INVALID_VALUE: hNode is not a node that allocates memory. */
CUresult CUDAAPI cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out)
{
    CUgraphNodeParams params;
    CUresult r = ct_graph_node_params(hNode, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &params);

    if (r == CUDA_SUCCESS && !params_out)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "params_out is NULL");
    if (r == CUDA_SUCCESS)
        *params_out =
            (CUDA_MEM_ALLOC_NODE_PARAMS){.poolProps = params.alloc.poolProps, .bytesize = params.alloc.bytesize, .dptr = params.alloc.dptr};
    return r;
}

/* cuGraphMemFreeNodeGetParams. INVALID_VALUE: hNode is not a node that frees memory. */
CUresult CUDAAPI cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out)
{
    CUgraphNodeParams params;
    CUresult r = ct_graph_node_params(hNode, CU_GRAPH_NODE_TYPE_MEM_FREE, &params);

    if (r == CUDA_SUCCESS && !dptr_out)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "dptr_out is NULL");
    if (r == CUDA_SUCCESS)
        *dptr_out = params.free.dptr;
    return r;
}

/* ---- the memory of graphs ---- */

/* cuDeviceGraphMemTrim. Releases memory that no graph uses. INVALID_DEVICE. */
CUresult CUDAAPI cuDeviceGraphMemTrim(CUdevice device)
{
    struct ct_device *found;
    CUresult r = ct_device_lookup(device, &found);

    if (r == CUDA_SUCCESS)
        ct_kept_blocks_trim(found);
    return r;
}

/* cuDeviceGetGraphMemAttribute. value: a cuuint64_t; "used" is what graphs and their allocations occupy. INVALID_DEVICE; INVALID_VALUE: the attribute
 * does not exist. */
CUresult CUDAAPI cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
    struct ct_device *found;
    CUresult r = ct_device_lookup(device, &found);
    uint64_t bytes;

    if (r == CUDA_SUCCESS)
        r = value ? ct_kept_blocks_get_attribute(found, attr, &bytes) : ct_fail(CUDA_ERROR_INVALID_VALUE, "value is NULL");
    if (r == CUDA_SUCCESS)
        *(cuuint64_t *)value = bytes;
    return r;
}

/* cuDeviceSetGraphMemAttribute. Sets the highest value of used or reserved memory to the current one. INVALID_DEVICE; INVALID_VALUE: another
 * attribute, or *value is not 0. */
CUresult CUDAAPI cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
    struct ct_device *found;
    CUresult r = ct_device_lookup(device, &found);

    if (r == CUDA_SUCCESS)
        r = value ? ct_kept_blocks_set_attribute(found, attr, *(const cuuint64_t *)value)
                  : ct_fail(CUDA_ERROR_INVALID_VALUE, "value is NULL");
    return r;
}
