/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: one VkDeviceMemory with one VkBuffer over all of it, made at a chosen device address where the address rule says so.
 *
 * Chosen addresses: the memory gets the address (VkMemoryOpaqueCaptureAddressAllocateInfo), the buffer is made with the capture-replay
 * flag and an opaque address of 0, so that it takes the memory's. Drivers may succeed and still put it elsewhere: the address is read
 * back and compared. NVIDIA's driver 580 breaks later allocations once an address in use was asked for, so nothing is tried twice. */
#include "vk.h"

#include "core/log.h"

#include <stdlib.h>

#define CT_CHANNEL "memory"

#define LOCAL VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
#define VISIBLE VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT
#define COHERENT VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
#define CACHED VK_MEMORY_PROPERTY_HOST_CACHED_BIT
/* Atomics and performance behave differently in these; protected memory cannot be used at all. */
#define SKIPPED                                                                                                                            \
    (VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD | VK_MEMORY_PROPERTY_PROTECTED_BIT |          \
     VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT)

/* What a memory type must have, should have, should not have; missing a wish costs one point. */
struct wishes {
    VkMemoryPropertyFlags must, like, dislike;
};

static struct wishes wishes_of(const struct ct_backend_device *device, enum ct_memory_kind kind)
{
    static const struct wishes by_kind[] = {
        [CT_MEMORY_DEVICE] = {0, LOCAL, VISIBLE},
        [CT_MEMORY_HOST] = {VISIBLE | COHERENT, CACHED, LOCAL},
        [CT_MEMORY_HOST_WC] = {VISIBLE | COHERENT, 0, LOCAL | CACHED},
    };
    static const struct wishes visible_device = {VISIBLE | COHERENT, LOCAL | CACHED, 0};

    return kind == CT_MEMORY_DEVICE && device->info->host_visible_device_memory ? visible_device : by_kind[kind];
}

/* The best type among `allowed` bits; false if none will do. */
static bool choose_type(const VkPhysicalDeviceMemoryProperties *memory, uint32_t allowed, struct wishes wishes, uint32_t *out)
{
    int best = -1;

    for (uint32_t i = 0; i < memory->memoryTypeCount; i++) {
        VkMemoryPropertyFlags flags = memory->memoryTypes[i].propertyFlags;
        int score = 64 - 2 * __builtin_popcount(wishes.like & ~flags) - __builtin_popcount(wishes.dislike & flags);

        if (!(allowed & (1u << i)) || (flags & wishes.must) != wishes.must || (flags & SKIPPED) || score <= best)
            continue;
        best = score;
        *out = i;
    }
    return best >= 0;
}

/* What is to be made. */
struct plan {
    uint64_t size_bytes;
    uint64_t opaque_address; /* 0: the driver chooses */
    void *import;            /* host pages, or NULL */
    uint32_t allowed_types;  /* beside what the buffer allows */
    struct wishes wishes;
};

static CUresult create_buffer(struct ct_vk_memory *memory, const struct plan *plan)
{
    struct ct_backend_device *device = memory->base.device;
    const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
        .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
    };
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .pNext = plan->import ? &external : NULL,
        .flags = plan->opaque_address ? VK_BUFFER_CREATE_DEVICE_ADDRESS_CAPTURE_REPLAY_BIT : 0,
        .size = plan->size_bytes,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                 VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };

    return ct_vk_result(device->vk.vkCreateBuffer(device->handle, &info, NULL, &memory->buffer), "vkCreateBuffer");
}

static CUresult allocate(struct ct_vk_memory *memory, const struct plan *plan)
{
    struct ct_backend_device *device = memory->base.device;
    const VkPhysicalDeviceMemoryProperties *types = &device->physical->memory;
    VkMemoryRequirements requirements;
    VkMemoryOpaqueCaptureAddressAllocateInfo chosen = {.sType = VK_STRUCTURE_TYPE_MEMORY_OPAQUE_CAPTURE_ADDRESS_ALLOCATE_INFO,
                                                       .opaqueCaptureAddress = plan->opaque_address};
    VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                       .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    VkImportMemoryHostPointerInfoEXT import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .pNext = &flags,
        .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
        .pHostPointer = plan->import,
    };
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = plan->import ? (void *)&import : &flags};
    CUresult r;

    if (plan->opaque_address) {
        flags.flags |= VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_CAPTURE_REPLAY_BIT;
        flags.pNext = &chosen;
    }
    device->vk.vkGetBufferMemoryRequirements(device->handle, memory->buffer, &requirements);
    info.allocationSize = plan->import ? plan->size_bytes : requirements.size;
    if (!choose_type(types, requirements.memoryTypeBits & plan->allowed_types, plan->wishes, &info.memoryTypeIndex))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s has no memory type for this", device->info->name);
    if ((r = ct_vk_result(device->vk.vkAllocateMemory(device->handle, &info, NULL, &memory->handle), "vkAllocateMemory")) != CUDA_SUCCESS)
        return r;
    memory->heap = types->memoryTypes[info.memoryTypeIndex].heapIndex;
    memory->charged_bytes = plan->import ? 0 : info.allocationSize;
    atomic_fetch_add_explicit(&device->heap_used[memory->heap], memory->charged_bytes, memory_order_relaxed);
    return ct_vk_result(device->vk.vkBindBufferMemory(device->handle, memory->buffer, memory->handle, 0), "vkBindBufferMemory");
}

