/* SPDX-License-Identifier: Apache-2.0 */
/* An open device: a VkDevice with its own function table and its queues. A device can be opened several times; the objects are
 * independent of each other. */
#include "vk.h"

#include "core/base/log.h"
#include "driver_leaks.h"
#include "queue.h"
#include "texture_images.h"

#include <stdlib.h>

#define CT_CHANNEL "vulkan"

/* Enables the features of features.def that the device has, and no others. */
static void choose_features(const struct ct_vk_physical *physical, struct ct_vk_features *out)
{
    const struct ct_vk_features *have = &physical->features;

    ct_vk_features_init(out, physical->has);
#define REQUIRE(block, field) out->block.field = have->block.field;
#define TARGET(block, field, member) out->block.field = have->block.field;
#define ENABLE(block, field) out->block.field = have->block.field;
#include "features.def"
}

static uint32_t choose_extensions(const struct ct_vk_physical *physical, const char *names[CT_VK_EXT_COUNT])
{
    enum use { QUERY, ENABLE };
    static const struct {
        const char *name;
        enum use use;
    } all[] = {
#define EXTENSION(id, name, use) [CT_VK_EXT_##id] = {name, use},
#include "extensions.def"
    };
    uint32_t n = 0;

    for (unsigned i = 0; i < CT_VK_EXT_COUNT; i++)
        if (physical->has[i] && all[i].use == ENABLE)
            names[n++] = all[i].name;
    return n;
}

static bool has_own_sparse_family(const struct ct_vk_physical *physical)
{
    return physical->has_sparse_family && physical->sparse_family != physical->family;
}

static VkDeviceQueueCreateInfo queues_of(uint32_t family, uint32_t count, const float *priorities)
{
    return (VkDeviceQueueCreateInfo){.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                     .queueFamilyIndex = family,
                                     .queueCount = count,
                                     .pQueuePriorities = priorities};
}

enum queues { ONE_QUEUE, ALL_QUEUES };

static CUresult create_handle(struct ct_backend_device *device, enum queues wanted)
{
    const struct ct_vk_physical *physical = device->physical;
    const float highest = 1.0f;
    struct ct_vk_features features;
    const char *names[CT_VK_EXT_COUNT];
    VkResult result;
    float priorities[CT_VK_MAX_QUEUES];
    VkDeviceQueueCreateInfo queues[3] = {queues_of(physical->family, wanted == ALL_QUEUES ? physical->n_queues : 1, priorities)};
    VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &features.core,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = queues,
        .enabledExtensionCount = choose_extensions(physical, names),
        .ppEnabledExtensionNames = names,
    };

    if (wanted == ALL_QUEUES && has_own_sparse_family(physical))
        queues[info.queueCreateInfoCount++] = queues_of(physical->sparse_family, 1, &highest);
    if (wanted == ALL_QUEUES && physical->has_refresh_family)
        queues[info.queueCreateInfoCount++] = queues_of(physical->refresh_family, 1, &highest);
    for (uint32_t i = 0; i < physical->n_queues; i++)
        priorities[i] = ct_vk_queue_is_urgent(i, physical->n_queues) ? 1.0f : 0.5f;
    choose_features(physical, &features);
    ct_vk_driver_leaks_begin(); /* lavapipe of Mesa 25.0 keeps allocation contexts of 48 bytes */
    result = vkCreateDevice(physical->handle, &info, NULL, &device->handle);
    ct_vk_driver_leaks_end();
    return ct_vk_result(result, "vkCreateDevice");
}

static CUresult get_sparse_queue(struct ct_backend_device *device)
{
    if (!device->physical->has_sparse_family)
        return CUDA_SUCCESS;
    device->vk.vkGetDeviceQueue(device->handle, device->physical->sparse_family, 0, &device->sparse_queue);
    return ct_vk_timeline_semaphore_create(device, &device->binding_semaphore);
}

static CUresult create_pipeline_cache(struct ct_backend_device *device)
{
    const VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};

    return ct_vk_result(device->vk.vkCreatePipelineCache(device->handle, &info, NULL, &device->pipeline_cache), "vkCreatePipelineCache");
}

