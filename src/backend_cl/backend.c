/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenCL backend as core sees it. */
#include "queue.h"

static CUresult enumerate(const struct ct_device_info **out_infos, unsigned *out_count)
{
    const struct ct_cl_instance *instance = ct_cl_instance_get();

    *out_infos = instance->infos;
    *out_count = instance->n_devices;
    return CUDA_SUCCESS;
}

const struct ct_backend ct_backend_cl = {
    .name = "opencl",
    .enumerate = enumerate,
    .device_open = ct_cl_device_open,
    .device_close = ct_cl_device_close,
    .memory_info = ct_cl_memory_info,
    .memory_create = ct_cl_memory_create,
    .memory_import_host = ct_cl_memory_import_host,
    .memory_import_fd = ct_cl_memory_import_fd,
    .memory_export = ct_cl_memory_export,
    .memory_destroy = ct_cl_memory_destroy,
    .kernel_create = ct_cl_kernel_create,
    .kernel_destroy = ct_cl_kernel_destroy,
    .queue_create = ct_cl_queue_create,
    .queue_destroy = ct_cl_queue_destroy,
    .queue_copy = ct_cl_queue_copy,
    .queue_fill = ct_cl_queue_fill,
    .queue_launch = ct_cl_queue_launch,
    .queue_timestamp = ct_cl_queue_timestamp,
    .queue_signal = ct_cl_queue_signal,
    .queue_wait = ct_cl_queue_wait,
    .queue_wait_queue = ct_cl_queue_wait_queue,
    .queue_flush = ct_cl_queue_flush,
    .queue_await_room = ct_cl_queue_await_room,
    .queue_point = ct_cl_queue_point,
    .queue_completed = ct_cl_queue_completed,
    .queue_await = ct_cl_queue_await,
    .timestamp_create = ct_cl_timestamp_create,
    .timestamp_destroy = ct_cl_timestamp_destroy,
    .timestamp_read = ct_cl_timestamp_read,
    .timeline_create = ct_cl_timeline_create,
    .timeline_destroy = ct_cl_timeline_destroy,
    .timeline_signal = ct_cl_timeline_signal,
    .timeline_await = ct_cl_timeline_await,
};
