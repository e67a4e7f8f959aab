/* SPDX-License-Identifier: Apache-2.0 */
/* One VkDeviceMemory with one VkBuffer for all of it, at a chosen device address if the plan has one.
 *
 * Chosen addresses: the memory gets the address (VkMemoryOpaqueCaptureAddressAllocateInfo), and the buffer is created with the
 * capture-replay flag and an opaque address of 0, so that it takes that of the memory. In a sparse piece the buffer gets the address, and
 * the memory is bound to it, since RADV ignores an address chosen for imported memory. Drivers may return success and still choose another
 * address: it is read back and compared. NVIDIA's driver 580 fails later allocations after an address in use was requested, so no address
 * is tried twice. */
#include "memory.h"

#include "core/base/log.h"
#include "core/base/resource_limits.h"

#include <fcntl.h>
#include <unistd.h>

#define CT_CHANNEL "memory"
#define DRIVER_FILE_GRAIN ((uint64_t)64 << 10) /* more than the page before the data, and what alignment costs */

/* Types with these flags are not used: atomics and performance differ in them; protected memory cannot be used at all. */
#define SKIPPED                                                                                                                            \
    (VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD | VK_MEMORY_PROPERTY_PROTECTED_BIT |          \
     VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT)

bool ct_vk_choose_type(const VkPhysicalDeviceMemoryProperties *memory, uint32_t allowed, struct ct_vk_type_preferences preferences,
                       uint32_t *out)
{
    int best = -1;

    for (uint32_t i = 0; i < memory->memoryTypeCount; i++) {
        VkMemoryPropertyFlags flags = memory->memoryTypes[i].propertyFlags;
        int score = 64 - 2 * __builtin_popcount(preferences.preferred & ~flags) - __builtin_popcount(preferences.avoided & flags);

        if (!(allowed & (1u << i)) || (flags & preferences.required) != preferences.required || (flags & SKIPPED) || score <= best)
            continue;
        best = score;
        *out = i;
    }
    return best >= 0;
}

/* RADV of Mesa 26 on GFX10 and newer reserves addresses with bit 46 set for sparse residency, and grants them to such buffers only. Without the
 * flag for aliases NVIDIA's driver (580, H100) runs a fill at one address before a copy from another one of the same memory has ended. */
static VkBufferCreateFlags sparse_flags(const struct ct_backend_device *device, const struct ct_vk_piece_plan *plan)
{
    const bool resident = plan->residency || plan->chosen_address >> 46 & 1;
    const bool aliased = plan->unbound && device->physical->features.core.features.sparseResidencyAliased;

    return VK_BUFFER_CREATE_SPARSE_BINDING_BIT | (resident ? VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT : 0) |
           (aliased ? VK_BUFFER_CREATE_SPARSE_ALIASED_BIT : 0);
}

CUresult ct_vk_buffer_create(struct ct_backend_device *device, const struct ct_vk_piece_plan *plan, VkBuffer *out)
{
    const VkBufferOpaqueCaptureAddressCreateInfo chosen = {.sType = VK_STRUCTURE_TYPE_BUFFER_OPAQUE_CAPTURE_ADDRESS_CREATE_INFO,
                                                           .opaqueCaptureAddress = plan->chosen_address};
    VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
        .pNext = plan->sparse ? &chosen : NULL,
        .handleTypes = plan->exportable ? device->physical->export_types : plan->import_type,
    };
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .pNext = external.handleTypes ? (const void *)&external
                 : plan->sparse       ? &chosen
                                      : NULL,
        .flags = (plan->chosen_address ? VK_BUFFER_CREATE_DEVICE_ADDRESS_CAPTURE_REPLAY_BIT : 0) |
                 (plan->sparse ? sparse_flags(device, plan) : 0),
        .size = plan->size_bytes,
        .usage = CT_VK_BUFFER_USAGE,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };

    return ct_vk_result(device->vk.vkCreateBuffer(device->handle, &info, NULL, out), "vkCreateBuffer");
}

