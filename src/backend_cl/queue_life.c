/* SPDX-License-Identifier: Apache-2.0 */
/* Creation and destruction of queues. */
#include "queue.h"

#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "queue"
#define FIRST_PENDING 64

static CUresult init(struct ct_queue *queue)
{
    const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
    struct ct_backend_device *device = queue->device;
    cl_int result;

    if (!(queue->pending = calloc(FIRST_PENDING, sizeof *queue->pending)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "queue object");
    queue->capacity = FIRST_PENDING;
    queue->handle = device->api->clCreateCommandQueueWithProperties(device->context, device->physical->handle, properties, &result);
    return ct_cl_result(result, "clCreateCommandQueueWithProperties");
}

CUresult ct_cl_queue_create(struct ct_backend_device *device, const struct ct_queue_desc *desc, struct ct_queue **out)
{
    struct ct_queue *queue = calloc(1, sizeof *queue);
    CUresult r;

    (void)desc; /* info.stream_priorities: the queues of a CPU have one priority */
    if (!queue)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "queue object");
    queue->device = device;
    ct_mutex_init(&queue->lock, CT_RANK_BACKEND);
    if ((r = init(queue)) != CUDA_SUCCESS) {
        ct_cl_queue_destroy(queue);
        return r;
    }
    *out = queue;
    return CUDA_SUCCESS;
}

void ct_cl_queue_destroy(struct ct_queue *queue)
{
    if (!queue || ct_cl_device_is_given_up(queue->device))
        return;
    if (queue->handle)
        queue->device->api->clReleaseCommandQueue(queue->handle);
    for (size_t i = 0; i < queue->count; i++)
        queue->device->api->clReleaseEvent(ct_cl_pending_at(queue, i)->event);
    ct_cl_arguments_destroy(queue);
    ct_mutex_finish(&queue->lock);
    free(queue->pending);
    free(queue);
}
