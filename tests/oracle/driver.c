/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA driver that runs kernels in the oracle: only the calls that the examples and the tests of single instructions use. Programs
 * linked with this instead of libcuda check the oracle against their own host references. Undefined behaviour of a kernel, including a
 * data race, is reported on stderr and fails its launch. */
#include "oracle.h"

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_BUFFERS 64
#define MAX_PARAM_BYTES 4096

struct CUmod_st {
    struct oracle_module *module;
    struct CUfunc_st *functions;
};

struct CUfunc_st {
    struct CUmod_st *module;
    struct CUfunc_st *next;
    char name[];
};

static struct {
    void *bytes;
    size_t size_bytes;
} buffers[MAX_BUFFERS];

/* ---- device, context, events ---- */

EXPORT CUresult cuInit(unsigned flags)
{
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return ordinal ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    (void)device;
    snprintf(name, (size_t)length, "the oracle");
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    (void)device;
    *context = (CUcontext)buffers;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    (void)device;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
    (void)context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSynchronize(void)
{
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    (void)flags;
    *event = (CUevent)buffers;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventDestroy(CUevent event)
{
    (void)event;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
    (void)event, (void)stream;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventSynchronize(CUevent event)
{
    (void)event;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent stop)
{
    (void)start, (void)stop;
    *ms = 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = error == CUDA_SUCCESS ? "CUDA_SUCCESS" : "an error of the oracle";
    return CUDA_SUCCESS;
}

/* ---- memory: device pointers are host pointers ---- */

EXPORT CUresult cuMemAlloc(CUdeviceptr *pointer, size_t size_bytes)
{
    for (unsigned i = 0; i < MAX_BUFFERS; i++) {
        if (buffers[i].bytes)
            continue;
        buffers[i].bytes = aligned_alloc(256, (size_bytes + 255) / 256 * 256);
        buffers[i].size_bytes = size_bytes;
        *pointer = (CUdeviceptr)(uintptr_t)buffers[i].bytes;
        return buffers[i].bytes ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemFree(CUdeviceptr pointer)
{
    for (unsigned i = 0; i < MAX_BUFFERS; i++) {
        if (buffers[i].bytes != (void *)(uintptr_t)pointer)
            continue;
        free(buffers[i].bytes);
        buffers[i].bytes = NULL;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t size_bytes)
{
    memcpy((void *)(uintptr_t)to, from, size_bytes);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size_bytes)
{
    memcpy(to, (const void *)(uintptr_t)from, size_bytes);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t n)
{
    memset((void *)(uintptr_t)to, value, n);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD32(CUdeviceptr to, unsigned value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        memcpy((char *)(uintptr_t)to + i * 4, &value, 4);
    return CUDA_SUCCESS;
}

/* ---- modules ---- */

EXPORT CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned n, CUjit_option *options, void **values)
{
    struct oracle_result result;
    struct oracle_module *module = oracle_module_create(image, &result);

    (void)n, (void)options, (void)values;
    if (!module) {
        fprintf(stderr, "oracle: %s\n", result.message);
        return CUDA_ERROR_INVALID_PTX;
    }
    *out = calloc(1, sizeof **out);
    if (!*out)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*out)->module = module;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleUnload(CUmodule module)
{
    for (struct CUfunc_st *function = module->functions, *next; function; function = next) {
        next = function->next;
        free(function);
    }
    oracle_module_destroy(module->module);
    free(module);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncLoad(CUfunction function)
{
    (void)function;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name)
{
    if (!oracle_module_has_kernel(module->module, name))
        return CUDA_ERROR_NOT_FOUND;
    *out = calloc(1, sizeof **out + strlen(name) + 1);
    if (!*out)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*out)->module = module;
    (*out)->next = module->functions;
    memcpy((*out)->name, name, strlen(name) + 1);
    module->functions = *out;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned shared_bytes, CUstream stream, void **params, void **extra)
{
    uint8_t block[MAX_PARAM_BYTES];
    struct oracle_range ranges[MAX_BUFFERS];
    struct oracle_result result;
    struct oracle_launch launch = {.kernel = function->name,
                                   .grid = {grid_x, grid_y, grid_z},
                                   .block = {block_x, block_y, block_z},
                                   .dynamic_shared_bytes = shared_bytes,
                                   .params = block,
                                   .ranges = ranges,
                                   .find_races = true,
                                   .find_grid_races = true,
                                   .allow_zero_division = true};

    (void)stream, (void)extra;
    launch.params_bytes = oracle_module_pack_params(function->module->module, function->name, params, block, sizeof block);
    for (unsigned i = 0; i < MAX_BUFFERS; i++)
        if (buffers[i].bytes)
            ranges[launch.n_ranges++] =
                (struct oracle_range){(uint64_t)(uintptr_t)buffers[i].bytes, buffers[i].size_bytes, buffers[i].bytes, false};
    if (oracle_run(function->module->module, &launch, &result) == ORACLE_OK)
        return CUDA_SUCCESS;
    fprintf(stderr, "oracle: %s: %s: %s\n", function->name, oracle_status_name(result.status), result.message);
    return CUDA_ERROR_LAUNCH_FAILED;
}
