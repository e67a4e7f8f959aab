/* SPDX-License-Identifier: Apache-2.0 */
/* Timelines: counters that queues and the host signal and wait for. Batches that become ready by a host signal are submitted at once. */
#include "queue.h"

#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "queue"

CUresult ct_vk_timeline_create(struct ct_backend_device *device, struct ct_timeline **out)
{
    struct ct_timeline *timeline = calloc(1, sizeof *timeline);
    CUresult r;

    if (!timeline)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "timeline object");
    timeline->device = device;
    if ((r = ct_vk_timeline_semaphore_create(device, &timeline->semaphore)) != CUDA_SUCCESS) {
        free(timeline);
        return r;
    }
    *out = timeline;
    return CUDA_SUCCESS;
}

void ct_vk_timeline_destroy(struct ct_timeline *timeline)
{
    struct ct_vk_scheduler *scheduler;

    if (!timeline)
        return;
    scheduler = timeline->device->scheduler;
    ct_mutex_lock(&scheduler->lock);
    ct_vk_timeline_semaphore_release_locked(timeline->device, timeline->semaphore);
    ct_mutex_unlock(&scheduler->lock);
    free(timeline);
}

/* Values only increase, and the host must not signal while a submitted signal is pending (VUID-VkSemaphoreSignalInfo-value-03258, 03259). */
static CUresult signal_locked(struct ct_timeline *timeline, uint64_t value)
{
    struct ct_backend_device *device = timeline->device;
    struct ct_vk_timeline_semaphore *semaphore = timeline->semaphore;
    const VkSemaphoreSignalInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = semaphore->handle, .value = value};
    uint64_t now;
    CUresult r = ct_vk_timeline_semaphore_read(device, semaphore, &now);

    if (r != CUDA_SUCCESS)
        return r;
    if (value <= now || semaphore->promised > now)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the host signals %llu on a timeline at %llu with a pending signal of %llu",
                       (unsigned long long)value, (unsigned long long)now, (unsigned long long)semaphore->promised);
    if ((r = ct_vk_result(device->vk.vkSignalSemaphore(device->handle, &info), "vkSignalSemaphore")) != CUDA_SUCCESS)
        return ct_vk_device_lose(device, r);
    semaphore->promised = value;
    if (value > semaphore->recorded)
        semaphore->recorded = value;
    ct_vk_scheduler_pump_locked(device->scheduler);
    return CUDA_SUCCESS;
}

CUresult ct_vk_timeline_signal(struct ct_timeline *timeline, uint64_t value)
{
    struct ct_vk_scheduler *scheduler = timeline->device->scheduler;
    CUresult r;

    ct_mutex_lock(&scheduler->lock);
    r = signal_locked(timeline, value);
    ct_mutex_unlock(&scheduler->lock);
    return r;
}

CUresult ct_vk_timeline_await(struct ct_timeline *timeline, uint64_t value, uint64_t timeout_ns)
{
    return ct_vk_timeline_semaphore_await(timeline->device, timeline->semaphore, value, timeout_ns);
}
