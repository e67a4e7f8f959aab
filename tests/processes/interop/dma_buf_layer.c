/* SPDX-License-Identifier: Apache-2.0 */
/* A layer that presents lavapipe as a GPU whose memory can be exported as dma-bufs, for tests: all of Mesa's GPU drivers support them, and no
 * machine of CI has a GPU. A dma-buf here is a file in memory, which lavapipe maps like a dma-buf that Linux's udmabuf creates from one. The
 * layer creates a file for exportable memory, lets lavapipe import its pages at an address like a GPU's, a multiple of
 * 64 KiB, and returns the file on export.
 * With DMA_BUF_LAYER_TYPE_ONLY=1 lavapipe exports its memory itself, in its own format, and only the kind of the device is changed.
 * Nothing else is changed: both sides see the same data only if it really is the same memory. */
#include <vulkan/vulkan.h>

#include <vulkan/vk_layer.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DMA_BUF VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT
#define BOTH (VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT | DMA_BUF)
#define MAX_LINKS 32
#define MAX_FILES 256
#define ALIGN ((size_t)64 << 10)
#define EXPORTED __attribute__((visibility("default")))

/* The functions that the layer intercepts. */
#define FUNCTIONS(F)                                                                                                                       \
    F(vkCreateDevice)                                                                                                                      \
    F(vkDestroyInstance)                                                                                                                   \
    F(vkGetPhysicalDeviceProperties)                                                                                                       \
    F(vkGetPhysicalDeviceProperties2)                                                                                                      \
    F(vkGetPhysicalDeviceExternalBufferProperties)                                                                                         \
    F(vkDestroyDevice)                                                                                                                     \
    F(vkAllocateMemory)                                                                                                                    \
    F(vkFreeMemory)                                                                                                                        \
    F(vkGetMemoryFdKHR)

/* The functions of the next layer, for an instance or a device. They are queried at its creation: later the loader returns those of the first
 * layer. */
struct link {
    void *key; /* the dispatch pointer that the loader stores in every handle of it; NULL: unused */
    PFN_vkGetInstanceProcAddr instance_function;
    PFN_vkGetDeviceProcAddr device_function;
#define F(name) PFN_##name name;
    FUNCTIONS(F)
#undef F
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct link links[MAX_LINKS];
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

static void *key_of(const void *handle)
{
    return *(void *const *)handle;
}

static void add_link(const struct link *link)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_LINKS; i++) {
        if (!links[i].key) {
            links[i] = *link;
            pthread_mutex_unlock(&lock);
            return;
        }
    }
    abort();
}

static struct link find_link(const void *handle, bool forget)
{
    struct link link = {0};

    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_LINKS && !link.key; i++) {
        if (links[i].key != key_of(handle))
            continue;
        link = links[i];
        if (forget)
            links[i].key = NULL;
    }
    pthread_mutex_unlock(&lock);
    return link;
}

/* ---- instances and devices ---- */

