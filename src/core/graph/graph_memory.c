/* SPDX-License-Identifier: Apache-2.0 */
#include "graph_memory.h"

#include "core/base/log.h"
#include "core/device/device.h"
#include "core/pool/kept_block.h"
#include "core/pool/memory_pool.h"

#include <stdlib.h>

#define CT_CHANNEL "graph"

/* Memory that a node allocates. Its nodes, and their clones in executable graphs, hold references. The lock of graphs guards what changes. */
struct ct_graph_allocation {
    struct ct_object object;
    struct ct_graph_allocation *next;    /* in `all` */
    struct ct_kept_block *block;         /* a reference; allocations of a graph that follow each other share it */
    struct ct_graph_allocation *follows; /* retained: the allocation whose memory this one takes over; NULL: none */
    uint64_t size_bytes;
    bool is_freed;    /* a node frees it */
    bool is_followed; /* another allocation has taken over its memory */
    bool is_claimed;  /* an executable graph has its node */
    bool is_live;     /* for ct_graph_memory_check_launch */
};

static struct ct_graph_allocation *all;

static struct ct_graph_allocation *allocation_of(const struct ct_node_params *params)
{
    return (struct ct_graph_allocation *)params->allocation;
}

/* ---- allocations ---- */

static void free_allocation(struct ct_object *object)
{
    struct ct_graph_allocation *allocation = (struct ct_graph_allocation *)object, **link = &all;

    ct_graphs_lock();
    while (*link != allocation)
        link = &(*link)->next;
    *link = allocation->next;
    if (allocation->follows)
        allocation->follows->is_followed = false;
    ct_graphs_unlock();
    ct_kept_block_release(allocation->block);
    if (allocation->follows)
        ct_object_release(&allocation->follows->object);
    free(allocation);
}

/* Whether the allocation's memory is free for another one of that size once its free node has run. */
static bool can_be_followed(const struct ct_graph_allocation *allocation, uint64_t size_bytes)
{
    return !allocation->is_followed && allocation->size_bytes >= size_bytes;
}

/* The allocation of a free node before the dependencies whose memory a new allocation can take over, or NULL. */
static struct ct_graph_allocation *find_predecessor_locked(struct ct_graph *graph, const struct ct_dependencies *dependencies,
                                                           uint64_t size_bytes)
{
    struct ct_graph_allocation *found = NULL;
    bool *is_before = calloc(graph->count + 1, sizeof *is_before);

    if (!is_before || !ct_graph_mark_ancestors_locked(graph, dependencies->nodes, dependencies->count, is_before)) {
        free(is_before);
        return NULL;
    }
    for (size_t i = 0; i < graph->count && !found; i++) {
        const struct ct_node_params *params = &graph->nodes[i]->params;

        if (is_before[i] && params->given.type == CU_GRAPH_NODE_TYPE_MEM_FREE && can_be_followed(allocation_of(params), size_bytes))
            found = allocation_of(params);
    }
    free(is_before);
    return found;
}

/* Lets the allocation take over another one's memory if that is possible. */
static void follow(struct ct_graph_allocation *allocation, struct ct_graph *graph, const struct ct_dependencies *dependencies)
{
    struct ct_graph_allocation *found;

    ct_graphs_lock();
    if ((found = find_predecessor_locked(graph, dependencies, allocation->size_bytes))) {
        ct_object_retain(&found->object);
        ct_kept_block_retain(found->block);
        found->is_followed = true;
        allocation->follows = found;
        allocation->block = found->block;
    }
    ct_graphs_unlock();
}

static CUresult allocate(struct ct_graph *graph, const struct ct_dependencies *dependencies, struct ct_node_params *params)
{
    struct ct_graph_allocation *allocation;
    struct ct_device *device;
    CUresult r = ct_memory_pool_device(params->given.alloc.poolProps.location.id, &device);

    if (r != CUDA_SUCCESS)
        return r;
    if (!(allocation = calloc(1, sizeof *allocation)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for an allocation of a graph");
    allocation->size_bytes = params->given.alloc.bytesize;
    follow(allocation, graph, dependencies);
    if (!allocation->block && (r = ct_kept_block_create(device, allocation->size_bytes, &allocation->block)) != CUDA_SUCCESS) {
        free(allocation);
        return r;
    }
    ct_object_init(&allocation->object, CT_OBJECT_NONE, free_allocation);
    ct_graphs_lock();
    allocation->next = all;
    all = allocation;
    ct_graphs_unlock();
    params->allocation = &allocation->object;
    params->given.alloc.dptr = ct_kept_block_address(allocation->block);
    return CUDA_SUCCESS;
}

/* The allocation at the address that no node frees yet, which is the last one of those that share it. */
static struct ct_graph_allocation *find_unfreed_locked(uint64_t address)
{
    for (struct ct_graph_allocation *allocation = all; allocation; allocation = allocation->next)
        if (ct_kept_block_address(allocation->block) == address && !allocation->is_freed)
            return allocation;
    return NULL;
}

static CUresult find_freed(struct ct_node_params *params)
{
    struct ct_graph_allocation *allocation;

    ct_graphs_lock();
    if ((allocation = find_unfreed_locked(params->given.free.dptr))) {
        allocation->is_freed = true;
        ct_object_retain(&allocation->object);
    }
    ct_graphs_unlock();
    if (!allocation)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "no graph allocates memory at 0x%llx, or a node frees it already",
                       params->given.free.dptr);
    params->allocation = &allocation->object;
    return CUDA_SUCCESS;
}

CUresult ct_graph_memory_attach(struct ct_graph *graph, const struct ct_dependencies *dependencies, struct ct_node_params *params)
{
    if (ct_node_type_has_memory(params->given.type) && ct_graph_is_child(graph) && !graph->is_body) /* a body is refused later */
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "child graphs get no more nodes that allocate or free memory");
    switch (params->given.type) {
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return allocate(graph, dependencies, params);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return find_freed(params);
    default:
        return CUDA_SUCCESS;
    }
}

