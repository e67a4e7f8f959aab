/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation in stream order (Driver API: Stream Ordered Memory Allocator). Memory is searched for in this order:
 *   1. blocks that are free, that the stream itself freed, or whose free the stream is ordered after
 *   2. a new slab
 *   3. a new slab, after all pools of the device have released unused memory
 *   4. blocks that another stream will free: this stream waits for the free */
#include "core/device/device.h"
#include "core/backing/address_uses.h"
#include "core/base/log.h"
#include "core/stream/stream_record.h"
#include "core/memory/advice.h"
#include "core/memory/memory.h"
#include "slab_mapping.h"
#include "core/base/process.h"
#include "core/stream/context_streams.h"

#include <stdlib.h>

#define CT_CHANNEL "memory"
#define GRAIN_BYTES ((uint64_t)2 << 20)
#define SLAB_BYTES ((uint64_t)32 << 20)

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) & ~(unit - 1);
}

/* ---- growing ---- */

/* Reserves space for a slab in the pool: at least *out_need, which is reduced if the pool is nearly full. */
static CUresult claim_locked(struct ct_memory_pool *pool, uint64_t size_bytes, uint64_t *out_need, uint64_t *out_want)
{
    uint64_t room = pool->kind.max_bytes - pool->reserved, need = round_up(size_bytes, GRAIN_BYTES), want = SLAB_BYTES;

    if (pool->destroyed)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the pool was destroyed");
    need = need < room ? need : room;
    want = want < room ? want : room;
    if (need < size_bytes)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "the limit of a pool is %llu bytes, of which %llu are reserved: %llu more do not fit",
                       (unsigned long long)pool->kind.max_bytes, (unsigned long long)pool->reserved, (unsigned long long)size_bytes);
    *out_need = need;
    *out_want = want > need ? want : need;
    pool->reserved += *out_want;
    return CUDA_SUCCESS;
}

static void unclaim(struct ct_memory_pool *pool, uint64_t bytes)
{
    struct ct_device_pools *pools = pool->device->pools;

    ct_mutex_lock(&pools->lock);
    pool->reserved -= bytes;
    ct_mutex_unlock(&pools->lock);
}

/* Creates a slab of `want` bytes, or of at least `need`. */
static CUresult make_slab(struct ct_memory_pool *pool, uint64_t need, uint64_t want, struct ct_pool_slab **out)
{
    CUresult r = ct_pool_slab_create(pool, want, out);

    if (r != CUDA_ERROR_OUT_OF_MEMORY)
        return r;
    unclaim(pool, want - need);
    r = want > need ? ct_pool_slab_create(pool, need, out) : r;
    if (r != CUDA_SUCCESS)
        unclaim(pool, need);
    return r;
}

static CUresult grow(struct ct_memory_pool *pool, uint64_t size_bytes, struct ct_pool_block *spare, struct ct_pool_block **out)
{
    const struct ct_pool_request request = {.size_bytes = size_bytes};
    struct ct_device_pools *pools = pool->device->pools;
    struct ct_pool_slab *slab;
    uint64_t need = 0, want = 0;
    CUresult r;

    ct_mutex_lock(&pools->lock);
    r = claim_locked(pool, ct_pool_block_bytes(size_bytes), &need, &want);
    ct_mutex_unlock(&pools->lock);
    if (r == CUDA_SUCCESS)
        r = make_slab(pool, need, want, &slab);
    if (r != CUDA_SUCCESS)
        return r;
    ct_mutex_lock(&pools->lock);
    slab->next = pool->slabs;
    pool->slabs = slab;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    *out = ct_pool_take_locked(pool, &request, spare, NULL);
    ct_mutex_unlock(&pools->lock);
    return CUDA_SUCCESS;
}

/* ---- waiting ---- */

/* Makes the allocating stream wait for the work that freed the memory, in another stream of its context; releases the reference of
 * `wait`. */
