/* SPDX-License-Identifier: Apache-2.0 */
/* Binding memory to sparse buffers and images. Some drivers have a separate queue family for that (RADV of Mesa 25).
 *
 * NVIDIA's driver takes 30 us to accept a binding and 150 to 600 us to complete it (580, H200). So the host does not wait for each binding:
 * bindings are ordered by a timeline semaphore, every submission waits on the device for the bindings before it that are pending, and the
 * host waits before it destroys an object that a binding may use. */
#include "memory.h"
#include "queue.h"

#include "core/base/log.h"

#define CT_CHANNEL "memory"

/* Submits the bindings, ordered after earlier ones. */
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
    info.pWaitSemaphores = info.pSignalSemaphores = &device->binding_semaphore->handle;
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

    if (last == atomic_load_explicit(&device->bindings_done, memory_order_relaxed)) /* only reached values are stored there */
        return 0;
    if (ct_vk_timeline_semaphore_read(device, device->binding_semaphore, &done) != CUDA_SUCCESS || done < last)
        return last;
    atomic_store_explicit(&device->bindings_done, last, memory_order_relaxed);
    return 0;
}

CUresult ct_vk_sparse_await_all(struct ct_backend_device *device)
{
    const uint64_t pending = ct_vk_sparse_pending(device);

    return pending ? ct_vk_timeline_semaphore_await(device, device->binding_semaphore, pending, UINT64_MAX) : CUDA_SUCCESS;
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

    /* Does not wait for the semaphore: with drm-shim such a wait returns at once, while RADV's thread still uses objects that the caller
     * may destroy. */
    ct_mutex_lock(device->sparse_lock);
    if ((r = submit_locked(device, &binds)) == CUDA_SUCCESS)
        r = ct_vk_result(device->vk.vkQueueWaitIdle(device->sparse_queue), "vkQueueWaitIdle");
    ct_mutex_unlock(device->sparse_lock);
    return r;
}
