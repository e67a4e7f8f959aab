/* SPDX-License-Identifier: Apache-2.0 */
/* Periodic small submissions that make host stores visible to running kernels, for drivers on which a running kernel reads host memory
 * once and then only its cached copy.
 *
 * Measured on an H200 (580.159.04): a kernel that waits for a store by the host never sees it, with any kind of load: volatile, atomic with
 * acquire, any scope, a read-modify-write, before and after barriers, with either memory model; from imported memory, memory allocated by
 * the driver with or without cache, or exportable memory. When another stream filled a few words every millisecond, the kernel saw the
 * store after the next fill. So a thread does that while a submission runs for long (tested by tests/api/memory/seeds_mapped_test.c).
 *
 * It submits to a queue of a family for copies only, which another engine than the kernel's executes. If another process needs the GPU, the
 * driver starts no further work of this process on the kernel's engine until the kernel ends, which in turn waits for the host: on another
 * queue of the kernel's family, the submissions stopped in 3 of 6 runs, until the driver lost the device; on a queue for copies in none of
 * 7. Without such a family the thread uses an idle queue for kernels; if there is none, it cannot submit. */
#include "backend_vk/memory.h"
#include "backend_vk/queue.h"

#include "core/base/shutdown_guard.h"
#include "core/base/log.h"
#include "core/base/thread.h"

#include <stdlib.h>
#include <time.h>

#define CT_CHANNEL "queue"
#define PERIOD_NS 1000000
#define MIN_AGE_NS UINT64_C(2000000) /* most submissions have ended by then */
#define IDLE_ROUNDS 100              /* with nothing in flight, until the thread sleeps on its condition variable */

struct ct_vk_host_store_refresh {
    struct ct_vk_scheduler *scheduler; /* borrowed: it owns this object, and its lock guards the other members */
    pthread_t thread;
    pthread_cond_t wake;
    bool stop, asleep, failed;
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkFence done;
    bool submitted; /* at least once */
    struct ct_memory *word;
};

/* ---- the command ---- */

static void record(const struct ct_backend_device *device, const struct ct_vk_host_store_refresh *refresh)
{
    const VkMemoryBarrier2 barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
        .srcStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_2_HOST_BIT,
        .srcAccessMask = VK_ACCESS_2_MEMORY_WRITE_BIT | VK_ACCESS_2_HOST_WRITE_BIT,
        .dstStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
        .dstAccessMask = VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT,
    };
    const VkDependencyInfo info = {.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO, .memoryBarrierCount = 1, .pMemoryBarriers = &barrier};

    device->vk.vkCmdPipelineBarrier2(refresh->commands, &info);
    device->vk.vkCmdFillBuffer(refresh->commands, ((const struct ct_vk_memory *)refresh->word)->pieces[0].buffer, 0, 4, 0);
    device->vk.vkCmdPipelineBarrier2(refresh->commands, &info);
}

static CUresult prepare(struct ct_backend_device *device, struct ct_vk_host_store_refresh *refresh)
{
    const struct ct_memory_request request = {.size_bytes = 4096, .align = 4, .kind = CT_MEMORY_DEVICE};
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex =
                                              device->refresh_queue ? device->physical->refresh_family : device->physical->family};
    const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY, .commandBufferCount = 1};
    CUresult r;

    if ((r = ct_vk_memory_create(device, &request, &refresh->word)) != CUDA_SUCCESS ||
        (r = ct_vk_result(device->vk.vkCreateFence(device->handle, &fence, NULL, &refresh->done), "vkCreateFence")) != CUDA_SUCCESS ||
        (r = ct_vk_result(device->vk.vkCreateCommandPool(device->handle, &pool, NULL, &refresh->pool), "vkCreateCommandPool")) !=
            CUDA_SUCCESS)
        return r;
    commands.commandPool = refresh->pool;
    r = ct_vk_result(device->vk.vkAllocateCommandBuffers(device->handle, &commands, &refresh->commands), "vkAllocateCommandBuffers");
    if (r == CUDA_SUCCESS)
        r = ct_vk_result(device->vk.vkBeginCommandBuffer(refresh->commands, &begin), "vkBeginCommandBuffer");
    if (r != CUDA_SUCCESS)
        return r;
    record(device, refresh);
    return ct_vk_result(device->vk.vkEndCommandBuffer(refresh->commands), "vkEndCommandBuffer");
}

/* ---- the thread ---- */

/* Returns the queue for copies, or else an idle one; VK_NULL_HANDLE: there is none. */
static VkQueue free_queue(const struct ct_vk_scheduler *scheduler)
{
    if (scheduler->device->refresh_queue)
        return scheduler->device->refresh_queue;
    for (unsigned i = scheduler->n_device_queues; i-- > 0;)
        if (!scheduler->device_queues[i].in_flight.first)
            return scheduler->device_queues[i].handle;
    return VK_NULL_HANDLE;
}

