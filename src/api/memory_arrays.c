/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Memory Management: CUDA arrays and mipmapped arrays. Kernels access them by texture and surface objects.
 * Every function with a handle: NOT_INITIALIZED, and INVALID_HANDLE if no live object has it; functions that create an array also
 * INVALID_CONTEXT. Extents are in elements. */
#include "entry_points.h"

#include "core/array/array.h"
#include "core/array/array_planes.h"
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

/* cuArrayCreate_v2. Creates an array of one dimension or, if Height is not 0, of two. Format: CU_AD_FORMAT_UNSIGNED_INT8 .. FLOAT with
 * 1, 2 or 4 channels, a UNORM or SNORM format with its number of channels, or, with a height, BC1 to BC7, whose elements in copies are blocks
 * of 4 x 4 texels; other formats are NOT_SUPPORTED. INVALID_VALUE: a null
 * pointer, width 0, an extent beyond the limits of textures, or an invalid format or number of channels; OUT_OF_MEMORY. */
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

/* cuArray3DCreate_v2. As cuArrayCreate_v2; if Depth is not 0 the array has three dimensions or, with CUDA_ARRAY3D_LAYERED and CUBEMAP,
 * layers and faces (Depth is then 6, or a multiple of 6). SPARSE and DEFERRED_MAPPING are for arrays of 2 dimensions, layered or not,
 * and of 3; these arrays have no memory before cuMemMapArrayAsync. Formats with planes (NV12 and others, 3 channels) have two dimensions and exactly
 * VIDEO_ENCODE_DECODE; only their planes can be copied and read. Words for video engines (YUY2 and others) have two dimensions, VIDEO_ENCODE_DECODE
 * and no textures. NOT_SUPPORTED: SPARSE and DEFERRED_MAPPING if the device's attributes say so;
 * surfaces of compressed blocks. */
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

/* cuArrayGetDescriptor_v2. For an array with a depth, describes the first slice. INVALID_VALUE: a null pointer. */
CUresult CUDAAPI cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    CUDA_ARRAY3D_DESCRIPTOR desc;
    CUresult r = get_descriptor(hArray, pArrayDescriptor, &desc);

    if (r == CUDA_SUCCESS)
        *pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR){desc.Width, desc.Height, desc.Format, desc.NumChannels};
    return r;
}

/* cuArray3DGetDescriptor_v2. INVALID_VALUE: a null pointer. */
CUresult CUDAAPI cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    CUDA_ARRAY3D_DESCRIPTOR desc;
    CUresult r = get_descriptor(hArray, pArrayDescriptor, &desc);

    if (r == CUDA_SUCCESS)
        *pArrayDescriptor = desc;
    return r;
}

/* Fails for queries that have no result for the arrays that this library can create. */
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

/* cuArrayGetSparseProperties. An array that is smaller than a tile in all dimensions consists of the mip tail only. INVALID_VALUE: a
 * null pointer, an array without CUDA_ARRAY3D_SPARSE, or a level of a mipmapped array. */
CUresult CUDAAPI cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUarray array)
{
    return ct_array_sparse_properties(array, sparseProperties);
}

/* cuMipmappedArrayGetSparseProperties. miptailSize is in bytes, for each layer unless the flags say that all layers share one tail.
 * INVALID_VALUE: a null pointer, or an array without CUDA_ARRAY3D_SPARSE. */
CUresult CUDAAPI cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUmipmappedArray mipmap)
{
    return ct_mipmapped_array_sparse_properties(mipmap, sparseProperties);
}

/* cuArrayGetMemoryRequirements. Sizes are in bytes. INVALID_VALUE: a null pointer, an array without CUDA_ARRAY3D_DEFERRED_MAPPING, or a
 * level of a mipmapped array; INVALID_DEVICE. */
CUresult CUDAAPI cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUarray array, CUdevice device)
{
    return ct_array_memory_requirements(array, device, memoryRequirements);
}

/* cuMipmappedArrayGetMemoryRequirements. Sizes are in bytes. INVALID_VALUE: a null pointer, or an array without
 * CUDA_ARRAY3D_DEFERRED_MAPPING; INVALID_DEVICE. */
CUresult CUDAAPI cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUmipmappedArray mipmap,
                                                       CUdevice device)
{
    return ct_mipmapped_array_memory_requirements(mipmap, device, memoryRequirements);
}

/* cuArrayGetPlane. Returns the same array each time, which lives as long as the other one. INVALID_VALUE: a null pointer, or an array without such a
 * plane. */
CUresult CUDAAPI cuArrayGetPlane(CUarray *pPlaneArray, CUarray hArray, unsigned int planeIdx)
{
    return pPlaneArray ? ct_array_plane(hArray, planeIdx, pPlaneArray) : refuse(hArray, "pPlaneArray is NULL");
}

/* cuArrayDestroy. Waits for the work of the array's context. A level of a mipmapped array is destroyed with that array. */
CUresult CUDAAPI cuArrayDestroy(CUarray hArray)
{
    return ct_array_destroy(hArray);
}

/* ---- mipmapped arrays ---- */

/* cuMipmappedArrayCreate. As cuArray3DCreate_v2; the number of levels is clamped to the range from 1 to the length of a full chain, in
 * which each level halves the extents. */
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

/* cuMipmappedArrayGetLevel. Returns the same array each time, which lives as long as the mipmapped array. INVALID_VALUE: a null pointer,
 * or the level does not exist. */
CUresult CUDAAPI cuMipmappedArrayGetLevel(CUarray *pLevelArray, CUmipmappedArray hMipmappedArray, unsigned int level)
{
    if (!pLevelArray)
        return refuse_mipmapped(hMipmappedArray, "pLevelArray is NULL");
    return ct_mipmapped_array_level(hMipmappedArray, level, pLevelArray);
}

/* cuMipmappedArrayDestroy. Also destroys the levels. Waits for the work of its context. */
CUresult CUDAAPI cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
    return ct_mipmapped_array_destroy(hMipmappedArray);
}
