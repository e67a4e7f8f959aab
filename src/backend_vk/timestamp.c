/* SPDX-License-Identifier: Apache-2.0 */
/* Timestamps: slots of query pools, which are allocated in slabs and kept until the device is closed. */
#include "vk.h"

#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "queue"
#define SLAB_SLOTS 64

struct slab {
    struct slab *next;
    VkQueryPool queries;
    uint64_t used; /* one bit per slot */
};

struct ct_vk_timestamp_pool {
    struct ct_backend_device *device; /* borrowed: it owns the pool */
    struct ct_mutex lock;             /* rank CT_RANK_BACKEND; guards the slabs */
    struct slab *slabs;
};

struct ct_timestamp {
    struct ct_backend_device *device;
    struct slab *slab;
    uint32_t slot;
    atomic_bool written; /* relaxed: a reader of the time has waited for the point of its command */
};

CUresult ct_vk_timestamp_pool_create(struct ct_backend_device *device, struct ct_vk_timestamp_pool **out)
{
    struct ct_vk_timestamp_pool *pool = calloc(1, sizeof *pool);

    if (!pool)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "timestamp pool");
    pool->device = device;
    ct_mutex_init(&pool->lock, CT_RANK_BACKEND);
    *out = pool;
    return CUDA_SUCCESS;
}

void ct_vk_timestamp_pool_destroy(struct ct_vk_timestamp_pool *pool)
{
    if (!pool)
        return;
    for (struct slab *slab = pool->slabs, *next; slab; slab = next) {
        next = slab->next;
        pool->device->vk.vkDestroyQueryPool(pool->device->handle, slab->queries, NULL);
        free(slab);
    }
    ct_mutex_finish(&pool->lock);
    free(pool);
}

static CUresult add_slab_locked(struct ct_vk_timestamp_pool *pool)
{
    const VkQueryPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, .queryType = VK_QUERY_TYPE_TIMESTAMP, .queryCount = SLAB_SLOTS};
    struct slab *slab = calloc(1, sizeof *slab);
    CUresult r;

    if (!slab)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "timestamps");
    r = ct_vk_result(pool->device->vk.vkCreateQueryPool(pool->device->handle, &info, NULL, &slab->queries), "vkCreateQueryPool");
    if (r != CUDA_SUCCESS) {
        free(slab);
        return r;
    }
    slab->next = pool->slabs;
    pool->slabs = slab;
    return CUDA_SUCCESS;
}

static CUresult take_slot_locked(struct ct_vk_timestamp_pool *pool, struct ct_timestamp *timestamp)
{
    struct slab *slab = pool->slabs;
    CUresult r;

    while (slab && slab->used == UINT64_MAX)
        slab = slab->next;
    if (!slab) {
        if ((r = add_slab_locked(pool)) != CUDA_SUCCESS)
            return r;
        slab = pool->slabs;
    }
    timestamp->slab = slab;
    timestamp->slot = (uint32_t)__builtin_ctzll(~slab->used);
    slab->used |= UINT64_C(1) << timestamp->slot;
    return CUDA_SUCCESS;
}

CUresult ct_vk_timestamp_create(struct ct_backend_device *device, struct ct_timestamp **out)
{
    struct ct_vk_timestamp_pool *pool = device->timestamps;
    struct ct_timestamp *timestamp;
    CUresult r;

    if (!device->info->timestamps)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "the compute queues of %s have no timestamps", device->info->name);
    if (!(timestamp = calloc(1, sizeof *timestamp)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "timestamp object");
    timestamp->device = device;
    ct_mutex_lock(&pool->lock);
    r = take_slot_locked(pool, timestamp);
    ct_mutex_unlock(&pool->lock);
    if (r != CUDA_SUCCESS) {
        free(timestamp);
        return r;
    }
    *out = timestamp;
    return CUDA_SUCCESS;
}

void ct_vk_timestamp_destroy(struct ct_timestamp *timestamp)
{
    struct ct_vk_timestamp_pool *pool;

    if (!timestamp)
        return;
    pool = timestamp->device->timestamps;
    ct_mutex_lock(&pool->lock);
    timestamp->slab->used &= ~(UINT64_C(1) << timestamp->slot);
    ct_mutex_unlock(&pool->lock);
    free(timestamp);
}

void ct_vk_timestamp_record(struct ct_timestamp *timestamp, VkCommandBuffer commands)
{
    const struct VolkDeviceTable *vk = &timestamp->device->vk;

    vk->vkCmdResetQueryPool(commands, timestamp->slab->queries, timestamp->slot, 1);
    vk->vkCmdWriteTimestamp2(commands, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, timestamp->slab->queries, timestamp->slot);
    atomic_store_explicit(&timestamp->written, true, memory_order_relaxed);
}

CUresult ct_vk_timestamp_read(struct ct_timestamp *timestamp, double *out_ns)
{
    struct ct_backend_device *device = timestamp->device;
    uint32_t bits = device->physical->timestamp_bits;
    uint64_t ticks = 0;
    VkResult result;

    if (!atomic_load_explicit(&timestamp->written, memory_order_relaxed))
        return CUDA_ERROR_NOT_READY;
    result = device->vk.vkGetQueryPoolResults(device->handle, timestamp->slab->queries, timestamp->slot, 1, sizeof ticks, &ticks,
                                              sizeof ticks, VK_QUERY_RESULT_64_BIT);
    if (result != VK_SUCCESS)
        return ct_vk_result(result, "vkGetQueryPoolResults");
    if (bits < 64)
        ticks &= (UINT64_C(1) << bits) - 1;
    *out_ns = (double)ticks * device->info->timestamp_period_ns;
    return CUDA_SUCCESS;
}
