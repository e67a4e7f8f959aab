/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel on a device: one program with one kernel object, for blocks of any shape. The kernel object holds the arguments of the next
 * launch, so it is locked while a launch is enqueued. */
#include "cl.h"

#include "core/base/log.h"
#include "core/base/progress.h"
#include "core/device/block_shared.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "kernel"
/* Intel's runtime implements atomics on generic pointers and subgroup barriers correctly only with the built-in functions of OpenCL 2
 * and newer; this option selects which ones it uses. */
#define BUILD_OPTIONS "-cl-std=CL3.0"
/* For GPUs that support it. The known CPU runtimes divide exactly without it. */
#define EXACT_OPTION " -cl-fp32-correctly-rounded-divide-sqrt"
#define FLUSH_OPTION " -cl-denorms-are-zero"

struct ct_kernel_image {
    struct ct_backend_device *device; /* borrowed: outlives its kernels */
    char *name;
    struct ptx2spv_kernel_info info;
    cl_kernel handle;
    struct ct_mutex lock; /* guards the handle's arguments, and what follows; rank CT_RANK_BACKEND */
    uint64_t generation;  /* generation of the list of allocations that was last set for the handle */
};

/* The build log of a program, or NULL; to be freed. */
static char *build_log_or_null(const struct ct_backend_device *device, cl_program program)
{
    size_t size = 0;
    char *text;

    if (device->api->clGetProgramBuildInfo(program, device->physical->handle, CL_PROGRAM_BUILD_LOG, 0, NULL, &size) != CL_SUCCESS ||
        !size || !(text = calloc(1, size + 1)))
        return NULL;
    if (device->api->clGetProgramBuildInfo(program, device->physical->handle, CL_PROGRAM_BUILD_LOG, size, text, NULL) == CL_SUCCESS)
        return text;
    free(text);
    return NULL;
}

static void log_build(const struct ct_kernel_image *kernel, cl_program program)
{
    char *text = build_log_or_null(kernel->device, program);

    if (text)
        ct_log(CT_LOG_WARN, "the build of %s failed: %s", kernel->name, text);
    free(text);
}

/* Intel's runtime for CPUs (2026.2) implements a subgroup as a vector. It fails to vectorize some kernels, mostly such whose loops its
 * other passes made irreducible, and reports that only in its log: their subgroups are then single threads, and the first ballot
 * terminates the process. For one of some hundred kernels with subgroups of 64 threads it vectorizes the loop over a block's subgroups,
 * but not the one for the threads that do not fill a subgroup; the log then claims success, and has LLVM's warning about that loop. */
static bool lost_its_subgroups(const struct ct_kernel_image *kernel, cl_program program)
{
    char *text = kernel->info.linear_block ? build_log_or_null(kernel->device, program) : NULL;
    bool lost = text && (strstr(text, "was not vectorized") ||
                         strstr(text, "loop not vectorized: the optimizer was unable to perform the requested transformation"));

    free(text);
    return lost;
}

static const char *options_of(const struct ct_kernel_image *kernel)
{
    static const char *const options[2][2] = {{BUILD_OPTIONS, BUILD_OPTIONS FLUSH_OPTION},
                                              {BUILD_OPTIONS EXACT_OPTION, BUILD_OPTIONS EXACT_OPTION FLUSH_OPTION}};
    const struct ct_device_info *device = kernel->device->info;

    return options[device->kind != CT_DEVICE_CPU && device->target.exact_div32][kernel->info.flushes32];
}

static CUresult build_program(struct ct_kernel_image *kernel, const struct ptx2spv_kernel *source, cl_program *out)
{
    const struct ct_backend_device *device = kernel->device;
    struct ct_progress progress;
    cl_int result;
    cl_program program =
        device->api->clCreateProgramWithIL(device->context, source->words, source->n_words * sizeof *source->words, &result);
    CUresult r = ct_cl_result(result, "clCreateProgramWithIL");

    if (r != CUDA_SUCCESS)
        return r;
    ct_progress_begin(&progress, "the OpenCL runtime's compiler", kernel->name);
    result = device->api->clBuildProgram(program, 1, &device->physical->handle, options_of(kernel), NULL, NULL);
    ct_progress_end(&progress);
    if (result != CL_SUCCESS) {
        log_build(kernel, program);
        device->api->clReleaseProgram(program);
        return ct_cl_result(result, "clBuildProgram");
    }
    *out = program;
    return CUDA_SUCCESS;
}

static CUresult create_handle(struct ct_kernel_image *kernel, cl_program program)
{
    cl_int result;
    cl_kernel handle = kernel->device->api->clCreateKernel(program, "main", &result);
    const CUresult r = ct_cl_result(result, "clCreateKernel");

    if (r == CUDA_SUCCESS)
        kernel->handle = handle;
    return r;
}

