/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that nodes of graphs allocate and free (CUDA C++ Programming Guide, "Graph Memory Nodes").
 *
 * The address of an allocation is fixed when its node is added. Within a graph an allocation takes over the memory of an earlier one whose
 * free node it depends on. Graphs share physical memory at different addresses (core/pool/slab_mapping.h). A graph with such nodes loses
 * neither nodes nor edges, cannot be cloned, and has one executable graph at a time. */
#ifndef CT_CORE_GRAPH_MEMORY_H
#define CT_CORE_GRAPH_MEMORY_H

#include "graph_exec.h"

/* For the parameters of a MEM_ALLOC or MEM_FREE node that is about to be added behind the dependencies: gives it memory, whose address is
 * written to its parameters, or finds the memory that it frees. A no-op for other types. NOT_SUPPORTED: a node owns the graph; INVALID_VALUE: no graph has allocated memory at the
 * address, or a node frees it already; OUT_OF_MEMORY. */
CUresult ct_graph_memory_attach(struct ct_graph *graph, const struct ct_dependencies *dependencies, struct ct_node_params *params);
/* Undoes it: the node was not added. */
void ct_graph_memory_detach(struct ct_node_params *params);
static inline bool ct_node_type_has_memory(CUgraphNodeType type)
{
    return type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE;
}

/* The executable graph's allocations belong to it until it is destroyed. NOT_SUPPORTED: they belong to another one. */
CUresult ct_graph_memory_claim(struct ct_graph_exec *exec);
void ct_graph_memory_unclaim(struct ct_graph_exec *exec);
/* Before a launch. With CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH memory that is still allocated is freed first. INVALID_VALUE: a node would
 * allocate memory that is allocated, or free memory that is not. */
CUresult ct_graph_memory_check_launch(struct ct_graph_exec *exec, struct ct_stream *stream);
CUresult ct_graph_memory_alloc(const struct ct_node_params *params, struct ct_stream *stream);

#endif
