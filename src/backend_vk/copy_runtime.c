/* SPDX-License-Identifier: Apache-2.0 */
/* Finding an OpenCL runtime that drives a device of Vulkan's and takes its memory, and making a context of it. It is asked for by the
 * loader's own protocol (cl_khr_icd), so the loader need not list it. */
#include "copy_runtime.h"

#include "core/exit_gate.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "copy"
#define MAX_LISTED 16

typedef void *(CL_API_CALL *find_function)(const char *name);

/* ---- finding the device ---- */

static find_function load(const char *name, enum ct_log_level complaint)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL); /* never closed: runtimes have threads of their own */
    void *symbol = library ? dlsym(library, "clGetExtensionFunctionAddress") : NULL;
    find_function find = NULL;

    if (!symbol)
        ct_log(complaint, "copy runtime: %s is no OpenCL runtime%s%s", name, library ? "" : ": ", library ? "" : dlerror());
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

static bool find_hand_over(struct ct_vk_copy_runtime *runtime, cl_platform_id platform)
{
    void *acquire = runtime->cl->clGetExtensionFunctionAddressForPlatform(platform, "clEnqueueAcquireExternalMemObjectsKHR");
    void *release = runtime->cl->clGetExtensionFunctionAddressForPlatform(platform, "clEnqueueReleaseExternalMemObjectsKHR");

    memcpy(&runtime->acquire, &acquire, sizeof runtime->acquire);
    memcpy(&runtime->release, &release, sizeof runtime->release);
    return acquire && release;
}

static cl_int init(struct ct_vk_copy_runtime *runtime, cl_platform_id platform, cl_device_id id)
{
    cl_int status = CL_SUCCESS;

    runtime->cl = functions_of(platform);
    if (!find_hand_over(runtime, platform))
        return CL_INVALID_PLATFORM;
    runtime->context = runtime->cl->clCreateContext(NULL, 1, &id, NULL, NULL, &status);
    for (int way = 0; way < CT_VK_COPY_WAYS && status == CL_SUCCESS; way++)
        runtime->queues[way] = runtime->cl->clCreateCommandQueueWithProperties(runtime->context, id, NULL, &status);
    return status;
}

static struct ct_vk_copy_runtime *make_on(cl_platform_id platform, cl_device_id id, enum ct_log_level complaint)
{
    struct ct_vk_copy_runtime *runtime = calloc(1, sizeof *runtime);
    cl_int status;

    if (!runtime)
        return NULL;
    runtime->complaint = complaint;
    status = init(runtime, platform, id);
    if (status == CL_SUCCESS)
        return runtime;
    ct_log(complaint, "copy runtime: no context, or no queues: %d", (int)status);
    ct_vk_copy_runtime_destroy(runtime);
    return NULL;
}

struct ct_vk_copy_runtime *ct_vk_copy_runtime_make(const struct ct_device_info *info, const char *library, enum ct_log_level complaint)
{
    find_function find = load(library, complaint);
    struct ct_vk_copy_runtime *runtime;
    cl_platform_id platform;
    cl_device_id id;

    if (!find || !ct_exit_gate_arm(CT_CHILD_ENDS))
        return NULL;
    if (!find_device(find, info, &platform, &id)) {
        ct_log(complaint, "copy runtime: %s does not drive %s, or does not take its memory", library, info->name);
        return NULL;
    }
    if (!ct_exit_gate_arm(CT_CHILD_ENDS) || !(runtime = make_on(platform, id, complaint)))
        return NULL;
    (void)ct_exit_gate_arm(CT_CHILD_ENDS); /* when the process is ending, nobody comes to use it */
    ct_log(CT_LOG_INFO, "%s copies between the host and %s", library, info->name);
    return runtime;
}

void ct_vk_copy_runtime_destroy(struct ct_vk_copy_runtime *runtime)
{
    if (!runtime)
        return;
    for (int way = 0; way < CT_VK_COPY_WAYS; way++)
        if (runtime->queues[way])
            runtime->cl->clReleaseCommandQueue(runtime->queues[way]);
    if (runtime->context)
        runtime->cl->clReleaseContext(runtime->context);
    free(runtime);
}