/* Finds the loader's structure in a chain, which names the next layer, and advances it for that layer. */
static void *find_link_info(const void *chain, VkStructureType type)
{
    for (const VkLayerInstanceCreateInfo *info = chain; info; info = info->pNext)
        if (info->sType == type && info->function == VK_LAYER_LINK_INFO) /* both kinds begin with the same members */
            return (void *)info;
    return NULL;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo *info, const VkAllocationCallbacks *allocator,
                                                      VkInstance *out)
{
    VkLayerInstanceCreateInfo *chain = find_link_info(info->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
    struct link link = {.instance_function = chain->u.pLayerInfo->pfnNextGetInstanceProcAddr};
    PFN_vkCreateInstance below = (PFN_vkCreateInstance)link.instance_function(VK_NULL_HANDLE, "vkCreateInstance");
    VkResult result;

    chain->u.pLayerInfo = chain->u.pLayerInfo->pNext;
    result = below(info, allocator, out);
    if (result != VK_SUCCESS)
        return result;
    link.key = key_of(*out);
#define F(name) link.name = (PFN_##name)link.instance_function(*out, #name);
    FUNCTIONS(F)
#undef F
    add_link(&link);
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL destroy_instance(VkInstance instance, const VkAllocationCallbacks *allocator)
{
    struct link link;

    if (!instance)
        return;
    link = find_link(instance, true);
    link.vkDestroyInstance(instance, allocator);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                                    const VkAllocationCallbacks *allocator, VkDevice *out)
{
    VkLayerDeviceCreateInfo *chain = find_link_info(info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
    struct link device = {.device_function = chain->u.pLayerInfo->pfnNextGetDeviceProcAddr};
    VkResult result;

    chain->u.pLayerInfo = chain->u.pLayerInfo->pNext;
    result = find_link(physical, false).vkCreateDevice(physical, info, allocator, out);
    if (result != VK_SUCCESS)
        return result;
    device.key = key_of(*out);
#define F(name) device.name = (PFN_##name)device.device_function(*out, #name);
    FUNCTIONS(F)
#undef F
    add_link(&device);
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL destroy_device(VkDevice device, const VkAllocationCallbacks *allocator)
{
    struct link link;

    if (!device)
        return;
    link = find_link(device, true);
    link.vkDestroyDevice(device, allocator);
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

/* ---- names ---- */

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_instance_function(VkInstance instance, const char *name);
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_function(VkDevice device, const char *name);

static const struct {
    const char *name;
    PFN_vkVoidFunction function;
    bool of_device;
} ours[] = {
    {"vkGetInstanceProcAddr", (PFN_vkVoidFunction)get_instance_function, false},
    {"vkCreateInstance", (PFN_vkVoidFunction)create_instance, false},
    {"vkDestroyInstance", (PFN_vkVoidFunction)destroy_instance, false},
    {"vkCreateDevice", (PFN_vkVoidFunction)create_device, false},
    {"vkGetPhysicalDeviceProperties", (PFN_vkVoidFunction)get_properties, false},
    {"vkGetPhysicalDeviceProperties2", (PFN_vkVoidFunction)get_properties2, false},
    {"vkGetPhysicalDeviceExternalBufferProperties", (PFN_vkVoidFunction)get_buffer_properties, false},
    {"vkGetDeviceProcAddr", (PFN_vkVoidFunction)get_device_function, true},
    {"vkDestroyDevice", (PFN_vkVoidFunction)destroy_device, true},
    {"vkAllocateMemory", (PFN_vkVoidFunction)allocate_memory, true},
    {"vkFreeMemory", (PFN_vkVoidFunction)free_memory, true},
    {"vkGetMemoryFdKHR", (PFN_vkVoidFunction)get_memory_fd, true},
};

static PFN_vkVoidFunction find_ours(const char *name, bool of_device_only)
{
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (!strcmp(name, ours[i].name) && (ours[i].of_device || !of_device_only))
            return ours[i].function;
    return NULL;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_instance_function(VkInstance instance, const char *name)
{
    PFN_vkVoidFunction function = find_ours(name, false);

    return function || !instance ? function : find_link(instance, false).instance_function(instance, name);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_function(VkDevice device, const char *name)
{
    PFN_vkVoidFunction function = find_ours(name, true);

    return function ? function : find_link(device, false).device_function(device, name);
}

EXPORTED VKAPI_ATTR VkResult VKAPI_CALL vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *interface);
EXPORTED VKAPI_ATTR VkResult VKAPI_CALL vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *interface)
{
    if (interface->loaderLayerInterfaceVersion < 2)
        return VK_ERROR_INITIALIZATION_FAILED;
    interface->loaderLayerInterfaceVersion = 2;
    interface->pfnGetInstanceProcAddr = get_instance_function;
    interface->pfnGetDeviceProcAddr = get_device_function;
    interface->pfnGetPhysicalDeviceProcAddr = NULL;
    return VK_SUCCESS;
}