CUresult ct_vk_allocate_from_fd(struct ct_backend_device *device, const struct ct_fd_import *import, VkBuffer buffer, uint32_t type,
                                const void *next, VkDeviceMemory *out)
{
    const VkMemoryDedicatedAllocateInfo dedicated = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO, .pNext = next, .buffer = buffer};
    const VkImportMemoryFdInfoKHR handle = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
        .pNext = import->dedicated && buffer ? &dedicated : next,
        .handleType = ct_vk_fd_type(import),
        .fd = fcntl(import->fd, F_DUPFD_CLOEXEC, 0),
    };
    const VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &handle, .allocationSize = import->total_bytes, .memoryTypeIndex = type};
    VkResult result;

    if (handle.fd < 0)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "file descriptor %d cannot be duplicated", import->fd);
    result = device->vk.vkAllocateMemory(device->handle, &info, NULL, out);
    if (result != VK_SUCCESS)
        close(handle.fd); /* otherwise the driver owns it */
    return ct_vk_result(result, "vkAllocateMemory");
}

/* What the drivers of CPU devices have allocated while there was a limit on the size of files: their file belongs to the process. Relaxed: a
 * count. */
static atomic_uint_fast64_t driver_file_bytes;

bool ct_vk_allocates_in_file(const struct ct_device_info *info)
{
    return info->kind == CT_DEVICE_CPU && ct_limit_of_files() != UINT64_MAX;
}

CUresult ct_vk_allocate(struct ct_backend_device *device, const VkMemoryAllocateInfo *info, VkDeviceMemory *out)
{
    if (ct_vk_allocates_in_file(device->info)) {
        const uint64_t bytes = (info->allocationSize + DRIVER_FILE_GRAIN - 1) & ~(DRIVER_FILE_GRAIN - 1);
        const uint64_t before = atomic_fetch_add_explicit(&driver_file_bytes, bytes, memory_order_relaxed);

        if (before > ct_limit_of_files() || bytes > ct_limit_of_files() - before)
            return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "the driver's memory is in a file, for which the limit is %llu bytes",
                           (unsigned long long)ct_limit_of_files());
    }
    return ct_vk_result(device->vk.vkAllocateMemory(device->handle, info, NULL, out), "vkAllocateMemory");
}

/* Allocates memory as described by *info, or imports that of a file descriptor. */
static CUresult allocate_handle(struct ct_backend_device *device, const struct ct_vk_piece_plan *plan, const VkMemoryAllocateInfo *info,
                                struct ct_vk_piece *piece)
{
    if (plan->import_fd) /* memory that is bound to a sparse buffer cannot be dedicated to it */
        return ct_vk_allocate_from_fd(device, plan->import_fd, plan->sparse ? VK_NULL_HANDLE : piece->buffer, info->memoryTypeIndex,
                                      info->pNext, &piece->handle);
    if (plan->import)
        return ct_vk_result(device->vk.vkAllocateMemory(device->handle, info, NULL, &piece->handle), "vkAllocateMemory");
    return ct_vk_allocate(device, info, &piece->handle);
}

/* The bytes to bind to a sparse buffer: whole granules, but no more than the imported memory has. */
static uint64_t bound_bytes(const struct ct_vk_piece_plan *plan, uint64_t required_bytes)
{
    bool short_of = plan->import_fd && required_bytes > plan->import_fd->total_bytes;

    return short_of ? plan->import_fd->total_bytes : required_bytes;
}

/* Whether the memory is dedicated to its buffer: where it then takes no more addresses than its size, and where the driver then stores nothing in
 * compressed form, which sparse buffers and linear images over the same memory would not decompress. */
static bool is_dedicated(const struct ct_backend_device *device, const struct ct_vk_piece_plan *plan)
{
    return device->physical->dedicates && !plan->sparse && !plan->import && !plan->import_fd;
}

