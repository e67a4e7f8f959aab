/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that are complete leave their lane. */
#include "queue.h"

#include <time.h>

uint64_t ct_vk_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* The batch that lingers is the driver's no more. */
void ct_vk_lane_end_lingering_locked(struct ct_vk_lane *lane)
{
    if (!lane->lingering)
        return;
    ct_vk_batch_give_locked(lane->scheduler, lane->lingering);
    ct_vk_line_release_locked(lane->scheduler->device, lane->lingering_line);
    lane->lingering = NULL;
    lane->lingering_line = NULL;
}

void ct_vk_scheduler_retire_locked(struct ct_vk_lane *lane)
{
    struct ct_vk_batch *first;

    while ((first = lane->in_flight.first)) {
        struct ct_queue *queue = first->queue;

        if (first->last_point > queue->completed && ct_vk_line_read(queue->device, queue->line, &queue->completed) != CUDA_SUCCESS)
            return;
        if (first->last_point > queue->completed)
            return;
        ct_vk_batch_remove_first(&lane->in_flight);
        queue->n_in_flight--;
        queue->n_batches--;
        ct_vk_lane_end_lingering_locked(lane);
        lane->lingering = first;
        lane->lingering_line = queue->line;
        ct_vk_line_retain_locked(queue->line);
    }
}
