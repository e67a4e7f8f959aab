/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of a Vulkan layer for tests. The layer defines FUNCTIONS(F), the functions of the next layer that it calls, before it includes this, and
 * then LAYER_FUNCTIONS, its own, with layer_find. vkCreateDevice and vkDestroyInstance are called here. */
#ifndef CUTTLE_TESTS_VULKAN_LAYER_H
#define CUTTLE_TESTS_VULKAN_LAYER_H

#include <vulkan/vulkan.h>

#include <vulkan/vk_layer.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LINKS 32
#define EXPORTED __attribute__((visibility("default")))

/* The functions of the next layer, for an instance or a device. They are queried at its creation: later the loader returns those of the first
 * layer. */
struct link {
    void *key; /* the dispatch pointer that the loader stores in every handle of it; NULL: unused */
    PFN_vkGetInstanceProcAddr instance_function;
    PFN_vkGetDeviceProcAddr device_function;
#define F(name) PFN_##name name;
    F(vkCreateDevice)
    F(vkDestroyInstance)
    F(vkDestroyDevice)
    FUNCTIONS(F)
#undef F
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct link links[MAX_LINKS];

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
    F(vkCreateDevice)
    F(vkDestroyInstance)
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
    F(vkDestroyDevice)
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

/* ---- names ---- */

struct layer_function {
    const char *name;
    PFN_vkVoidFunction function;
    bool of_device;
};
/* The layer's own functions, to an entry without a name. */
static const struct layer_function layer_functions[];

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_instance_function(VkInstance instance, const char *name);
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_function(VkDevice device, const char *name);

static const struct layer_function frame_functions[] = {
    {"vkGetInstanceProcAddr", (PFN_vkVoidFunction)get_instance_function, false},
    {"vkCreateInstance", (PFN_vkVoidFunction)create_instance, false},
    {"vkDestroyInstance", (PFN_vkVoidFunction)destroy_instance, false},
    {"vkCreateDevice", (PFN_vkVoidFunction)create_device, false},
    {"vkGetDeviceProcAddr", (PFN_vkVoidFunction)get_device_function, true},
    {"vkDestroyDevice", (PFN_vkVoidFunction)destroy_device, true},
    {0},
};

static PFN_vkVoidFunction find_in(const struct layer_function *functions, const char *name, bool of_device_only)
{
    for (; functions->name; functions++)
        if (!strcmp(name, functions->name) && (functions->of_device || !of_device_only))
            return functions->function;
    return NULL;
}

static PFN_vkVoidFunction find_ours(const char *name, bool of_device_only)
{
    PFN_vkVoidFunction function = find_in(frame_functions, name, of_device_only);

    return function ? function : find_in(layer_functions, name, of_device_only);
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

#endif
