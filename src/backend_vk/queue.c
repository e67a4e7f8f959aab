/* SPDX-License-Identifier: Apache-2.0 */
/* Queues: creation, the begin and end of a command, and waits for points, other queues and timelines. queue.h has the rules. */
#include "queue.h"

#include "core/base/log.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>

#define CT_CHANNEL "queue"
#define SPIN_READS 64                     /* between two reads of the clock */
#define SPIN_SLICE_NS UINT64_C(200000000) /* how often a spinning thread asks whether the device is lost */

/* ---- creation ---- */

/* Streams of high priority share the last device queue; the others are assigned in turn. */
static struct ct_vk_device_queue *choose_device_queue_locked(struct ct_vk_scheduler *scheduler, int priority)
{
    unsigned count = scheduler->n_device_queues;
    bool has_urgent = ct_vk_queue_is_urgent(count - 1, count);

    if (priority < 0 && has_urgent)
        return &scheduler->device_queues[count - 1];
    return &scheduler->device_queues[scheduler->next_device_queue++ % (has_urgent ? count - 1 : count)];
}

CUresult ct_vk_queue_create(struct ct_backend_device *device, const struct ct_queue_desc *desc, struct ct_queue **out)
{
    struct ct_vk_scheduler *scheduler = device->scheduler;
    struct ct_queue *queue = calloc(1, sizeof *queue);
    CUresult r;

    if (!queue)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "queue object");
    if ((r = ct_vk_timeline_semaphore_create(device, &queue->semaphore)) != CUDA_SUCCESS) {
        free(queue);
        return r;
    }
    queue->device = device;
    queue->scheduler = scheduler;
    queue->max_commands = ct_vk_batch_limit();
    ct_mutex_lock(&scheduler->lock);
    queue->device_queue = choose_device_queue_locked(scheduler, desc->priority);
    queue->next = scheduler->queues;
    scheduler->queues = queue;
    ct_mutex_unlock(&scheduler->lock);
    *out = queue;
    return CUDA_SUCCESS;
}

static void unlink_locked(struct ct_queue *queue)
{
    struct ct_queue **link = &queue->scheduler->queues;

    while (*link != queue)
        link = &(*link)->next;
    *link = queue->next;
}

void ct_vk_queue_destroy(struct ct_queue *queue)
{
    struct ct_vk_scheduler *scheduler;

    if (!queue || ct_vk_device_is_given_up(queue->device))
        return;
    scheduler = queue->scheduler;
    ct_mutex_lock(&scheduler->lock);
    if (ct_vk_device_check(queue->device) != CUDA_SUCCESS) /* the driver may still execute submissions of a device that is marked as lost */
        (void)queue->device->vk.vkDeviceWaitIdle(queue->device->handle);
    else
        ct_vk_scheduler_retire_locked(queue->device_queue);
    assert(!queue->n_batches || ct_vk_device_check(queue->device) != CUDA_SUCCESS);
    ct_vk_scheduler_forget_locked(queue);
    unlink_locked(queue);
    ct_vk_timeline_semaphore_release_locked(queue->device, queue->semaphore);
    ct_mutex_unlock(&scheduler->lock);
    free(queue);
}

/* ---- the begin and end of a command ---- */

void ct_vk_record_barrier(const struct ct_backend_device *device, VkCommandBuffer commands)
{
    const VkPipelineStageFlags2 stages = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT;
    const VkAccessFlags2 writes = VK_ACCESS_2_SHADER_WRITE_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT;
    const VkMemoryBarrier2 barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
        .srcStageMask = stages,
        .srcAccessMask = writes,
        .dstStageMask = stages,
        .dstAccessMask = writes | VK_ACCESS_2_SHADER_READ_BIT | VK_ACCESS_2_TRANSFER_READ_BIT,
    };
    const VkDependencyInfo info = {.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO, .memoryBarrierCount = 1, .pMemoryBarriers = &barrier};

    device->vk.vkCmdPipelineBarrier2(commands, &info);
}

