/* SPDX-License-Identifier: Apache-2.0 */
/* Timestamps: markers in queues, and their profiling information. */
#include "cl.h"

#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "queue"

struct ct_timestamp {
    struct ct_backend_device *device;
    struct ct_mutex lock; /* guards event */
    cl_event event;       /* the last one that was recorded, or NULL */
};

CUresult ct_cl_timestamp_create(struct ct_backend_device *device, struct ct_timestamp **out)
{
    struct ct_timestamp *timestamp = calloc(1, sizeof *timestamp);

    if (!timestamp)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "timestamp object");
    timestamp->device = device;
    ct_mutex_init(&timestamp->lock, CT_RANK_BACKEND);
    *out = timestamp;
    return CUDA_SUCCESS;
}

void ct_cl_timestamp_destroy(struct ct_timestamp *timestamp)
{
    if (!timestamp || ct_cl_device_is_given_up(timestamp->device))
        return;
    if (timestamp->event)
        timestamp->device->api->clReleaseEvent(timestamp->event);
    ct_mutex_finish(&timestamp->lock);
    free(timestamp);
}

void ct_cl_timestamp_set(struct ct_timestamp *timestamp, cl_event event)
{
    const struct ct_cl_api *api = timestamp->device->api;
    cl_event before;

    api->clRetainEvent(event);
    ct_mutex_lock(&timestamp->lock);
    before = timestamp->event;
    timestamp->event = event;
    ct_mutex_unlock(&timestamp->lock);
    if (before)
        api->clReleaseEvent(before);
}

CUresult ct_cl_timestamp_read(struct ct_timestamp *timestamp, double *out_ns)
{
    const struct ct_cl_api *api = timestamp->device->api;
    cl_event event;
    cl_ulong ns;
    cl_int result;

    ct_mutex_lock(&timestamp->lock);
    if ((event = timestamp->event))
        api->clRetainEvent(event);
    ct_mutex_unlock(&timestamp->lock);
    if (!event)
        return CUDA_ERROR_NOT_READY;
    result = api->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof ns, &ns, NULL);
    api->clReleaseEvent(event);
    if (result != CL_SUCCESS)
        return ct_cl_result(result, "clGetEventProfilingInfo");
    *out_ns = (double)ns;
    return CUDA_SUCCESS;
}
