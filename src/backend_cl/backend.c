/* SPDX-License-Identifier: Apache-2.0 */
/* The table of functions by which core calls the OpenCL backend. */
#include "queue.h"

static const char *absence(void)
{
    return ct_cl_instance_get()->absence.text;
}

static CUresult enumerate(const struct ct_device_info **out_infos, unsigned *out_count)
{
    const struct ct_cl_instance *instance = ct_cl_instance_get();

    *out_infos = instance->infos;
    *out_count = instance->n_devices;
    return CUDA_SUCCESS;
}

static const struct ct_memory_calls memory_calls = {
    .info = ct_cl_memory_info,
    .create = ct_cl_memory_create,
    .import_host = ct_cl_memory_import_host,
    .destroy = ct_cl_memory_destroy,
};

static const struct ct_sharing_calls sharing_calls = {
    .import_fd = ct_cl_memory_import_fd,
    .export = ct_cl_memory_export,
};

static const struct ct_kernel_calls kernel_calls = {
    .create = ct_cl_kernel_create,
    .destroy = ct_cl_kernel_destroy,
};

static const struct ct_queue_calls queue_calls = {
    .create = ct_cl_queue_create,
    .destroy = ct_cl_queue_destroy,
    .copy = ct_cl_queue_copy,
    .fill = ct_cl_queue_fill,
    .launch = ct_cl_queue_launch,
    .timestamp = ct_cl_queue_timestamp,
    .signal = ct_cl_queue_signal,
    .wait = ct_cl_queue_wait,
    .wait_queue = ct_cl_queue_wait_queue,
    .flush = ct_cl_queue_flush,
    .await_room = ct_cl_queue_await_room,
    .point = ct_cl_queue_point,
    .completed = ct_cl_queue_completed,
    .working = ct_cl_queue_working,
    .await = ct_cl_queue_await,
};

static const struct ct_timestamp_calls timestamp_calls = {
    .create = ct_cl_timestamp_create,
    .destroy = ct_cl_timestamp_destroy,
    .read = ct_cl_timestamp_read,
};

static const struct ct_timeline_calls timeline_calls = {
    .create = ct_cl_timeline_create,
    .destroy = ct_cl_timeline_destroy,
    .signal = ct_cl_timeline_signal,
    .await = ct_cl_timeline_await,
};

const struct ct_backend ct_backend_cl = {
    .name = "opencl",
    .prepare = ct_cl_prepare,
    .enumerate = enumerate,
    .absence = absence,
    .device_open = ct_cl_device_open,
    .device_close = ct_cl_device_close,
    .device_give_up = ct_cl_device_give_up,
    .memory = &memory_calls,
    .sharing = &sharing_calls,
    .kernels = &kernel_calls,
    .queues = &queue_calls,
    .timestamps = &timestamp_calls,
    .timelines = &timeline_calls,
};