void ct_graph_memory_detach(struct ct_node_params *params)
{
    if (params->given.type != CU_GRAPH_NODE_TYPE_MEM_FREE)
        return;
    ct_graphs_lock();
    allocation_of(params)->is_freed = false;
    ct_graphs_unlock();
}

/* ---- executable graphs ---- */

static bool claim_locked(struct ct_graph_exec *exec, size_t step)
{
    const struct ct_node_params *params = &exec->steps[step].node->params;

    if (params->given.type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        return true;
    if (allocation_of(params)->is_claimed)
        return false;
    allocation_of(params)->is_claimed = true;
    ct_object_retain(params->allocation);
    exec->claims[exec->n_claims++] = params->allocation;
    return true;
}

CUresult ct_graph_memory_claim(struct ct_graph_exec *exec)
{
    bool is_claimed = true;
    size_t count = 0;

    for (size_t i = 0; i < exec->n_steps; i++)
        count += exec->steps[i].node->params.given.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    if (!count)
        return CUDA_SUCCESS;
    if (!(exec->claims = calloc(count, sizeof(*exec->claims))))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for %zu allocations of a graph", count);
    ct_graphs_lock();
    for (size_t i = 0; i < exec->n_steps && is_claimed; i++)
        is_claimed = claim_locked(exec, i);
    ct_graphs_unlock();
    return is_claimed ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_NOT_SUPPORTED, "a graph that allocates memory has an executable graph already");
}

void ct_graph_memory_unclaim(struct ct_graph_exec *exec)
{
    for (size_t i = 0; i < exec->n_claims; i++) {
        ct_graphs_lock();
        ((struct ct_graph_allocation *)exec->claims[i])->is_claimed = false;
        ct_graphs_unlock();
        ct_object_release(exec->claims[i]);
    }
    free(exec->claims);
}

static CUresult free_if_live(const struct ct_graph_exec *exec, struct ct_stream *stream)
{
    CUresult r = CUDA_SUCCESS;

    for (size_t i = 0; i < exec->n_claims && r == CUDA_SUCCESS; i++) {
        const struct ct_graph_allocation *allocation = (const struct ct_graph_allocation *)exec->claims[i];

        if (ct_kept_block_is_allocated(allocation->block))
            r = ct_memory_pool_free_async(stream, ct_kept_block_address(allocation->block));
    }
    return r;
}

/* The first allocation of those that share a block stands for it. */
static struct ct_graph_allocation *first_of(struct ct_graph_allocation *allocation)
{
    while (allocation->follows)
        allocation = allocation->follows;
    return allocation;
}

static CUresult simulate_locked(const struct ct_node_params *params)
{
    const bool allocates = params->given.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    struct ct_graph_allocation *first = first_of(allocation_of(params));

    if (first->is_live == allocates)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a node would %s",
                       allocates ? "allocate memory that is allocated" : "free memory that is not");
    first->is_live = allocates;
    return CUDA_SUCCESS;
}

CUresult ct_graph_memory_check_launch(struct ct_graph_exec *exec, struct ct_stream *stream)
{
    CUresult r = CUDA_SUCCESS;

    if (!exec->has_memory)
        return CUDA_SUCCESS;
    if (exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH && (r = free_if_live(exec, stream)) != CUDA_SUCCESS)
        return r;
    ct_graphs_lock();
    for (size_t i = 0; i < exec->n_steps; i++)
        if (exec->steps[i].node->params.allocation) {
            struct ct_graph_allocation *first = first_of(allocation_of(&exec->steps[i].node->params));

            first->is_live = ct_kept_block_is_allocated(first->block);
        }
    for (size_t i = 0; i < exec->n_steps && r == CUDA_SUCCESS; i++)
        if (exec->steps[i].node->params.allocation)
            r = simulate_locked(&exec->steps[i].node->params);
    ct_graphs_unlock();
    return r;
}

CUresult ct_graph_memory_alloc(const struct ct_node_params *params, struct ct_stream *stream)
{
    const struct ct_graph_allocation *allocation = allocation_of(params);

    return ct_kept_block_alloc(allocation->block, stream, allocation->size_bytes);
}
