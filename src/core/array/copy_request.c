/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves the pointers and arrays of copies (Driver API: cuMemcpy3D). */
#include "copy_request.h"

#include "core/base/log.h"

#include <limits.h>

#define CT_CHANNEL "copy"
#define MAX_PITCH ((uint64_t)INT_MAX) /* CU_DEVICE_ATTRIBUTE_MAX_PITCH of every device */

/* Where a side begins, and its pitches. */
struct located {
    struct ct_place place;
    uint64_t pitch, slice;
    struct ct_array *array;
};

/* A pitch or height of 0 means rows or slices without gaps; any other must not be less than the copy needs, even for one slice. */
static CUresult distances(const struct ct_copy_side *side, const struct ct_copy_extent *extent, struct located *out)
{
    uint64_t row_end, column_end, height = side->height;

    if (__builtin_add_overflow(side->x_bytes, extent->width_bytes, &row_end) ||
        __builtin_add_overflow(side->y, extent->height, &column_end))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the extent of a copy exceeds 64 bits");
    if (side->pitch > MAX_PITCH)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a pitch of %llu exceeds the limit", (unsigned long long)side->pitch);
    out->pitch = side->pitch ? side->pitch : row_end;
    height = height ? height : column_end;
    if (out->pitch < row_end || height < column_end)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pitch %llu and height %llu for rows of %llu bytes, %llu of them",
                       (unsigned long long)side->pitch, (unsigned long long)side->height, (unsigned long long)row_end,
                       (unsigned long long)column_end);
    if (__builtin_mul_overflow(out->pitch, height, &out->slice))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the extent of a copy exceeds 64 bits");
    return CUDA_SUCCESS;
}

static CUresult locate_memory(const struct ct_copy_side *side, enum ct_pointer_role role, const struct ct_copy_extent *extent,
                              struct located *out)
{
    uint64_t base, z, y, start, span;
    CUresult r = distances(side, extent, out);

    if (r == CUDA_SUCCESS)
        r = ct_copy_span(extent->width_bytes, extent->height, out->pitch, extent->depth, out->slice, &span);
    if (r != CUDA_SUCCESS)
        return r;
    base = role == CT_POINTER_HOST ? (uint64_t)(uintptr_t)side->host : side->device;
    if (!base)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a NULL pointer");
    if (__builtin_mul_overflow(side->z, out->slice, &z) || __builtin_mul_overflow(side->y, out->pitch, &y) ||
        __builtin_add_overflow(base, z, &start) || __builtin_add_overflow(start, y, &start) ||
        __builtin_add_overflow(start, side->x_bytes, &start))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the extent of a copy exceeds 64 bits");
    return ct_place_find(role, start, span, &out->place);
}

static CUresult locate_array(const struct ct_copy_side *side, const struct ct_copy_extent *extent, struct located *out)
{
    const struct ct_array_box box = {side->x_bytes, side->y, side->z, extent->width_bytes, extent->height, extent->depth};
    struct ct_array *array;
    CUresult r;

    if (!side->array)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a NULL array");
    if ((r = ct_array_lookup(side->array, &array)) != CUDA_SUCCESS)
        return r;
    if ((r = ct_array_locate(array, &box, &out->place, &out->pitch, &out->slice)) == CUDA_SUCCESS)
        out->array = array;
    else
        ct_array_release(array);
    return r;
}

static CUresult locate(const struct ct_copy_side *side, const struct ct_copy_extent *extent, struct located *out)
{
    switch (side->type) {
    case CU_MEMORYTYPE_HOST:
        return locate_memory(side, CT_POINTER_HOST, extent, out);
    case CU_MEMORYTYPE_DEVICE:
        return locate_memory(side, CT_POINTER_DEVICE, extent, out);
    case CU_MEMORYTYPE_UNIFIED:
        return locate_memory(side, CT_POINTER_UNIFIED, extent, out);
    case CU_MEMORYTYPE_ARRAY:
        return locate_array(side, extent, out);
    }
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "memory type %d does not exist", (int)side->type);
}

CUresult ct_copy_request_locate(const struct ct_copy_request *request, struct ct_copy_located *out)
{
    const struct ct_copy_extent *extent = &request->extent;
    struct located dst = {0}, src = {0};
    CUresult r = locate(&request->dst, extent, &dst);

    if (r == CUDA_SUCCESS && (r = locate(&request->src, extent, &src)) != CUDA_SUCCESS)
        ct_array_release(dst.array);
    if (r != CUDA_SUCCESS)
        return r;
    *out = (struct ct_copy_located){
        .copy =
            {
                .dst = dst.place,
                .src = src.place,
                .row_bytes = extent->width_bytes,
                .rows = extent->height,
                .slices = extent->depth,
                .dst_pitch = dst.pitch,
                .src_pitch = src.pitch,
                .dst_slice = dst.slice,
                .src_slice = src.slice,
            },
        .arrays = {dst.array, src.array},
    };
    return CUDA_SUCCESS;
}

void ct_copy_located_finish(struct ct_copy_located *located)
{
    ct_array_release(located->arrays[0]);
    ct_array_release(located->arrays[1]);
}

CUresult ct_copy_request_init(const CUDA_MEMCPY3D *p, struct ct_copy_request *out)
{
    if (!p)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pCopy is NULL");
    /* NVIDIA's driver ignores the reserved members, which programs fill when they pass a CUDA_MEMCPY3D_PEER, and the level of detail of a
     * side that is not an array. */
    if ((p->srcLOD && p->srcMemoryType == CU_MEMORYTYPE_ARRAY) || (p->dstLOD && p->dstMemoryType == CU_MEMORYTYPE_ARRAY))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the level of detail of an array is not 0");
    *out = (struct ct_copy_request){
        .dst = {p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray, p->dstXInBytes, p->dstY, p->dstZ, p->dstPitch, p->dstHeight},
        .src = {p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray, p->srcXInBytes, p->srcY, p->srcZ, p->srcPitch, p->srcHeight},
        .extent = {p->WidthInBytes, p->Height, p->Depth},
    };
    return CUDA_SUCCESS;
}
