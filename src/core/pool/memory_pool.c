/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools as objects: a device's list of pools, their properties and attributes, and the reclaiming of blocks when the host waits.
 * A pool belongs to its device and not to a context; so does its memory. */
#include "slab_mapping.h"

#include "core/backing/memory_budget.h"
#include "core/device/device.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "core/vmm/vmm.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "memory"

/* ---- creating and destroying ---- */

static void free_pool(struct ct_object *object)
{
    struct ct_memory_pool *pool = (struct ct_memory_pool *)object;

    assert(!pool->slabs);
    free(pool);
}

CUresult ct_memory_pool_make(struct ct_device_pools *pools, const struct ct_pool_kind *kind, bool publish, struct ct_memory_pool **out)
{
    struct ct_memory_pool *pool = calloc(1, sizeof *pool);
    CUresult r = CUDA_SUCCESS;

    if (!pool)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a memory pool");
    ct_object_init(&pool->object, CT_OBJECT_MEMORY_POOL, free_pool);
    pool->device = pools->device;
    pool->kind = *kind;
    if (!kind->max_bytes)
        pool->kind.max_bytes = UINT64_MAX;
    for (int i = 0; i < CT_REUSE_POLICIES; i++)
        pool->reuse[i] = true;
    if (publish)
        r = ct_object_publish(&pool->object);
    if (r != CUDA_SUCCESS) {
        ct_object_release(&pool->object);
        return r;
    }
    ct_mutex_lock(&pools->lock);
    pool->next = pools->first;
    pools->first = pool; /* the list owns the reference */
    ct_mutex_unlock(&pools->lock);
    *out = pool;
    return CUDA_SUCCESS;
}

/* ---- hooks of the lower layers ---- */

/* Trims all pools of a device regardless of their thresholds: the device is out of memory. */
static bool trim(struct ct_device *device)
{
    struct ct_device_pools *pools = device->pools;
    struct ct_pool_garbage garbage = {0};
    bool any;

    ct_mutex_lock(&pools->lock);
    ct_pools_reclaim_locked(pools, NULL, &garbage);
    for (struct ct_memory_pool *pool = pools->first; pool; pool = pool->next) {
        ct_pool_shrink_locked(pool, 0, &garbage);
        ct_pool_frames_trim_locked(pool, &garbage);
    }
    ct_mutex_unlock(&pools->lock);
    any = garbage.slabs || garbage.frames;
    ct_pool_garbage_free(pools, &garbage);
    return any;
}

/* Reclaims memory that was freed in the stream up to `point`, and releases what exceeds a pool's threshold. */
static void observe(struct ct_device *device, struct ct_stream *stream, uint64_t point)
{
    const struct ct_pool_wait wait = {stream, point};
    struct ct_device_pools *pools = device->pools;
    struct ct_pool_garbage garbage = {0};

    /* the fast path of most programs; the flag is a hint, and a stale value is corrected by the next wait */
    if (!atomic_load_explicit(&pools->needs_reclaim, memory_order_relaxed))
        return;
    atomic_exchange_explicit(&pools->needs_reclaim, false, memory_order_acquire); /* pairs with the release stores of the flag */
    ct_mutex_lock(&pools->lock);
    ct_pools_reclaim_locked(pools, &wait, &garbage);
    for (struct ct_memory_pool *pool = pools->first; pool; pool = pool->next)
        ct_pool_shrink_locked(pool, pool->release_threshold, &garbage);
    ct_pools_reap_locked(pools, &garbage);
    if (pools->users)
        atomic_store_explicit(&pools->needs_reclaim, true, memory_order_release);
    ct_mutex_unlock(&pools->lock);
    ct_pool_garbage_free(pools, &garbage);
}

static CUresult create_defaults(struct ct_device_pools *pools)
{
    CUresult r = CUDA_SUCCESS;

    for (int place = 0; place < CT_POOL_PLACES && r == CUDA_SUCCESS; place++) {
        const struct ct_pool_kind kind = {.place = (enum ct_pool_place)place};
        struct ct_pool_choice *at = &pools->at[place];

        if (!ct_pool_place_exists(pools->device, kind.place))
            continue;
        r = ct_memory_pool_make(pools, &kind, true, &at->standard);
        at->current = at->standard;
    }
    return r;
}