static CUresult read_address(struct ct_vk_memory *memory, const struct plan *plan)
{
    struct ct_backend_device *device = memory->base.device;
    const VkBufferDeviceAddressInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .buffer = memory->buffer};

    memory->base.address.v = device->vk.vkGetBufferDeviceAddress(device->handle, &info);
    if (!memory->base.address.v)
        return ct_fail(CUDA_ERROR_MAP_FAILED, "the driver gave no device address");
    if (plan->opaque_address && memory->base.address.v != plan->opaque_address)
        return ct_fail(CUDA_ERROR_MAP_FAILED, "asked for device address %#llx, got %#llx", (unsigned long long)plan->opaque_address,
                       (unsigned long long)memory->base.address.v);
    return CUDA_SUCCESS;
}

static CUresult map(struct ct_vk_memory *memory)
{
    struct ct_backend_device *device = memory->base.device;

    return ct_vk_result(device->vk.vkMapMemory(device->handle, memory->handle, 0, VK_WHOLE_SIZE, 0, &memory->base.host), "vkMapMemory");
}

/* Makes memory by a plan; *out is untouched on failure. */
static CUresult create(struct ct_backend_device *device, const struct plan *plan, struct ct_vk_memory **out)
{
    struct ct_vk_memory *memory = calloc(1, sizeof *memory);
    CUresult r;

    if (!memory)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "memory object");
    memory->base.device = device;
    memory->base.size_bytes = plan->size_bytes;
    if ((r = create_buffer(memory, plan)) != CUDA_SUCCESS || (r = allocate(memory, plan)) != CUDA_SUCCESS ||
        (r = read_address(memory, plan)) != CUDA_SUCCESS) {
        ct_vk_memory_destroy(&memory->base);
        return r;
    }
    *out = memory;
    return CUDA_SUCCESS;
}

/* The driver's choice, moved up to a multiple of `align`: made again with room when it does not fall on one by itself. */
static CUresult create_aligned(struct ct_backend_device *device, const struct plan *plan, uint64_t align, struct ct_vk_memory **out)
{
    struct plan roomy = *plan;
    struct ct_vk_memory *memory;
    CUresult r = create(device, plan, &memory);

    if (r == CUDA_SUCCESS && (memory->base.address.v & (align - 1))) {
        ct_vk_memory_destroy(&memory->base);
        if (__builtin_add_overflow(plan->size_bytes, align, &roomy.size_bytes))
            return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes", (unsigned long long)plan->size_bytes);
        r = create(device, &roomy, &memory);
    }
    if (r != CUDA_SUCCESS)
        return r;
    memory->buffer_offset = -memory->base.address.v & (align - 1);
    memory->base.address.v += memory->buffer_offset;
    memory->base.size_bytes = plan->size_bytes;
    *out = memory;
    return CUDA_SUCCESS;
}

static CUresult map_if_visible(struct ct_vk_memory *memory, enum ct_memory_kind kind)
{
    struct ct_backend_device *device = memory->base.device;
    CUresult r;

    if (kind == CT_MEMORY_DEVICE && !device->info->host_visible_device_memory)
        return CUDA_SUCCESS;
    if ((r = map(memory)) != CUDA_SUCCESS)
        return r;
    memory->base.host = (char *)memory->base.host + memory->buffer_offset;
    if (device->info->address_rule == CT_ADDRESS_SHARED && (uintptr_t)memory->base.host != memory->base.address.v)
        return ct_fail(CUDA_ERROR_UNKNOWN, "%s: device address %#llx is not the host's %p", device->info->name,
                       (unsigned long long)memory->base.address.v, memory->base.host);
    return CUDA_SUCCESS;
}

static bool addresses_are_chosen(const struct ct_backend_device *device)
{
    return device->info->address_rule == CT_ADDRESS_CHOSEN || device->info->address_rule == CT_ADDRESS_CHOSEN_MASK;
}

