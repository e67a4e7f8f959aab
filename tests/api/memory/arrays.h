/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of arrays: kinds of arrays, formats, and the size of an element. */
#ifndef CUTTLE_TESTS_ARRAYS_H
#define CUTTLE_TESTS_ARRAYS_H

#include "../api_test.h"

struct array_format {
    const char *name;
    CUarray_format format;
    size_t channel_bytes;
};

static const struct array_format array_formats[] = {
    {"uint8", CU_AD_FORMAT_UNSIGNED_INT8, 1}, {"uint16", CU_AD_FORMAT_UNSIGNED_INT16, 2}, {"uint32", CU_AD_FORMAT_UNSIGNED_INT32, 4},
    {"int8", CU_AD_FORMAT_SIGNED_INT8, 1},    {"int16", CU_AD_FORMAT_SIGNED_INT16, 2},    {"int32", CU_AD_FORMAT_SIGNED_INT32, 4},
    {"half", CU_AD_FORMAT_HALF, 2},           {"float", CU_AD_FORMAT_FLOAT, 4},
};
#define N_ARRAY_FORMATS (sizeof array_formats / sizeof *array_formats)

/* One kind of array that the manual lists, with a small size. */
struct array_kind {
    const char *name;
    size_t width, height, depth;
    unsigned flags;
};

static const struct array_kind array_kinds[] = {
    {"1D", 77, 0, 0, 0},
    {"2D", 61, 23, 0, 0},
    {"3D", 19, 11, 7, 0},
    {"1D layered", 53, 0, 9, CUDA_ARRAY3D_LAYERED},
    {"2D layered", 31, 17, 5, CUDA_ARRAY3D_LAYERED},
    {"cubemap", 16, 16, 6, CUDA_ARRAY3D_CUBEMAP},
    {"layered cubemap", 12, 12, 12, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED},
};
#define N_ARRAY_KINDS (sizeof array_kinds / sizeof *array_kinds)

static inline CUDA_ARRAY3D_DESCRIPTOR array_desc(const struct array_kind *kind, CUarray_format format, unsigned channels)
{
    return (CUDA_ARRAY3D_DESCRIPTOR){kind->width, kind->height, kind->depth, format, channels, kind->flags};
}

static inline size_t at_least_one(size_t n)
{
    return n ? n : 1;
}

static inline void fill_with_noise(unsigned char *to, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)((seed = seed * 1664525u + 1013904223u) >> 24);
}

static inline int attribute(CUdevice_attribute which)
{
    int value = -1;

    ok(cuDeviceGetAttribute(&value, which, 0));
    return value;
}

/* The same request for a part of a mip tail; in bytes. */
static inline CUarrayMapInfo tail_of(CUarrayMapInfo info, unsigned layer, uint64_t offset, uint64_t size)
{
    info.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
    info.subresource.miptail.layer = layer;
    info.subresource.miptail.offset = offset;
    info.subresource.miptail.size = size;
    return info;
}

#endif
