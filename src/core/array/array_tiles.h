/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays whose memory comes later: sparse ones get it tile by tile, those with deferred mapping all of it at once. */
#ifndef CT_CORE_ARRAY_TILES_H
#define CT_CORE_ARRAY_TILES_H

#include "core/device/backend.h"
#include "core/stream/stream.h"

/* What memory each tile of an image has. */
struct ct_array_tiles;

CUresult ct_array_tiles_create(const struct ct_image_tiling *tiling, const struct ct_image_request *request, struct ct_array_tiles **out);
void ct_array_tiles_destroy(struct ct_array_tiles *tiles); /* the image is gone; takes NULL */

/* INVALID_HANDLE; INVALID_VALUE: not made with CUDA_ARRAY3D_SPARSE, or a level of a mipmapped array. */
CUresult ct_array_sparse_properties(CUarray handle, CUDA_ARRAY_SPARSE_PROPERTIES *out);
CUresult ct_mipmapped_array_sparse_properties(CUmipmappedArray handle, CUDA_ARRAY_SPARSE_PROPERTIES *out);
/* The same for CUDA_ARRAY3D_DEFERRED_MAPPING. INVALID_DEVICE. */
CUresult ct_array_memory_requirements(CUarray handle, CUdevice device, CUDA_ARRAY_MEMORY_REQUIREMENTS *out);
CUresult ct_mipmapped_array_memory_requirements(CUmipmappedArray handle, CUdevice device, CUDA_ARRAY_MEMORY_REQUIREMENTS *out);

/* A list of tiles to bind and unbind, checked: all entries are valid. */
struct ct_array;
struct ct_array_group;
struct ct_tile_requests;
struct ct_tile_work {
    struct ct_tile_requests *requests; /* NULL once they are recorded */
    union ct_tile_target {
        struct ct_array *array;
        struct ct_array_group *group;
    } *targets; /* retained: the array of each entry */
    unsigned n_targets;
    const CUarrayMapInfo *list; /* borrowed */
};
/* INVALID_HANDLE: of an array; INVALID_VALUE: all else that the manual does not allow; OUT_OF_MEMORY. To be finished on success only. */
CUresult ct_tile_work_init(struct ct_tile_work *work, const struct ct_device *device, const CUarrayMapInfo *list, unsigned count);
void ct_tile_work_finish(struct ct_tile_work *work);
/* Binds them behind what the stream has and before what it gets; once only. */
CUresult ct_tile_work_record(struct ct_stream *stream, struct ct_tile_work *work);

#endif
