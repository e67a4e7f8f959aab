/* SPDX-License-Identifier: Apache-2.0 */
/* Binding memory into sparse buffers. Some drivers have a queue family of its own for that (RADV of Mesa 25). */
#include "memory.h"

#include "core/log.h"

#define CT_CHANNEL "memory"

CUresult ct_vk_sparse_bind_all(struct ct_backend_device *device, const VkSparseBufferMemoryBindInfo *buffers, uint32_t count)
{
    const VkBindSparseInfo info = {.sType = VK_STRUCTURE_TYPE_BIND_SPARSE_INFO, .bufferBindCount = count, .pBufferBinds = buffers};
    CUresult r;

    if (!device->sparse_queue)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s has no queue that binds sparse memory", device->info->name);
    ct_mutex_lock(device->sparse_lock);
    r = ct_vk_result(device->vk.vkQueueBindSparse(device->sparse_queue, 1, &info, VK_NULL_HANDLE), "vkQueueBindSparse");
    if (r == CUDA_SUCCESS)
        r = ct_vk_result(device->vk.vkQueueWaitIdle(device->sparse_queue), "vkQueueWaitIdle");
    ct_mutex_unlock(device->sparse_lock);
    return r;
}

CUresult ct_vk_sparse_bind(struct ct_backend_device *device, VkBuffer buffer, VkDeviceMemory handle, uint64_t size_bytes)
{
    const VkSparseMemoryBind bind = {.size = size_bytes, .memory = handle};
    const VkSparseBufferMemoryBindInfo whole = {.buffer = buffer, .bindCount = 1, .pBinds = &bind};

    return ct_vk_sparse_bind_all(device, &whole, 1);
}
