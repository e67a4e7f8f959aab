/* SPDX-License-Identifier: Apache-2.0 */
/* An OpenCL runtime that does nothing but copy: as much of one as backend_vk/copy_runtime.c asks for, for the first Vulkan device. It opens
 * device memory by its descriptor through a Vulkan device of its own, which has to be one whose memory the host sees (lavapipe), and is
 * strict: it copies only what was taken over, from and to pages that were pinned, and takes itself down at exit. */
#define VOLK_IMPLEMENTATION
#include <volk.h>

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>

#include "copy_runtime_stub.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_BUFFERS 64

/* Every object of a runtime begins with the table of functions. */
struct object {
    const struct _cl_icd_dispatch *table;
};

struct buffer {
    const struct _cl_icd_dispatch *table;
    bool used, taken_over;
    char *bytes;
    size_t size_bytes;
    VkDeviceMemory memory; /* of what was imported */
};

static struct copy_stub state;
static struct buffer buffers[MAX_BUFFERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static VkInstance instance;
static VkPhysicalDevice physical;
static VkDevice device;

__attribute__((visibility("default"))) struct copy_stub *copy_stub_state(void)
{
    return &state;
}

static cl_int fault(void)
{
    state.faults++;
    return CL_INVALID_OPERATION;
}

/* ---- the end of the process ---- */

static atomic_int in_use;
static atomic_bool gone;
static pid_t opener; /* of whom the handler is */

static void take_down(void)
{
    if (getpid() != opener)
        _exit(COPY_STUB_IN_CHILD);
    if (atomic_load(&in_use))
        _exit(COPY_STUB_IN_USE);
    atomic_store(&gone, true);
}

/* As drivers do: at the first call, not when they are loaded. */
static bool note_opener(void)
{
    if (opener)
        return true;
    opener = getpid();
    return atexit(take_down) == 0;
}

static void enter(int ms)
{
    if (atomic_load(&gone))
        _exit(COPY_STUB_USED_LATE);
    atomic_fetch_add(&in_use, 1);
    if (ms)
        usleep((useconds_t)ms * 1000);
}

static void leave(void)
{
    atomic_fetch_sub(&in_use, 1);
}

/* ---- the Vulkan device ---- */

static bool open_vulkan(void)
{
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application};
    const char *const extension = VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME;
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
    const VkDeviceCreateInfo device_info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
        .enabledExtensionCount = 1,
        .ppEnabledExtensionNames = &extension,
    };
    uint32_t one = 1;

    if (device)
        return true;
    if (volkInitialize() != VK_SUCCESS || vkCreateInstance(&info, NULL, &instance) != VK_SUCCESS)
        return false;
    volkLoadInstance(instance);
    if (vkEnumeratePhysicalDevices(instance, &one, &physical) < VK_SUCCESS || !one ||
        vkCreateDevice(physical, &device_info, NULL, &device) != VK_SUCCESS)
        return false;
    volkLoadDevice(device);
    return true;
}

static void close_vulkan(void)
{
    vkDestroyDevice(device, NULL);
    vkDestroyInstance(instance, NULL);
    device = VK_NULL_HANDLE;
}

static uint32_t visible_type(void)
{
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t type = 0;

    vkGetPhysicalDeviceMemoryProperties(physical, &memory);
    while (type + 1 < memory.memoryTypeCount && !(memory.memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT))
        type++;
    return type;
}

static bool open_descriptor(struct buffer *buffer, int fd, size_t size_bytes)
{
    const VkImportMemoryFdInfoKHR import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR, .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT, .fd = fd};
    const VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &import, .allocationSize = size_bytes, .memoryTypeIndex = visible_type()};

    return vkAllocateMemory(device, &info, NULL, &buffer->memory) == VK_SUCCESS &&
           vkMapMemory(device, buffer->memory, 0, VK_WHOLE_SIZE, 0, (void **)&buffer->bytes) == VK_SUCCESS;
}

/* ---- the device and its context ---- */

static const struct _cl_icd_dispatch table;
static struct object platform = {&table}, only_device = {&table}, context = {&table}, queue = {&table}, event = {&table};