static CUresult submit_locked(struct ct_vk_host_store_refresh *refresh, VkQueue queue)
{
    struct ct_backend_device *device = refresh->scheduler->device;
    const VkCommandBufferSubmitInfo commands = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO, .commandBuffer = refresh->commands};
    const VkSubmitInfo2 info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2, .commandBufferInfoCount = 1, .pCommandBufferInfos = &commands};
    CUresult r;

    if (refresh->submitted && device->vk.vkGetFenceStatus(device->handle, refresh->done) != VK_SUCCESS)
        return CUDA_SUCCESS; /* the previous submission is still in flight */
    if (refresh->submitted &&
        (r = ct_vk_result(device->vk.vkResetFences(device->handle, 1, &refresh->done), "vkResetFences")) != CUDA_SUCCESS)
        return r;
    r = ct_vk_result(device->vk.vkQueueSubmit2(queue, 1, &info, refresh->done), "vkQueueSubmit2");
    refresh->submitted = r == CUDA_SUCCESS;
    return r;
}

static void submit_if_possible_locked(struct ct_vk_host_store_refresh *refresh)
{
    VkQueue queue = free_queue(refresh->scheduler);
    CUresult r;

    if (!queue || refresh->failed || !ct_shutdown_guard_enter())
        return;
    r = refresh->commands ? CUDA_SUCCESS : prepare(refresh->scheduler->device, refresh);
    if (r == CUDA_SUCCESS)
        r = submit_locked(refresh, queue);
    ct_shutdown_guard_leave();
    if (r == CUDA_SUCCESS)
        return;
    refresh->failed = true;
    ct_log(CT_LOG_WARN, "running kernels will not see stores by the host (error %d)", (int)r);
}

/* How long the oldest submission with a kernel has been in flight; 1: only copies are in flight, which a submission would slow; 0: nothing is. */
static uint64_t oldest_ns_locked(struct ct_vk_scheduler *scheduler)
{
    uint64_t now = ct_vk_now_ns(), oldest = 0;

    for (unsigned i = 0; i < scheduler->n_device_queues; i++) {
        const struct ct_vk_batch *first;
        uint64_t age;

        ct_vk_scheduler_retire_locked(&scheduler->device_queues[i]);
        first = scheduler->device_queues[i].in_flight.first;
        if (!first)
            continue;
        age = first->has_kernel ? now - first->begin_ns + 1 : 1;
        oldest = age > oldest ? age : oldest;
    }
    return oldest;
}

static void *run(void *argument)
{
    const struct timespec period = {.tv_nsec = PERIOD_NS};
    struct ct_vk_host_store_refresh *refresh = argument;
    struct ct_mutex *lock = &refresh->scheduler->lock;
    unsigned idle = 0;

    ct_mutex_lock(lock);
    while (!refresh->stop) {
        uint64_t age = ct_vk_device_check(refresh->scheduler->device) == CUDA_SUCCESS ? oldest_ns_locked(refresh->scheduler) : 0;

        idle = age ? 0 : idle + 1;
        if (age > MIN_AGE_NS)
            submit_if_possible_locked(refresh);
        if (idle >= IDLE_ROUNDS) {
            refresh->asleep = true;
            ct_mutex_wait(lock, &refresh->wake);
            refresh->asleep = false;
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

CUresult ct_vk_host_store_refresh_create(struct ct_vk_scheduler *scheduler, struct ct_vk_host_store_refresh **out)
{
    struct ct_vk_host_store_refresh *refresh = calloc(1, sizeof *refresh);

    if (!refresh || !ct_shutdown_guard_arm(CT_CHILD_CONTINUES)) {
        free(refresh);
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "object of the host-store refresh");
    }
    refresh->scheduler = scheduler;
    pthread_cond_init(&refresh->wake, NULL);
    if (ct_thread_start(&refresh->thread, run, refresh) != 0) {
        pthread_cond_destroy(&refresh->wake);
        free(refresh);
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "the thread of the host-store refresh cannot be created");
    }
    *out = refresh;
    return CUDA_SUCCESS;
}

void ct_vk_host_store_refresh_note_locked(struct ct_vk_host_store_refresh *refresh)
{
    if (refresh && refresh->asleep)
        pthread_cond_signal(&refresh->wake);
}

void ct_vk_host_store_refresh_destroy(struct ct_vk_host_store_refresh *refresh)
{
    struct ct_backend_device *device;

    if (!refresh)
        return;
    device = refresh->scheduler->device;
    ct_mutex_lock(&refresh->scheduler->lock);
    refresh->stop = true;
    pthread_cond_signal(&refresh->wake);
    ct_mutex_unlock(&refresh->scheduler->lock);
    pthread_join(refresh->thread, NULL);
    if (refresh->submitted)
        (void)device->vk.vkWaitForFences(device->handle, 1, &refresh->done, VK_TRUE, UINT64_MAX);
    if (refresh->pool)
        device->vk.vkDestroyCommandPool(device->handle, refresh->pool, NULL);
    if (refresh->done)
        device->vk.vkDestroyFence(device->handle, refresh->done, NULL);
    ct_vk_memory_destroy(refresh->word);
    pthread_cond_destroy(&refresh->wake);
    free(refresh);
}
