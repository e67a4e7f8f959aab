/* SPDX-License-Identifier: Apache-2.0 */
/* The backend loads each device's functions with vkGetDeviceProcAddr, a variable of volk. The replacement here returns functions that count
 * and then call the driver's. Command buffers are not counted: Vulkan frees them with their pool. */
#include "counted_objects.h"

#include "backend_vk/vk.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* OBJECT(type, structure that describes it, function that creates it, function that destroys it) */
#define OBJECTS(OBJECT)                                                                                                                    \
    OBJECT(VkBuffer, VkBufferCreateInfo, vkCreateBuffer, vkDestroyBuffer)                                                                  \
    OBJECT(VkBufferView, VkBufferViewCreateInfo, vkCreateBufferView, vkDestroyBufferView)                                                  \
    OBJECT(VkCommandPool, VkCommandPoolCreateInfo, vkCreateCommandPool, vkDestroyCommandPool)                                              \
    OBJECT(VkDescriptorPool, VkDescriptorPoolCreateInfo, vkCreateDescriptorPool, vkDestroyDescriptorPool)                                  \
    OBJECT(VkDescriptorSetLayout, VkDescriptorSetLayoutCreateInfo, vkCreateDescriptorSetLayout, vkDestroyDescriptorSetLayout)              \
    OBJECT(VkDeviceMemory, VkMemoryAllocateInfo, vkAllocateMemory, vkFreeMemory)                                                           \
    OBJECT(VkEvent, VkEventCreateInfo, vkCreateEvent, vkDestroyEvent)                                                                      \
    OBJECT(VkFence, VkFenceCreateInfo, vkCreateFence, vkDestroyFence)                                                                      \
    OBJECT(VkImage, VkImageCreateInfo, vkCreateImage, vkDestroyImage)                                                                      \
    OBJECT(VkImageView, VkImageViewCreateInfo, vkCreateImageView, vkDestroyImageView)                                                      \
    OBJECT(VkPipelineCache, VkPipelineCacheCreateInfo, vkCreatePipelineCache, vkDestroyPipelineCache)                                      \
    OBJECT(VkPipelineLayout, VkPipelineLayoutCreateInfo, vkCreatePipelineLayout, vkDestroyPipelineLayout)                                  \
    OBJECT(VkQueryPool, VkQueryPoolCreateInfo, vkCreateQueryPool, vkDestroyQueryPool)                                                      \
    OBJECT(VkSampler, VkSamplerCreateInfo, vkCreateSampler, vkDestroySampler)                                                              \
    OBJECT(VkSemaphore, VkSemaphoreCreateInfo, vkCreateSemaphore, vkDestroySemaphore)                                                      \
    OBJECT(VkShaderModule, VkShaderModuleCreateInfo, vkCreateShaderModule, vkDestroyShaderModule)

#define KIND(type, info, create, destroy) KIND_##type,
enum kind { OBJECTS(KIND) KIND_VkPipeline, KINDS };

#define MOST_DEVICES 8
#define MOST_OMITTED 256

static struct {
    pthread_mutex_t lock;
    struct device {
        VkDevice handle; /* VK_NULL_HANDLE: the entry is free */
        long live[KINDS];
    } devices[MOST_DEVICES];
    unsigned leaked;
    enum kind omitted; /* KINDS: none */
    struct {
        VkDevice device;
        uint64_t handle;
        enum kind kind;
    } left[MOST_OMITTED];
    unsigned n_left;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .omitted = KINDS};

static const char *const kind_names[KINDS] = {
#define NAME(type, info, create, destroy) [KIND_##type] = #type,
    OBJECTS(NAME)[KIND_VkPipeline] = "VkPipeline"};

static const char *const destroyers[KINDS] = {
#define DESTROYER(type, info, create, destroy) [KIND_##type] = #destroy,
    OBJECTS(DESTROYER)[KIND_VkPipeline] = "vkDestroyPipeline"};

static PFN_vkGetDeviceProcAddr real_get_address;
static PFN_vkDestroyDevice real_destroy_device;
static PFN_vkCreateComputePipelines real_create_pipelines;
static PFN_vkDestroyPipeline real_vkDestroyPipeline;

static struct device *find_locked(VkDevice handle)
{
    for (unsigned i = 0; i < MOST_DEVICES; i++)
        if (state.devices[i].handle == handle)
            return &state.devices[i];
    return NULL;
}

static void add(VkDevice device, enum kind kind, long n)
{
    struct device *at;

    pthread_mutex_lock(&state.lock);
    if ((at = find_locked(device)))
        at->live[kind] += n;
    pthread_mutex_unlock(&state.lock);
}

/* Whether this destruction is to be omitted; the object is then remembered. */
static bool leave_out(VkDevice device, enum kind kind, uint64_t handle)
{
    bool omit;

    pthread_mutex_lock(&state.lock);
    omit = state.omitted == kind && state.n_left < MOST_OMITTED;
    if (omit) {
        state.left[state.n_left].device = device;
        state.left[state.n_left].handle = handle;
        state.left[state.n_left++].kind = kind;
    }
    pthread_mutex_unlock(&state.lock);
    return omit;
}

/* A non-dispatchable handle is a pointer on 64-bit machines. */
#define BITS(handle) ((uint64_t)(uintptr_t)(handle))

