/* SPDX-License-Identifier: Apache-2.0 */
/* Semaphores that are shared with another API or process, which signal them, too.
 *
 * A binary semaphore has no values. Its ct_vk_timeline_semaphore counts the local signals, so that each is greater than the last, and its
 * waits are for 0. Vulkan requires the signal of a binary semaphore to be submitted before the wait for it, also across processes: so a
 * signal is submitted as soon as possible. */
#include "queue.h"

#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "queue"

struct ct_semaphore {
    struct ct_backend_device *device; /* borrowed */
    struct ct_vk_timeline_semaphore *vulkan;
    bool is_timeline;
};

bool ct_vk_imports_semaphores(const struct ct_vk_physical *physical, VkSemaphoreType kind)
{
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, .semaphoreType = kind};
    const VkPhysicalDeviceExternalSemaphoreInfo info = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO,
                                                        .pNext = &type,
                                                        .handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
    VkExternalSemaphoreProperties properties = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES};

    vkGetPhysicalDeviceExternalSemaphoreProperties(physical->handle, &info, &properties);
    return properties.externalSemaphoreFeatures & VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT;
}

static CUresult import_fd(struct ct_semaphore *semaphore, int fd)
{
    struct ct_backend_device *device = semaphore->device;
    const VkImportSemaphoreFdInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_SEMAPHORE_FD_INFO_KHR,
        .semaphore = semaphore->vulkan->handle,
        .handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT,
        .fd = fd,
    };
    CUresult r = ct_vk_result(device->vk.vkImportSemaphoreFdKHR(device->handle, &info), "vkImportSemaphoreFdKHR");

    return r == CUDA_SUCCESS || r == CUDA_ERROR_OUT_OF_MEMORY
               ? r
               : ct_fail(CUDA_ERROR_OPERATING_SYSTEM, "%s does not import file descriptor %d as a semaphore", device->info->name, fd);
}

CUresult ct_vk_semaphore_import(struct ct_backend_device *device, int fd, bool timeline, struct ct_semaphore **out)
{
    struct ct_semaphore *semaphore = calloc(1, sizeof *semaphore);
    CUresult r;

    if (!semaphore)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "semaphore object");
    semaphore->device = device;
    semaphore->is_timeline = timeline;
    r = timeline ? ct_vk_timeline_semaphore_create(device, &semaphore->vulkan)
                 : ct_vk_timeline_semaphore_create_binary(device, &semaphore->vulkan);
    if (r != CUDA_SUCCESS) {
        free(semaphore);
        return r;
    }
    semaphore->vulkan->external = true;
    if ((r = import_fd(semaphore, fd)) != CUDA_SUCCESS) {
        ct_vk_semaphore_destroy(semaphore);
        return r;
    }
    *out = semaphore;
    return CUDA_SUCCESS;
}

void ct_vk_semaphore_destroy(struct ct_semaphore *semaphore)
{
    struct ct_vk_scheduler *scheduler;

    if (!semaphore)
        return;
    scheduler = semaphore->device->scheduler;
    ct_mutex_lock(&scheduler->lock);
    ct_vk_timeline_semaphore_release_locked(semaphore->device, semaphore->vulkan);
    ct_mutex_unlock(&scheduler->lock);
    free(semaphore);
}

CUresult ct_vk_semaphore_await(struct ct_semaphore *semaphore, uint64_t value, uint64_t timeout_ns)
{
    return ct_vk_timeline_semaphore_await(semaphore->device, semaphore->vulkan, value, timeout_ns);
}

/* Values only increase, and another process may have signalled, too. */
static CUresult signal_timeline(struct ct_queue *queue, struct ct_semaphore *semaphore, uint64_t value)
{
    uint64_t now;
    CUresult r = ct_vk_timeline_semaphore_read(queue->device, semaphore->vulkan, &now);

    if (r != CUDA_SUCCESS)
        return r;
    if (value <= now)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "signal of %llu on a timeline at %llu", (unsigned long long)value,
                       (unsigned long long)now);
    return ct_vk_queue_signal_timeline_semaphore(queue, semaphore->vulkan, &value);
}

CUresult ct_vk_queue_signal_semaphore(struct ct_queue *queue, struct ct_semaphore *semaphore, uint64_t value)
{
    return semaphore->is_timeline ? signal_timeline(queue, semaphore, value)
                                  : ct_vk_queue_signal_timeline_semaphore(queue, semaphore->vulkan, NULL);
}

CUresult ct_vk_queue_wait_semaphore(struct ct_queue *queue, struct ct_semaphore *semaphore, uint64_t value)
{
    return ct_vk_queue_wait_timeline_semaphore(queue, semaphore->vulkan, semaphore->is_timeline ? value : 0);
}
