/* SPDX-License-Identifier: Apache-2.0 */
/* Copies beside the queues, by an OpenCL runtime that drives the same device and takes its memory (CUTTLE_COPY_RUNTIME).
 *
 * NVIDIA's Vulkan driver copies between host and device at 0.92 of what the bus gives, and hardly both ways at once; its OpenCL runtime
 * does both at full speed. The price is a context of that runtime: device memory, and half a second when it is first used. Device
 * memory is imported by its descriptor; host memory is pinned once more (a buffer on its pages, which is never used for anything else), and
 * copies name its bytes by their pointers. The runtime is asked for by the loader's own protocol (cl_khr_icd), so the loader need not list
 * it. */
#include "memory.h"

#include "core/config.h"
#include "core/host_mappings.h"
#include "core/log.h"

#define CT_CHANNEL "copy"

#ifdef CT_WITH_OPENCL
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_LISTED 16
enum way { UP, DOWN, N_WAYS };

typedef void *(CL_API_CALL *find_function)(const char *name);
typedef cl_int(CL_API_CALL *hand_over)(cl_command_queue, cl_uint, const cl_mem *, cl_uint, const cl_event *, cl_event *);

struct ct_vk_copy_runtime {
    const struct _cl_icd_dispatch *cl;
    hand_over acquire, release; /* of memory that is Vulkan's */
    cl_context context;
    cl_command_queue queues[N_WAYS];
};

static CUresult check(cl_int status, const char *call)
{
    return status == CL_SUCCESS ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_UNKNOWN, "%s of the copy runtime: %d", call, (int)status);
}

/* ---- finding the device ---- */

static find_function load(const char *name)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL); /* never closed: runtimes have threads of their own */
    void *symbol = library ? dlsym(library, "clGetExtensionFunctionAddress") : NULL;
    find_function find = NULL;

    if (!symbol)
        ct_log(CT_LOG_WARN, "CUTTLE_COPY_RUNTIME: %s is no OpenCL runtime%s%s", name, library ? "" : ": ", library ? "" : dlerror());
    else
        memcpy(&find, &symbol, sizeof find);
    return find;
}

/* Every object of a runtime begins with its table of functions. */
static const struct _cl_icd_dispatch *functions_of(cl_platform_id platform)
{
    const struct _cl_icd_dispatch *table;

    memcpy(&table, platform, sizeof table);
    return table;
}

static bool takes_descriptors(const struct _cl_icd_dispatch *cl, cl_device_id id)
{
    cl_uint types[MAX_LISTED];
    size_t bytes = 0;

    if (cl->clGetDeviceInfo(id, CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR, sizeof types, types, &bytes) != CL_SUCCESS)
        return false;
    for (size_t i = 0; i < bytes / sizeof *types; i++)
        if (types[i] == CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR)
            return true;
    return false;
}

static bool is_same(const struct _cl_icd_dispatch *cl, cl_device_id id, const struct ct_device_info *info)
{
    cl_uchar uuid[CL_UUID_SIZE_KHR];

    return cl->clGetDeviceInfo(id, CL_DEVICE_UUID_KHR, sizeof uuid, uuid, NULL) == CL_SUCCESS && !memcmp(uuid, info->uuid, sizeof uuid) &&
           takes_descriptors(cl, id);
}

static bool find_in(cl_platform_id platform, const struct ct_device_info *info, cl_device_id *out)
{
    const struct _cl_icd_dispatch *cl = functions_of(platform);
    cl_device_id ids[MAX_LISTED];
    cl_uint count = 0;

    if (cl->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAX_LISTED, ids, &count) != CL_SUCCESS)
        return false;
    for (cl_uint i = 0; i < count && i < MAX_LISTED; i++) {
        if (is_same(cl, ids[i], info)) {
            *out = ids[i];
            return true;
        }
    }
    return false;
}

static bool find_device(find_function find, const struct ct_device_info *info, cl_platform_id *out_platform, cl_device_id *out)
{
    cl_int(CL_API_CALL * list)(cl_uint, cl_platform_id *, cl_uint *);
    void *symbol = find("clIcdGetPlatformIDsKHR");
    cl_platform_id platforms[MAX_LISTED];
    cl_uint count = 0;

    memcpy(&list, &symbol, sizeof list);
    if (!symbol || list(MAX_LISTED, platforms, &count) != CL_SUCCESS)
        return false;
    for (cl_uint i = 0; i < count && i < MAX_LISTED; i++) {
        if (find_in(platforms[i], info, out)) {
            *out_platform = platforms[i];
            return true;
        }
    }
    return false;
}

/* ---- making it ---- */

static void destroy(struct ct_vk_copy_runtime *runtime)
{
    for (int way = 0; way < N_WAYS; way++)
        if (runtime->queues[way])
            runtime->cl->clReleaseCommandQueue(runtime->queues[way]);
    if (runtime->context)
        runtime->cl->clReleaseContext(runtime->context);
    free(runtime);
}