#define DESTROY(type, destroy)                                                                                                             \
    static VKAPI_ATTR void VKAPI_CALL count_##destroy(VkDevice device, type object, const VkAllocationCallbacks *callbacks)                \
    {                                                                                                                                      \
        if (!object || leave_out(device, KIND_##type, BITS(object)))                                                                       \
            return;                                                                                                                        \
        real_##destroy(device, object, callbacks);                                                                                         \
        add(device, KIND_##type, -1);                                                                                                      \
    }
#define COUNT(type, info, create, destroy)                                                                                                 \
    static PFN_##create real_##create;                                                                                                     \
    static PFN_##destroy real_##destroy;                                                                                                   \
    static VKAPI_ATTR VkResult VKAPI_CALL count_##create(VkDevice device, const info *desc, const VkAllocationCallbacks *callbacks,        \
                                                         type *out)                                                                        \
    {                                                                                                                                      \
        VkResult result = real_##create(device, desc, callbacks, out);                                                                     \
                                                                                                                                           \
        add(device, KIND_##type, result == VK_SUCCESS);                                                                                    \
        return result;                                                                                                                     \
    }                                                                                                                                      \
    DESTROY(type, destroy)
OBJECTS(COUNT)
DESTROY(VkPipeline, vkDestroyPipeline)

static VKAPI_ATTR VkResult VKAPI_CALL count_create_pipelines(VkDevice device, VkPipelineCache cache, uint32_t n,
                                                             const VkComputePipelineCreateInfo *infos,
                                                             const VkAllocationCallbacks *callbacks, VkPipeline *out)
{
    VkResult result = real_create_pipelines(device, cache, n, infos, callbacks, out);

    for (uint32_t i = 0; i < n; i++)
        add(device, KIND_VkPipeline, out[i] != VK_NULL_HANDLE);
    return result;
}

static void destroy_for_real(VkDevice device, enum kind kind, uint64_t handle)
{
    switch (kind) {
#define REALLY(type, info, create, destroy)                                                                                                \
    case KIND_##type:                                                                                                                      \
        real_##destroy(device, (type)(uintptr_t)handle, NULL);                                                                             \
        return;
        OBJECTS(REALLY)
    case KIND_VkPipeline:
        real_vkDestroyPipeline(device, (VkPipeline)(uintptr_t)handle, NULL);
        return;
    case KINDS:
        return;
    }
}

static void report_locked(const struct device *device)
{
    for (unsigned kind = 0; kind < KINDS; kind++) {
        if (!device->live[kind])
            continue;
        printf("%s: %ld left when the device is destroyed\n", kind_names[kind], device->live[kind]);
        state.leaked += (unsigned)labs(device->live[kind]);
    }
}

static VKAPI_ATTR void VKAPI_CALL count_destroy_device(VkDevice handle, const VkAllocationCallbacks *callbacks)
{
    struct device *device;

    pthread_mutex_lock(&state.lock);
    if (handle && (device = find_locked(handle))) {
        report_locked(device);
        *device = (struct device){0};
    }
    for (unsigned i = 0; i < state.n_left; i++) {
        if (state.left[i].device != handle)
            continue;
        destroy_for_real(handle, state.left[i].kind, state.left[i].handle);
        state.left[i--] = state.left[--state.n_left];
    }
    pthread_mutex_unlock(&state.lock);
    real_destroy_device(handle, callbacks);
}

static void know(VkDevice handle)
{
    struct device *device;

    pthread_mutex_lock(&state.lock);
    if (!find_locked(handle)) {
        device = find_locked(VK_NULL_HANDLE);
        assert(device && "more devices at once than the table has room for");
        device->handle = handle;
    }
    pthread_mutex_unlock(&state.lock);
}

static PFN_vkVoidFunction VKAPI_CALL counting_address(VkDevice device, const char *name)
{
    PFN_vkVoidFunction real = real_get_address(device, name);

    know(device);
    if (!real)
        return NULL;
#define SUBSTITUTE(function, variable, counting)                                                                                           \
    if (!strcmp(name, #function)) {                                                                                                        \
        variable = (PFN_##function)real;                                                                                                   \
        return (PFN_vkVoidFunction)counting;                                                                                               \
    }
#define BOTH(type, info, create, destroy)                                                                                                  \
    SUBSTITUTE(create, real_##create, count_##create)                                                                                      \
    SUBSTITUTE(destroy, real_##destroy, count_##destroy)
    OBJECTS(BOTH)
    SUBSTITUTE(vkCreateComputePipelines, real_create_pipelines, count_create_pipelines)
    SUBSTITUTE(vkDestroyPipeline, real_vkDestroyPipeline, count_vkDestroyPipeline)
    SUBSTITUTE(vkDestroyDevice, real_destroy_device, count_destroy_device)
    return real;
}

void counted_objects_begin(void)
{
    if (real_get_address || !vkGetDeviceProcAddr) /* NULL: the test runs on OpenCL, and Vulkan has not been loaded */
        return;
    real_get_address = vkGetDeviceProcAddr;
    vkGetDeviceProcAddr = counting_address;
}

unsigned counted_objects_leaked(void)
{
    unsigned leaked;

    pthread_mutex_lock(&state.lock);
    for (unsigned i = 0; i < MOST_DEVICES; i++) {
        if (state.devices[i].handle) {
            printf("a device still exists\n");
            state.leaked++;
        }
    }
    leaked = state.leaked;
    state.leaked = 0;
    pthread_mutex_unlock(&state.lock);
    return leaked;
}

bool counted_objects_omit(const char *destroy_or_null)
{
    unsigned kind = 0;

    while (destroy_or_null && kind < KINDS && strcmp(destroyers[kind], destroy_or_null))
        kind++;
    pthread_mutex_lock(&state.lock);
    state.omitted = destroy_or_null ? (enum kind)kind : KINDS;
    pthread_mutex_unlock(&state.lock);
    return kind < KINDS;
}