static void follow(struct ct_stream *stream, const struct ct_pool_wait *wait)
{
    if (ct_stream_wait_for(stream, wait->stream, wait->point) != CUDA_SUCCESS)
        ct_stream_await(wait->stream, wait->point);
    ct_object_release(&wait->stream->object);
}

static CUresult take_later(struct ct_memory_pool *pool, struct ct_stream *stream, uint64_t size_bytes, struct ct_pool_block *spare,
                           struct ct_pool_block **out)
{
    const struct ct_pool_request request = {.size_bytes = size_bytes, .stream = stream, .any = true};
    struct ct_pool_wait waits[CT_POOL_WAITS] = {{NULL, 0}};
    struct ct_device_pools *pools = pool->device->pools;
    struct ct_pool_block *block = NULL;

    ct_mutex_lock(&pools->lock);
    if (pool->reuse[CT_REUSE_INTERNAL])
        block = ct_pool_take_locked(pool, &request, spare, waits);
    ct_mutex_unlock(&pools->lock);
    if (!block)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes cannot be allocated in a pool", (unsigned long long)size_bytes);
    for (unsigned i = 0; i < CT_POOL_WAITS; i++)
        if (waits[i].stream)
            follow(stream, &waits[i]);
    *out = block;
    return CUDA_SUCCESS;
}

/* ---- allocating ---- */

static CUresult take_ordered(struct ct_memory_pool *pool, struct ct_stream *stream, uint64_t size_bytes, struct ct_pool_block *spare,
                             struct ct_pool_block **out_or_null)
{
    const struct ct_pool_request request = {.size_bytes = size_bytes, .stream = stream};
    struct ct_pool_garbage garbage = {0};
    struct ct_device_pools *pools = pool->device->pools;
    CUresult r = ct_stream_begin(stream);

    if (r != CUDA_SUCCESS)
        return r;
    ct_mutex_lock(&pools->lock);
    ct_pools_reclaim_locked(pools, NULL, &garbage);
    *out_or_null = ct_pool_take_locked(pool, &request, spare, NULL);
    ct_mutex_unlock(&pools->lock);
    ct_stream_end(stream);
    ct_pool_garbage_free(pools, &garbage);
    return CUDA_SUCCESS;
}

CUresult ct_pool_block_take(struct ct_memory_pool *pool, uint64_t size_bytes, struct ct_pool_block **out)
{
    const struct ct_pool_request request = {.size_bytes = size_bytes};
    struct ct_pool_block *spare = calloc(1, sizeof *spare);
    CUresult r = CUDA_SUCCESS;

    if (!spare)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a block of a memory pool");
    ct_mutex_lock(&pool->device->pools->lock);
    *out = ct_pool_take_locked(pool, &request, spare, NULL);
    ct_mutex_unlock(&pool->device->pools->lock);
    if (!*out)
        r = grow(pool, size_bytes, spare, out);
    if (r != CUDA_SUCCESS)
        free(spare);
    return r;
}

CUresult ct_pool_block_take_mapped(struct ct_memory_pool *pool, uint64_t size_bytes, struct ct_pool_block **out)
{
    struct ct_pool_block *spares[2] = {calloc(1, sizeof **spares), calloc(1, sizeof **spares)};
    struct ct_pool_slab *slab;
    CUresult r = spares[0] && spares[1] ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a block of a memory pool");

    if (r == CUDA_SUCCESS)
        r = ct_pool_slab_create_mapped(pool, round_up(size_bytes, GRAIN_BYTES), &slab);
    if (r != CUDA_SUCCESS) {
        free(spares[0]);
        free(spares[1]);
        return r;
    }
    ct_mutex_lock(&pool->device->pools->lock);
    slab->next = pool->slabs;
    pool->slabs = slab;
    *out = ct_pool_take_at_locked(slab, 0, size_bytes, spares);
    ct_mutex_unlock(&pool->device->pools->lock);
    return CUDA_SUCCESS;
}

