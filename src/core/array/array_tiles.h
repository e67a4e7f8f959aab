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

/* Binds and unbinds tiles, behind what the stream has and before what it gets. Nothing is done unless all entries are valid.
 * INVALID_HANDLE: of an array; INVALID_VALUE: all else that the manual does not allow; OUT_OF_MEMORY. */
CUresult ct_arrays_map(struct ct_stream *stream, const CUarrayMapInfo *list, unsigned count);

#endif
