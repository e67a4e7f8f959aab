/* SPDX-License-Identifier: Apache-2.0 */
/* Submission of batches, and what happens when they are complete, by the rules of queue.h. */
#include "queue.h"

#include "core/base/log.h"
#include "core/base/thread.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#define CT_CHANNEL "queue"

/* Drivers abort a submission after 2 to 60 s: after a long batch the maximum number of commands is halved, after a short one doubled. */
#define LONG_BATCH_NS UINT64_C(200000000)
#define SHORT_BATCH_NS UINT64_C(50000000)

/* ---- submission ---- */

/* Makes device writes visible to the host no later than the batch's point. */
static void record_host_barrier(struct ct_backend_device *device, const struct ct_vk_batch *batch)
{
    const VkMemoryBarrier2 barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
        .srcStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT,
        .srcAccessMask = VK_ACCESS_2_SHADER_WRITE_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT,
        .dstStageMask = VK_PIPELINE_STAGE_2_HOST_BIT,
        .dstAccessMask = VK_ACCESS_2_HOST_READ_BIT,
    };
    const VkDependencyInfo info = {.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO, .memoryBarrierCount = 1, .pMemoryBarriers = &barrier};

    device->vk.vkCmdPipelineBarrier2(batch->commands, &info);
}

static VkSemaphoreSubmitInfo semaphore_info(const struct ct_vk_timeline_semaphore *semaphore, uint64_t value)
{
    return (VkSemaphoreSubmitInfo){
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
        .semaphore = semaphore->handle,
        .value = value,
        .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
    };
}