/* Finds or begins the batch that takes the next command. */
static CUresult open_batch_locked(struct ct_queue *queue, struct ct_vk_batch **out)
{
    struct ct_vk_batch *batch = queue->unsubmitted.last;
    CUresult r;

    if (!batch || batch->closed) {
        if ((r = ct_vk_batch_take_locked(queue, &batch)) != CUDA_SUCCESS)
            return r;
        ct_vk_batch_append(&queue->unsubmitted, batch);
        queue->n_batches++;
    }
    *out = batch;
    return CUDA_SUCCESS;
}

/* If the queue has CT_VK_QUEUE_BATCHES batches, waits until one of them ends. The number of batches behind a wait for the host is not
 * limited, since the calling thread may be the one that is to signal. */
static CUresult make_room_locked(struct ct_queue *queue)
{
    struct ct_vk_scheduler *scheduler = queue->scheduler;
    CUresult r = CUDA_SUCCESS;

    while (r == CUDA_SUCCESS && queue->n_batches >= CT_VK_QUEUE_BATCHES && queue->n_in_flight) {
        uint64_t next = queue->completed + 1;

        ct_mutex_unlock(&scheduler->lock);
        r = ct_vk_timeline_semaphore_await(queue->device, queue->semaphore, next, UINT64_MAX);
        ct_mutex_lock(&scheduler->lock);
        ct_vk_scheduler_retire_locked(queue->device_queue);
    }
    return r;
}

CUresult ct_vk_queue_await_room(struct ct_queue *queue)
{
    CUresult r;

    ct_mutex_lock(&queue->scheduler->lock);
    ct_vk_scheduler_retire_locked(queue->device_queue);
    r = make_room_locked(queue);
    ct_mutex_unlock(&queue->scheduler->lock);
    return r;
}

CUresult ct_vk_command_begin_locked(struct ct_queue *queue, struct ct_vk_batch **out)
{
    struct ct_vk_batch *batch;
    CUresult r = ct_vk_device_check(queue->device);

    if (r != CUDA_SUCCESS)
        return r;
    ct_vk_scheduler_retire_locked(queue->device_queue);
    if ((r = make_room_locked(queue)) != CUDA_SUCCESS || (r = open_batch_locked(queue, &batch)) != CUDA_SUCCESS)
        return r;
    ct_vk_record_barrier(queue->device, batch->commands);
    batch->last_point = atomic_fetch_add_explicit(&queue->point, 1, memory_order_relaxed) + 1;
    batch->n_commands++;
    *out = batch;
    return CUDA_SUCCESS;
}

CUresult ct_vk_command_end_locked(struct ct_queue *queue, CUresult result)
{
    struct ct_vk_batch *batch = queue->unsubmitted.last;

    if (batch && (batch->n_commands >= queue->max_commands || batch->cost_bytes >= CT_VK_BATCH_BYTES))
        batch->closed = true;
    ct_vk_scheduler_submit_locked(queue);
    return result == CUDA_SUCCESS ? ct_vk_device_check(queue->device) : result;
}

/* ---- ordering ---- */

static CUresult signal_locked(struct ct_queue *queue, struct ct_vk_timeline_semaphore *semaphore, uint64_t value)
{
    struct ct_vk_batch *batch;
    CUresult r;

    if (value <= semaphore->recorded)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "timeline signal of %llu after one of %llu", (unsigned long long)value,
                       (unsigned long long)semaphore->recorded);
    if ((r = ct_vk_command_begin_locked(queue, &batch)) != CUDA_SUCCESS)
        return r;
    ct_vk_timeline_semaphore_retain_locked(semaphore);
    semaphore->recorded = value;
    batch->signal = (struct ct_vk_signal){semaphore, value};
    batch->closed = true;
    return CUDA_SUCCESS;
}

CUresult ct_vk_queue_signal_timeline_semaphore(struct ct_queue *queue, struct ct_vk_timeline_semaphore *semaphore, const uint64_t *value)
{
    struct ct_vk_scheduler *scheduler = queue->scheduler;
    CUresult r;

    ct_mutex_lock(&scheduler->lock);
    r = ct_vk_command_end_locked(queue, signal_locked(queue, semaphore, value ? *value : semaphore->recorded + 1));
    ct_mutex_unlock(&scheduler->lock);
    return r;
}

