/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA arrays, and mipmapped arrays, whose levels are arrays themselves. */
#ifndef CT_CORE_ARRAY_H
#define CT_CORE_ARRAY_H

#include "core/copy/copy.h"

struct ct_array_group;

/* One level of an image, or of its replacement in plain memory. */
struct ct_array {
    struct ct_object object;
    struct ct_array_group *group; /* a reference */
    CUDA_ARRAY3D_DESCRIPTOR desc; /* of this level */
    struct ct_texels texels;
    uint64_t slices;      /* its depth, or its number of layers */
    struct ct_place base; /* the place of its first texel */
};

/* Creates and publishes an array of one level in the context. INVALID_VALUE: the descriptor is invalid, or exceeds the device's limits;
 * NOT_SUPPORTED: formats and flags that are not supported; OUT_OF_MEMORY. */
CUresult ct_array_create(struct ct_context *context, const CUDA_ARRAY3D_DESCRIPTOR *desc, CUarray *out);
/* Looks up the live array of a handle and takes a reference to its context; ct_array_release releases both. INVALID_HANDLE, and errors
 * of ct_context_enter; CONTEXT_IS_DESTROYED also for a handle that was destroyed with its context. */
CUresult ct_array_lookup(CUarray handle, struct ct_array **out);
void ct_array_release(struct ct_array *array); /* NULL is a no-op */
/* Waits for the context's work. A no-op for a level of a mipmapped array, and for a plane, which are destroyed with that array. INVALID_HANDLE. */
CUresult ct_array_destroy(CUarray handle);

/* The extent of a copy: bytes, rows, slices; at least 1 of each. */
struct ct_array_box {
    uint64_t x_bytes, y, z;
    uint64_t width_bytes, height, depth;
};
/* Returns the place where a box begins, and its pitches. INVALID_VALUE: the box is not made of whole elements, or not inside of the
 * array. */
CUresult ct_array_locate(const struct ct_array *array, const struct ct_array_box *box, struct ct_place *out, uint64_t *out_pitch,
                         uint64_t *out_slice);

/* As ct_array_create; the number of levels is clamped to the range that the size allows. */
CUresult ct_mipmapped_array_create(struct ct_context *context, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels, CUmipmappedArray *out);
/* Creates the array in external memory at its byte `offset`: an image that another API created with the same properties. INVALID_VALUE
 * also: it exceeds the memory. */
CUresult ct_mipmapped_array_import(struct ct_context *context, const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *desc,
                                   const struct ct_fd_import *import, CUmipmappedArray *out);
/* Returns the same handle each time. INVALID_HANDLE; INVALID_VALUE: the level does not exist. */
CUresult ct_mipmapped_array_level(CUmipmappedArray handle, unsigned level, CUarray *out);
CUresult ct_mipmapped_array_check(CUmipmappedArray handle);   /* INVALID_HANDLE */
CUresult ct_mipmapped_array_destroy(CUmipmappedArray handle); /* including the levels; INVALID_HANDLE; ARRAY_IS_MAPPED */

/* Makes the mipmapped array one of a graphics resource, which the application cannot destroy. The caller has just created it, and gets it destroyed
 * by ct_mipmapped_array_drop. */
void ct_mipmapped_array_keep(CUmipmappedArray handle);
void ct_mipmapped_array_drop(CUmipmappedArray handle);

/* Part of destroying a context, after its streams. */
void ct_arrays_destroy_all(struct ct_context *context);

#endif
