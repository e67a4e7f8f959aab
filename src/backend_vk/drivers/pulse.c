/* SPDX-License-Identifier: Apache-2.0 */
/* Small commands beside long ones, for drivers on which a running kernel reads host memory once and then what it remembers of it.
 *
 * Measured on an H200 (580.159.04): a kernel that waits for a store of the host never sees it, by whatever load: volatile, atomic with
 * acquire, any scope, a read-modify-write, before and behind barriers, with either memory model; from memory imported, made by the driver
 * with or without cache, or exportable. When a stream beside it filled a few words every millisecond, the kernel saw the store with the
 * next of them. So while a submission has been running for a while, a thread does that (tests/api/memory/seeds_mapped_test.c, there).
 *
 * It has a queue of a family for copies alone, which another engine works on than the kernel. Where another process wants the GPU, it
 * starts nothing more of ours on the kernel's engine until the kernel ends, which waits for us: on a queue beside the kernel's, pulses came
 * no more in 3 of 6 runs, until the driver gave the device up; on one for copies in none of 7. Without such a family it is a queue for
 * kernels that is free; with none it cannot. */
#include "backend_vk/memory.h"
#include "backend_vk/queue.h"

#include "core/base/shutdown_guard.h"
#include "core/base/log.h"
#include "core/base/thread.h"

#include <stdlib.h>
#include <time.h>

#define CT_CHANNEL "queue"
#define PERIOD_NS 1000000
#define PATIENCE_NS UINT64_C(2000000) /* most submissions are over by then */
#define ROUNDS_AWAKE 100              /* without anything in flight, before the thread has to be woken again */

struct ct_vk_pulse {
    struct ct_vk_scheduler *scheduler; /* borrowed: it owns us, and its lock guards the rest */
    pthread_t thread;
    pthread_cond_t wake;
    bool stop, asleep, failed;
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkFence done;
    bool submitted; /* once */
    struct ct_memory *word;
};

/* ---- the command ---- */

static void record(const struct ct_backend_device *device, const struct ct_vk_pulse *pulse)
{
    const VkMemoryBarrier2 barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
        .srcStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_2_HOST_BIT,
        .srcAccessMask = VK_ACCESS_2_MEMORY_WRITE_BIT | VK_ACCESS_2_HOST_WRITE_BIT,
        .dstStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
        .dstAccessMask = VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT,
    };
    const VkDependencyInfo info = {.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO, .memoryBarrierCount = 1, .pMemoryBarriers = &barrier};

    device->vk.vkCmdPipelineBarrier2(pulse->commands, &info);
    device->vk.vkCmdFillBuffer(pulse->commands, ((const struct ct_vk_memory *)pulse->word)->pieces[0].buffer, 0, 4, 0);
    device->vk.vkCmdPipelineBarrier2(pulse->commands, &info);
}

static CUresult prepare(struct ct_backend_device *device, struct ct_vk_pulse *pulse)
{
    const struct ct_memory_request request = {.size_bytes = 4096, .align = 4, .kind = CT_MEMORY_DEVICE};
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex =
                                              device->pulse_queue ? device->physical->pulse_family : device->physical->family};
    const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY, .commandBufferCount = 1};
    CUresult r;

    if ((r = ct_vk_memory_create(device, &request, &pulse->word)) != CUDA_SUCCESS ||
        (r = ct_vk_result(device->vk.vkCreateFence(device->handle, &fence, NULL, &pulse->done), "vkCreateFence")) != CUDA_SUCCESS ||
        (r = ct_vk_result(device->vk.vkCreateCommandPool(device->handle, &pool, NULL, &pulse->pool), "vkCreateCommandPool")) !=
            CUDA_SUCCESS)
        return r;
    commands.commandPool = pulse->pool;
    r = ct_vk_result(device->vk.vkAllocateCommandBuffers(device->handle, &commands, &pulse->commands), "vkAllocateCommandBuffers");
    if (r == CUDA_SUCCESS)
        r = ct_vk_result(device->vk.vkBeginCommandBuffer(pulse->commands, &begin), "vkBeginCommandBuffer");
    if (r != CUDA_SUCCESS)
        return r;
    record(device, pulse);
    return ct_vk_result(device->vk.vkEndCommandBuffer(pulse->commands), "vkEndCommandBuffer");
}

/* ---- the thread ---- */

/* The queue for copies, or else one that has nothing to do; NULL: none has. */
static VkQueue free_queue(const struct ct_vk_scheduler *scheduler)
{
    if (scheduler->device->pulse_queue)
        return scheduler->device->pulse_queue;
    for (unsigned i = scheduler->n_lanes; i-- > 0;)
        if (!scheduler->lanes[i].in_flight.first)
            return scheduler->lanes[i].handle;
    return VK_NULL_HANDLE;
}