CUresult ct_device_pools_create(struct ct_device *device, struct ct_device_pools **out)
{
    struct ct_device_pools *pools = calloc(1, sizeof *pools);
    const struct ct_pool_kind of_graphs = {0};
    CUresult r;

    if (!pools)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the memory pools of a device");
    pools->device = device;
    ct_mutex_init(&pools->lock, CT_RANK_POOLS);
    r = create_defaults(pools);
    if (r == CUDA_SUCCESS)
        r = ct_memory_pool_make(pools, &of_graphs, false, &pools->graphs);
    if (r != CUDA_SUCCESS) {
        ct_device_pools_destroy(pools);
        return r;
    }
    device->hooks.trim_pools = trim;
    device->hooks.observe_wait = observe;
    *out = pools;
    return r;
}

void ct_device_pools_destroy(struct ct_device_pools *pools)
{
    struct ct_pool_garbage garbage = {0};

    if (!pools)
        return;
    for (struct ct_memory_pool *pool = pools->first; pool; pool = pool->next) {
        if (!pool->destroyed && pool->object.handle)
            ct_object_unpublish(&pool->object);
        pool->destroyed = true;
    }
    ct_mutex_lock(&pools->lock);
    ct_pools_reap_locked(pools, &garbage);
    ct_mutex_unlock(&pools->lock);
    ct_pool_garbage_free(pools, &garbage);
    ct_mutex_finish(&pools->lock);
    free(pools);
}

CUresult ct_memory_pool_lookup(CUmemoryPool handle, struct ct_memory_pool **out)
{
    struct ct_memory_pool *pool;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    pool = (struct ct_memory_pool *)ct_object_find_or_null(CT_OBJECT_MEMORY_POOL, handle);
    if (!pool)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%p is not a memory pool", (void *)handle);
    *out = pool;
    return CUDA_SUCCESS;
}

CUmemAllocationHandleType ct_memory_pool_handle_types(CUmemoryPool handle)
{
    CUmemAllocationHandleType types = CU_MEM_HANDLE_TYPE_NONE;
    struct ct_memory_pool *pool = (struct ct_memory_pool *)ct_object_find_or_null(CT_OBJECT_MEMORY_POOL, handle);

    if (pool)
        types = pool->kind.handle_types;
    ct_memory_pool_release(pool);
    return types;
}

void ct_memory_pool_release(struct ct_memory_pool *pool)
{
    if (pool)
        ct_object_release(&pool->object);
}

/* `usage` requests memory for cuMemBatchDecompressAsync, which accepts all memory; win32SecurityAttributes is ignored. */
static CUresult check_properties(const CUmemPoolProps *properties, const struct ct_pool_site *site)
{
    static const unsigned char zeros[sizeof properties->reserved];

    if (memcmp(properties->reserved, zeros, sizeof zeros))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the reserved properties of a memory pool are not 0");
    if (site->place != CT_POOL_DEVICE && properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pools of the host and of managed memory cannot be shared");
    if (ct_pool_place_is_managed(site->place) && properties->maxSize)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a pool of managed memory has no maximum size"); /* as in NVIDIA's driver */
    return ct_vmm_check_handle_types(properties->handleTypes,
                                     (unsigned)ct_device_limit(site->device, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES));
}

static uint64_t memory_bytes_of(const struct ct_pool_site *site)
{
    return site->place == CT_POOL_DEVICE ? site->device->info.memory_bytes : ct_budget_host_limit();
}

CUresult ct_memory_pool_create(const CUmemPoolProps *properties, CUmemoryPool *out)
{
    struct ct_pool_kind kind = {.max_bytes = properties->maxSize, .handle_types = properties->handleTypes};
    struct ct_memory_pool *pool;
    struct ct_pool_site site;
    CUresult r;

    if (properties->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT) /* which has a current pool, but none is created for it */
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "memory pools cannot be created on the NUMA node of the calling thread");
    r = ct_pool_site_find(&properties->location, properties->allocType, &site);
    if (r == CUDA_SUCCESS)
        r = check_properties(properties, &site);
    if (r == CUDA_SUCCESS && kind.max_bytes > memory_bytes_of(&site))
        r = ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "a pool of %llu bytes exceeds the memory of %llu", (unsigned long long)kind.max_bytes,
                    (unsigned long long)memory_bytes_of(&site));
    if (r != CUDA_SUCCESS)
        return r;
    kind.place = site.place;
    r = ct_memory_pool_make(site.device->pools, &kind, true, &pool);
    if (r == CUDA_SUCCESS)
        *out = pool->object.handle;
    return r;
}