/* Initializes what compiling needs. Creates no semaphores: RADV without a kernel driver, which can only compile, has none. */
static CUresult init_compiler(struct ct_backend_device *device, enum queues wanted)
{
    CUresult r;

    if ((r = create_handle(device, wanted)) != CUDA_SUCCESS)
        return r;
    volkLoadDeviceTable(&device->vk, device->handle);
    ct_mutex_init(&device->own_lock, CT_RANK_BACKEND);
    device->sparse_lock = &device->own_lock;
    if (device->physical->uses_file && (r = ct_memory_file_open(&device->file)) != CUDA_SUCCESS)
        return r;
    if (device->info->target.sampled_images && (r = ct_vk_textures_create_layout(device)) != CUDA_SUCCESS)
        return r;
    return create_pipeline_cache(device);
}

static CUresult init(struct ct_backend_device *device)
{
    CUresult r = init_compiler(device, ALL_QUEUES);

    if (r != CUDA_SUCCESS || (r = get_sparse_queue(device)) != CUDA_SUCCESS)
        return r;
    for (uint32_t i = 0; i < device->physical->n_queues; i++)
        device->vk.vkGetDeviceQueue(device->handle, device->physical->family, i, &device->queues[i]);
    if (device->physical->has_refresh_family)
        device->vk.vkGetDeviceQueue(device->handle, device->physical->refresh_family, 0, &device->refresh_queue);
    if ((r = ct_vk_timestamp_pool_create(device, &device->timestamps)) != CUDA_SUCCESS)
        return r;
    if ((r = ct_vk_scheduler_create(device, &device->scheduler)) != CUDA_SUCCESS)
        return r;
    if (device->sparse_queue && !has_own_sparse_family(device->physical))
        device->sparse_lock = &device->scheduler->lock; /* it is the first of `queues`, which the scheduler submits to */
    return CUDA_SUCCESS;
}

CUresult ct_vk_device_open(const struct ct_vk_physical *physical, const struct ct_device_info *info, struct ct_backend_device **out)
{
    struct ct_backend_device *device = calloc(1, sizeof *device);
    CUresult r;

    if (!device)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "device object");
    device->physical = physical;
    device->info = info;
    if ((r = init(device)) != CUDA_SUCCESS) {
        ct_vk_device_close(device);
        return r;
    }
    *out = device;
    return CUDA_SUCCESS;
}

CUresult ct_vk_device_open_compiler(const struct ct_vk_physical *physical, const struct ct_device_info *info,
                                    struct ct_backend_device **out)
{
    struct ct_backend_device *device = calloc(1, sizeof *device);
    CUresult r;

    if (!device)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "device object");
    device->physical = physical;
    device->info = info;
    device->capture_statistics = physical->features.executable.pipelineExecutableInfo;
    if ((r = init_compiler(device, ONE_QUEUE)) != CUDA_SUCCESS) {
        ct_vk_device_close(device);
        return r;
    }
    *out = device;
    return CUDA_SUCCESS;
}

void ct_vk_device_close(struct ct_backend_device *device)
{
    if (!device)
        return;
    if (device->destroy_textures)
        device->destroy_textures(device);
    ct_vk_scheduler_destroy(device->scheduler);
    ct_vk_timestamp_pool_destroy(device->timestamps);
    if (device->texture_layout)
        device->vk.vkDestroyDescriptorSetLayout(device->handle, device->texture_layout, NULL);
    if (device->pipeline_cache)
        device->vk.vkDestroyPipelineCache(device->handle, device->pipeline_cache, NULL);
    ct_vk_timeline_semaphore_release_locked(
        device, device->binding_semaphore); /* without the lock: the scheduler is destroyed, and this is the last reference */
    if (device->handle)
        device->vk.vkDestroyDevice(device->handle, NULL);
    if (device->sparse_lock)
        ct_mutex_finish(&device->own_lock);
    ct_memory_file_close(&device->file);
    free(device);
}
