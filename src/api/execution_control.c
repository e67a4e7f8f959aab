/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Execution Control. The functions work in the current context (INVALID_CONTEXT: there is none).
 * INVALID_HANDLE: the handle is not that of a function, or the function's module was unloaded; INVALID_VALUE: the pointer for a result
 * is NULL. Where the result requires that a kernel is compiled, errors of the compilation are returned: NOT_SUPPORTED, INVALID_PTX,
 * OUT_OF_MEMORY. */
#include "entry_points.h"

#include "core/command/launch_call.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "core/base/thread.h"
#include "core/device/device.h"
#include "core/library/function_lookup.h"

#define CT_CHANNEL "launch"

/* cuFuncGetAttribute. Sizes are in bytes. CU_FUNC_ATTRIBUTE_NUM_REGS is the compiler's estimate, since drivers do not report the number,
 * and never 0. INVALID_VALUE: the attribute does not exist. */
CUresult CUDAAPI cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
    struct ct_function *function;
    CUresult r = ct_function_lookup_current(hfunc, pi, &function);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_function_attribute(function, attrib, pi);
    ct_function_release(function);
    return r;
}

/* cuFuncSetAttribute. INVALID_VALUE: the attribute cannot be set, or the value is out of range; NOT_PERMITTED: a cluster size that PTX
 * specifies. */
CUresult CUDAAPI cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
    struct ct_function *function;
    CUresult r = ct_function_lookup_current(hfunc, true, &function);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_function_set_attribute(function, attrib, value, ct_thread_caller());
    ct_function_release(function);
    return r;
}

/* Validates a preference; otherwise a no-op. */
static CUresult ignore_preference(CUfunction hfunc, unsigned value, unsigned max)
{
    struct ct_function *function;
    CUresult r = ct_function_lookup_current(hfunc, true, &function);

    if (r != CUDA_SUCCESS)
        return r;
    ct_function_release(function);
    return value <= max ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_INVALID_VALUE, "configuration %u does not exist", value);
}

/* cuFuncSetCacheConfig. A preference without effect. INVALID_VALUE: config does not exist. */
CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
    return ignore_preference(hfunc, (unsigned)config, CU_FUNC_CACHE_PREFER_EQUAL);
}

/* cuFuncSetSharedMemConfig (deprecated). No effect: the hardware determines the width of the banks. INVALID_VALUE: config does not
 * exist. */
CUresult CUDAAPI cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config)
{
    return ignore_preference(hfunc, (unsigned)config, CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
}

/* cuFuncGetModule. */
CUresult CUDAAPI cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
    struct ct_function *function;
    CUresult r = ct_function_lookup_current(hfunc, hmod, &function);

    if (r != CUDA_SUCCESS)
        return r;
    *hmod = function->module->object.handle;
    ct_function_release(function);
    return CUDA_SUCCESS;
}

/* cuFuncGetName. The name as in the PTX; it stays valid as long as the module is loaded. */
CUresult CUDAAPI cuFuncGetName(const char **name, CUfunction hfunc)
{
    struct ct_function *function;
    CUresult r = ct_function_lookup_current(hfunc, name, &function);

    if (r != CUDA_SUCCESS)
        return r;
    *name = function->decl->name;
    ct_function_release(function);
    return CUDA_SUCCESS;
}

/* cuFuncGetParamInfo. The offset and the size in bytes of a parameter in the parameter block; paramSize may be NULL. INVALID_VALUE:
 * paramIndex is too large. */
CUresult CUDAAPI cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
    struct ct_function *function;
    CUresult r = ct_function_lookup_current(func, paramOffset, &function);

    if (r != CUDA_SUCCESS)
        return r;
    if (paramIndex >= function->decl->n_params) {
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "parameter index %zu of a kernel with %u parameters", paramIndex, function->decl->n_params);
    } else {
        *paramOffset = function->decl->params[paramIndex].offset;
        if (paramSize)
            *paramSize = function->decl->params[paramIndex].size;
    }
    ct_function_release(function);
    return r;
}

/* cuFuncIsLoaded. A function is loaded if it has been compiled. */
CUresult CUDAAPI cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
    struct ct_function *found;
    CUresult r = ct_function_lookup_current(function, state, &found);

    if (r != CUDA_SUCCESS)
        return r;
    *state = ct_function_is_compiled(found) ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
    ct_function_release(found);
    return CUDA_SUCCESS;
}

/* cuFuncLoad. Compiles the function now. */
CUresult CUDAAPI cuFuncLoad(CUfunction function)
{
    struct ct_function *found;
    CUresult r = ct_function_lookup_current(function, true, &found);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_function_compile(found);
    ct_function_release(found);
    return r;
}