static CUresult allocate(struct ct_backend_device *device, const struct ct_vk_piece_plan *plan, struct ct_vk_piece *piece)
{
    const VkPhysicalDeviceMemoryProperties *types = &device->physical->memory;
    VkMemoryRequirements requirements;
    VkMemoryOpaqueCaptureAddressAllocateInfo chosen = {.sType = VK_STRUCTURE_TYPE_MEMORY_OPAQUE_CAPTURE_ADDRESS_ALLOCATE_INFO,
                                                       .opaqueCaptureAddress = plan->chosen_address};
    VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                       .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    VkImportMemoryHostPointerInfoEXT import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .pNext = &flags,
        .handleType = plan->import_type,
        .pHostPointer = plan->import,
    };
    const VkExportMemoryAllocateInfo export = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO, .pNext = &flags, .handleTypes = device->physical->export_types};
    VkMemoryDedicatedAllocateInfo dedicated = {.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO, .buffer = piece->buffer};
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                 .pNext = plan->import       ? (const void *)&import
                                          : plan->exportable ? (const void *)&export
                                                             : &flags};
    CUresult r;

    if (plan->chosen_address && !plan->sparse) {
        flags.flags |= VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_CAPTURE_REPLAY_BIT;
        flags.pNext = &chosen;
    }
    if (is_dedicated(device, plan)) {
        dedicated.pNext = info.pNext;
        info.pNext = &dedicated;
    }
    device->vk.vkGetBufferMemoryRequirements(device->handle, piece->buffer, &requirements);
    info.allocationSize = plan->import ? plan->size_bytes : requirements.size;
    if (!ct_vk_choose_type(types, requirements.memoryTypeBits & plan->allowed_types, plan->preferences, &info.memoryTypeIndex))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s has no suitable memory type", device->info->name);
    if ((r = allocate_handle(device, plan, &info, piece)) != CUDA_SUCCESS)
        return r;
    piece->type = info.memoryTypeIndex;
    piece->exportable = plan->exportable;
    piece->handle_bytes = info.allocationSize;
    piece->handle_types = plan->exportable ? device->physical->export_types : plan->import_type;
    piece->heap = types->memoryTypes[info.memoryTypeIndex].heapIndex;
    piece->charged_bytes = plan->import_type ? 0 : info.allocationSize;
    atomic_fetch_add_explicit(&device->heap_used[piece->heap], piece->charged_bytes, memory_order_relaxed);
    if (plan->sparse)
        return ct_vk_sparse_bind(device, piece->buffer, piece->handle, bound_bytes(plan, info.allocationSize));
    return ct_vk_result(device->vk.vkBindBufferMemory(device->handle, piece->buffer, piece->handle, 0), "vkBindBufferMemory");
}

__attribute__((noinline)) static uint64_t request_address(struct ct_backend_device *device, VkBuffer buffer)
{
    const VkBufferDeviceAddressInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .buffer = buffer};

    return device->vk.vkGetBufferDeviceAddress(device->handle, &info);
}

/* As for create_pipeline (kernel.c), ci/tsan.supp excuses what is found below this function: lavapipe keeps a table of all addresses. */
__attribute__((noinline)) static CUresult read_address(struct ct_backend_device *device, const struct ct_vk_piece_plan *plan,
                                                       const struct ct_vk_piece *piece, uint64_t *out)
{
    uint64_t address = request_address(device, piece->buffer);

    if (!address)
        return ct_fail(CUDA_ERROR_MAP_FAILED, "the driver returned no device address");
    if (plan->wanted_address && address != plan->wanted_address)
        return ct_fail(CUDA_ERROR_MAP_FAILED, "device address %#llx was requested, and the driver chose %#llx",
                       (unsigned long long)plan->wanted_address, (unsigned long long)address);
    *out = address;
    return CUDA_SUCCESS;
}

CUresult ct_vk_piece_create(struct ct_backend_device *device, const struct ct_vk_piece_plan *plan, struct ct_vk_piece *out,
                            uint64_t *out_address)
{
    struct ct_vk_piece piece = {.size_bytes = plan->size_bytes};
    CUresult r = ct_vk_buffer_create(device, plan, &piece.buffer);

    if (r == CUDA_ERROR_OUT_OF_MEMORY && plan->unbound) /* it has no memory, so the driver has run out of addresses of this kind */
        r = CUDA_ERROR_MAP_FAILED;
    if (r != CUDA_SUCCESS || (!plan->unbound && (r = allocate(device, plan, &piece)) != CUDA_SUCCESS) ||
        (r = read_address(device, plan, &piece, out_address)) != CUDA_SUCCESS) {
        ct_vk_piece_destroy(device, &piece);
        return r;
    }
    *out = piece;
    return CUDA_SUCCESS;
}

void ct_vk_piece_destroy(struct ct_backend_device *device, struct ct_vk_piece *piece)
{
    if (piece->buffer)
        device->vk.vkDestroyBuffer(device->handle, piece->buffer, NULL);
    if (piece->handle)
        device->vk.vkFreeMemory(device->handle, piece->handle, NULL); /* unmaps */
    atomic_fetch_sub_explicit(&device->heap_used[piece->heap], piece->charged_bytes, memory_order_relaxed);
    *piece = (struct ct_vk_piece){0};
}