/* Returns a stream whose reference the caller releases without the lock, or NULL. */
static struct ct_stream *note_free_locked(struct ct_kept_block *kept, struct ct_stream *stream_or_null, uint64_t point)
{
    struct ct_stream *before = kept->freed_in;

    if (stream_or_null)
        ct_object_retain(&stream_or_null->object);
    kept->is_allocated = false;
    kept->freed_in = stream_or_null;
    kept->freed_at = point;
    return before;
}

void ct_pool_block_free(struct ct_pool_block *block, struct ct_stream *stream_or_null, uint64_t point)
{
    struct ct_device_pools *pools = block->slab->pool->device->pools;
    struct ct_stream *before = NULL;
    struct ct_pool_user *user;

    ct_mutex_lock(&pools->lock);
    user = stream_or_null ? ct_pools_user_locked(pools, stream_or_null) : NULL;
    if (stream_or_null && !user) { /* no memory to record the pending block */
        ct_mutex_unlock(&pools->lock);
        ct_stream_await(stream_or_null, point);
        ct_mutex_lock(&pools->lock);
    }
    if (block->kept && block->slab->mapping)
        ct_slab_mapping_free_locked(block->slab, user, point);
    if (block->kept)
        before = note_free_locked(block->kept, stream_or_null, point);
    else
        ct_pool_free_locked(block, user, point);
    ct_mutex_unlock(&pools->lock);
    atomic_store_explicit(&pools->needs_reclaim, true, memory_order_release); /* pairs with the exchange in observe */
    ct_object_release(before ? &before->object : NULL);
}

static enum ct_range_kind range_kind_of(const struct ct_memory_pool *pool)
{
    if (ct_pool_place_is_managed(pool->kind.place))
        return CT_RANGE_POOL_MANAGED;
    return pool->kind.place == CT_POOL_HOST ? CT_RANGE_POOL_HOST : CT_RANGE_POOL;
}

/* The preferred location of managed memory. */
static CUmemLocation location_of(const struct ct_memory_pool *pool)
{
    switch (pool->kind.place) {
    case CT_POOL_MANAGED_DEVICE:
        return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = pool->device->ordinal};
    case CT_POOL_MANAGED_HOST:
        return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST};
    default:
        return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_INVALID};
    }
}

CUresult ct_pool_block_publish(struct ct_pool_block *block, struct ct_context *owner, uint64_t size_bytes, uint64_t *out_address)
{
    const struct ct_backing *backing = &block->slab->backing;
    struct ct_memory_pool *pool = block->slab->pool;
    const struct ct_range range = {
        .start = backing->address + block->offset,
        .size_bytes = size_bytes,
        .kind = range_kind_of(pool),
        .context = owner,
        .owner = owner->object.handle,
        .device = pool->device->ordinal,
        .memory = backing->memory,
        .memory_offset = block->offset,
        .host = backing->host ? (char *)backing->host + block->offset : NULL,
        .device_pointer = backing->address + block->offset,
        .pool = pool->object.handle,
        .block = block,
        .synchronous = ct_pool_place_is_managed(pool->kind.place), /* what NVIDIA's driver reports */
        .id = ct_process_new_id(),
    };
    CUresult r = ct_pool_place_is_managed(pool->kind.place) ? ct_advice_start(range.start, size_bytes, location_of(pool)) : CUDA_SUCCESS;

    if (r == CUDA_SUCCESS)
        r = ct_address_insert(&range);
    if (r == CUDA_SUCCESS)
        *out_address = range.start;
    return r;
}

static CUresult allocate(struct ct_memory_pool *pool, struct ct_stream *stream, uint64_t size_bytes, uint64_t *out_address)
{
    struct ct_pool_block *spare = calloc(1, sizeof *spare), *block = NULL;
    CUresult r;

    if (!spare)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a block of a memory pool");
    r = take_ordered(pool, stream, size_bytes, spare, &block);
    if (r == CUDA_SUCCESS && !block)
        r = grow(pool, size_bytes, spare, &block);
    if (r == CUDA_ERROR_OUT_OF_MEMORY)
        r = take_later(pool, stream, size_bytes, spare, &block);
    if (r == CUDA_SUCCESS)
        r = ct_pool_block_publish(block, stream->context, size_bytes, out_address);
    if (r != CUDA_SUCCESS && block)
        ct_pool_block_free(block, stream, ct_stream_point(stream));
    else if (r != CUDA_SUCCESS)
        free(spare);
    return r;
}