static CUresult submit_locked(struct ct_vk_pulse *pulse, VkQueue queue)
{
    struct ct_backend_device *device = pulse->scheduler->device;
    const VkCommandBufferSubmitInfo commands = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO, .commandBuffer = pulse->commands};
    const VkSubmitInfo2 info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2, .commandBufferInfoCount = 1, .pCommandBufferInfos = &commands};
    CUresult r;

    if (pulse->submitted && device->vk.vkGetFenceStatus(device->handle, pulse->done) != VK_SUCCESS)
        return CUDA_SUCCESS; /* the last one is still under way */
    if (pulse->submitted && (r = ct_vk_result(device->vk.vkResetFences(device->handle, 1, &pulse->done), "vkResetFences")) != CUDA_SUCCESS)
        return r;
    r = ct_vk_result(device->vk.vkQueueSubmit2(queue, 1, &info, pulse->done), "vkQueueSubmit2");
    pulse->submitted = r == CUDA_SUCCESS;
    return r;
}

static void beat_locked(struct ct_vk_pulse *pulse)
{
    VkQueue queue = free_queue(pulse->scheduler);
    CUresult r;

    if (!queue || pulse->failed || !ct_shutdown_guard_enter())
        return;
    r = pulse->commands ? CUDA_SUCCESS : prepare(pulse->scheduler->device, pulse);
    if (r == CUDA_SUCCESS)
        r = submit_locked(pulse, queue);
    ct_shutdown_guard_leave();
    if (r == CUDA_SUCCESS)
        return;
    pulse->failed = true;
    ct_log(CT_LOG_WARN, "running kernels will not see what the host stores (error %d)", (int)r);
}

/* How long the oldest submission that has a kernel has been in flight; 1: only others are, copies, which a pulse would slow; 0: none. */
static uint64_t oldest_ns_locked(struct ct_vk_scheduler *scheduler)
{
    uint64_t now = ct_vk_now_ns(), oldest = 0;

    for (unsigned i = 0; i < scheduler->n_lanes; i++) {
        const struct ct_vk_batch *first;
        uint64_t age;

        ct_vk_scheduler_retire_locked(&scheduler->lanes[i]);
        first = scheduler->lanes[i].in_flight.first;
        if (!first)
            continue;
        age = first->has_kernel ? now - first->submitted_ns + 1 : 1;
        oldest = age > oldest ? age : oldest;
    }
    return oldest;
}

static void *run(void *argument)
{
    const struct timespec period = {.tv_nsec = PERIOD_NS};
    struct ct_vk_pulse *pulse = argument;
    struct ct_mutex *lock = &pulse->scheduler->lock;
    unsigned idle = 0;

    ct_mutex_lock(lock);
    while (!pulse->stop) {
        uint64_t age = ct_vk_device_check(pulse->scheduler->device) == CUDA_SUCCESS ? oldest_ns_locked(pulse->scheduler) : 0;

        idle = age ? 0 : idle + 1;
        if (age > PATIENCE_NS)
            beat_locked(pulse);
        if (idle >= ROUNDS_AWAKE) {
            pulse->asleep = true;
            ct_mutex_wait(lock, &pulse->wake);
            pulse->asleep = false;
            idle = 0;
            continue;
        }
        ct_mutex_unlock(lock);
        nanosleep(&period, NULL);
        ct_mutex_lock(lock);
    }
    ct_mutex_unlock(lock);
    return NULL;
}

CUresult ct_vk_pulse_create(struct ct_vk_scheduler *scheduler, struct ct_vk_pulse **out)
{
    struct ct_vk_pulse *pulse = calloc(1, sizeof *pulse);

    if (!pulse || !ct_shutdown_guard_arm(CT_CHILD_GOES_ON)) {
        free(pulse);
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "pulse object");
    }
    pulse->scheduler = scheduler;
    pthread_cond_init(&pulse->wake, NULL);
    if (ct_thread_start(&pulse->thread, run, pulse) != 0) {
        pthread_cond_destroy(&pulse->wake);
        free(pulse);
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "thread beside the queues");
    }
    *out = pulse;
    return CUDA_SUCCESS;
}

void ct_vk_pulse_note_locked(struct ct_vk_pulse *pulse)
{
    if (pulse && pulse->asleep)
        pthread_cond_signal(&pulse->wake);
}

void ct_vk_pulse_destroy(struct ct_vk_pulse *pulse)
{
    struct ct_backend_device *device;

    if (!pulse)
        return;
    device = pulse->scheduler->device;
    ct_mutex_lock(&pulse->scheduler->lock);
    pulse->stop = true;
    pthread_cond_signal(&pulse->wake);
    ct_mutex_unlock(&pulse->scheduler->lock);
    pthread_join(pulse->thread, NULL);
    if (pulse->submitted)
        (void)device->vk.vkWaitForFences(device->handle, 1, &pulse->done, VK_TRUE, UINT64_MAX);
    if (pulse->pool)
        device->vk.vkDestroyCommandPool(device->handle, pulse->pool, NULL);
    if (pulse->done)
        device->vk.vkDestroyFence(device->handle, pulse->done, NULL);
    ct_vk_memory_destroy(pulse->word);
    pthread_cond_destroy(&pulse->wake);
    free(pulse);
}