/* True: *out is the result, and if it is success, the kernel has its handle. */
static bool create_from_cache(struct ct_kernel_image *kernel, const struct ct_disk_key *key, CUresult *out)
{
    cl_program program;

    switch (ct_cl_program_load(kernel->device, key, options_of(kernel), &program)) {
    case CT_CL_NOT_CACHED:
        return false;
    case CT_CL_CACHED_UNSUITABLE:
        *out = CUDA_ERROR_NOT_SUPPORTED;
        break;
    case CT_CL_CACHED:
        *out = create_handle(kernel, program);
        kernel->device->api->clReleaseProgram(program); /* the kernel keeps a reference to it */
        if (*out != CUDA_SUCCESS)
            return false;
        break;
    }
    ct_log(CT_LOG_DEBUG, "the program of %s comes from the disk cache", kernel->name);
    return true;
}

/* Makes the kernel's handle of a program that has been built. `key_or_null`: where the result is stored. */
static CUresult use_program(struct ct_kernel_image *kernel, cl_program program, const struct ct_disk_key *key_or_null)
{
    CUresult r;

    if (lost_its_subgroups(kernel, program)) {
        ct_log(CT_LOG_INFO, "%s: the runtime does not use subgroups", kernel->name);
        if (key_or_null)
            ct_cl_program_store_unsuitable(key_or_null);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    r = create_handle(kernel, program);
    if (r == CUDA_SUCCESS && key_or_null)
        ct_cl_program_store(kernel->device, key_or_null, program);
    return r;
}

static CUresult create(struct ct_kernel_image *kernel, const struct ptx2spv_kernel *source)
{
    struct ct_disk_key key;
    const bool is_cached = ct_cl_program_key(kernel->device, source, options_of(kernel), &key);
    cl_program program;
    CUresult r;

    if (is_cached && create_from_cache(kernel, &key, &r))
        return r;
    if ((r = build_program(kernel, source, &program)) != CUDA_SUCCESS)
        return r;
    r = use_program(kernel, program, is_cached ? &key : NULL);
    kernel->device->api->clReleaseProgram(program); /* the kernel keeps a reference to it */
    return r;
}

static CUresult allow_system_pointers(struct ct_kernel_image *kernel)
{
    const struct ct_backend_device *device = kernel->device;
    const cl_bool yes = CL_TRUE;

    if (device->physical->memory_form != CT_CL_SYSTEM)
        return CUDA_SUCCESS;
    return ct_cl_result(device->api->clSetKernelExecInfo(kernel->handle, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, sizeof yes, &yes),
                        "clSetKernelExecInfo");
}

static CUresult init(struct ct_kernel_image *kernel, const struct ptx2spv_kernel *source)
{
    struct ct_cl_signals *signals = ct_cl_signals_save();
    const CUresult r = create(kernel, source);

    ct_cl_signals_restore(signals);
    return r == CUDA_SUCCESS ? allow_system_pointers(kernel) : r;
}

CUresult ct_cl_kernel_create(struct ct_backend_device *device, const char *name, const struct ptx2spv_kernel *source,
                             struct ct_kernel_image **out)
{
    struct ct_kernel_image *kernel = calloc(1, sizeof *kernel);
    CUresult r;

    if (!kernel)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "kernel object");
    ct_mutex_init(&kernel->lock, CT_RANK_BACKEND);
    kernel->device = device;
    kernel->info = source->info;
    kernel->name = strdup(name);
    r = kernel->name ? init(kernel, source) : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "kernel name");
    if (r != CUDA_SUCCESS) {
        ct_cl_kernel_destroy(kernel);
        return r;
    }
    *out = kernel;
    return CUDA_SUCCESS;
}

void ct_cl_kernel_destroy(struct ct_kernel_image *kernel)
{
    if (!kernel || ct_cl_device_is_given_up(kernel->device))
        return;
    if (kernel->handle)
        kernel->device->api->clReleaseKernel(kernel->handle);
    ct_mutex_finish(&kernel->lock);
    free(kernel->name);
    free(kernel);
}

const struct ptx2spv_kernel_info *ct_cl_kernel_info(const struct ct_kernel_image *kernel)
{
    return &kernel->info;
}

static CUresult shape_block(const struct ct_launch *launch, struct ct_cl_dispatch *out)
{
    const struct ct_kernel_image *kernel = launch->kernel;
    const uint32_t *block = launch->block, most = kernel->device->info->max_block_threads;
    uint64_t threads = 1;

    for (int i = 0; i < 3; i++) {
        if (!block[i] || block[i] > most || (threads *= block[i]) > most)
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "%s: block of %u x %u x %u threads", kernel->name, block[0], block[1], block[2]);
    }
    for (int i = 0; i < 3; i++)
        out->local[i] = kernel->info.linear_block ? (i ? 1 : threads) : block[i];
    return CUDA_SUCCESS;
}

static CUresult shape_grid(const struct ct_launch *launch, struct ct_cl_dispatch *out)
{
    const uint32_t *grid = launch->grid, *max = launch->kernel->device->info->max_grid;

    if (!grid[0] || !grid[1] || !grid[2] || grid[0] > max[0] || grid[1] > max[1] || grid[2] > max[2])
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%s: grid of %u x %u x %u blocks", launch->kernel->name, grid[0], grid[1], grid[2]);
    for (int i = 0; i < 3; i++)
        out->global[i] = grid[i] * out->local[i];
    return CUDA_SUCCESS;
}

