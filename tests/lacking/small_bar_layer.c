/* SPDX-License-Identifier: Apache-2.0 */
/* A layer that shows lavapipe as a discrete GPU with a small BAR: of the device's memory the host can map what is in the third heap.
 *
 *     type   heap                     flags
 *     0      half of the memory       DEVICE_LOCAL
 *     1      half of the memory       HOST_VISIBLE, COHERENT, CACHED
 *     2      the BAR, 256 MiB         DEVICE_LOCAL, HOST_VISIBLE, COHERENT
 *
 * Who maps memory of type 0 gets an error, and a message from this layer. As lacking_layer.c does, it prints that it has taken something away. */
#define FUNCTIONS(F)                                                                                                                       \
    F(vkGetPhysicalDeviceProperties)                                                                                                       \
    F(vkGetPhysicalDeviceProperties2)                                                                                                      \
    F(vkGetPhysicalDeviceMemoryProperties)                                                                                                 \
    F(vkGetPhysicalDeviceMemoryProperties2)                                                                                                \
    F(vkAllocateMemory)                                                                                                                    \
    F(vkFreeMemory)                                                                                                                        \
    F(vkMapMemory)                                                                                                                         \
    F(vkGetBufferMemoryRequirements)                                                                                                       \
    F(vkGetImageMemoryRequirements)                                                                                                        \
    F(vkGetImageMemoryRequirements2)                                                                                                       \
    F(vkGetMemoryFdPropertiesKHR)                                                                                                          \
    F(vkGetMemoryHostPointerPropertiesEXT)
#include "../vulkan_layer.h"

#include <stdint.h>
#include <stdio.h>

enum { OF_DEVICE, OF_HOST, BAR, TYPES };
#define ALL_TYPES ((1u << TYPES) - 1)
#define BAR_BYTES ((uint64_t)256 << 20)

/* ---- the device ---- */

static VKAPI_ATTR void VKAPI_CALL get_properties(VkPhysicalDevice physical, VkPhysicalDeviceProperties *out)
{
    find_link(physical, false).vkGetPhysicalDeviceProperties(physical, out);
    out->deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
}

static VKAPI_ATTR void VKAPI_CALL get_properties2(VkPhysicalDevice physical, VkPhysicalDeviceProperties2 *out)
{
    find_link(physical, false).vkGetPhysicalDeviceProperties2(physical, out);
    out->properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
}

static uint64_t used[TYPES]; /* bytes; guarded by `lock` */

static void divide(VkPhysicalDeviceMemoryProperties *memory)
{
    static const VkMemoryPropertyFlags visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const uint64_t half = memory->memoryHeaps[0].size / 2;

    fprintf(stderr, "lacking_layer: small_bar\n");
    *memory = (VkPhysicalDeviceMemoryProperties){
        .memoryTypeCount = TYPES,
        .memoryTypes = {[OF_DEVICE] = {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, OF_DEVICE},
                        [OF_HOST] = {visible | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, OF_HOST},
                        [BAR] = {visible | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, BAR}},
        .memoryHeapCount = TYPES,
        .memoryHeaps = {[OF_DEVICE] = {half, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT},
                        [OF_HOST] = {half, 0},
                        [BAR] = {BAR_BYTES, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT}},
    };
}

static VKAPI_ATTR void VKAPI_CALL get_memory(VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties *out)
{
    find_link(physical, false).vkGetPhysicalDeviceMemoryProperties(physical, out);
    divide(out);
}

static VKAPI_ATTR void VKAPI_CALL get_memory2(VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties2 *out)
{
    find_link(physical, false).vkGetPhysicalDeviceMemoryProperties2(physical, out);
    divide(&out->memoryProperties);
    for (VkBaseOutStructure *block = out->pNext; block; block = block->pNext)
        if (block->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) {
            VkPhysicalDeviceMemoryBudgetPropertiesEXT *budget = (void *)block;

            pthread_mutex_lock(&lock);
            for (unsigned i = 0; i < TYPES; i++) {
                budget->heapBudget[i] = out->memoryProperties.memoryHeaps[i].size;
                budget->heapUsage[i] = used[i];
            }
            pthread_mutex_unlock(&lock);
        }
}

/* ---- allocations ---- */

static struct allocation {
    struct allocation *next;
    VkDeviceMemory memory;
    uint32_t type;
    uint64_t size_bytes;
} *allocations; /* guarded by `lock` */

static bool take(uint32_t type, uint64_t size_bytes)
{
    bool fits;

    pthread_mutex_lock(&lock);
    fits = type != BAR || (size_bytes <= BAR_BYTES && used[BAR] <= BAR_BYTES - size_bytes);
    used[type] += fits ? size_bytes : 0;
    pthread_mutex_unlock(&lock);
    return fits;
}

static void give(uint32_t type, uint64_t size_bytes)
{
    pthread_mutex_lock(&lock);
    used[type] -= size_bytes;
    pthread_mutex_unlock(&lock);
}

static void remember(VkDeviceMemory memory, const VkMemoryAllocateInfo *info)
{
    struct allocation *allocation = malloc(sizeof *allocation);

    if (!allocation)
        abort();
    pthread_mutex_lock(&lock);
    *allocation = (struct allocation){allocations, memory, info->memoryTypeIndex, info->allocationSize};
    allocations = allocation;
    pthread_mutex_unlock(&lock);
}

