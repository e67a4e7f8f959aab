/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA arrays, and mipmapped arrays, whose levels are arrays of their own. */
#ifndef CT_CORE_ARRAY_H
#define CT_CORE_ARRAY_H

#include "core/copy/copy.h"

struct ct_array_group;

/* One level of an image, or of what stands for it in plain memory. */
struct ct_array {
    struct ct_object object;
    struct ct_array_group *group; /* a reference */
    CUDA_ARRAY3D_DESCRIPTOR desc; /* of this level */
    struct ct_texels texels;
    uint64_t slices;      /* of its depth, or layers */
    struct ct_place base; /* where its first texel lies */
};

/* An array of one level, published, of the context. INVALID_VALUE: a descriptor that the manual does not allow, or beyond the device's
 * limits; NOT_SUPPORTED: formats and flags that are not done; OUT_OF_MEMORY. */
CUresult ct_array_create(struct ct_context *context, const CUDA_ARRAY3D_DESCRIPTOR *desc, CUarray *out);
/* The live array behind a handle, with a use of its context; release gives both back. INVALID_HANDLE, and what ct_context_enter gives;
 * CONTEXT_IS_DESTROYED also of a handle that went with its context. */
CUresult ct_array_lookup(CUarray handle, struct ct_array **out);
void ct_array_release(struct ct_array *array); /* takes NULL */
/* Waits for the context's work. Does nothing to the level of a mipmapped array, which goes with that. INVALID_HANDLE. */
CUresult ct_array_destroy(CUarray handle);

/* What copies move: bytes, rows, slices; at least 1 of each. */
struct ct_array_box {
    uint64_t x_bytes, y, z;
    uint64_t width_bytes, height, depth;
};
/* Where a box begins, and its distances. INVALID_VALUE: not of whole elements, or not in the array. */
CUresult ct_array_locate(const struct ct_array *array, const struct ct_array_box *box, struct ct_place *out, uint64_t *out_pitch,
                         uint64_t *out_slice);

/* As ct_array_create; the number of levels is brought into the range that the size allows. */
CUresult ct_mipmapped_array_create(struct ct_context *context, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels, CUmipmappedArray *out);
/* On external memory, from its byte `offset` on: an image that another API made with the same properties. Also INVALID_VALUE: beyond it. */
CUresult ct_mipmapped_array_import(struct ct_context *context, const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *desc,
                                   const struct ct_fd_import *import, CUmipmappedArray *out);
/* The same handle each time. INVALID_HANDLE; INVALID_VALUE: there is no such level. */
CUresult ct_mipmapped_array_level(CUmipmappedArray handle, unsigned level, CUarray *out);
CUresult ct_mipmapped_array_check(CUmipmappedArray handle);   /* INVALID_HANDLE */
CUresult ct_mipmapped_array_destroy(CUmipmappedArray handle); /* levels and all; INVALID_HANDLE */

/* Context tear-down: no stream is left. */
void ct_arrays_destroy_all(struct ct_context *context);

#endif