CUresult ct_cl_kernel_shape(const struct ct_launch *launch, struct ct_cl_dispatch *out)
{
    const struct ct_kernel_image *kernel = launch->kernel;
    const struct ptx2spv_kernel_info *info = &kernel->info;
    struct ct_block_shared shared;
    CUresult r;

    if ((r = shape_block(launch, out)) != CUDA_SUCCESS || (r = shape_grid(launch, out)) != CUDA_SUCCESS)
        return r;
    shared = ct_block_shared(info, launch->dynamic_shared_bytes, out->local[0] * out->local[1] * out->local[2],
                             kernel->device->info->shared_bytes);
    if (!info->shared_in_memory && shared.all_bytes > kernel->device->info->shared_bytes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%s: %llu bytes of shared memory, the device has %u", kernel->name,
                       (unsigned long long)shared.all_bytes, kernel->device->info->shared_bytes);
    out->kernel = launch->kernel;
    out->shared_bytes = (uint32_t)shared.own_bytes;
    out->argument_bytes = !info->uses_shared ? 0 : shared.all_bytes ? (size_t)shared.all_bytes : 4; /* an argument must not be empty */
    return CUDA_SUCCESS;
}

static CUresult set_arguments_locked(const struct ct_cl_dispatch *dispatch)
{
    const struct ct_kernel_image *kernel = dispatch->kernel;
    const struct ct_cl_api *api = kernel->device->api;
    CUresult r = ct_cl_result(api->clSetKernelArgSVMPointer(kernel->handle, 0, dispatch->arguments), "clSetKernelArgSVMPointer");

    if (r == CUDA_SUCCESS && dispatch->argument_bytes)
        r = ct_cl_result(api->clSetKernelArg(kernel->handle, 1, dispatch->argument_bytes, NULL), "clSetKernelArg");
    return r;
}

static CUresult enqueue(const struct ct_cl_dispatch *dispatch, cl_command_queue queue, cl_event *out_event)
{
    struct ct_kernel_image *kernel = dispatch->kernel;
    CUresult r;

    ct_mutex_lock(&kernel->lock);
    r = set_arguments_locked(dispatch);
    if (r == CUDA_SUCCESS)
        r = ct_cl_result(kernel->device->api->clEnqueueNDRangeKernel(queue, kernel->handle, 3, NULL, dispatch->global, dispatch->local, 0,
                                                                     NULL, out_event),
                         "clEnqueueNDRangeKernel");
    ct_mutex_unlock(&kernel->lock);
    return r;
}

static CUresult set_allocation_list(struct ct_kernel_image *kernel, void *const *list, size_t count, uint64_t generation)
{
    const struct ct_cl_api *api = kernel->device->api;
    CUresult r = CUDA_SUCCESS;

    ct_mutex_lock(&kernel->lock);
    if (kernel->generation < generation) {
        r = ct_cl_result(api->clSetKernelExecInfo(kernel->handle, CL_KERNEL_EXEC_INFO_SVM_PTRS, count * sizeof *list, list),
                         "clSetKernelExecInfo");
        if (r == CUDA_SUCCESS)
            kernel->generation = generation;
    }
    ct_mutex_unlock(&kernel->lock);
    return r;
}

/* Kernels find memory through pointers in memory, so each may access all allocations. The runtime may reject a list that contains an
 * allocation which another thread has freed in the meantime; such an allocation has been removed from the device's list before, so the
 * next list does not contain it. */
static CUresult set_allocations(struct ct_kernel_image *kernel)
{
    struct ct_backend_device *device = kernel->device;
    uint64_t generation;
    size_t count;
    void **list;
    CUresult r;

    do {
        if ((r = ct_cl_memory_list(device, &list, &count, &generation)) != CUDA_SUCCESS)
            return r;
        r = set_allocation_list(kernel, list, count, generation);
        free(list);
    } while (r != CUDA_SUCCESS && generation < atomic_load_explicit(&device->generation, memory_order_relaxed));
    return r;
}

static bool knows_allocations(struct ct_kernel_image *kernel)
{
    bool knows;

    ct_mutex_lock(&kernel->lock);
    knows = kernel->generation >= atomic_load_explicit(&kernel->device->generation, memory_order_relaxed);
    ct_mutex_unlock(&kernel->lock);
    return knows;
}

CUresult ct_cl_kernel_enqueue(const struct ct_cl_dispatch *dispatch, cl_command_queue queue, cl_event *out_event)
{
    struct ct_kernel_image *kernel = dispatch->kernel;
    CUresult r;

    if (kernel->device->physical->memory_form == CT_CL_BUFFER && !knows_allocations(kernel) &&
        (r = set_allocations(kernel)) != CUDA_SUCCESS)
        return r;
    return enqueue(dispatch, queue, out_event);
}