CUresult ct_memory_pool_alloc(struct ct_stream *stream, const struct ct_pool_allocation *allocation)
{
    struct ct_memory_pool *pool = allocation->pool, *current = NULL;
    const uint64_t size_bytes = allocation->size_bytes;
    CUresult r;

    if (pool && pool->kind.imported)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "an imported pool cannot be allocated from");
    if (size_bytes == 0) { /* as in the native driver, unlike cuMemAlloc */
        *allocation->out_address = 0;
        return CUDA_SUCCESS;
    }
    if (size_bytes > UINT64_MAX / 2)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes are too many", (unsigned long long)size_bytes);
    if (!pool && (r = ct_memory_pool_lookup(ct_memory_pool_current(stream->context->device), &current)) != CUDA_SUCCESS)
        return r;
    r = allocate(pool ? pool : current, stream, size_bytes, allocation->out_address);
    ct_memory_pool_release(current);
    return r;
}

/* ---- freeing ---- */

/* Afterwards all calls that found the memory before have recorded their commands (address_uses.h). */
static CUresult unmap(uint64_t address, enum ct_range_kind kind, struct ct_range *out)
{
    CUresult r = ct_address_remove(address, kind, out);

    if (r == CUDA_SUCCESS)
        ct_address_uses_await(out->start, out->size_bytes);
    return r;
}

/* If the stream's context has failed, the error is returned, but the memory is freed even so. */
static CUresult free_in_order(struct ct_stream *stream, uint64_t address, enum ct_range_kind kind)
{
    struct ct_range range;
    CUresult r = unmap(address, kind, &range);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_stream_begin(stream); /* orders the stream behind the legacy stream's work */
    if (r == CUDA_SUCCESS)
        ct_stream_end(stream);
    ct_pool_block_free(range.block, stream, ct_stream_point(stream));
    return r;
}

CUresult ct_memory_pool_free_async(struct ct_stream *stream, uint64_t address)
{
    struct ct_range range;
    CUresult r;

    if (!address) /* as in cuMemFree */
        return CUDA_SUCCESS;
    if ((r = ct_address_find(address, 0, &range)) != CUDA_SUCCESS)
        return r;
    if (range.start == address && ct_range_is_of_pool(&range))
        return free_in_order(stream, address, range.kind);
    if (range.start == address && range.kind == CT_RANGE_DEVICE)
        return ct_memory_free_async(stream, address);
    if (range.start == address && range.kind == CT_RANGE_MANAGED) /* the result code is that of NVIDIA's driver */
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "managed memory cannot be freed in stream order");
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "no allocation of device memory starts at 0x%llx", (unsigned long long)address);
}

/* Memory of a pool has no context; work of the application that still uses it is in the current context. */
static CUresult free_after(struct ct_context *context_or_null, uint64_t address, enum ct_range_kind kind)
{
    struct ct_range range;
    CUresult r = unmap(address, kind, &range);

    if (r != CUDA_SUCCESS)
        return r;
    r = context_or_null ? ct_context_synchronize(context_or_null) : CUDA_SUCCESS; /* an error is returned, but the memory is freed */
    ct_pool_block_free(range.block, NULL, 0);
    return r;
}

CUresult ct_memory_pool_free(struct ct_context *context_or_null, uint64_t address)
{
    struct ct_range range;

    if (ct_address_find_any(address, 1, &range) && ct_range_is_of_pool(&range))
        return free_after(context_or_null, address, range.kind);
    return ct_memory_free(context_or_null, address, CT_RANGE_DEVICE);
}
