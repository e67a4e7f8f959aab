/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Texture Object Management. Every function: NOT_INITIALIZED, INVALID_CONTEXT; INVALID_VALUE for a null pointer or a handle that is
 * not a texture object of the current context. */
#include "entry_points.h"

#include "core/base/log.h"
#include "core/texture/texture_object.h"

#define CT_CHANNEL "memory"

/* Creates an object with which kernels read an array, a mipmapped array, or linear or pitched memory, which must outlive it. Only arrays may
 * have a view; that of other resources has no effect. INVALID_VALUE also: a descriptor is invalid; INVALID_HANDLE: there is no such array;
 * NOT_SUPPORTED: layers of arrays of OpenGL; OUT_OF_MEMORY. */
CUresult CUDAAPI cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc, const CUDA_TEXTURE_DESC *pTexDesc,
                                   const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = pTexObject && pResDesc && pTexDesc ? ct_texture_object_create(context, pResDesc, pTexDesc, pResViewDesc, 0, pTexObject)
                                           : ct_fail(CUDA_ERROR_INVALID_VALUE, "a null pointer");
    ct_context_release(context);
    return r;
}

/* Kernels that still use the object read zeros from then on. The handle 0 is a no-op. */
CUresult CUDAAPI cuTexObjectDestroy(CUtexObject texObject)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = texObject ? ct_texture_remove(context, texObject, false) : CUDA_SUCCESS;
    ct_context_release(context);
    return r;
}

static CUresult describe(CUtexObject handle, const void *wanted, struct ct_texture *out)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = wanted ? ct_texture_describe(context, handle, false, out) : ct_fail(CUDA_ERROR_INVALID_VALUE, "a null pointer");
    ct_context_release(context);
    return r;
}

CUresult CUDAAPI cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject)
{
    struct ct_texture texture;
    CUresult r = describe(texObject, pResDesc, &texture);

    if (r == CUDA_SUCCESS)
        *pResDesc = texture.resource;
    return r;
}

CUresult CUDAAPI cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject)
{
    struct ct_texture texture;
    CUresult r = describe(texObject, pTexDesc, &texture);

    if (r == CUDA_SUCCESS)
        *pTexDesc = texture.texture;
    return r;
}

/* All zeros (CU_RES_VIEW_FORMAT_NONE) if the object was created without a view. */
CUresult CUDAAPI cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *pResViewDesc, CUtexObject texObject)
{
    struct ct_texture texture;
    CUresult r = describe(texObject, pResViewDesc, &texture);

    if (r == CUDA_SUCCESS)
        *pResViewDesc = texture.view;
    return r;
}