static cl_int CL_API_CALL list_platforms(cl_uint room, cl_platform_id *out, cl_uint *out_count)
{
    if (!note_opener() || !open_vulkan())
        return CL_PLATFORM_NOT_FOUND_KHR;
    if (room)
        *out = (cl_platform_id)&platform;
    *out_count = 1;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL list_devices(cl_platform_id of, cl_device_type type, cl_uint room, cl_device_id *out, cl_uint *out_count)
{
    (void)of;
    (void)type;
    if (room)
        *out = (cl_device_id)&only_device;
    *out_count = 1;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL device_info(cl_device_id id, cl_device_info what, size_t room, void *out, size_t *out_bytes)
{
    VkPhysicalDeviceIDProperties ids = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &ids};
    const cl_uint type = CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR;
    const bool is_uuid = what == CL_DEVICE_UUID_KHR;
    const size_t bytes = is_uuid ? CL_UUID_SIZE_KHR : sizeof type;

    (void)id;
    if ((!is_uuid && what != CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR) || room < bytes)
        return CL_INVALID_VALUE;
    vkGetPhysicalDeviceProperties2(physical, &properties);
    memcpy(out, is_uuid ? (const void *)ids.deviceUUID : &type, bytes);
    if (out_bytes)
        *out_bytes = bytes;
    return CL_SUCCESS;
}

static cl_context CL_API_CALL create_context(const cl_context_properties *properties, cl_uint count, const cl_device_id *ids,
                                             void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user,
                                             cl_int *status)
{
    (void)properties;
    (void)count;
    (void)ids;
    (void)notify;
    (void)user;
    atomic_fetch_add(&state.starts, 1);
    enter(state.start_ms);
    *status = state.fails_start ? CL_OUT_OF_HOST_MEMORY : CL_SUCCESS;
    if (!state.fails_start)
        atomic_fetch_add(&state.contexts, 1);
    leave();
    return state.fails_start ? NULL : (cl_context)&context;
}

static cl_int CL_API_CALL release_context(cl_context of)
{
    (void)of;
    enter(0);
    close_vulkan();
    atomic_fetch_sub(&state.contexts, 1);
    leave();
    return CL_SUCCESS;
}

static cl_command_queue CL_API_CALL create_queue(cl_context of, cl_device_id id, const cl_queue_properties *properties, cl_int *status)
{
    (void)of;
    (void)id;
    (void)properties;
    *status = CL_SUCCESS;
    return (cl_command_queue)&queue;
}

static cl_int CL_API_CALL release_queue(cl_command_queue of)
{
    (void)of;
    return CL_SUCCESS;
}

/* ---- buffers ---- */

static struct buffer *new_buffer(size_t size_bytes)
{
    for (int i = 0; i < MAX_BUFFERS; i++) {
        if (!buffers[i].used) {
            buffers[i] = (struct buffer){.table = &table, .used = true, .size_bytes = size_bytes};
            return &buffers[i];
        }
    }
    return NULL;
}

static cl_mem CL_API_CALL import_buffer(cl_context of, const cl_mem_properties *properties, cl_mem_flags flags, size_t size_bytes,
                                        void *host, cl_int *status)
{
    struct buffer *buffer;

    (void)of;
    (void)flags;
    (void)host;
    enter(0);
    pthread_mutex_lock(&lock);
    buffer = state.refuses_imports ? NULL : new_buffer(size_bytes);
    *status = buffer && properties[0] == CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR && open_descriptor(buffer, (int)properties[1], size_bytes)
                  ? CL_SUCCESS
                  : CL_INVALID_VALUE;
    if (*status == CL_SUCCESS)
        state.imports++;
    pthread_mutex_unlock(&lock);
    leave();
    return (cl_mem)buffer;
}

static cl_mem CL_API_CALL pin(cl_context of, cl_mem_flags flags, size_t size_bytes, void *host, cl_int *status)
{
    struct buffer *buffer;

    (void)of;
    enter(0);
    pthread_mutex_lock(&lock);
    buffer = new_buffer(size_bytes);
    *status = buffer && flags & CL_MEM_USE_HOST_PTR ? CL_SUCCESS : fault();
    if (buffer) {
        buffer->bytes = host;
        state.pins++;
    }
    pthread_mutex_unlock(&lock);
    leave();
    return (cl_mem)buffer;
}

static cl_int CL_API_CALL release_buffer(cl_mem of)
{
    struct buffer *buffer = (struct buffer *)of;

    enter(0);
    pthread_mutex_lock(&lock);
    if (buffer->memory) {
        vkFreeMemory(device, buffer->memory, NULL);
        state.imports--;
    } else {
        state.pins--;
    }
    buffer->used = false;
    pthread_mutex_unlock(&lock);
    leave();
    return CL_SUCCESS;
}

/* ---- copies: done at once ---- */

static cl_int hand_over(const cl_mem *of, bool take)
{
    struct buffer *buffer = (struct buffer *)*of;
    cl_int status = CL_SUCCESS;

    pthread_mutex_lock(&lock);
    if (!buffer->memory || buffer->taken_over == take)
        status = fault();
    buffer->taken_over = take;
    pthread_mutex_unlock(&lock);
    return status;
}

static cl_int CL_API_CALL acquire(cl_command_queue on, cl_uint count, const cl_mem *of, cl_uint waits, const cl_event *list, cl_event *out)
{
    (void)on;
    (void)count;
    (void)waits;
    (void)list;
    if (out)
        *out = (cl_event)&event;
    return hand_over(of, true);
}

static cl_int CL_API_CALL release(cl_command_queue on, cl_uint count, const cl_mem *of, cl_uint waits, const cl_event *list, cl_event *out)
{
    (void)on;
    (void)count;
    (void)waits;
    (void)list;
    if (out)
        *out = (cl_event)&event;
    return hand_over(of, false);
}

static bool is_pinned(const char *host, size_t bytes)
{
    for (int i = 0; i < MAX_BUFFERS; i++)
        if (buffers[i].used && !buffers[i].memory && host >= buffers[i].bytes && host + bytes <= buffers[i].bytes + buffers[i].size_bytes)
            return true;
    return false;
}

static cl_int copy(struct buffer *buffer, size_t offset, size_t bytes, char *host, bool up)
{
    cl_int status = CL_SUCCESS;

    enter(state.copy_ms);
    pthread_mutex_lock(&lock);
    if (!buffer->taken_over || offset + bytes > buffer->size_bytes || !is_pinned(host, bytes)) {
        status = fault();
    } else if (state.fails_copies) {
        status = CL_OUT_OF_RESOURCES;
    } else {
        memcpy(up ? buffer->bytes + offset : host, up ? host : buffer->bytes + offset, bytes);
        (*(up ? &state.uploads : &state.downloads))++;
    }
    pthread_mutex_unlock(&lock);
    leave();
    return status;
}

static cl_int CL_API_CALL write_buffer(cl_command_queue on, cl_mem to, cl_bool wait, size_t offset, size_t bytes, const void *host,
                                       cl_uint waits, const cl_event *list, cl_event *out)
{
    (void)on;
    (void)wait;
    (void)waits;
    (void)list;
    (void)out;
    return copy((struct buffer *)to, offset, bytes, (char *)(uintptr_t)host, true);
}

static cl_int CL_API_CALL read_buffer(cl_command_queue on, cl_mem from, cl_bool wait, size_t offset, size_t bytes, void *host,
                                      cl_uint waits, const cl_event *list, cl_event *out)
{
    (void)on;
    (void)wait;
    (void)waits;
    (void)list;
    (void)out;
    return copy((struct buffer *)from, offset, bytes, host, false);
}

static cl_int CL_API_CALL wait_for(cl_uint count, const cl_event *list)
{
    return count == 1 && *list == (cl_event)&event ? CL_SUCCESS : fault();
}

static cl_int CL_API_CALL release_event(cl_event of)
{
    return of == (cl_event)&event ? CL_SUCCESS : fault();
}

static cl_int CL_API_CALL finish(cl_command_queue on)
{
    return on == (cl_command_queue)&queue ? CL_SUCCESS : fault();
}

/* ---- how it is found ---- */

#define FUNCTION(name, function)                                                                                                           \
    {                                                                                                                                      \
        name, (void (*)(void))(function)                                                                                                   \
    }

static void *find(const char *name)
{
    static const struct {
        const char *name;
        void (*function)(void);
    } functions[] = {
        FUNCTION("clIcdGetPlatformIDsKHR", list_platforms),
        FUNCTION("clEnqueueAcquireExternalMemObjectsKHR", acquire),
        FUNCTION("clEnqueueReleaseExternalMemObjectsKHR", release),
    };
    void *found = NULL;

    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(name, functions[i].name))
            memcpy(&found, &functions[i].function, sizeof found);
    return found;
}

static void *CL_API_CALL find_for_platform(cl_platform_id of, const char *name)
{
    (void)of;
    return find(name);
}

__attribute__((visibility("default"))) void *CL_API_CALL clGetExtensionFunctionAddress(const char *name)
{
    return find(name);
}

static const struct _cl_icd_dispatch table = {
    .clGetDeviceIDs = list_devices,
    .clGetDeviceInfo = device_info,
    .clCreateContext = create_context,
    .clReleaseContext = release_context,
    .clCreateCommandQueueWithProperties = create_queue,
    .clReleaseCommandQueue = release_queue,
    .clCreateBufferWithProperties = import_buffer,
    .clCreateBuffer = pin,
    .clReleaseMemObject = release_buffer,
    .clEnqueueWriteBuffer = write_buffer,
    .clEnqueueReadBuffer = read_buffer,
    .clWaitForEvents = wait_for,
    .clFinish = finish,
    .clReleaseEvent = release_event,
    .clGetExtensionFunctionAddressForPlatform = find_for_platform,
};
