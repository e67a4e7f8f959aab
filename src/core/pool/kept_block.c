/* SPDX-License-Identifier: Apache-2.0 */
#include "kept_block.h"

#include "core/backing/device_open.h"
#include "core/backing/memory_budget.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "core/device/device.h"
#include "core/stream/stream_record.h"
#include "core/vmm/vmm.h"
#include "slab_mapping.h"

#include <stdlib.h>

#define CT_CHANNEL "memory"

static struct ct_device_pools *pools_of(const struct ct_kept_block *kept)
{
    return kept->block->slab->pool->device->pools;
}

/* Memory of this size and more is shared by blocks that are not allocated at the same time, in whole grains of CT_VMM_GRANULARITY. */
#define LEAST_MAPPED (CT_VMM_GRANULARITY / 2)

static CUresult check_size(struct ct_device *device, uint64_t size_bytes)
{
    uint64_t available, total;
    CUresult r = ct_device_open(device);

    if (r == CUDA_SUCCESS)
        r = ct_budget_info(device, &available, &total);
    if (r == CUDA_SUCCESS && size_bytes > total)
        r = ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes are more than the device has", (unsigned long long)size_bytes);
    return r;
}

static CUresult take_block(struct ct_device *device, uint64_t size_bytes, struct ct_pool_block **out)
{
    CUresult r = check_size(device, size_bytes);

    if (r != CUDA_SUCCESS)
        return r;
    if (size_bytes >= LEAST_MAPPED && ct_pool_block_take_mapped(device->pools->graphs, size_bytes, out) == CUDA_SUCCESS)
        return CUDA_SUCCESS;
    return ct_pool_block_take(device->pools->graphs, size_bytes, out);
}

CUresult ct_kept_block_create(struct ct_device *device, uint64_t size_bytes, struct ct_kept_block **out)
{
    struct ct_kept_block *kept = calloc(1, sizeof *kept);
    CUresult r;

    if (!kept)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a block of a graph");
    if ((r = take_block(device, size_bytes, &kept->block)) != CUDA_SUCCESS) {
        free(kept);
        return r;
    }
    kept->references = 1;
    kept->block->kept = kept;
    *out = kept;
    return CUDA_SUCCESS;
}

void ct_kept_block_retain(struct ct_kept_block *kept)
{
    ct_mutex_lock(&pools_of(kept)->lock);
    kept->references++;
    ct_mutex_unlock(&pools_of(kept)->lock);
}

/* The block becomes an ordinary one, which the application frees if it is allocated. */
void ct_kept_block_release(struct ct_kept_block *kept)
{
    struct ct_device_pools *pools;
    bool is_last, is_free;

    if (!kept)
        return;
    pools = pools_of(kept);
    ct_mutex_lock(&pools->lock);
    is_last = --kept->references == 0;
    is_free = !kept->is_allocated;
    if (is_last)
        kept->block->kept = NULL;
    ct_mutex_unlock(&pools->lock);
    if (!is_last)
        return;
    if (is_free)
        ct_pool_block_free(kept->block, kept->freed_in, kept->freed_at);
    if (kept->freed_in)
        ct_object_release(&kept->freed_in->object);
    free(kept);
}

uint64_t ct_kept_block_address(const struct ct_kept_block *kept)
{
    return kept->block->slab->backing.address + kept->block->offset;
}

uint64_t ct_kept_block_size(const struct ct_kept_block *kept)
{
    return kept->block->requested_bytes;
}

bool ct_kept_block_is_allocated(struct ct_kept_block *kept)
{
    bool is_allocated;

    ct_mutex_lock(&pools_of(kept)->lock);
    is_allocated = kept->is_allocated;
    ct_mutex_unlock(&pools_of(kept)->lock);
    return is_allocated;
}

static bool slab_keeps_locked(const struct ct_pool_slab *slab, uint64_t address)
{
    const uint64_t offset = address - slab->backing.address;

    if (offset >= slab->size_bytes)
        return false;
    for (const struct ct_pool_block *block = slab->first; block; block = block->next)
        if (block->kept && offset - block->offset < block->size_bytes)
            return true;
    return false;
}

static bool pool_keeps(const struct ct_memory_pool *pool, uint64_t address)
{
    struct ct_mutex *lock = &pool->device->pools->lock;
    bool keeps = false;

    ct_mutex_lock(lock);
    for (const struct ct_pool_slab *slab = pool->slabs; slab && !keeps; slab = slab->next)
        keeps = slab_keeps_locked(slab, address);
    ct_mutex_unlock(lock);
    return keeps;
}

bool ct_kept_blocks_contain(uint64_t address)
{
    for (unsigned i = 0; i < ct_process.n_devices; i++)
        if (pool_keeps(ct_process.devices[i].pools->graphs, address))
            return true;
    return false;
}

