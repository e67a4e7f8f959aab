/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings: secondary command buffers that batches execute. */
#include "queue.h"

#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "queue"

/* ---- recording ---- */

static CUresult allocate(struct ct_recording *recording)
{
    struct ct_backend_device *device = recording->device;
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex = device->physical->family};
    VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .level = VK_COMMAND_BUFFER_LEVEL_SECONDARY, .commandBufferCount = 1};
    CUresult r = ct_vk_result(device->vk.vkCreateCommandPool(device->handle, &pool, NULL, &recording->pool), "vkCreateCommandPool");

    if (r != CUDA_SUCCESS)
        return r;
    commands.commandPool = recording->pool;
    return ct_vk_result(device->vk.vkAllocateCommandBuffers(device->handle, &commands, &recording->commands), "vkAllocateCommandBuffers");
}

static CUresult begin(const struct ct_recording *recording)
{
    const VkCommandBufferInheritanceInfo inheritance = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO};
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                           .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT,
                                           .pInheritanceInfo = &inheritance};

    return ct_vk_result(recording->device->vk.vkBeginCommandBuffer(recording->commands, &info), "vkBeginCommandBuffer");
}

CUresult ct_vk_recording_create(struct ct_backend_device *device, struct ct_recording **out)
{
    struct ct_recording *recording = calloc(1, sizeof *recording);
    CUresult r;

    if (!recording)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a recording");
    recording->device = device;
    recording->time_ns = CT_VK_REPLAYS_NS;
    atomic_init(&recording->references, 1);
    recording->bound = calloc(1, sizeof *recording->bound);
    if (!recording->bound) {
        free(recording);
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a recording");
    }
    if ((r = allocate(recording)) != CUDA_SUCCESS || (r = begin(recording)) != CUDA_SUCCESS) {
        ct_vk_recording_destroy(recording);
        return r;
    }
    *out = recording;
    return CUDA_SUCCESS;
}

CUresult ct_vk_recording_launch(struct ct_recording *recording, const struct ct_launch *launch)
{
    const struct ptx2spv_kernel_info *info = ct_vk_kernel_info(launch->kernel);
    struct ct_launch placed = *launch;
    CUresult r = ct_vk_variants_keep(&recording->variants, launch->variant);

    if (r == CUDA_SUCCESS && info->params_in_buffer)
        r = ct_vk_recorded_params_add(recording->device, &recording->params, launch->params, info->param_bytes, &placed.params_address);
    return r == CUDA_SUCCESS ? ct_vk_record_launch(recording->device, recording->commands, &placed, recording->bound) : r;
}

/* There are only launches, which access memory by addresses, and textures by images. */
void ct_vk_recording_barrier(struct ct_recording *recording)
{
    const VkMemoryBarrier2 barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
        .srcStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT,
        .srcAccessMask = VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT,
        .dstStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT,
        .dstAccessMask = VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT | VK_ACCESS_2_SHADER_STORAGE_READ_BIT |
                         (recording->device->textures ? VK_ACCESS_2_SHADER_SAMPLED_READ_BIT : 0),
    };
    const VkDependencyInfo info = {.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO, .memoryBarrierCount = 1, .pMemoryBarriers = &barrier};

    recording->device->vk.vkCmdPipelineBarrier2(recording->commands, &info);
}

CUresult ct_vk_recording_finish(struct ct_recording *recording)
{
    free(recording->bound);
    recording->bound = NULL;
    return ct_vk_result(recording->device->vk.vkEndCommandBuffer(recording->commands), "vkEndCommandBuffer");
}

/* ---- replays ---- */

static CUresult replay_locked(struct ct_queue *queue, struct ct_recording *const *recordings, unsigned count)
{
    struct ct_vk_batch *batch = NULL;
    CUresult r = ct_vk_command_begin_locked(queue, &batch);

    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++) {
        if (batch->replays.count && batch->replays.time_ns + recordings[i]->time_ns > CT_VK_REPLAYS_NS) {
            batch->closed = true;
            (void)ct_vk_command_end_locked(queue, CUDA_SUCCESS); /* the next begin fails if the device is lost */
            if ((r = ct_vk_command_begin_locked(queue, &batch)) != CUDA_SUCCESS)
                return r;
        }
        if ((r = ct_vk_replays_add(&batch->replays, recordings[i])) == CUDA_SUCCESS)
            queue->device->vk.vkCmdExecuteCommands(batch->commands, 1, &recordings[i]->commands);
        batch->has_kernel = true;
    }
    return r;
}

CUresult ct_vk_queue_replay(struct ct_queue *queue, struct ct_recording *const *recordings, unsigned count)
{
    CUresult r = ct_vk_check_room(queue->device);

    if (r != CUDA_SUCCESS)
        return r;
    ct_mutex_lock(&queue->scheduler->lock);
    r = queue->max_commands < CT_VK_BATCH_COMMANDS ? CUDA_ERROR_NOT_READY
                                                   : ct_vk_command_end_locked(queue, replay_locked(queue, recordings, count));
    ct_mutex_unlock(&queue->scheduler->lock);
    return r;
}
