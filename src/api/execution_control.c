/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Execution Control. Functions work in the current context (INVALID_CONTEXT: there is none).
 * INVALID_HANDLE: no function, or one whose module is unloaded; INVALID_VALUE: a null pointer for a result. Where a kernel has to be
 * compiled for the answer, what is wrong with it is the answer: NOT_SUPPORTED, INVALID_PTX, OUT_OF_MEMORY. */
#include "entry_points.h"

#include "core/command/launch_call.h"
#include "core/base/log.h"
#include "core/library/function_lookup.h"

#define CT_CHANNEL "launch"

/* cuFuncGetAttribute. Sizes in bytes; CU_FUNC_ATTRIBUTE_NUM_REGS is the compiler's estimate, since drivers do not tell, and never 0.
 * INVALID_VALUE: no such attribute. */
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

/* cuFuncSetAttribute. INVALID_VALUE: an attribute that cannot be set, or a value out of range; NOT_SUPPORTED: clusters. */
CUresult CUDAAPI cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
    struct ct_function *function;
    CUresult r = ct_function_lookup_current(hfunc, true, &function);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_function_set_attribute(function, attrib, value);
    ct_function_release(function);
    return r;
}

/* A preference without effect: checked, and forgotten. */
static CUresult ignore_preference(CUfunction hfunc, unsigned value, unsigned max)
{
    struct ct_function *function;
    CUresult r = ct_function_lookup_current(hfunc, true, &function);

    if (r != CUDA_SUCCESS)
        return r;
    ct_function_release(function);
    return value <= max ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_INVALID_VALUE, "configuration %u", value);
}

/* cuFuncSetCacheConfig. A preference, without effect. INVALID_VALUE: no such configuration. */
CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
    return ignore_preference(hfunc, (unsigned)config, CU_FUNC_CACHE_PREFER_EQUAL);
}

/* cuFuncSetSharedMemConfig (deprecated). Without effect: bank sizes are the hardware's. INVALID_VALUE: no such configuration. */
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

/* cuFuncGetName. The name as in the PTX; lives as long as the module. */
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

/* cuFuncGetParamInfo. Offset and size in bytes of a parameter in the block of parameters; paramSize may be NULL.
 * INVALID_VALUE: there are not so many. */
CUresult CUDAAPI cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
    struct ct_function *function;
    CUresult r = ct_function_lookup_current(func, paramOffset, &function);

    if (r != CUDA_SUCCESS)
        return r;
    if (paramIndex >= function->decl->n_params) {
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "parameter %zu of %u", paramIndex, function->decl->n_params);
    } else {
        *paramOffset = function->decl->params[paramIndex].offset;
        if (paramSize)
            *paramSize = function->decl->params[paramIndex].size;
    }
    ct_function_release(function);
    return r;
}

/* cuFuncIsLoaded. Whether it is compiled. */
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

/* cuFuncLoad. Compiles it now. */
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

/* cuLaunchKernel. Dimensions in blocks and threads, sharedMemBytes of dynamic shared memory. A kernel with .reqntid may be launched with
 * a block of 1 x 1 x 1, which means the one it requires. Parameters: a pointer to each in kernelParams, or one block of them by the list
 * `extra`, not both; of a block that is too small the rest is 0. Does not wait for the kernel.
 * INVALID_VALUE: a dimension of 0, dimensions or shared memory above the limits of device or kernel, or no parameters;
 * LAUNCH_OUT_OF_RESOURCES: a block of more parameters than the kernel has;
 * INVALID_HANDLE: no stream, no function, or a function of another context than the current one. */
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
    return ct_launch_tell(f, ct_launch_call(f, &shape, hStream, kernelParams, extra));
}

/* cuLaunchCooperativeKernel. As cuLaunchKernel, of a grid whose blocks may wait for each other, as cooperative groups do for a barrier of
 * the grid. COOPERATIVE_LAUNCH_TOO_LARGE: 2^31 blocks or more; with CUTTLE_STRICT=1 more than cuOccupancyMaxActiveBlocksPerMultiprocessor
 * gives for each multiprocessor, as NVIDIA's driver has it. */
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
    return ct_launch_tell(f, ct_launch_call(f, &shape, hStream, kernelParams, NULL));
}

/* cuLaunchKernelEx. As cuLaunchKernel, or cuLaunchCooperativeKernel by an attribute; hints among the attributes are taken and have no
 * effect, events are recorded behind the kernel.
 * INVALID_VALUE: no such attribute, or an event with timing; NOT_SUPPORTED: clusters, nodes that kernels update. */
CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
    CUresult r;

    ct_log_forget_failure();
    if (!config)
        return ct_launch_tell(f, ct_fail(CUDA_ERROR_INVALID_VALUE, "config is NULL"));
    r = ct_launch_check_attributes(config->attrs, config->numAttrs);
    if (r == CUDA_SUCCESS) {
        const struct ct_launch_shape shape = {
            .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
            .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
            .dynamic_shared_bytes = config->sharedMemBytes,
            .cooperative = ct_launch_attributes_cooperate(config->attrs, config->numAttrs),
        };

        r = ct_launch_call(f, &shape, config->hStream, kernelParams, extra);
    }
    return r == CUDA_SUCCESS ? ct_launch_call_record_events(config->hStream, config->attrs, config->numAttrs) : ct_launch_tell(f, r);
}
