/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: command buffers that are reused. Beginning one takes tens of microseconds on some drivers (40 measured on NVIDIA 580), so one
 * is begun in advance, while the device executes the last submission. */
#include "queue.h"

#include "core/base/config.h"
#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "queue"
#define MAX_SPARE 32 /* kept for reuse; further batches of a burst are freed */

unsigned ct_vk_batch_limit(void)
{
    return ct_config()->kernel_timeout > 0 ? 1 : CT_VK_BATCH_COMMANDS;
}

void ct_vk_batch_append(struct ct_vk_batch_list *list, struct ct_vk_batch *batch)
{
    batch->next = NULL;
    if (list->last)
        list->last->next = batch;
    else
        list->first = batch;
    list->last = batch;
}

struct ct_vk_batch *ct_vk_batch_remove_first(struct ct_vk_batch_list *list)
{
    struct ct_vk_batch *batch = list->first;

    list->first = batch->next;
    if (!list->first)
        list->last = NULL;
    return batch;
}

static struct ct_vk_batch *pop_or_null(struct ct_vk_batch **stack)
{
    struct ct_vk_batch *batch = *stack;

    if (batch)
        *stack = batch->next;
    return batch;
}

static void push(struct ct_vk_batch **stack, struct ct_vk_batch *batch)
{
    batch->next = *stack;
    *stack = batch;
}

static void destroy(struct ct_backend_device *device, struct ct_vk_batch *batch)
{
    if (batch->pool)
        device->vk.vkDestroyCommandPool(device->handle, batch->pool, NULL); /* frees the command buffer */
    free(batch->replays.list);
    free(batch->variants.list);
    free(batch);
}

static CUresult init(struct ct_backend_device *device, struct ct_vk_batch *batch)
{
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex = device->physical->family};
    VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY, .commandBufferCount = 1};
    CUresult r = ct_vk_result(device->vk.vkCreateCommandPool(device->handle, &pool, NULL, &batch->pool), "vkCreateCommandPool");

    if (r != CUDA_SUCCESS)
        return r;
    commands.commandPool = batch->pool;
    return ct_vk_result(device->vk.vkAllocateCommandBuffers(device->handle, &commands, &batch->commands), "vkAllocateCommandBuffers");
}

static CUresult begin(struct ct_backend_device *device, struct ct_vk_batch *batch)
{
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                           .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};

    return ct_vk_result(device->vk.vkBeginCommandBuffer(batch->commands, &info), "vkBeginCommandBuffer");
}

static CUresult create(struct ct_backend_device *device, struct ct_vk_batch **out)
{
    struct ct_vk_batch *batch = calloc(1, sizeof *batch);
    CUresult r;

    if (!batch)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "command buffer object");
    if ((r = init(device, batch)) != CUDA_SUCCESS || (r = begin(device, batch)) != CUDA_SUCCESS) {
        destroy(device, batch);
        return r;
    }
    *out = batch;
    return CUDA_SUCCESS;
}

static CUresult restart(struct ct_backend_device *device, struct ct_vk_batch *batch)
{
    CUresult r = ct_vk_result(device->vk.vkResetCommandPool(device->handle, batch->pool, 0), "vkResetCommandPool");

    return r == CUDA_SUCCESS ? begin(device, batch) : r;
}

/* Returns a begun batch that is in no list. */
static CUresult make_locked(struct ct_vk_scheduler *scheduler, struct ct_vk_batch **out)
{
    struct ct_vk_batch *batch = pop_or_null(&scheduler->used);
    CUresult r;

    if (!batch)
        return create(scheduler->device, out);
    scheduler->n_spare--;
    if ((r = restart(scheduler->device, batch)) != CUDA_SUCCESS) {
        destroy(scheduler->device, batch);
        return r;
    }
    *out = batch;
    return CUDA_SUCCESS;
}

CUresult ct_vk_batch_take_locked(struct ct_queue *queue, struct ct_vk_batch **out)
{
    struct ct_vk_scheduler *scheduler = queue->scheduler;
    struct ct_vk_batch *batch = pop_or_null(&scheduler->ready);
    CUresult r;

    if (batch)
        scheduler->n_spare--;
    else if ((r = make_locked(scheduler, &batch)) != CUDA_SUCCESS)
        return r;
    batch->queue = queue;
    batch->last_point = batch->cost_bytes = 0;
    batch->n_commands = batch->n_waits = 0;
    batch->closed = batch->has_kernel = false;
    *out = batch;
    return CUDA_SUCCESS;
}

void ct_vk_batch_give_locked(struct ct_vk_scheduler *scheduler, struct ct_vk_batch *batch)
{
    for (unsigned i = 0; i < batch->n_waits; i++)
        ct_vk_timeline_semaphore_release_locked(scheduler->device, batch->waits[i].semaphore);
    ct_vk_timeline_semaphore_release_locked(scheduler->device, batch->signal.semaphore);
    batch->signal.semaphore = NULL;
    batch->n_waits = 0;
    ct_vk_replays_end(&batch->replays);
    ct_vk_variants_drop(&batch->variants);
    if (scheduler->n_spare >= MAX_SPARE) {
        destroy(scheduler->device, batch);
        return;
    }
    push(&scheduler->used, batch);
    scheduler->n_spare++;
}

void ct_vk_batch_prepare_locked(struct ct_vk_scheduler *scheduler)
{
    struct ct_vk_batch *batch;

    if (scheduler->ready || make_locked(scheduler, &batch) != CUDA_SUCCESS)
        return; /* the next call that needs one returns the error */
    push(&scheduler->ready, batch);
    scheduler->n_spare++;
}

void ct_vk_batch_free_spares(struct ct_vk_scheduler *scheduler)
{
    struct ct_vk_batch *batch;

    while ((batch = pop_or_null(&scheduler->ready)) || (batch = pop_or_null(&scheduler->used)))
        destroy(scheduler->device, batch);
    scheduler->n_spare = 0;
}
