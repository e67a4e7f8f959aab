/* SPDX-License-Identifier: Apache-2.0 */
/* The transition of images to the general layout, in which they stay. */
#include "image.h"
#include "queue.h"

CUresult ct_vk_record_layout_locked(struct ct_queue *queue, VkImage image, VkImageLayout from, bool is_external)
{
    const VkImageMemoryBarrier2 barrier = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER_2,
        .dstStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
        .dstAccessMask = VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT,
        .oldLayout = is_external ? VK_IMAGE_LAYOUT_GENERAL : from,
        .newLayout = VK_IMAGE_LAYOUT_GENERAL,
        .srcQueueFamilyIndex = is_external ? VK_QUEUE_FAMILY_EXTERNAL : VK_QUEUE_FAMILY_IGNORED,
        .dstQueueFamilyIndex = is_external ? queue->device->physical->family : VK_QUEUE_FAMILY_IGNORED,
        .image = image,
        .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, VK_REMAINING_MIP_LEVELS, 0, VK_REMAINING_ARRAY_LAYERS},
    };
    const VkDependencyInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO, .imageMemoryBarrierCount = 1, .pImageMemoryBarriers = &barrier};
    struct ct_vk_batch *batch;
    CUresult r = ct_vk_command_begin_locked(queue, &batch);

    if (r == CUDA_SUCCESS)
        queue->device->vk.vkCmdPipelineBarrier2(batch->commands, &info);
    return ct_vk_command_end_locked(queue, r);
}

CUresult ct_vk_image_to_general_layout(struct ct_vk_image *image, enum ct_vk_image_origin origin)
{
    struct ct_backend_device *device = image->base.device;
    struct ct_queue *queue;
    CUresult r = ct_vk_queue_create(device, &(struct ct_queue_desc){0}, &queue);

    if (r != CUDA_SUCCESS)
        return r;
    ct_mutex_lock(&device->scheduler->lock);
    r = ct_vk_record_layout_locked(queue, image->handle, VK_IMAGE_LAYOUT_UNDEFINED, origin == CT_VK_IMAGE_TAKEN_OVER);
    ct_mutex_unlock(&device->scheduler->lock);
    if (r == CUDA_SUCCESS)
        r = ct_vk_queue_await(queue, ct_vk_queue_point(queue), UINT64_MAX, true);
    ct_vk_queue_destroy(queue);
    return r;
}
