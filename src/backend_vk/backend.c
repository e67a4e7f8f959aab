/* SPDX-License-Identifier: Apache-2.0 */
/* The function tables that the Vulkan backend provides to core. */
#include "image.h"
#include "core/base/log.h"
#include "queue.h"
#include "texture_images.h"
#include "virtual_memory.h"

#define CT_CHANNEL "vulkan"

static const char *absence(void)
{
    return ct_vk_instance_get()->absence.text;
}

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

static void memory_destroy(struct ct_memory *memory)
{
    if (memory)
        ct_vk_textures_reclaim(memory->device);
    ct_vk_memory_destroy(memory);
}

static const struct ct_memory_calls memory_calls = {
    .info = ct_vk_memory_info,
    .create = ct_vk_memory_create,
    .import_host = ct_vk_memory_import_host,
    .destroy = memory_destroy,
};

static const struct ct_sharing_calls sharing_calls = {
    .check_fd = ct_vk_memory_check_fd,
    .import_fd = ct_vk_memory_import_fd,
    .export = ct_vk_memory_export,
    .export_dma_buf = ct_vk_memory_export_dma_buf,
};

static const struct ct_virtual_memory_calls virtual_memory_calls = {
    .physical_create = ct_vk_physical_create,
    .physical_import = ct_vk_physical_import,
    .physical_export = ct_vk_physical_export,
    .physical_export_dma_buf = ct_vk_physical_export_dma_buf,
    .physical_pages = ct_vk_physical_pages,
    .physical_destroy = ct_vk_physical_destroy,
    .range_create = ct_vk_range_create,
    .range_bind = ct_vk_range_bind,
};

static const struct ct_image_calls image_calls = {
    .create = ct_vk_image_create,
    .destroy = ct_vk_image_destroy,
    .level = ct_vk_image_level,
    .bind = ct_vk_image_bind,
    .sampled_layout = ct_vk_sampled_layout,
    .sampled_create = ct_vk_sampled_create,
    .sampled_destroy = ct_vk_sampled_destroy,
};

static const struct ct_kernel_calls kernel_calls = {
    .create = ct_vk_kernel_create,
    .destroy = ct_vk_kernel_destroy,
    .prepare = ct_vk_kernel_prepare,
    .variant_retain = ct_vk_variant_retain,
    .variant_release = ct_vk_variant_release,
};

static const struct ct_queue_calls queue_calls = {
    .create = ct_vk_queue_create,
    .destroy = ct_vk_queue_destroy,
    .copy = ct_vk_queue_copy,
    .fill = ct_vk_queue_fill,
    .launch = ct_vk_queue_launch,
    .timestamp = ct_vk_queue_timestamp,
    .signal = ct_vk_queue_signal,
    .wait = ct_vk_queue_wait,
    .wait_queue = ct_vk_queue_wait_queue,
    .flush = ct_vk_queue_flush,
    .await_room = ct_vk_queue_await_room,
    .point = ct_vk_queue_point,
    .completed = ct_vk_queue_completed,
    .working = ct_vk_queue_working,
    .await = ct_vk_queue_await,
};

static const struct ct_recording_calls recording_calls = {
    .create = ct_vk_recording_create,
    .destroy = ct_vk_recording_destroy,
    .launch = ct_vk_recording_launch,
    .barrier = ct_vk_recording_barrier,
    .finish = ct_vk_recording_finish,
    .replay = ct_vk_queue_replay,
};

static const struct ct_timestamp_calls timestamp_calls = {
    .create = ct_vk_timestamp_create,
    .destroy = ct_vk_timestamp_destroy,
    .read = ct_vk_timestamp_read,
};

static const struct ct_timeline_calls timeline_calls = {
    .create = ct_vk_timeline_create,
    .destroy = ct_vk_timeline_destroy,
    .signal = ct_vk_timeline_signal,
    .await = ct_vk_timeline_await,
};

static const struct ct_semaphore_calls semaphore_calls = {
    .import = ct_vk_semaphore_import,
    .destroy = ct_vk_semaphore_destroy,
    .await = ct_vk_semaphore_await,
    .queue_signal = ct_vk_queue_signal_semaphore,
    .queue_wait = ct_vk_queue_wait_semaphore,
};

const struct ct_backend ct_backend_vk = {
    .name = "vulkan",
    .enumerate = enumerate,
    .absence = absence,
    .device_open = device_open,
    .device_close = ct_vk_device_close,
    .device_give_up = ct_vk_device_give_up,
    .device_fault = ct_vk_device_fault,
    .memory = &memory_calls,
    .sharing = &sharing_calls,
    .virtual_memory = &virtual_memory_calls,
    .images = &image_calls,
    .kernels = &kernel_calls,
    .queues = &queue_calls,
    .recordings = &recording_calls,
    .timestamps = &timestamp_calls,
    .timelines = &timeline_calls,
    .semaphores = &semaphore_calls,
};