/* Copies what is known of memory; it is forgotten on demand. */
static struct allocation find(VkDeviceMemory memory, bool forget)
{
    struct allocation **at = &allocations, *found, copy;

    pthread_mutex_lock(&lock);
    while (*at && (*at)->memory != memory)
        at = &(*at)->next;
    if (!(found = *at))
        abort();
    copy = *found;
    if (forget) {
        *at = found->next;
        free(found);
    }
    pthread_mutex_unlock(&lock);
    return copy;
}

static VKAPI_ATTR VkResult VKAPI_CALL allocate_memory(VkDevice device, const VkMemoryAllocateInfo *info,
                                                      const VkAllocationCallbacks *allocator, VkDeviceMemory *out)
{
    VkMemoryAllocateInfo real = *info;
    VkResult result;

    if (!take(info->memoryTypeIndex, info->allocationSize))
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    real.memoryTypeIndex = 0;
    result = find_link(device, false).vkAllocateMemory(device, &real, allocator, out);
    if (result == VK_SUCCESS)
        remember(*out, info);
    else
        give(info->memoryTypeIndex, info->allocationSize);
    return result;
}

static VKAPI_ATTR void VKAPI_CALL free_memory(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks *allocator)
{
    if (memory) {
        const struct allocation allocation = find(memory, true);

        give(allocation.type, allocation.size_bytes);
    }
    find_link(device, false).vkFreeMemory(device, memory, allocator);
}

static VKAPI_ATTR VkResult VKAPI_CALL map_memory(VkDevice device, VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize size_bytes,
                                                 VkMemoryMapFlags flags, void **out)
{
    if (find(memory, false).type != OF_DEVICE)
        return find_link(device, false).vkMapMemory(device, memory, offset, size_bytes, flags, out);
    fprintf(stderr, "small_bar_layer: validation error: memory that is not visible to the host is mapped\n");
    return VK_ERROR_MEMORY_MAP_FAILED;
}

/* ---- which types objects may have ---- */

static VKAPI_ATTR void VKAPI_CALL get_buffer_requirements(VkDevice device, VkBuffer buffer, VkMemoryRequirements *out)
{
    find_link(device, false).vkGetBufferMemoryRequirements(device, buffer, out);
    out->memoryTypeBits = ALL_TYPES;
}

static VKAPI_ATTR void VKAPI_CALL get_image_requirements(VkDevice device, VkImage image, VkMemoryRequirements *out)
{
    find_link(device, false).vkGetImageMemoryRequirements(device, image, out);
    out->memoryTypeBits = 1u << OF_DEVICE;
}

static VKAPI_ATTR void VKAPI_CALL get_image_requirements2(VkDevice device, const VkImageMemoryRequirementsInfo2 *info,
                                                          VkMemoryRequirements2 *out)
{
    find_link(device, false).vkGetImageMemoryRequirements2(device, info, out);
    out->memoryRequirements.memoryTypeBits = 1u << OF_DEVICE;
}

static VKAPI_ATTR VkResult VKAPI_CALL get_fd_properties(VkDevice device, VkExternalMemoryHandleTypeFlagBits type, int fd,
                                                        VkMemoryFdPropertiesKHR *out)
{
    const VkResult result = find_link(device, false).vkGetMemoryFdPropertiesKHR(device, type, fd, out);

    out->memoryTypeBits = out->memoryTypeBits ? ALL_TYPES : 0;
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL get_pointer_properties(VkDevice device, VkExternalMemoryHandleTypeFlagBits type, const void *pointer,
                                                             VkMemoryHostPointerPropertiesEXT *out)
{
    const VkResult result = find_link(device, false).vkGetMemoryHostPointerPropertiesEXT(device, type, pointer, out);

    out->memoryTypeBits = out->memoryTypeBits ? 1u << OF_HOST : 0;
    return result;
}

static const struct layer_function layer_functions[] = {
    {"vkGetPhysicalDeviceProperties", (PFN_vkVoidFunction)get_properties, false},
    {"vkGetPhysicalDeviceProperties2", (PFN_vkVoidFunction)get_properties2, false},
    {"vkGetPhysicalDeviceMemoryProperties", (PFN_vkVoidFunction)get_memory, false},
    {"vkGetPhysicalDeviceMemoryProperties2", (PFN_vkVoidFunction)get_memory2, false},
    {"vkAllocateMemory", (PFN_vkVoidFunction)allocate_memory, true},
    {"vkFreeMemory", (PFN_vkVoidFunction)free_memory, true},
    {"vkMapMemory", (PFN_vkVoidFunction)map_memory, true},
    {"vkGetBufferMemoryRequirements", (PFN_vkVoidFunction)get_buffer_requirements, true},
    {"vkGetImageMemoryRequirements", (PFN_vkVoidFunction)get_image_requirements, true},
    {"vkGetImageMemoryRequirements2", (PFN_vkVoidFunction)get_image_requirements2, true},
    {"vkGetMemoryFdPropertiesKHR", (PFN_vkVoidFunction)get_fd_properties, true},
    {"vkGetMemoryHostPointerPropertiesEXT", (PFN_vkVoidFunction)get_pointer_properties, true},
    {0},
};