CUresult ct_vk_queue_signal(struct ct_queue *queue, struct ct_timeline *timeline, uint64_t value)
{
    return ct_vk_queue_signal_timeline_semaphore(queue, timeline->semaphore, &value);
}

/* A wait delays a whole batch: so it is added only to a batch that contains nothing but waits, none of whose points was returned. */
static bool takes_waits(struct ct_queue *queue, const struct ct_vk_batch *batch)
{
    uint64_t before = batch->last_point - batch->n_commands;

    return batch->n_commands == batch->n_waits && batch->n_waits < CT_VK_BATCH_WAITS &&
           atomic_load_explicit(&queue->reported, memory_order_relaxed) <= before;
}

static CUresult wait_locked(struct ct_queue *queue, struct ct_vk_timeline_semaphore *semaphore, uint64_t value)
{
    struct ct_vk_batch *batch = queue->unsubmitted.last;
    CUresult r;

    if (batch && !takes_waits(queue, batch))
        batch->closed = true;
    if ((r = ct_vk_command_begin_locked(queue, &batch)) != CUDA_SUCCESS)
        return r;
    ct_vk_timeline_semaphore_retain_locked(semaphore);
    batch->waits[batch->n_waits++] = (struct ct_vk_signal){semaphore, value};
    return CUDA_SUCCESS;
}

CUresult ct_vk_queue_wait_timeline_semaphore(struct ct_queue *queue, struct ct_vk_timeline_semaphore *semaphore, uint64_t value)
{
    struct ct_vk_scheduler *scheduler = queue->scheduler;
    CUresult r;

    ct_mutex_lock(&scheduler->lock);
    r = ct_vk_command_end_locked(queue, wait_locked(queue, semaphore, value));
    ct_mutex_unlock(&scheduler->lock);
    return r;
}

CUresult ct_vk_queue_wait(struct ct_queue *queue, struct ct_timeline *timeline, uint64_t value)
{
    uint64_t now;
    CUresult r = ct_vk_timeline_semaphore_read(queue->device, timeline->semaphore, &now);

    return r != CUDA_SUCCESS || now >= value ? r : ct_vk_queue_wait_timeline_semaphore(queue, timeline->semaphore, value);
}

static void flush_locked(struct ct_queue *queue, uint64_t point)
{
    if (point > queue->flush_point)
        queue->flush_point = point;
    if (queue->semaphore->promised < point)
        ct_vk_scheduler_submit_locked(queue);
}

static CUresult wait_queue_locked(struct ct_queue *queue, struct ct_queue *other, uint64_t point)
{
    struct ct_vk_batch *batch;

    if (point > atomic_load_explicit(&other->point, memory_order_relaxed))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "wait for point %llu, which is not recorded", (unsigned long long)point);
    flush_locked(other, point);
    if (other->semaphore->promised >= point && other->device_queue == queue->device_queue)
        /* The point was submitted before to the VkQueue that both queues share: a barrier is enough. It is recorded as a command, since
         * a later wait for a point of this queue must include the other queue's work. */
        return ct_vk_command_begin_locked(queue, &batch);
    return wait_locked(queue, other->semaphore, point);
}

CUresult ct_vk_queue_wait_queue(struct ct_queue *queue, struct ct_queue *other, uint64_t point)
{
    struct ct_vk_scheduler *scheduler = queue->scheduler;
    uint64_t done;
    CUresult r;

    if (queue->device != other->device)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a queue cannot wait for a queue of another device");
    if (queue == other || !point)
        return CUDA_SUCCESS;
    if ((r = ct_vk_timeline_semaphore_read(queue->device, other->semaphore, &done)) != CUDA_SUCCESS || done >= point)
        return r;
    ct_mutex_lock(&scheduler->lock);
    r = ct_vk_command_end_locked(queue, wait_queue_locked(queue, other, point));
    ct_mutex_unlock(&scheduler->lock);
    return r;
}