static bool find_hand_over(struct ct_vk_copy_runtime *runtime, cl_platform_id platform)
{
    void *acquire = runtime->cl->clGetExtensionFunctionAddressForPlatform(platform, "clEnqueueAcquireExternalMemObjectsKHR");
    void *release = runtime->cl->clGetExtensionFunctionAddressForPlatform(platform, "clEnqueueReleaseExternalMemObjectsKHR");

    memcpy(&runtime->acquire, &acquire, sizeof runtime->acquire);
    memcpy(&runtime->release, &release, sizeof runtime->release);
    return acquire && release;
}

static CUresult init(struct ct_vk_copy_runtime *runtime, cl_platform_id platform, cl_device_id id)
{
    cl_int status = CL_SUCCESS;

    runtime->cl = functions_of(platform);
    if (!find_hand_over(runtime, platform))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "the copy runtime takes no memory over");
    runtime->context = runtime->cl->clCreateContext(NULL, 1, &id, NULL, NULL, &status);
    for (int way = 0; way < N_WAYS && status == CL_SUCCESS; way++)
        runtime->queues[way] = runtime->cl->clCreateCommandQueueWithProperties(runtime->context, id, NULL, &status);
    return check(status, "the context or a queue");
}

static struct ct_vk_copy_runtime *make(const struct ct_device_info *info)
{
    const char *name = ct_config()->copy_runtime;
    find_function find = *name ? load(name) : NULL;
    struct ct_vk_copy_runtime *runtime;
    cl_platform_id platform;
    cl_device_id id;

    if (!find)
        return NULL;
    if (!find_device(find, info, &platform, &id)) {
        ct_log(CT_LOG_WARN, "CUTTLE_COPY_RUNTIME: %s does not drive %s, or does not take its memory", name, info->name);
        return NULL;
    }
    if (!(runtime = calloc(1, sizeof *runtime)))
        return NULL;
    if (init(runtime, platform, id) != CUDA_SUCCESS) {
        destroy(runtime);
        return NULL;
    }
    ct_log(CT_LOG_INFO, "%s copies between the host and %s", name, info->name);
    return runtime;
}

/* The device's, made when it is first asked for. */
static struct ct_vk_copy_runtime *runtime_of_locked(struct ct_backend_device *device)
{
    if (!device->copy_runtime_tried)
        device->copy_runtime = make(device->info);
    device->copy_runtime_tried = true;
    return device->copy_runtime;
}

void ct_vk_copy_runtime_close(struct ct_backend_device *device)
{
    if (device->copy_runtime)
        destroy(device->copy_runtime);
}

/* ---- what it knows of memory ---- */

/* Device memory of one piece, by its descriptor, which the runtime keeps if it takes it. */
static cl_mem import_piece(struct ct_backend_device *device, const struct ct_vk_piece *piece)
{
    const struct ct_vk_copy_runtime *runtime = device->copy_runtime;
    cl_int status = CL_SUCCESS;
    cl_mem made;
    int fd;

    if (!piece->exportable || ct_vk_get_fd(device, piece->handle, VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT, &fd) != CUDA_SUCCESS)
        return NULL;
    made = runtime->cl->clCreateBufferWithProperties(
        runtime->context, (const cl_mem_properties[]){CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR, (cl_mem_properties)fd, 0}, CL_MEM_READ_WRITE,
        piece->charged_bytes, NULL, &status);
    if (check(status, "an import") == CUDA_SUCCESS)
        return made;
    close(fd);
    return NULL;
}

/* Pages that cannot be locked the runtime would take, too, and copy by way of its own at a tenth of the speed. */
static cl_mem pin_host(struct ct_backend_device *device, const struct ct_vk_memory *memory)
{
    const struct ct_vk_copy_runtime *runtime = device->copy_runtime;
    const struct ct_memory *base = &memory->base;
    cl_int status = CL_SUCCESS;
    cl_mem made;

    if (!ct_pages_can_be_locked((uintptr_t)base->host, base->size_bytes))
        return NULL;
    made = runtime->cl->clCreateBuffer(runtime->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, base->size_bytes, base->host, &status);
    return check(status, "a buffer on host memory") == CUDA_SUCCESS ? made : NULL;
}

/* Host memory that is pages of the process. What a GPU's driver made and mapped is not. */
static bool is_pages(const struct ct_vk_memory *memory)
{
    const struct ct_vk_piece *first = &memory->pieces[0];

    return memory->base.host && memory->n_pieces && !first->exportable &&
           (!first->charged_bytes || memory->base.device->info->kind == CT_DEVICE_CPU);
}

static bool knows_locked(struct ct_backend_device *device, struct ct_vk_memory *memory)
{
    if (!memory->copy_part_tried) {
        if (is_pages(memory))
            memory->copy_part = pin_host(device, memory);
        else if (memory->n_pieces == 1)
            memory->copy_part = import_piece(device, &memory->pieces[0]);
    }
    memory->copy_part_tried = true;
    return memory->copy_part;
}

