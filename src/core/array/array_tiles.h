/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays whose memory is bound later: sparse arrays tile by tile, arrays with deferred mapping as a whole. */
#ifndef CT_CORE_ARRAY_TILES_H
#define CT_CORE_ARRAY_TILES_H

#include "core/device/backend.h"
#include "core/stream/stream.h"

/* The memory of each tile of an image. */
struct ct_array_tiles;

CUresult ct_array_tiles_create(const struct ct_image_tiling *tiling, const struct ct_image_request *request, struct ct_array_tiles **out);
/* Whether commands that `stream` records next may access the array: a sparse one always, a deferred one if it has memory, for which the stream then waits. */
CUresult ct_array_tiles_await(const struct ct_array_tiles *tiles, struct ct_stream *stream, bool *out_accessible);
void ct_array_tiles_destroy(struct ct_array_tiles *tiles); /* after the image was destroyed; NULL is a no-op */

/* INVALID_HANDLE; INVALID_VALUE: the array was created without CUDA_ARRAY3D_SPARSE, or is a level of a mipmapped array. */
CUresult ct_array_sparse_properties(CUarray handle, CUDA_ARRAY_SPARSE_PROPERTIES *out);
CUresult ct_mipmapped_array_sparse_properties(CUmipmappedArray handle, CUDA_ARRAY_SPARSE_PROPERTIES *out);
/* The same for CUDA_ARRAY3D_DEFERRED_MAPPING. INVALID_DEVICE. */
CUresult ct_array_memory_requirements(CUarray handle, CUdevice device, CUDA_ARRAY_MEMORY_REQUIREMENTS *out);
CUresult ct_mipmapped_array_memory_requirements(CUmipmappedArray handle, CUdevice device, CUDA_ARRAY_MEMORY_REQUIREMENTS *out);

/* A validated list of tiles to bind and unbind. */
struct ct_array;
struct ct_array_group;
struct ct_tile_requests;
struct ct_tile_work {
    struct ct_tile_requests *requests; /* NULL once they are recorded */
    union ct_tile_target {
        struct ct_array *array;
        struct ct_array_group *group;
    } *targets; /* the array of each entry, retained */
    unsigned n_targets;
    const CUarrayMapInfo *list; /* borrowed */
};
/* INVALID_HANDLE: an array does not exist; INVALID_VALUE: all other violations of the manual; OUT_OF_MEMORY. Must be finished on success
 * only. */
CUresult ct_tile_work_init(struct ct_tile_work *work, const struct ct_device *device, const CUarrayMapInfo *list, unsigned count);
void ct_tile_work_finish(struct ct_tile_work *work);
/* Binds the tiles in stream order; may be called only once. */
CUresult ct_tile_work_record(struct ct_stream *stream, struct ct_tile_work *work);

#endif
