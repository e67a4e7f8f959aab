/* SPDX-License-Identifier: Apache-2.0 */
/* A layer that presents lavapipe as a GPU whose memory can be exported as dma-bufs, for tests: all of Mesa's GPU drivers support them, and no
 * machine of CI has a GPU. A dma-buf here is a file in memory, which lavapipe maps like a dma-buf that Linux's udmabuf creates from one. The
 * layer creates a file for exportable memory, lets lavapipe import its pages at an address like a GPU's, a multiple of
 * 64 KiB, and returns the file on export.
 * With DMA_BUF_LAYER_TYPE_ONLY=1 lavapipe exports its memory itself, in its own format, and only the kind of the device is changed.
 * Nothing else is changed: both sides see the same data only if it really is the same memory. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* The functions that the layer intercepts. */
#define FUNCTIONS(F)                                                                                                                       \
    F(vkGetPhysicalDeviceProperties)                                                                                                       \
    F(vkGetPhysicalDeviceProperties2)                                                                                                      \
    F(vkGetPhysicalDeviceExternalBufferProperties)                                                                                         \
    F(vkAllocateMemory)                                                                                                                    \
    F(vkFreeMemory)                                                                                                                        \
    F(vkGetMemoryFdKHR)
#include "../../vulkan_layer.h"

#define DMA_BUF VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT
#define BOTH (VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT | DMA_BUF)
#define MAX_FILES 256
#define ALIGN ((size_t)64 << 10)

static struct file {
    VkDeviceMemory memory; /* VK_NULL_HANDLE: unused */
    int fd;
    char *pages;
    size_t bytes;
} files[MAX_FILES];

static bool has_files(void)
{
    const char *text = getenv("DMA_BUF_LAYER_TYPE_ONLY");

    return !text || strcmp(text, "1");
}

/* ---- properties of the device ---- */

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

static VKAPI_ATTR void VKAPI_CALL get_buffer_properties(VkPhysicalDevice physical, const VkPhysicalDeviceExternalBufferInfo *info,
                                                        VkExternalBufferProperties *out)
{
    find_link(physical, false).vkGetPhysicalDeviceExternalBufferProperties(physical, info, out);
    if (info->handleType & BOTH && has_files())
        out->externalMemoryProperties = (VkExternalMemoryProperties){
            .externalMemoryFeatures = VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT,
            .exportFromImportedHandleTypes = BOTH,
            .compatibleHandleTypes = BOTH,
        };
}

/* ---- memory ---- */

static bool is_for_export(const VkMemoryAllocateInfo *info)
{
    for (const VkBaseInStructure *next = has_files() ? info->pNext : NULL; next; next = next->pNext)
        if (next->sType == VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO)
            return ((const VkExportMemoryAllocateInfo *)next)->handleTypes & DMA_BUF;
    return false;
}

static void keep_file(const struct file *file)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_FILES; i++) {
        if (!files[i].memory) {
            files[i] = *file;
            pthread_mutex_unlock(&lock);
            return;
        }
    }
    abort();
}

/* Finds the file of such memory; a null handle has none. */
static struct file find_file(VkDeviceMemory memory, bool forget)
{
    struct file file = {0};

    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_FILES && !file.memory; i++) {
        if (!memory || files[i].memory != memory)
            continue;
        file = files[i];
        if (forget)
            files[i].memory = VK_NULL_HANDLE;
    }
    pthread_mutex_unlock(&lock);
    return file;
}

static void close_file(const struct file *file)
{
    munmap(file->pages, file->bytes);
    close(file->fd);
}

static struct file make_file(VkDeviceSize bytes)
{
    struct file file = {.fd = memfd_create("dma_buf_layer", MFD_CLOEXEC), .bytes = (bytes + ALIGN - 1) & ~(ALIGN - 1)};
    char *room = mmap(NULL, file.bytes + ALIGN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t before = -(uintptr_t)room & (ALIGN - 1);

    file.pages = room + before;
    if (room == MAP_FAILED || file.fd < 0 || ftruncate(file.fd, (off_t)file.bytes) ||
        mmap(file.pages, file.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.fd, 0) != file.pages)
        abort();
    munmap(room, before);
    munmap(file.pages + file.bytes, ALIGN - before);
    return file;
}

static VKAPI_ATTR VkResult VKAPI_CALL allocate_memory(VkDevice device, const VkMemoryAllocateInfo *info,
                                                      const VkAllocationCallbacks *allocator, VkDeviceMemory *out)
{
    VkImportMemoryHostPointerInfoEXT import = {.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
                                               .pNext = info->pNext,
                                               .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT};
    VkMemoryAllocateInfo changed = *info;
    struct link link = find_link(device, false);
    struct file file;
    VkResult result;

    if (!is_for_export(info))
        return link.vkAllocateMemory(device, info, allocator, out);
    file = make_file(info->allocationSize);
    import.pHostPointer = file.pages;
    changed.pNext = &import;
    changed.allocationSize = file.bytes;
    result = link.vkAllocateMemory(device, &changed, allocator, out);
    if (result != VK_SUCCESS) {
        close_file(&file);
        return result;
    }
    file.memory = *out;
    keep_file(&file);
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL free_memory(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks *allocator)
{
    struct file file = find_file(memory, true);

    find_link(device, false).vkFreeMemory(device, memory, allocator);
    if (file.memory)
        close_file(&file);
}

static VKAPI_ATTR VkResult VKAPI_CALL get_memory_fd(VkDevice device, const VkMemoryGetFdInfoKHR *info, int *out)
{
    struct file file = find_file(info->memory, false);

    if (!file.memory)
        return find_link(device, false).vkGetMemoryFdKHR(device, info, out);
    *out = fcntl(file.fd, F_DUPFD_CLOEXEC, 0);
    return *out < 0 ? VK_ERROR_TOO_MANY_OBJECTS : VK_SUCCESS;
}

static const struct layer_function layer_functions[] = {
    {"vkGetPhysicalDeviceProperties", (PFN_vkVoidFunction)get_properties, false},
    {"vkGetPhysicalDeviceProperties2", (PFN_vkVoidFunction)get_properties2, false},
    {"vkGetPhysicalDeviceExternalBufferProperties", (PFN_vkVoidFunction)get_buffer_properties, false},
    {"vkAllocateMemory", (PFN_vkVoidFunction)allocate_memory, true},
    {"vkFreeMemory", (PFN_vkVoidFunction)free_memory, true},
    {"vkGetMemoryFdKHR", (PFN_vkVoidFunction)get_memory_fd, true},
    {0},
};