/* The stream that freed the block, retained, and the point: the caller's stream must follow it. */
static struct ct_pool_wait take_wait(struct ct_kept_block *kept, bool *out_was_allocated)
{
    struct ct_pool_wait wait;

    ct_mutex_lock(&pools_of(kept)->lock);
    *out_was_allocated = kept->is_allocated;
    kept->is_allocated = true;
    wait = (struct ct_pool_wait){kept->freed_in, kept->freed_at};
    if (wait.stream)
        ct_object_retain(&wait.stream->object);
    ct_mutex_unlock(&pools_of(kept)->lock);
    return wait;
}

/* Work of a context that was destroyed is complete. */
static CUresult follow(struct ct_stream *stream, const struct ct_pool_wait *wait)
{
    CUresult r = CUDA_SUCCESS;

    if (!wait->stream || wait->stream == stream || ct_context_use(wait->stream->context) != CUDA_SUCCESS)
        return CUDA_SUCCESS;
    if (wait->stream->context == stream->context)
        r = ct_stream_wait_for(stream, wait->stream, wait->point);
    else
        ct_stream_await(wait->stream, wait->point);
    ct_context_release(wait->stream->context);
    return r;
}

static void reclaim(struct ct_device_pools *pools)
{
    struct ct_pool_garbage garbage = {0};

    ct_mutex_lock(&pools->lock);
    ct_pools_reclaim_locked(pools, NULL, &garbage);
    ct_mutex_unlock(&pools->lock);
    ct_pool_garbage_free(pools, &garbage);
}

/* Maps memory for a block that has none of its own. */
static CUresult map(struct ct_kept_block *kept, const struct ct_pool_wait *wait, struct ct_stream *stream)
{
    reclaim(pools_of(kept));
    return ct_slab_mapping_hold(kept->block->slab, stream, wait);
}

static CUresult allocate(struct ct_kept_block *kept, const struct ct_pool_wait *wait, struct ct_stream *stream, uint64_t size_bytes)
{
    struct ct_pool_slab *slab = kept->block->slab;
    uint64_t address;
    CUresult r = follow(stream, wait);

    if (r == CUDA_SUCCESS && slab->mapping)
        r = map(kept, wait, stream);
    if (r != CUDA_SUCCESS)
        return r;
    if ((r = ct_pool_block_publish(kept->block, stream->context, size_bytes, &address)) != CUDA_SUCCESS && slab->mapping) {
        ct_mutex_lock(&pools_of(kept)->lock);
        ct_slab_mapping_free_locked(slab, NULL, 0);
        ct_mutex_unlock(&pools_of(kept)->lock);
    }
    return r;
}

CUresult ct_kept_block_alloc(struct ct_kept_block *kept, struct ct_stream *stream, uint64_t size_bytes)
{
    bool was_allocated;
    const struct ct_pool_wait wait = take_wait(kept, &was_allocated);
    CUresult r = was_allocated ? ct_fail(CUDA_ERROR_INVALID_VALUE, "the memory of a graph is allocated already")
                               : allocate(kept, &wait, stream, size_bytes);

    if (wait.stream)
        ct_object_release(&wait.stream->object);
    if (r != CUDA_SUCCESS && !was_allocated) {
        ct_mutex_lock(&pools_of(kept)->lock);
        kept->is_allocated = false;
        ct_mutex_unlock(&pools_of(kept)->lock);
    }
    return r;
}

/* ---- attributes ---- */

CUresult ct_kept_blocks_get_attribute(struct ct_device *device, CUgraphMem_attribute attribute, uint64_t *out)
{
    const struct ct_memory_pool *pool = device->pools->graphs;
    const uint64_t *const members[] = {
        [CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT] = &pool->used,
        [CU_GRAPH_MEM_ATTR_USED_MEM_HIGH] = &pool->used_high,
        [CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT] = &pool->reserved,
        [CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH] = &pool->reserved_high,
    };

    if ((size_t)attribute >= sizeof members / sizeof *members)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the memory of graphs has no attribute %d", (int)attribute);
    ct_mutex_lock(&device->pools->lock);
    *out = *members[attribute];
    ct_mutex_unlock(&device->pools->lock);
    return CUDA_SUCCESS;
}

CUresult ct_kept_blocks_set_attribute(struct ct_device *device, CUgraphMem_attribute attribute, uint64_t value)
{
    struct ct_memory_pool *pool = device->pools->graphs;

    if (value || (attribute != CU_GRAPH_MEM_ATTR_USED_MEM_HIGH && attribute != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "attribute %d cannot be set to %llu", (int)attribute, (unsigned long long)value);
    ct_mutex_lock(&device->pools->lock);
    if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
        pool->used_high = pool->used;
    else
        pool->reserved_high = pool->reserved;
    ct_mutex_unlock(&device->pools->lock);
    return CUDA_SUCCESS;
}

void ct_kept_blocks_trim(struct ct_device *device)
{
    ct_memory_pool_trim(device->pools->graphs, 0);
}
