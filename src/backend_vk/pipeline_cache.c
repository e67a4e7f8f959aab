/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers check the header of a cache's data. It is checked here, too, so that no driver has to. */
#include "pipeline_cache.h"

#include <stdlib.h>
#include <string.h>

/* A cache of this size has a header and perhaps a count, and no pipeline. */
#define EMPTY_BYTES (sizeof(VkPipelineCacheHeaderVersionOne) + 32)

static struct ct_disk_key key_of(const struct ct_backend_device *device, const struct ct_bytes *parts, size_t n_parts)
{
    const struct ct_vk_physical *physical = device->physical;
    const struct ct_hash pipeline = ct_hash_parts(parts, n_parts);
    const uint32_t numbers[] = {device->info->vendor_id, device->info->device_id, physical->driver_version};
    const struct ct_bytes all[] = {{&pipeline, sizeof pipeline},
                                   {numbers, sizeof numbers},
                                   {physical->cache_uuid, sizeof physical->cache_uuid},
                                   {device->info->driver, strlen(device->info->driver)}};

    return ct_disk_key_make(CT_DISK_PIPELINE, all, sizeof all / sizeof *all);
}

static bool is_of_device(const struct ct_backend_device *device, const void *data, size_t size)
{
    VkPipelineCacheHeaderVersionOne header;

    if (size <= sizeof header)
        return false;
    memcpy(&header, data, sizeof header);
    return header.headerSize == sizeof header && header.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
           header.vendorID == device->info->vendor_id && header.deviceID == device->info->device_id &&
           !memcmp(header.pipelineCacheUUID, device->physical->cache_uuid, sizeof header.pipelineCacheUUID);
}

/* Code for windows of memory is of no use to other processes (core/code/kernel_cache.c). Statistics are not in caches. */
static bool keeps_pipelines(struct ct_backend_device *device)
{
    return !atomic_load_explicit(&device->leaves_caches_empty, memory_order_relaxed) && /* relaxed: it only saves time */
           ct_disk_cache_takes_code() && device->info->target.pointer_rule != PTX2SPV_POINTER_WINDOWS && !device->capture_statistics;
}

struct ct_vk_pipeline_store ct_vk_pipeline_store_open(struct ct_backend_device *device, const struct ct_bytes *parts, size_t n_parts)
{
    VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    struct ct_vk_pipeline_store store = {.handle = device->pipeline_cache};
    void *data = NULL;
    size_t size = 0;

    if (!keeps_pipelines(device))
        return store;
    store.key = key_of(device, parts, n_parts);
    if (ct_disk_cache_load(&store.key, &data, &size) && is_of_device(device, data, size)) {
        info.initialDataSize = size;
        info.pInitialData = data;
    }
    if (device->vk.vkCreatePipelineCache(device->handle, &info, NULL, &store.handle) == VK_SUCCESS) {
        store.is_kept = true;
        store.loaded_bytes = info.initialDataSize;
    } else {
        store.handle = device->pipeline_cache;
    }
    free(data);
    return store;
}

static void save(struct ct_backend_device *device, const struct ct_vk_pipeline_store *store)
{
    size_t size = 0;
    void *data;

    if (device->vk.vkGetPipelineCacheData(device->handle, store->handle, &size, NULL) != VK_SUCCESS || size == store->loaded_bytes)
        return;
    if (size <= EMPTY_BYTES) {
        atomic_store_explicit(&device->leaves_caches_empty, true, memory_order_relaxed);
        return;
    }
    data = malloc(size);
    if (data && device->vk.vkGetPipelineCacheData(device->handle, store->handle, &size, data) == VK_SUCCESS)
        ct_disk_cache_store(&store->key, &(struct ct_bytes){data, size}, 1);
    free(data);
}

void ct_vk_pipeline_store_close(struct ct_backend_device *device, const struct ct_vk_pipeline_store *store, CUresult compiled)
{
    if (!store->is_kept)
        return;
    if (compiled == CUDA_SUCCESS)
        save(device, store);
    device->vk.vkDestroyPipelineCache(device->handle, store->handle, NULL);
}