bool ct_vk_copy_beside_takes(struct ct_memory *dst, struct ct_memory *src)
{
    struct ct_vk_memory *to = (struct ct_vk_memory *)dst, *from = (struct ct_vk_memory *)src;
    struct ct_backend_device *device = dst->device;
    bool takes;

    if (!*ct_config()->copy_runtime || is_pages(to) == is_pages(from))
        return false;
    ct_mutex_lock(&device->copy_lock);
    takes = runtime_of_locked(device) && knows_locked(device, to) && knows_locked(device, from);
    ct_mutex_unlock(&device->copy_lock);
    return takes;
}

void ct_vk_copy_runtime_forget(struct ct_vk_memory *memory)
{
    if (memory->copy_part)
        memory->base.device->copy_runtime->cl->clReleaseMemObject(memory->copy_part);
    memory->copy_part = NULL;
}

/* ---- copying ---- */

/* Bytes of device memory that the runtime knows, and where the host has theirs. */
struct transfer {
    enum way way;
    cl_mem part;
    uint64_t offset, size_bytes;
    char *host;
};

static struct transfer transfer_of(struct ct_memory *dst, uint64_t dst_offset, struct ct_memory *src, uint64_t src_offset, uint64_t bytes)
{
    const enum way way = is_pages((struct ct_vk_memory *)src) ? UP : DOWN;
    const struct ct_vk_memory *there = (const struct ct_vk_memory *)(way == UP ? dst : src);

    return (struct transfer){
        .way = way,
        .part = there->copy_part,
        .offset = there->pieces[0].buffer_offset + (way == UP ? dst_offset : src_offset),
        .size_bytes = bytes,
        .host = way == UP ? (char *)src->host + src_offset : (char *)dst->host + dst_offset,
    };
}

static cl_int enqueue(const struct ct_vk_copy_runtime *runtime, const struct transfer *t)
{
    const cl_command_queue queue = runtime->queues[t->way];

    if (t->way == UP)
        return runtime->cl->clEnqueueWriteBuffer(queue, t->part, CL_FALSE, t->offset, t->size_bytes, t->host, 0, NULL, NULL);
    return runtime->cl->clEnqueueReadBuffer(queue, t->part, CL_FALSE, t->offset, t->size_bytes, t->host, 0, NULL, NULL);
}

/* The memory is the runtime's for the copy alone; nobody else's hand-over comes between, since the lock is held. */
static CUresult start_locked(const struct ct_vk_copy_runtime *runtime, const struct transfer *t, cl_event *out)
{
    const cl_command_queue queue = runtime->queues[t->way];
    CUresult copied, released, r = check(runtime->acquire(queue, 1, &t->part, 0, NULL, NULL), "taking memory over");

    if (r != CUDA_SUCCESS)
        return r;
    copied = check(enqueue(runtime, t), "a copy");
    released = check(runtime->release(queue, 1, &t->part, 0, NULL, out), "handing memory back");
    if (released == CUDA_SUCCESS && copied != CUDA_SUCCESS)
        runtime->cl->clReleaseEvent(*out);
    return copied != CUDA_SUCCESS ? copied : released;
}

CUresult ct_vk_copy_beside(struct ct_memory *dst, uint64_t dst_offset, struct ct_memory *src, uint64_t src_offset, uint64_t size_bytes)
{
    const struct transfer t = transfer_of(dst, dst_offset, src, src_offset, size_bytes);
    struct ct_backend_device *device = dst->device;
    const struct ct_vk_copy_runtime *runtime = device->copy_runtime; /* there: these two were taken */
    cl_event done;
    CUresult r;

    ct_mutex_lock(&device->copy_lock);
    r = start_locked(runtime, &t, &done);
    ct_mutex_unlock(&device->copy_lock);
    if (r != CUDA_SUCCESS)
        return r;
    r = check(runtime->cl->clWaitForEvents(1, &done), "waiting for a copy");
    runtime->cl->clReleaseEvent(done);
    return r;
}

#else /* built without OpenCL's headers */

bool ct_vk_copy_beside_takes(struct ct_memory *dst, struct ct_memory *src)
{
    (void)dst;
    (void)src;
    return false;
}

CUresult ct_vk_copy_beside(struct ct_memory *dst, uint64_t dst_offset, struct ct_memory *src, uint64_t src_offset, uint64_t size_bytes)
{
    (void)dst;
    (void)dst_offset;
    (void)src;
    (void)src_offset;
    (void)size_bytes;
    return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "built without OpenCL's headers");
}

void ct_vk_copy_runtime_forget(struct ct_vk_memory *memory)
{
    (void)memory;
}

void ct_vk_copy_runtime_close(struct ct_backend_device *device)
{
    (void)device;
}

#endif