CUresult ct_vk_queue_flush(struct ct_queue *queue)
{
    ct_mutex_lock(&queue->scheduler->lock);
    flush_locked(queue, atomic_load_explicit(&queue->point, memory_order_relaxed));
    ct_mutex_unlock(&queue->scheduler->lock);
    return ct_vk_device_check(queue->device);
}

/* ---- points ---- */

/* A wait that another thread records between the two steps is added to the point's batch, as if it had been recorded before. */
uint64_t ct_vk_queue_point(struct ct_queue *queue)
{
    uint64_t point = atomic_load_explicit(&queue->point, memory_order_relaxed);
    uint64_t reported = atomic_load_explicit(&queue->reported, memory_order_relaxed);

    while (reported < point &&
           !atomic_compare_exchange_weak_explicit(&queue->reported, &reported, point, memory_order_relaxed, memory_order_relaxed))
        ;
    return point;
}

CUresult ct_vk_queue_completed(struct ct_queue *queue, uint64_t *out_point)
{
    uint64_t done;
    CUresult r = ct_vk_device_check(queue->device);

    if (r != CUDA_SUCCESS || (r = ct_vk_timeline_semaphore_read(queue->device, queue->semaphore, &done)) != CUDA_SUCCESS)
        return r;
    *out_point = done;
    return CUDA_SUCCESS;
}

bool ct_vk_queue_working(struct ct_queue *queue, uint64_t *out_first, uint64_t *out_last)
{
    const struct ct_vk_batch *oldest;
    bool works;

    ct_mutex_lock(&queue->scheduler->lock);
    ct_vk_scheduler_retire_locked(queue->device_queue);
    oldest = queue->device_queue->in_flight.first; /* the device queue executes batches in order */
    works = oldest && oldest->queue == queue;
    if (works) {
        *out_first = queue->completed + 1;
        *out_last = oldest->last_point;
    }
    ct_mutex_unlock(&queue->scheduler->lock);
    return works;
}

/* Asks whether the device is lost. Reading a semaphore's value need not tell: the value may never change, or, with Mesa's drivers after a reset, be that of
 * complete work. Mesa's drivers look when they wait, even for no time. CPU devices are not asked, since they are never lost so. */
static CUresult confirm(struct ct_queue *queue, uint64_t point)
{
    return queue->device->info->kind == CT_DEVICE_CPU ? CUDA_SUCCESS
                                                      : ct_vk_timeline_semaphore_await(queue->device, queue->semaphore, point, 0);
}

static CUresult spin_for(struct ct_queue *queue, uint64_t point, uint64_t timeout_ns)
{
    const uint64_t start = ct_vk_now_ns();
    uint64_t asked = start, now, done;
    CUresult r;

    do {
        for (int i = 0; i < SPIN_READS; i++)
            if ((r = ct_vk_queue_completed(queue, &done)) != CUDA_SUCCESS || done >= point)
                return r == CUDA_SUCCESS ? confirm(queue, point) : r;
        sched_yield();
        now = ct_vk_now_ns();
        if (now - asked >= SPIN_SLICE_NS) {
            if ((r = confirm(queue, point)) != CUDA_ERROR_NOT_READY)
                return r;
            asked = now;
        }
    } while (now - start < timeout_ns);
    return CUDA_ERROR_NOT_READY;
}

CUresult ct_vk_queue_await(struct ct_queue *queue, uint64_t point, uint64_t timeout_ns, bool spin)
{
    uint64_t done;
    CUresult r = ct_vk_queue_completed(queue, &done);

    if (r != CUDA_SUCCESS || done >= point)
        return r == CUDA_SUCCESS ? confirm(queue, point) : r;
    if (point > ct_vk_queue_point(queue))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "wait for point %llu, which is not recorded", (unsigned long long)point);
    ct_mutex_lock(&queue->scheduler->lock);
    flush_locked(queue, point);
    ct_mutex_unlock(&queue->scheduler->lock);
    if (spin && queue->device->info->kind != CT_DEVICE_CPU) /* there spinning would take a processor from the kernel */
        return spin_for(queue, point, timeout_ns);
    return ct_vk_timeline_semaphore_await(queue->device, queue->semaphore, point, timeout_ns);
}
