/* SPDX-License-Identifier: Apache-2.0 */
/* Lines: timeline semaphores, counted, so that a batch may wait for one whose queue or timeline is gone. */
#include "queue.h"

#include "core/base/log.h"

#include <assert.h>
#include <stdlib.h>

#define CT_CHANNEL "queue"
#define AWAIT_SLICE_NS UINT64_C(200000000) /* how soon a waiter learns that the device was lost elsewhere */

static CUresult create(struct ct_backend_device *device, VkSemaphoreType kind, struct ct_vk_line **out)
{
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, .semaphoreType = kind};
    const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    struct ct_vk_line *line = calloc(1, sizeof *line);
    CUresult r;

    if (!line)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "timeline object");
    if ((r = ct_vk_result(device->vk.vkCreateSemaphore(device->handle, &info, NULL, &line->semaphore), "vkCreateSemaphore")) !=
        CUDA_SUCCESS) {
        free(line);
        return r;
    }
    line->references = 1;
    *out = line;
    return CUDA_SUCCESS;
}

CUresult ct_vk_line_create(struct ct_backend_device *device, struct ct_vk_line **out)
{
    return create(device, VK_SEMAPHORE_TYPE_TIMELINE, out);
}

CUresult ct_vk_line_create_binary(struct ct_backend_device *device, struct ct_vk_line **out)
{
    return create(device, VK_SEMAPHORE_TYPE_BINARY, out);
}

void ct_vk_line_retain_locked(struct ct_vk_line *line)
{
    line->references++;
}

void ct_vk_line_release_locked(struct ct_backend_device *device, struct ct_vk_line *line)
{
    if (!line || --line->references)
        return;
    device->vk.vkDestroySemaphore(device->handle, line->semaphore, NULL);
    free(line);
}

/* A failed wait or query means that the device is gone. */
static CUresult check(struct ct_backend_device *device, VkResult result, const char *call)
{
    CUresult r = ct_vk_result(result, call);

    return r == CUDA_SUCCESS || r == CUDA_ERROR_NOT_READY ? r : ct_vk_device_lose(device, r);
}

CUresult ct_vk_line_read(struct ct_backend_device *device, const struct ct_vk_line *line, uint64_t *out_value)
{
    return check(device, device->vk.vkGetSemaphoreCounterValue(device->handle, line->semaphore, out_value), "vkGetSemaphoreCounterValue");
}

CUresult ct_vk_line_await(struct ct_backend_device *device, const struct ct_vk_line *line, uint64_t value, uint64_t timeout_ns)
{
    const VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, .semaphoreCount = 1, .pSemaphores = &line->semaphore, .pValues = &value};
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
