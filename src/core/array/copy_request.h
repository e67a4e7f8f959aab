/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of one to three dimensions as the application describes them, by pointers and handles of arrays (CUDA_MEMCPY3D). */
#ifndef CT_CORE_COPY_REQUEST_H
#define CT_CORE_COPY_REQUEST_H

#include "array.h"

/* One side of a copy. */
struct ct_copy_side {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    CUarray array;
    uint64_t x_bytes, y, z, pitch, height;
};

/* The extent: bytes, rows, slices. */
struct ct_copy_extent {
    uint64_t width_bytes, height, depth;
};

struct ct_copy_request {
    struct ct_copy_side dst, src;
    struct ct_copy_extent extent;
};

static inline bool ct_copy_request_is_empty(const struct ct_copy_request *request)
{
    return !request->extent.width_bytes || !request->extent.height || !request->extent.depth;
}

/* INVALID_VALUE: `copy` is NULL, or has a level of detail that does not exist. */
CUresult ct_copy_request_init(const CUDA_MEMCPY3D *copy, struct ct_copy_request *out);

/* A request with its locations resolved. */
struct ct_copy_located {
    struct ct_copy copy;
    struct ct_array *arrays[2]; /* referenced until the copy is recorded; or NULL */
};
/* Resolves the locations of a request that is not empty; they stay valid until the caller's ct_address_uses_end (address_uses.h) and
 * ct_copy_located_finish. INVALID_VALUE: a null pointer, pitches less than the extent, an array with other elements, or beyond an allocation;
 * INVALID_HANDLE: the array does not exist. *out is untouched on failure. */
CUresult ct_copy_request_locate(const struct ct_copy_request *request, struct ct_copy_located *out);
void ct_copy_located_finish(struct ct_copy_located *located);

#endif
