/* SPDX-License-Identifier: Apache-2.0 */
/* Timeline semaphores with a reference count, so that a batch may wait for one whose queue or timeline has been destroyed. */
#include "queue.h"

#include "core/base/log.h"

#include <assert.h>
#include <stdlib.h>

#define CT_CHANNEL "queue"
#define AWAIT_SLICE_NS UINT64_C(200000000) /* how often a waiting thread checks whether the device was lost in another call */

static CUresult create(struct ct_backend_device *device, VkSemaphoreType kind, struct ct_vk_timeline_semaphore **out)
{
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, .semaphoreType = kind};
    const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    struct ct_vk_timeline_semaphore *semaphore = calloc(1, sizeof *semaphore);
    CUresult r;

    if (!semaphore)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "timeline object");
    if ((r = ct_vk_result(device->vk.vkCreateSemaphore(device->handle, &info, NULL, &semaphore->handle), "vkCreateSemaphore")) !=
        CUDA_SUCCESS) {
        free(semaphore);
        return r;
    }
    semaphore->references = 1;
    *out = semaphore;
    return CUDA_SUCCESS;
}

CUresult ct_vk_timeline_semaphore_create(struct ct_backend_device *device, struct ct_vk_timeline_semaphore **out)
{
    return create(device, VK_SEMAPHORE_TYPE_TIMELINE, out);
}

CUresult ct_vk_timeline_semaphore_create_binary(struct ct_backend_device *device, struct ct_vk_timeline_semaphore **out)
{
    return create(device, VK_SEMAPHORE_TYPE_BINARY, out);
}

void ct_vk_timeline_semaphore_retain_locked(struct ct_vk_timeline_semaphore *semaphore)
{
    semaphore->references++;
}

void ct_vk_timeline_semaphore_release_locked(struct ct_backend_device *device, struct ct_vk_timeline_semaphore *semaphore)
{
    if (!semaphore || --semaphore->references || ct_vk_device_is_given_up(device))
        return;
    device->vk.vkDestroySemaphore(device->handle, semaphore->handle, NULL);
    free(semaphore);
}

/* A failed wait or query means that the device is lost. */
static CUresult check(struct ct_backend_device *device, VkResult result, const char *call)
{
    CUresult r = ct_vk_result(result, call);

    return r == CUDA_SUCCESS || r == CUDA_ERROR_NOT_READY ? r : ct_vk_device_lose(device, r);
}

CUresult ct_vk_timeline_semaphore_read(struct ct_backend_device *device, const struct ct_vk_timeline_semaphore *semaphore,
                                       uint64_t *out_value)
{
    return check(device, device->vk.vkGetSemaphoreCounterValue(device->handle, semaphore->handle, out_value), "vkGetSemaphoreCounterValue");
}

CUresult ct_vk_timeline_semaphore_await(struct ct_backend_device *device, const struct ct_vk_timeline_semaphore *semaphore, uint64_t value,
                                        uint64_t timeout_ns)
{
    const VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, .semaphoreCount = 1, .pSemaphores = &semaphore->handle, .pValues = &value};
    CUresult r;

    for (;;) {
        uint64_t slice = timeout_ns < AWAIT_SLICE_NS ? timeout_ns : AWAIT_SLICE_NS;

        if ((r = ct_vk_device_check(device)) != CUDA_SUCCESS)
            return r;
        r = check(device, device->vk.vkWaitSemaphores(device->handle, &info, slice), "vkWaitSemaphores");
        if (r != CUDA_ERROR_NOT_READY || slice == timeout_ns)
            return r;
        if (timeout_ns != UINT64_MAX)
            timeout_ns -= slice;
    }
}