CUresult ct_vk_memory_create(struct ct_backend_device *device, const struct ct_memory_request *request, struct ct_memory **out)
{
    struct plan plan = {
        .size_bytes = (request->size_bytes + 3) & ~UINT64_C(3), /* fills work on whole words */
        .opaque_address = request->want_address ? request->want_address | device->info->target.pointer_mask : 0,
        .allowed_types = UINT32_MAX,
        .wishes = wishes_of(device, request->kind),
    };
    uint64_t align = request->align ? request->align : 1;
    struct ct_vk_memory *memory;
    CUresult r;

    if (!request->size_bytes || (align & (align - 1)) || (request->want_address & (align - 1)))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "memory of %llu bytes, aligned to %llu, at %#llx", (unsigned long long)request->size_bytes,
                       (unsigned long long)align, (unsigned long long)request->want_address);
    if (request->want_address && !addresses_are_chosen(device))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s takes no chosen addresses", device->info->name);
    if (plan.size_bytes < request->size_bytes || plan.size_bytes > device->info->max_allocation_bytes)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes at once", (unsigned long long)request->size_bytes);
    if ((r = plan.opaque_address ? create(device, &plan, &memory) : create_aligned(device, &plan, align, &memory)) != CUDA_SUCCESS)
        return r;
    if ((r = map_if_visible(memory, request->kind)) != CUDA_SUCCESS) {
        ct_vk_memory_destroy(&memory->base);
        return r;
    }
    memory->base.size_bytes = request->size_bytes;
    *out = &memory->base;
    return CUDA_SUCCESS;
}

CUresult ct_vk_memory_import_host(struct ct_backend_device *device, void *pointer, uint64_t size_bytes, uint64_t want_address,
                                  struct ct_memory **out)
{
    const uint64_t align = device->physical->import_alignment;
    VkMemoryHostPointerPropertiesEXT properties = {.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    struct plan plan = {.size_bytes = size_bytes, .import = pointer, .wishes = {VISIBLE | COHERENT, CACHED, 0}};
    struct ct_vk_memory *memory;
    CUresult r;

    if (!device->info->can_import_host)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not import host memory", device->info->name);
    if (!pointer || !size_bytes || (((uintptr_t)pointer | size_bytes) & (align - 1)))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "import of %llu bytes at %p: not multiples of %llu", (unsigned long long)size_bytes,
                       pointer, (unsigned long long)align);
    if (addresses_are_chosen(device))
        plan.opaque_address = want_address;
    r = ct_vk_result(device->vk.vkGetMemoryHostPointerPropertiesEXT(device->handle, VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
                                                                    pointer, &properties),
                     "vkGetMemoryHostPointerPropertiesEXT");
    if (r != CUDA_SUCCESS)
        return r;
    plan.allowed_types = properties.memoryTypeBits;
    if ((r = create(device, &plan, &memory)) != CUDA_SUCCESS)
        return r;
    if (want_address && memory->base.address.v != want_address) {
        r = ct_fail(CUDA_ERROR_MAP_FAILED, "host memory at %p got device address %#llx", pointer,
                    (unsigned long long)memory->base.address.v);
        ct_vk_memory_destroy(&memory->base);
        return r;
    }
    memory->base.host = pointer;
    *out = &memory->base;
    return CUDA_SUCCESS;
}

void ct_vk_memory_destroy(struct ct_memory *base)
{
    struct ct_vk_memory *memory = (struct ct_vk_memory *)base;
    struct ct_backend_device *device;

    if (!memory)
        return;
    device = base->device;
    if (memory->buffer)
        device->vk.vkDestroyBuffer(device->handle, memory->buffer, NULL);
    if (memory->handle)
        device->vk.vkFreeMemory(device->handle, memory->handle, NULL); /* unmaps */
    atomic_fetch_sub_explicit(&device->heap_used[memory->heap], memory->charged_bytes, memory_order_relaxed);
    free(memory);
}

CUresult ct_vk_memory_info(struct ct_backend_device *device, uint64_t *out_free, uint64_t *out_total)
{
    const struct ct_vk_physical *physical = device->physical;
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget};
    uint32_t heap = physical->local_heap;
    uint64_t total = physical->memory.memoryHeaps[heap].size, limit = total;
    uint64_t used = atomic_load_explicit(&device->heap_used[heap], memory_order_relaxed);

    if (physical->has[CT_VK_EXT_MEMORY_BUDGET]) {
        vkGetPhysicalDeviceMemoryProperties2(physical->handle, &properties);
        limit = budget.heapBudget[heap];
        used = budget.heapUsage[heap];
    }
    limit = limit < total ? limit : total;
    *out_free = used < limit ? limit - used : 0;
    *out_total = total;
    return CUDA_SUCCESS;
}
