/* SPDX-License-Identifier: Apache-2.0 */
/* When batches go to the device, and what happens when they are complete: the rules of queue.h. */
#include "queue.h"

#include "core/base/log.h"
#include "core/base/thread.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#define CT_CHANNEL "queue"

/* Drivers kill a submission after 2 to 60 s: batches that take longer than LONG get half as many commands, short ones twice as many. */
#define LONG_BATCH_NS UINT64_C(200000000)
#define SHORT_BATCH_NS UINT64_C(50000000)

/* ---- submission ---- */

/* Device writes become visible to the host when the batch's point is. */
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

static VkSemaphoreSubmitInfo semaphore_info(const struct ct_vk_line *line, uint64_t value)
{
    return (VkSemaphoreSubmitInfo){
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
        .semaphore = line->semaphore,
        .value = value,
        .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
    };
}

static CUresult hand_over(struct ct_backend_device *device, const struct ct_vk_batch *batch)
{
    VkSemaphoreSubmitInfo waits[CT_VK_BATCH_WAITS + 1], signals[2];
    const uint64_t binding = ct_vk_sparse_pending(device); /* what the batch uses may be in it */
    const VkCommandBufferSubmitInfo commands = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO, .commandBuffer = batch->commands};
    const VkSubmitInfo2 info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
        .waitSemaphoreInfoCount = batch->n_waits + (binding ? 1 : 0),
        .pWaitSemaphoreInfos = waits,
        .commandBufferInfoCount = 1,
        .pCommandBufferInfos = &commands,
        .signalSemaphoreInfoCount = batch->signal.line ? 2 : 1,
        .pSignalSemaphoreInfos = signals,
    };
    CUresult r;

    for (unsigned i = 0; i < batch->n_waits; i++)
        waits[i] = semaphore_info(batch->waits[i].line, batch->waits[i].value);
    if (binding)
        waits[batch->n_waits] = semaphore_info(device->binding_line, binding);
    signals[0] = semaphore_info(batch->queue->line, batch->last_point);
    if (batch->signal.line)
        signals[1] = semaphore_info(batch->signal.line, batch->signal.value);
    record_host_barrier(device, batch);
    if ((r = ct_vk_result(device->vk.vkEndCommandBuffer(batch->commands), "vkEndCommandBuffer")) != CUDA_SUCCESS)
        return r;
    return ct_vk_result(device->vk.vkQueueSubmit2(batch->queue->lane->handle, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit2");
}

/* Values only grow: when the host has gone past this one meanwhile, there is nothing left to signal. */
static void drop_stale_signal_locked(struct ct_backend_device *device, struct ct_vk_batch *batch)
{
    struct ct_vk_line *line = batch->signal.line;

    if (!line || batch->signal.value > line->promised)
        return;
    ct_vk_line_release_locked(device, line);
    batch->signal.line = NULL;
}

/* Submits the first batch. A failure loses the device: what was recorded cannot be taken back, and later points would never come. */
static void submit_first_locked(struct ct_queue *queue)
{
    struct ct_vk_batch *batch = ct_vk_batch_remove_first(&queue->unsubmitted);
    CUresult r;

    batch->closed = true;
    drop_stale_signal_locked(queue->device, batch);
    r = hand_over(queue->device, batch);
    if (r != CUDA_SUCCESS) {
        ct_vk_device_lose(queue->device, r);
        queue->n_batches--;
        ct_vk_batch_give_locked(queue->scheduler, batch);
        return;
    }
    batch->submitted_ns = ct_vk_now_ns();
    queue->line->promised = batch->last_point;
    if (batch->signal.line)
        batch->signal.line->promised = batch->signal.value;
    ct_vk_batch_append(&queue->lane->in_flight, batch);
    if (batch->has_kernel)
        ct_vk_pulse_note_locked(queue->scheduler->pulse);
    queue->n_in_flight++;
    ct_vk_batch_prepare_locked(queue->scheduler);
}

static bool is_promised(const struct ct_vk_batch *batch)
{
    for (unsigned i = 0; i < batch->n_waits; i++)
        if (!batch->waits[i].line->external && batch->waits[i].line->promised < batch->waits[i].value)
            return false;
    return true;
}

static bool is_due(const struct ct_queue *queue, const struct ct_vk_batch *batch)
{
    uint64_t before = queue->line->promised; /* the batch has the points behind this one */

    return batch->closed || queue->n_in_flight < CT_VK_IN_FLIGHT || before < queue->flush_point;
}

static void set_flag_locked(bool *flag, unsigned *count, bool value)
{
    if (*flag != value)
        *count += value ? 1 : -1u;
    *flag = value;
}

/* ---- the lane's thread ---- */

/* Full batches are sent at once, so a limit that is too low costs little; one that is too high may cost the device. */
static void adapt_batch_size(struct ct_queue *queue, const struct ct_vk_batch *batch, uint64_t done_ns, uint64_t previous_done_ns)
{
    uint64_t start = previous_done_ns > batch->submitted_ns ? previous_done_ns : batch->submitted_ns;

    if (done_ns - start > LONG_BATCH_NS && queue->max_commands > 1)
        queue->max_commands /= 2;
    else if (done_ns - start < SHORT_BATCH_NS && queue->max_commands < CT_VK_BATCH_COMMANDS)
        queue->max_commands *= 2;
}

/* Waits for the oldest batch of the lane, without the lock meanwhile. */
static void await_oldest(struct ct_vk_lane *lane)
{
    struct ct_vk_scheduler *scheduler = lane->scheduler;
    struct ct_vk_batch *oldest = lane->in_flight.first;
    struct ct_vk_line *line = oldest->queue->line;
    uint64_t point = oldest->last_point, now;
    CUresult r;

    ct_vk_line_retain_locked(line);
    ct_mutex_unlock(&scheduler->lock);
    r = ct_vk_line_await(scheduler->device, line, point, UINT64_MAX);
    ct_mutex_lock(&scheduler->lock);
    ct_vk_line_release_locked(scheduler->device, line);
    now = ct_vk_now_ns();
    if (r == CUDA_SUCCESS && lane->in_flight.first == oldest && oldest->last_point == point)
        adapt_batch_size(oldest->queue, oldest, now, lane->last_done_ns);
    lane->last_done_ns = now;
}

static void *run_lane(void *argument)
{
    struct ct_vk_lane *lane = argument;
    struct ct_vk_scheduler *scheduler = lane->scheduler;

    ct_mutex_lock(&scheduler->lock);
    while (!scheduler->stop) {
        if (!lane->n_gathering || !lane->in_flight.first || ct_vk_device_check(scheduler->device) != CUDA_SUCCESS) {
            ct_mutex_wait(&scheduler->lock, &lane->wake);
            continue;
        }
        await_oldest(lane);
        ct_vk_scheduler_retire_locked(lane);
        ct_vk_scheduler_pump_locked(scheduler);
    }
    ct_mutex_unlock(&scheduler->lock);
    return NULL;
}

static CUresult start_thread(struct ct_vk_lane *lane)
{
    int error = ct_thread_start(&lane->thread, run_lane, lane);

    if (error)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "thread of a queue: error %d", error);
    lane->has_thread = true;
    return CUDA_SUCCESS;
}

