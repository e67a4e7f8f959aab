/* SPDX-License-Identifier: Apache-2.0 */
/* Complete batches are removed from their device queue. */
#include "queue.h"

#include <time.h>

uint64_t ct_vk_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* The driver does not access the lingering batch any more. */
void ct_vk_device_queue_end_lingering_locked(struct ct_vk_device_queue *device_queue)
{
    if (!device_queue->lingering)
        return;
    ct_vk_batch_give_locked(device_queue->scheduler, device_queue->lingering);
    ct_vk_timeline_semaphore_release_locked(device_queue->scheduler->device, device_queue->lingering_semaphore);
    device_queue->lingering = NULL;
    device_queue->lingering_semaphore = NULL;
}

void ct_vk_scheduler_retire_locked(struct ct_vk_device_queue *device_queue)
{
    struct ct_vk_batch *first;

    while ((first = device_queue->in_flight.first)) {
        struct ct_queue *queue = first->queue;

        if (first->last_point > queue->completed &&
            ct_vk_timeline_semaphore_read(queue->device, queue->semaphore, &queue->completed) != CUDA_SUCCESS)
            return;
        if (first->last_point > queue->completed) {
            if (first->next)
                first->next->begin_ns = ct_vk_now_ns();
            return;
        }
        ct_vk_batch_remove_first(&device_queue->in_flight);
        queue->n_in_flight--;
        queue->n_batches--;
        if (first->replays.count)
            ct_vk_replays_measure(&first->replays, ct_vk_now_ns() - first->begin_ns);
        ct_vk_device_queue_end_lingering_locked(device_queue);
        device_queue->lingering = first;
        device_queue->lingering_semaphore = queue->semaphore;
        ct_vk_timeline_semaphore_retain_locked(queue->semaphore);
    }
}