CUresult ct_memory_pool_destroy(struct ct_memory_pool *pool)
{
    struct ct_device_pools *pools = pool->device->pools;
    struct ct_pool_garbage garbage = {0};
    CUresult r;

    if (ct_memory_pool_is_default(pool))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a default pool cannot be destroyed");
    r = ct_object_unpublish(&pool->object);
    if (r != CUDA_SUCCESS)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "another thread destroyed the pool");
    ct_mutex_lock(&pools->lock);
    pool->destroyed = true;
    ct_pools_replace_current_locked(pools, pool);
    ct_pools_reclaim_locked(pools, NULL, &garbage);
    ct_pools_reap_locked(pools, &garbage);
    ct_mutex_unlock(&pools->lock);
    ct_pool_garbage_free(pools, &garbage);
    return CUDA_SUCCESS;
}

/* ---- attributes ---- */

/* Returns the attribute's policy, or -1. */
static int policy_of(CUmemPool_attribute attribute)
{
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        return CT_REUSE_EVENTS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        return CT_REUSE_OPPORTUNISTIC;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        return CT_REUSE_INTERNAL;
    default:
        return -1;
    }
}

/* Returns the member of a 64-bit attribute, or NULL. */
static uint64_t *number_of(struct ct_memory_pool *pool, CUmemPool_attribute attribute)
{
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        return &pool->release_threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        return &pool->reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return &pool->reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return &pool->used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return &pool->used_high;
    default:
        return NULL;
    }
}

static CUresult set_number_locked(struct ct_memory_pool *pool, CUmemPool_attribute attribute, uint64_t value)
{
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        pool->release_threshold = value;
        atomic_store_explicit(&pool->device->pools->needs_reclaim, true, memory_order_release); /* pairs with the exchange in observe */
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (value != 0)
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "a high watermark can only be set to 0");
        *number_of(pool, attribute) = attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? pool->used : pool->reserved;
        return CUDA_SUCCESS;
    default:
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "attribute %d of a memory pool cannot be set", (int)attribute);
    }
}

CUresult ct_memory_pool_set_attribute(struct ct_memory_pool *pool, CUmemPool_attribute attribute, const void *value)
{
    struct ct_device_pools *pools = pool->device->pools;
    int policy = policy_of(attribute);
    CUresult r = CUDA_SUCCESS;

    ct_mutex_lock(&pools->lock);
    if (policy >= 0)
        pool->reuse[policy] = *(const int *)value != 0;
    else
        r = number_of(pool, attribute) ? set_number_locked(pool, attribute, *(const cuuint64_t *)value) : CUDA_ERROR_INVALID_VALUE;
    ct_mutex_unlock(&pools->lock);
    return r == CUDA_SUCCESS ? r : ct_fail(r, "attribute %d of a memory pool cannot be set", (int)attribute);
}

CUresult ct_memory_pool_get_attribute(struct ct_memory_pool *pool, CUmemPool_attribute attribute, void *value)
{
    struct ct_device_pools *pools = pool->device->pools;
    int policy = policy_of(attribute);
    const uint64_t *number = number_of(pool, attribute);

    if (policy < 0 && !number)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "memory pools have no attribute %d", (int)attribute);
    ct_mutex_lock(&pools->lock);
    if (policy >= 0)
        *(int *)value = pool->reuse[policy];
    else
        *(cuuint64_t *)value = *number;
    ct_mutex_unlock(&pools->lock);
    return CUDA_SUCCESS;
}

/* ---- trimming ---- */

void ct_memory_pool_trim(struct ct_memory_pool *pool, uint64_t min_bytes)
{
    struct ct_device_pools *pools = pool->device->pools;
    struct ct_pool_garbage garbage = {0};

    ct_mutex_lock(&pools->lock);
    ct_pools_reclaim_locked(pools, NULL, &garbage);
    ct_pool_shrink_locked(pool, min_bytes, &garbage);
    if (!min_bytes)
        ct_pool_frames_trim_locked(pool, &garbage);
    ct_mutex_unlock(&pools->lock);
    ct_pool_garbage_free(pools, &garbage);
}

void ct_memory_pools_forget(struct ct_context *context)
{
    for (unsigned i = 0; i < ct_process.n_devices; i++) {
        struct ct_device_pools *pools = ct_process.devices[i].pools;
        struct ct_pool_garbage garbage = {0};

        ct_mutex_lock(&pools->lock);
        ct_pools_forget_locked(pools, context, &garbage);
        ct_pools_reap_locked(pools, &garbage);
        ct_mutex_unlock(&pools->lock);
        ct_pool_garbage_free(pools, &garbage);
    }
}