static CUresult submit_batch(struct ct_backend_device *device, const struct ct_vk_batch *batch)
{
    VkSemaphoreSubmitInfo waits[CT_VK_BATCH_WAITS + 1], signals[2];
    const uint64_t binding = ct_vk_sparse_pending(device); /* it may bind memory that the batch uses */
    const VkCommandBufferSubmitInfo commands = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO, .commandBuffer = batch->commands};
    const VkSubmitInfo2 info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
        .waitSemaphoreInfoCount = batch->n_waits + (binding ? 1 : 0),
        .pWaitSemaphoreInfos = waits,
        .commandBufferInfoCount = 1,
        .pCommandBufferInfos = &commands,
        .signalSemaphoreInfoCount = batch->signal.semaphore ? 2 : 1,
        .pSignalSemaphoreInfos = signals,
    };
    CUresult r;

    for (unsigned i = 0; i < batch->n_waits; i++)
        waits[i] = semaphore_info(batch->waits[i].semaphore, batch->waits[i].value);
    if (binding)
        waits[batch->n_waits] = semaphore_info(device->binding_semaphore, binding);
    signals[0] = semaphore_info(batch->queue->semaphore, batch->last_point);
    if (batch->signal.semaphore)
        signals[1] = semaphore_info(batch->signal.semaphore, batch->signal.value);
    record_host_barrier(device, batch);
    if ((r = ct_vk_result(device->vk.vkEndCommandBuffer(batch->commands), "vkEndCommandBuffer")) != CUDA_SUCCESS)
        return r;
    return ct_vk_result(device->vk.vkQueueSubmit2(batch->queue->device_queue->handle, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit2");
}

/* Values only increase: if the host has signalled this value or a greater one meanwhile, the batch must not signal it. */
static void drop_stale_signal_locked(struct ct_backend_device *device, struct ct_vk_batch *batch)
{
    struct ct_vk_timeline_semaphore *semaphore = batch->signal.semaphore;

    if (!semaphore || batch->signal.value > semaphore->promised)
        return;
    ct_vk_timeline_semaphore_release_locked(device, semaphore);
    batch->signal.semaphore = NULL;
}

/* Submits the first batch. After a failure the device counts as lost: recorded commands cannot be undone, and later points would never
 * be reached. */
static void submit_first_locked(struct ct_queue *queue)
{
    struct ct_vk_batch *batch = ct_vk_batch_remove_first(&queue->unsubmitted);
    CUresult r;

    batch->closed = true;
    drop_stale_signal_locked(queue->device, batch);
    r = submit_batch(queue->device, batch);
    if (r != CUDA_SUCCESS) {
        ct_vk_device_lose(queue->device, r);
        queue->n_batches--;
        ct_vk_batch_give_locked(queue->scheduler, batch);
        return;
    }
    batch->begin_ns = ct_vk_now_ns();
    queue->semaphore->promised = batch->last_point;
    if (batch->signal.semaphore)
        batch->signal.semaphore->promised = batch->signal.value;
    ct_vk_batch_append(&queue->device_queue->in_flight, batch);
    if (batch->has_kernel)
        ct_vk_host_store_refresh_note_locked(queue->scheduler->refresh);
    queue->n_in_flight++;
    ct_vk_batch_prepare_locked(queue->scheduler);
}

static bool is_promised(const struct ct_vk_batch *batch)
{
    for (unsigned i = 0; i < batch->n_waits; i++)
        if (!batch->waits[i].semaphore->external && batch->waits[i].semaphore->promised < batch->waits[i].value)
            return false;
    return true;
}

static bool is_due(const struct ct_queue *queue, const struct ct_vk_batch *batch)
{
    uint64_t before = queue->semaphore->promised; /* the batch has the points that follow this one */

    return batch->closed || queue->n_in_flight < CT_VK_IN_FLIGHT || before < queue->flush_point;
}

static void set_flag_locked(bool *flag, unsigned *count, bool value)
{
    if (*flag != value)
        *count += value ? 1 : -1u;
    *flag = value;
}

/* ---- the thread of a device queue ---- */

/* Full batches are submitted at once, so a limit that is too low costs little; one that is too high may lose the device. */
static void adapt_batch_size(struct ct_queue *queue, const struct ct_vk_batch *batch, uint64_t done_ns, uint64_t previous_done_ns)
{
    uint64_t start = previous_done_ns > batch->begin_ns ? previous_done_ns : batch->begin_ns;

    if (done_ns - start > LONG_BATCH_NS && queue->max_commands > 1)
        queue->max_commands /= 2;
    else if (done_ns - start < SHORT_BATCH_NS && queue->max_commands < ct_vk_batch_limit())
        queue->max_commands *= 2;
}

/* Waits for the oldest batch of the device queue, and releases the lock meanwhile. */
static void await_oldest(struct ct_vk_device_queue *device_queue)
{
    struct ct_vk_scheduler *scheduler = device_queue->scheduler;
    struct ct_vk_batch *oldest = device_queue->in_flight.first;
    struct ct_vk_timeline_semaphore *semaphore = oldest->queue->semaphore;
    uint64_t point = oldest->last_point, now;
    CUresult r;

    ct_vk_timeline_semaphore_retain_locked(semaphore);
    ct_mutex_unlock(&scheduler->lock);
    r = ct_vk_timeline_semaphore_await(scheduler->device, semaphore, point, UINT64_MAX);
    ct_mutex_lock(&scheduler->lock);
    ct_vk_timeline_semaphore_release_locked(scheduler->device, semaphore);
    now = ct_vk_now_ns();
    if (r == CUDA_SUCCESS && device_queue->in_flight.first == oldest && oldest->last_point == point)
        adapt_batch_size(oldest->queue, oldest, now, device_queue->last_done_ns);
    device_queue->last_done_ns = now;
}

static void *run_device_queue(void *argument)
{
    struct ct_vk_device_queue *device_queue = argument;
    struct ct_vk_scheduler *scheduler = device_queue->scheduler;

    ct_mutex_lock(&scheduler->lock);
    while (!scheduler->stop) {
        if (!device_queue->n_gathering || !device_queue->in_flight.first || ct_vk_device_check(scheduler->device) != CUDA_SUCCESS) {
            ct_mutex_wait(&scheduler->lock, &device_queue->wake);
            continue;
        }
        await_oldest(device_queue);
        ct_vk_scheduler_retire_locked(device_queue);
        ct_vk_scheduler_pump_locked(scheduler);
    }
    ct_mutex_unlock(&scheduler->lock);
    return NULL;
}

static CUresult start_thread(struct ct_vk_device_queue *device_queue)
{
    int error = ct_thread_start(&device_queue->thread, run_device_queue, device_queue);

    if (error)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "the thread of a device queue cannot be created: error %d", error);
    device_queue->has_thread = true;
    return CUDA_SUCCESS;
}

/* Makes the thread check the device queue; false if there is no thread and none can be created. */
static bool wake_thread(struct ct_vk_device_queue *device_queue)
{
    if (!device_queue->has_thread && start_thread(device_queue) != CUDA_SUCCESS)
        return false;
    pthread_cond_signal(&device_queue->wake);
    return true;
}

/* ---- which batches are submitted ---- */

/* Returns true if a batch was submitted. */
static bool submit_due_locked(struct ct_queue *queue)
{
    struct ct_vk_batch *first;
    bool any = false;

    while ((first = queue->unsubmitted.first) && ct_vk_device_check(queue->device) == CUDA_SUCCESS && is_promised(first) &&
           is_due(queue, first)) {
        submit_first_locked(queue);
        any = true;
    }
    return any;
}