/* The thread will look at the lane; false if there is none and none can be made. */
static bool wake_thread(struct ct_vk_lane *lane)
{
    if (!lane->has_thread && start_thread(lane) != CUDA_SUCCESS)
        return false;
    pthread_cond_signal(&lane->wake);
    return true;
}

/* ---- what may go ---- */

/* True if something was submitted. */
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

/* Somebody must see the end of what is in flight. Without a thread nobody would: then everything goes to the device at once. */
static bool submit_ready_locked(struct ct_queue *queue)
{
    bool any = submit_due_locked(queue), alive = ct_vk_device_check(queue->device) == CUDA_SUCCESS;
    const struct ct_vk_batch *first = alive ? queue->unsubmitted.first : NULL;
    bool gathers = first && is_promised(first);

    if (gathers && !queue->gathering && !wake_thread(queue->lane)) {
        queue->flush_point = UINT64_MAX;
        any |= submit_due_locked(queue);
        gathers = false;
    }
    set_flag_locked(&queue->held, &queue->scheduler->n_held, queue->unsubmitted.first && alive && !gathers);
    set_flag_locked(&queue->gathering, &queue->lane->n_gathering, gathers);
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
    while (queue->lane->in_flight.first) {
        struct ct_vk_batch *batch = ct_vk_batch_remove_first(&queue->lane->in_flight);

        if (batch->queue == queue)
            ct_vk_batch_give_locked(queue->scheduler, batch);
        else
            ct_vk_batch_append(&others, batch);
    }
    queue->lane->in_flight = others;
    set_flag_locked(&queue->held, &queue->scheduler->n_held, false);
    set_flag_locked(&queue->gathering, &queue->lane->n_gathering, false);
}

CUresult ct_vk_scheduler_create(struct ct_backend_device *device, struct ct_vk_scheduler **out)
{
    struct ct_vk_scheduler *scheduler = calloc(1, sizeof *scheduler);

    if (!scheduler)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "scheduler object");
    scheduler->device = device;
    ct_mutex_init(&scheduler->lock, CT_RANK_BACKEND);
    scheduler->n_lanes = device->physical->n_queues;
    for (unsigned i = 0; i < scheduler->n_lanes; i++) {
        scheduler->lanes[i].scheduler = scheduler;
        scheduler->lanes[i].handle = device->queues[i];
        pthread_cond_init(&scheduler->lanes[i].wake, NULL);
    }
    if (device->physical->needs_pulse && ct_vk_pulse_create(scheduler, &scheduler->pulse) != CUDA_SUCCESS)
        ct_log(CT_LOG_WARN, "running kernels will not see what the host stores");
    *out = scheduler;
    return CUDA_SUCCESS;
}

void ct_vk_scheduler_destroy(struct ct_vk_scheduler *scheduler)
{
    if (!scheduler)
        return;
    ct_vk_pulse_destroy(scheduler->pulse);
    ct_mutex_lock(&scheduler->lock);
    scheduler->stop = true;
    (void)scheduler->device->vk.vkDeviceWaitIdle(scheduler->device->handle); /* for what lingers; lost: it is over as well */
    for (unsigned i = 0; i < scheduler->n_lanes; i++) {
        ct_vk_lane_end_lingering_locked(&scheduler->lanes[i]);
        pthread_cond_signal(&scheduler->lanes[i].wake);
    }
    ct_mutex_unlock(&scheduler->lock);
    for (unsigned i = 0; i < scheduler->n_lanes; i++) {
        if (scheduler->lanes[i].has_thread)
            pthread_join(scheduler->lanes[i].thread, NULL);
        pthread_cond_destroy(&scheduler->lanes[i].wake);
    }
    ct_vk_batch_free_spares(scheduler);
    ct_mutex_finish(&scheduler->lock);
    free(scheduler);
}
