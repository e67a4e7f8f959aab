/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Memory Management: CUDA arrays and mipmapped arrays. Kernels do not reach them yet: copies do.
 * Every function that has a handle: NOT_INITIALIZED, and INVALID_HANDLE for one of nothing that lives; those that make something also
 * INVALID_CONTEXT. Extents are in elements. */
#include "entry_points.h"

#include "core/array/array.h"
#include "core/array/array_tiles.h"
#include "core/device/device.h"
#include "core/base/log.h"

#define CT_CHANNEL "memory"

/* ---- arrays ---- */

static CUresult create(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = out && desc ? ct_array_create(context, desc, out)
                    : ct_fail(CUDA_ERROR_INVALID_VALUE, "pHandle %p, pAllocateArray %p", (void *)out, (const void *)desc);
    ct_context_release(context);
    return r;
}

/* cuArrayCreate_v2. One or, with a height, two dimensions. Format: CU_AD_FORMAT_UNSIGNED_INT8 .. FLOAT with 1, 2 or 4 channels, or a UNORM
 * or SNORM one with its own number; others are NOT_SUPPORTED. INVALID_VALUE: a NULL, no width, beyond the limits of textures, no such
 * format or number of channels; OUT_OF_MEMORY. */
CUresult CUDAAPI cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
    CUDA_ARRAY3D_DESCRIPTOR desc = {0};

    if (pAllocateArray) {
        desc.Width = pAllocateArray->Width;
        desc.Height = pAllocateArray->Height;
        desc.Format = pAllocateArray->Format;
        desc.NumChannels = pAllocateArray->NumChannels;
    }
    return create(pHandle, pAllocateArray ? &desc : NULL);
}

/* cuArray3DCreate_v2. As cuArrayCreate_v2; with a depth three dimensions or, by CUDA_ARRAY3D_LAYERED and CUBEMAP, layers and faces (Depth
 * then is 6, or a multiple of it). SPARSE and DEFERRED_MAPPING are of 2 dimensions, layered or not, and 3; they have no memory until
 * cuMemMapArrayAsync. NOT_SUPPORTED: these two where the attributes of the device say so, VIDEO_ENCODE_DECODE. */
CUresult CUDAAPI cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
    return create(pHandle, pAllocateArray);
}

static CUresult get_descriptor(CUarray handle, const void *wanted, CUDA_ARRAY3D_DESCRIPTOR *out)
{
    struct ct_array *array;
    CUresult r = ct_array_lookup(handle, &array);

    if (r != CUDA_SUCCESS)
        return r;
    *out = array->desc;
    ct_array_release(array);
    return wanted ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_INVALID_VALUE, "pArrayDescriptor is NULL");
}

/* cuArrayGetDescriptor_v2. Of an array with a depth its first slice. INVALID_VALUE: a NULL. */
CUresult CUDAAPI cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    CUDA_ARRAY3D_DESCRIPTOR desc;
    CUresult r = get_descriptor(hArray, pArrayDescriptor, &desc);

    if (r == CUDA_SUCCESS)
        *pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR){desc.Width, desc.Height, desc.Format, desc.NumChannels};
    return r;
}

/* cuArray3DGetDescriptor_v2. INVALID_VALUE: a NULL. */
CUresult CUDAAPI cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    CUDA_ARRAY3D_DESCRIPTOR desc;
    CUresult r = get_descriptor(hArray, pArrayDescriptor, &desc);

    if (r == CUDA_SUCCESS)
        *pArrayDescriptor = desc;
    return r;
}

/* What the next functions ask of an array has no answer for those that can be made here. */
static CUresult refuse(CUarray handle, const char *why)
{
    struct ct_array *array;
    CUresult r = ct_array_lookup(handle, &array);

    if (r != CUDA_SUCCESS)
        return r;
    ct_array_release(array);
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "%s", why);
}

static CUresult refuse_mipmapped(CUmipmappedArray handle, const char *why)
{
    CUresult r = ct_mipmapped_array_check(handle);

    return r == CUDA_SUCCESS ? ct_fail(CUDA_ERROR_INVALID_VALUE, "%s", why) : r;
}

/* cuArrayGetSparseProperties. Of an array that is smaller than a tile in all dimensions all is in the tail. INVALID_VALUE: a NULL, not made
 * with CUDA_ARRAY3D_SPARSE, a level of a mipmapped array. */
CUresult CUDAAPI cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUarray array)
{
    return ct_array_sparse_properties(array, sparseProperties);
}

/* cuMipmappedArrayGetSparseProperties. miptailSize is in bytes, of each layer unless the flags say that all have one tail. INVALID_VALUE: a
 * NULL, not made with CUDA_ARRAY3D_SPARSE. */
CUresult CUDAAPI cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUmipmappedArray mipmap)
{
    return ct_mipmapped_array_sparse_properties(mipmap, sparseProperties);
}

/* cuArrayGetMemoryRequirements. Bytes. INVALID_VALUE: a NULL, not made with CUDA_ARRAY3D_DEFERRED_MAPPING, a level of a mipmapped array;
 * INVALID_DEVICE. */
CUresult CUDAAPI cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUarray array, CUdevice device)
{
    return ct_array_memory_requirements(array, device, memoryRequirements);
}

/* cuMipmappedArrayGetMemoryRequirements. Bytes. INVALID_VALUE: a NULL, not made with CUDA_ARRAY3D_DEFERRED_MAPPING; INVALID_DEVICE. */
CUresult CUDAAPI cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUmipmappedArray mipmap,
                                                       CUdevice device)
{
    return ct_mipmapped_array_memory_requirements(mipmap, device, memoryRequirements);
}

/* cuArrayGetPlane. INVALID_VALUE: the array has one plane only, as all have here. */
CUresult CUDAAPI cuArrayGetPlane(CUarray *pPlaneArray, CUarray hArray, unsigned int planeIdx)
{
    (void)pPlaneArray;
    (void)planeIdx;
    return refuse(hArray, "the array's format has no planes");
}

/* cuArrayDestroy. Waits for the work of the array's context. The level of a mipmapped array is left to that. */
CUresult CUDAAPI cuArrayDestroy(CUarray hArray)
{
    return ct_array_destroy(hArray);
}

/* ---- mipmapped arrays ---- */

/* cuMipmappedArrayCreate. As cuArray3DCreate_v2; the number of levels is brought into the range from 1 to what halving the longest side
 * gives. */
CUresult CUDAAPI cuMipmappedArrayCreate(CUmipmappedArray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                        unsigned int numMipmapLevels)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    if (pHandle && pMipmappedArrayDesc)
        r = ct_mipmapped_array_create(context, pMipmappedArrayDesc, numMipmapLevels, pHandle);
    else
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "pHandle %p, pMipmappedArrayDesc %p", (void *)pHandle, (const void *)pMipmappedArrayDesc);
    ct_context_release(context);
    return r;
}

/* cuMipmappedArrayGetLevel. The same array each time, which lives as long as the mipmapped one. INVALID_VALUE: a NULL, no such level. */
CUresult CUDAAPI cuMipmappedArrayGetLevel(CUarray *pLevelArray, CUmipmappedArray hMipmappedArray, unsigned int level)
{
    if (!pLevelArray)
        return refuse_mipmapped(hMipmappedArray, "pLevelArray is NULL");
    return ct_mipmapped_array_level(hMipmappedArray, level, pLevelArray);
}

/* cuMipmappedArrayDestroy. Its levels go with it. Waits for the work of its context. */
CUresult CUDAAPI cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
    return ct_mipmapped_array_destroy(hMipmappedArray);
}
