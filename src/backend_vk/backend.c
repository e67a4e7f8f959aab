/* SPDX-License-Identifier: Apache-2.0 */
/* The Vulkan backend as core sees it. */
#include "image.h"
#include "core/base/log.h"
#include "queue.h"
#include "virtual_memory.h"

#define CT_CHANNEL "vulkan"

static CUresult enumerate(const struct ct_device_info **out_infos, unsigned *out_count)
{
    const struct ct_vk_instance *instance = ct_vk_instance_get();

    *out_infos = instance->infos;
    *out_count = instance->n_devices;
    return CUDA_SUCCESS;
}

static CUresult device_open(unsigned index, struct ct_backend_device **out)
{
    const struct ct_vk_instance *instance = ct_vk_instance_get();

    if (index >= instance->n_devices)
        return ct_fail(CUDA_ERROR_INVALID_DEVICE, "device %u of %u", index, instance->n_devices);
    return ct_vk_device_open(&instance->physical[index], &instance->infos[index], out);
}

const struct ct_backend ct_backend_vk = {
    .name = "vulkan",
    .enumerate = enumerate,
    .device_open = device_open,
    .device_close = ct_vk_device_close,
    .memory_info = ct_vk_memory_info,
    .memory_create = ct_vk_memory_create,
    .memory_import_host = ct_vk_memory_import_host,
    .memory_check_fd = ct_vk_memory_check_fd,
    .memory_import_fd = ct_vk_memory_import_fd,
    .memory_export = ct_vk_memory_export,
    .memory_export_dma_buf = ct_vk_memory_export_dma_buf,
    .memory_destroy = ct_vk_memory_destroy,
    .physical_create = ct_vk_physical_create,
    .physical_import = ct_vk_physical_import,
    .physical_export = ct_vk_physical_export,
    .physical_export_dma_buf = ct_vk_physical_export_dma_buf,
    .physical_pages = ct_vk_physical_pages,
    .physical_destroy = ct_vk_physical_destroy,
    .range_create = ct_vk_range_create,
    .range_bind = ct_vk_range_bind,
    .image_create = ct_vk_image_create,
    .image_destroy = ct_vk_image_destroy,
    .image_level = ct_vk_image_level,
    .image_bind = ct_vk_image_bind,
    .kernel_create = ct_vk_kernel_create,
    .kernel_destroy = ct_vk_kernel_destroy,
    .kernel_prepare = ct_vk_kernel_prepare,
    .queue_create = ct_vk_queue_create,
    .queue_destroy = ct_vk_queue_destroy,
    .queue_copy = ct_vk_queue_copy,
    .queue_fill = ct_vk_queue_fill,
    .queue_launch = ct_vk_queue_launch,
    .queue_timestamp = ct_vk_queue_timestamp,
    .queue_signal = ct_vk_queue_signal,
    .queue_wait = ct_vk_queue_wait,
    .queue_wait_queue = ct_vk_queue_wait_queue,
    .queue_flush = ct_vk_queue_flush,
    .queue_await_room = ct_vk_queue_await_room,
    .queue_point = ct_vk_queue_point,
    .queue_completed = ct_vk_queue_completed,
    .queue_await = ct_vk_queue_await,
    .timestamp_create = ct_vk_timestamp_create,
    .timestamp_destroy = ct_vk_timestamp_destroy,
    .timestamp_read = ct_vk_timestamp_read,
    .timeline_create = ct_vk_timeline_create,
    .timeline_destroy = ct_vk_timeline_destroy,
    .timeline_signal = ct_vk_timeline_signal,
    .timeline_await = ct_vk_timeline_await,
    .semaphore_import = ct_vk_semaphore_import,
    .semaphore_destroy = ct_vk_semaphore_destroy,
    .semaphore_await = ct_vk_semaphore_await,
    .queue_signal_semaphore = ct_vk_queue_signal_semaphore,
    .queue_wait_semaphore = ct_vk_queue_wait_semaphore,
};