/* cuLaunchKernel. Dimensions are in blocks and in threads; sharedMemBytes is the size of dynamic shared memory. A kernel with .reqntid may
 * be launched with a block of 1 x 1 x 1, which is replaced by the required block. Parameters are either an array of pointers in
 * kernelParams, or one block in the list `extra`; a block that is too small is extended with zeros. The function does not wait for the
 * kernel.
 * INVALID_VALUE: a dimension is 0, dimensions or shared memory exceed the limits of the device or the kernel, or there are no
 * parameters; LAUNCH_OUT_OF_RESOURCES: the block of parameters is larger than the kernel's; INVALID_HANDLE: the stream or the function
 * does not exist, or the function belongs to another context than the current one. */
CUresult CUDAAPI cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
                                unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                                void **kernelParams, void **extra)
{
    const struct ct_launch_shape shape = {
        .grid = {gridDimX, gridDimY, gridDimZ},
        .block = {blockDimX, blockDimY, blockDimZ},
        .dynamic_shared_bytes = sharedMemBytes,
    };

    ct_log_forget_failure();
    return ct_launch_log_failure(f, ct_launch_call(f, &shape, hStream, kernelParams, extra));
}

/* cuLaunchCooperativeKernel. As cuLaunchKernel, for a grid whose blocks may wait for each other, as the grid barrier of cooperative
 * groups requires. COOPERATIVE_LAUNCH_TOO_LARGE: 2^31 blocks or more; with CUTTLE_STRICT=1, as in NVIDIA's driver, more than
 * cuOccupancyMaxActiveBlocksPerMultiprocessor blocks for each multiprocessor. */
CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                                           unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                                           unsigned int sharedMemBytes, CUstream hStream, void **kernelParams)
{
    const struct ct_launch_shape shape = {
        .grid = {gridDimX, gridDimY, gridDimZ},
        .block = {blockDimX, blockDimY, blockDimZ},
        .dynamic_shared_bytes = sharedMemBytes,
        .cooperative = true,
    };

    ct_log_forget_failure();
    return ct_launch_log_failure(f, ct_launch_call(f, &shape, hStream, kernelParams, NULL));
}

/* The first error of the list as a whole. */
static CUresult check_devices(const CUDA_LAUNCH_PARAMS *list, unsigned count, unsigned flags)
{
    const unsigned known =
        CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC | CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC;
    struct ct_device *device;

    if (!list || !count || flags & ~known)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%u launches, flags 0x%x", count, flags);
    if (ct_device_lookup((CUdevice)count - 1, &device) != CUDA_SUCCESS)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%u launches, but there are fewer devices", count);
    for (unsigned i = 0; i < count; i++)
        if (!list[i].hStream || list[i].hStream == CU_STREAM_LEGACY)
            return ct_fail(CUDA_ERROR_INVALID_HANDLE, "launch %u is in the legacy default stream", i);
    return CUDA_SUCCESS;
}

/* cuLaunchCooperativeKernelMultiDevice. One launch as by cuLaunchCooperativeKernel on each of several devices. The kernels cannot wait for each
 * other: COOPERATIVE_MULTI_DEVICE_LAUNCH is 0. Devices do not wait for each other's earlier work either, which programs can request by events.
 * INVALID_VALUE: no launches, more than devices, or unknown flags; INVALID_HANDLE also: the legacy default stream. */
CUresult CUDAAPI cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *launchParamsList, unsigned int numDevices, unsigned int flags)
{
    CUresult r = ct_process_check();

    if (r == CUDA_SUCCESS)
        r = check_devices(launchParamsList, numDevices, flags);
    for (unsigned i = 0; i < numDevices && r == CUDA_SUCCESS; i++) {
        const CUDA_LAUNCH_PARAMS *p = &launchParamsList[i];

        r = cuLaunchCooperativeKernel(p->function, p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX, p->blockDimY, p->blockDimZ,
                                      p->sharedMemBytes, p->hStream, p->kernelParams);
    }
    return r;
}

/* cuLaunchKernelEx. As cuLaunchKernel, or as cuLaunchCooperativeKernel if an attribute says so. Attributes that are hints have no
 * effect; events are recorded after the kernel. INVALID_VALUE: an attribute does not exist, or an event has timing;
 * INVALID_CLUSTER_SIZE: ct_launch_check_cluster, or the clusters do not divide the grid; NOT_SUPPORTED: graph nodes that kernels update. */
CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
    CUresult r;

    ct_log_forget_failure();
    if (!config)
        return ct_launch_log_failure(f, ct_fail(CUDA_ERROR_INVALID_VALUE, "config is NULL"));
    r = ct_launch_check_attributes(config->attrs, config->numAttrs);
    if (r == CUDA_SUCCESS) {
        struct ct_launch_shape shape = {
            .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
            .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
            .dynamic_shared_bytes = config->sharedMemBytes,
            .cooperative = ct_launch_attributes_cooperate(config->attrs, config->numAttrs),
        };

        ct_launch_attributes_cluster(config->attrs, config->numAttrs, shape.cluster);
        r = ct_launch_call(f, &shape, config->hStream, kernelParams, extra);
    }
    return r == CUDA_SUCCESS ? ct_launch_call_record_events(config->hStream, config->attrs, config->numAttrs) : ct_launch_log_failure(f, r);
}
