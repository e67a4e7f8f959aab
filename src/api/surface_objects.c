/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Surface Object Management. Every function: NOT_INITIALIZED, INVALID_CONTEXT; INVALID_VALUE for a null pointer or a handle that is
 * not a surface object of the current context. */
#include "entry_points.h"

#include "core/base/log.h"
#include "core/texture/texture_object.h"

#define CT_CHANNEL "memory"

/* Creates an object with which kernels read and write an array. INVALID_VALUE also: another
 * resource; INVALID_HANDLE: there is no such array; NOT_SUPPORTED: layers of arrays of OpenGL; OUT_OF_MEMORY. */
CUresult CUDAAPI cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = pSurfObject && pResDesc ? ct_surface_object_create(context, pResDesc, 0, pSurfObject)
                                : ct_fail(CUDA_ERROR_INVALID_VALUE, "a null pointer");
    ct_context_release(context);
    return r;
}

/* Stores by kernels that still use the object have no effect from then on. The handle 0 is a no-op. */
CUresult CUDAAPI cuSurfObjectDestroy(CUsurfObject surfObject)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = surfObject ? ct_texture_remove(context, surfObject, true) : CUDA_SUCCESS;
    ct_context_release(context);
    return r;
}

CUresult CUDAAPI cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject)
{
    struct ct_context *context;
    struct ct_texture surface;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = pResDesc ? ct_texture_describe(context, surfObject, true, &surface) : ct_fail(CUDA_ERROR_INVALID_VALUE, "a null pointer");
    if (r == CUDA_SUCCESS)
        *pResDesc = surface.resource;
    ct_context_release(context);
    return r;
}