/* A queue that collects commands needs the thread, which detects the end of a batch. If it cannot be created, all batches are submitted at
 * once. */
static bool submit_ready_locked(struct ct_queue *queue)
{
    bool any = submit_due_locked(queue), alive = ct_vk_device_check(queue->device) == CUDA_SUCCESS;
    const struct ct_vk_batch *first = alive ? queue->unsubmitted.first : NULL;
    bool gathers = first && is_promised(first);

    if (gathers && !queue->gathering && !wake_thread(queue->device_queue)) {
        queue->flush_point = UINT64_MAX;
        any |= submit_due_locked(queue);
        gathers = false;
    }
    set_flag_locked(&queue->held, &queue->scheduler->n_held, queue->unsubmitted.first && alive && !gathers);
    set_flag_locked(&queue->gathering, &queue->device_queue->n_gathering, gathers);
    return any;
}

void ct_vk_scheduler_pump_locked(struct ct_vk_scheduler *scheduler)
{
    bool any = true;

    while (any) {
        any = false;
        for (struct ct_queue *queue = scheduler->queues; queue; queue = queue->next)
            any |= submit_ready_locked(queue) && scheduler->n_held;
    }
}

void ct_vk_scheduler_submit_locked(struct ct_queue *queue)
{
    if (submit_ready_locked(queue) && queue->scheduler->n_held)
        ct_vk_scheduler_pump_locked(queue->scheduler);
}

void ct_vk_scheduler_forget_locked(struct ct_queue *queue)
{
    struct ct_vk_batch_list others = {NULL, NULL};

    while (queue->unsubmitted.first)
        ct_vk_batch_give_locked(queue->scheduler, ct_vk_batch_remove_first(&queue->unsubmitted));
    while (queue->device_queue->in_flight.first) {
        struct ct_vk_batch *batch = ct_vk_batch_remove_first(&queue->device_queue->in_flight);

        if (batch->queue == queue)
            ct_vk_batch_give_locked(queue->scheduler, batch);
        else
            ct_vk_batch_append(&others, batch);
    }
    queue->device_queue->in_flight = others;
    set_flag_locked(&queue->held, &queue->scheduler->n_held, false);
    set_flag_locked(&queue->gathering, &queue->device_queue->n_gathering, false);
}

CUresult ct_vk_scheduler_create(struct ct_backend_device *device, struct ct_vk_scheduler **out)
{
    struct ct_vk_scheduler *scheduler = calloc(1, sizeof *scheduler);

    if (!scheduler)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "scheduler object");
    scheduler->device = device;
    ct_mutex_init(&scheduler->lock, CT_RANK_BACKEND);
    scheduler->n_device_queues = device->physical->n_queues;
    for (unsigned i = 0; i < scheduler->n_device_queues; i++) {
        scheduler->device_queues[i].scheduler = scheduler;
        scheduler->device_queues[i].handle = device->queues[i];
        pthread_cond_init(&scheduler->device_queues[i].wake, NULL);
    }
    if (device->physical->needs_host_store_refresh && ct_vk_host_store_refresh_create(scheduler, &scheduler->refresh) != CUDA_SUCCESS)
        ct_log(CT_LOG_WARN, "running kernels will not see stores by the host");
    *out = scheduler;
    return CUDA_SUCCESS;
}

void ct_vk_scheduler_destroy(struct ct_vk_scheduler *scheduler)
{
    if (!scheduler)
        return;
    ct_vk_host_store_refresh_destroy(scheduler->refresh);
    ct_mutex_lock(&scheduler->lock);
    scheduler->stop = true;
    (void)scheduler->device->vk.vkDeviceWaitIdle(
        scheduler->device->handle); /* for the lingering batches; a lost device has ended them, too */
    for (unsigned i = 0; i < scheduler->n_device_queues; i++) {
        ct_vk_device_queue_end_lingering_locked(&scheduler->device_queues[i]);
        pthread_cond_signal(&scheduler->device_queues[i].wake);
    }
    ct_mutex_unlock(&scheduler->lock);
    for (unsigned i = 0; i < scheduler->n_device_queues; i++) {
        if (scheduler->device_queues[i].has_thread)
            pthread_join(scheduler->device_queues[i].thread, NULL);
        pthread_cond_destroy(&scheduler->device_queues[i].wake);
    }
    ct_vk_batch_free_spares(scheduler);
    ct_mutex_finish(&scheduler->lock);
    free(scheduler);
}
