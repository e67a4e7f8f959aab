/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Execution Control (deprecated): the launch functions of CUDA 2, which some bindings still use. The functions work in the
 * current context (INVALID_CONTEXT: there is none). The settings of a function persist from launch to launch; concurrent calls of several
 * threads for one function mix their settings, as in earlier versions of CUDA.
 * INVALID_HANDLE: the handle is not that of a function, or the function's module was unloaded; OUT_OF_MEMORY. */
#include "entry_points.h"

#include "core/command/launch_call.h"
#include "core/launch/launch_setup.h"
#include "core/base/log.h"
#include "core/texture/texture_reference.h"
#include "core/library/function_lookup.h"

#include <stdlib.h>

#define CT_CHANNEL "launch"

/* cuFuncSetBlockShape. Dimensions of a block in threads. INVALID_VALUE: a dimension is below 1, or the product exceeds the limit of the
 * function; the launch checks the limit of each dimension. */
CUresult CUDAAPI cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z)
{
    struct ct_function *function;
    CUresult r = ct_function_lookup_current(hfunc, true, &function);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_launch_setup_block(function, x, y, z);
    ct_function_release(function);
    return r;
}

/* cuFuncSetSharedSize. The size in bytes of the dynamic shared memory of each block. */
CUresult CUDAAPI cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes)
{
    struct ct_function *function;
    CUresult r = ct_function_lookup_current(hfunc, true, &function);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_launch_setup_shared(function, bytes);
    ct_function_release(function);
    return r;
}

/* cuParamSetSize. The size in bytes of all parameters. INVALID_VALUE: it exceeds the kernel's. */
CUresult CUDAAPI cuParamSetSize(CUfunction hfunc, unsigned int numbytes)
{
    struct ct_function *function;
    CUresult r = ct_function_lookup_current(hfunc, true, &function);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_launch_setup_param_size(function, numbytes);
    ct_function_release(function);
    return r;
}

/* cuParamSetv. Copies numbytes of parameters from ptr to the byte `offset` of the parameter block. INVALID_VALUE: the range is outside
 * of that block, or ptr is NULL. */
CUresult CUDAAPI cuParamSetv(CUfunction hfunc, int offset, void *ptr, unsigned int numbytes)
{
    struct ct_function *function;
    CUresult r = ct_function_lookup_current(hfunc, true, &function);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_launch_setup_param(function, offset, ptr, numbytes);
    ct_function_release(function);
    return r;
}

/* cuParamSetTexRef. Without effect: kernels use the references of their module in any case. INVALID_VALUE: texunit is not CU_PARAM_TR_DEFAULT. */
CUresult CUDAAPI cuParamSetTexRef(CUfunction hfunc, int texunit, CUtexref hTexRef)
{
    struct ct_reference_settings settings;
    struct ct_function *function;
    CUresult r = ct_function_lookup_current(hfunc, true, &function);

    if (r != CUDA_SUCCESS)
        return r;
    ct_function_release(function);
    if (texunit != CU_PARAM_TR_DEFAULT)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "texture unit %d", texunit);
    return ct_texture_reference_get(CT_OBJECT_TEXTURE_REFERENCE, hTexRef, &settings);
}

/* cuParamSeti. Sets a parameter of four bytes. */
CUresult CUDAAPI cuParamSeti(CUfunction hfunc, int offset, unsigned int value)
{
    return cuParamSetv(hfunc, offset, &value, sizeof value);
}

/* cuParamSetf. Sets a parameter of four bytes. */
CUresult CUDAAPI cuParamSetf(CUfunction hfunc, int offset, float value)
{
    return cuParamSetv(hfunc, offset, &value, sizeof value);
}

static CUresult launch_grid(struct ct_function *function, int width, int height, CUstream stream)
{
    struct ct_launch_shape shape;
    void *params;
    size_t size;
    CUresult r;

    if (width < 1 || height < 1)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a grid of %d x %d blocks", width, height);
    if ((r = ct_launch_setup_read(function, &shape, &params, &size)) != CUDA_SUCCESS)
        return r;
    shape.grid[0] = (unsigned)width;
    shape.grid[1] = (unsigned)height;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, params, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    r = ct_launch_call(function->object.handle, &shape, stream, NULL, extra);
    free(params);
    return r;
}

/* cuLaunchGridAsync. Launches a grid of grid_width x grid_height blocks in a stream. INVALID_VALUE: a dimension is below 1, or no block
 * shape was set; other errors as in cuLaunchKernel. */
CUresult CUDAAPI cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream)
{
    struct ct_function *function;
    CUresult r;

    ct_log_forget_failure();
    r = ct_function_lookup_current(f, true, &function);
    if (r == CUDA_SUCCESS) {
        r = launch_grid(function, grid_width, grid_height, hStream);
        ct_function_release(function);
    }
    return ct_launch_log_failure(f, r);
}

/* cuLaunchGrid. Launches in the legacy default stream. */
CUresult CUDAAPI cuLaunchGrid(CUfunction f, int grid_width, int grid_height)
{
    return cuLaunchGridAsync(f, grid_width, grid_height, CU_STREAM_LEGACY);
}

/* cuLaunch. Launches one block. */
CUresult CUDAAPI cuLaunch(CUfunction f)
{
    return cuLaunchGrid(f, 1, 1);
}
