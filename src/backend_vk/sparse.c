/* SPDX-License-Identifier: Apache-2.0 */
/* Binding memory into sparse buffers and images. Some drivers have a queue family of its own for that (RADV of Mesa 25).
 *
 * NVIDIA's driver takes 30 us to accept a binding and 150 to 600 until it is made (580, H200). So nobody waits for one by itself: bindings
 * follow each other on a line of their own, every submission waits on the device for those before it that are still under way, and the
 * host waits before it destroys what may be in one. */
#include "memory.h"
#include "queue.h"

#include "core/base/log.h"

#define CT_CHANNEL "memory"

/* Hands the bindings over, behind those before. */
static CUresult submit_locked(struct ct_backend_device *device, const VkBindSparseInfo *binds)
{
    const uint64_t before = atomic_load_explicit(&device->bindings, memory_order_relaxed), value = before + 1; /* written under the lock */
    const VkTimelineSemaphoreSubmitInfo values = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                                  .waitSemaphoreValueCount = 1,
                                                  .pWaitSemaphoreValues = &before,
                                                  .signalSemaphoreValueCount = 1,
                                                  .pSignalSemaphoreValues = &value};
    VkBindSparseInfo info = *binds;
    CUresult r;

    if (!device->sparse_queue)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s has no queue that binds sparse memory", device->info->name);
    info.sType = VK_STRUCTURE_TYPE_BIND_SPARSE_INFO;
    info.pNext = &values;
    info.waitSemaphoreCount = ct_vk_sparse_pending(device) ? 1 : 0;
    info.pWaitSemaphores = info.pSignalSemaphores = &device->binding_line->semaphore;
    info.signalSemaphoreCount = 1;
    r = ct_vk_result(device->vk.vkQueueBindSparse(device->sparse_queue, 1, &info, VK_NULL_HANDLE), "vkQueueBindSparse");
    if (r == CUDA_SUCCESS)
        atomic_store_explicit(&device->bindings, value, memory_order_release); /* pairs with ct_vk_sparse_pending */
    return r;
}

uint64_t ct_vk_sparse_pending(struct ct_backend_device *device)
{
    const uint64_t last = atomic_load_explicit(&device->bindings, memory_order_acquire); /* pairs with submit_locked */
    uint64_t done;

    if (last == atomic_load_explicit(&device->bindings_done, memory_order_relaxed)) /* a value seen is a value reached */
        return 0;
    if (ct_vk_line_read(device, device->binding_line, &done) != CUDA_SUCCESS || done < last)
        return last;
    atomic_store_explicit(&device->bindings_done, last, memory_order_relaxed);
    return 0;
}

CUresult ct_vk_sparse_settle(struct ct_backend_device *device)
{
    const uint64_t pending = ct_vk_sparse_pending(device);

    return pending ? ct_vk_line_await(device, device->binding_line, pending, UINT64_MAX) : CUDA_SUCCESS;
}

CUresult ct_vk_sparse_bind_all(struct ct_backend_device *device, const VkBindSparseInfo *binds)
{
    CUresult r;

    ct_mutex_lock(device->sparse_lock);
    r = submit_locked(device, binds);
    ct_mutex_unlock(device->sparse_lock);
    return r;
}

CUresult ct_vk_sparse_bind(struct ct_backend_device *device, VkBuffer buffer, VkDeviceMemory handle, uint64_t size_bytes)
{
    const VkSparseMemoryBind bind = {.size = size_bytes, .memory = handle};
    const VkSparseBufferMemoryBindInfo whole = {.buffer = buffer, .bindCount = 1, .pBinds = &bind};
    const VkBindSparseInfo binds = {.bufferBindCount = 1, .pBufferBinds = &whole};
    CUresult r;

    /* Not by the line: drm-shim lets every wait for it pass, and RADV's thread would still be at work on what the caller may destroy. */
    ct_mutex_lock(device->sparse_lock);
    if ((r = submit_locked(device, &binds)) == CUDA_SUCCESS)
        r = ct_vk_result(device->vk.vkQueueWaitIdle(device->sparse_queue), "vkQueueWaitIdle");
    ct_mutex_unlock(device->sparse_lock);
    return r;
}
