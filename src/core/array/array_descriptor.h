/* SPDX-License-Identifier: Apache-2.0 */
/* A validated descriptor of an array. */
#ifndef CT_CORE_ARRAY_DESCRIPTOR_H
#define CT_CORE_ARRAY_DESCRIPTOR_H

#include "core/blocks/block_tables.h"
#include "core/device/backend.h"

struct ct_array_shape {
    CUDA_ARRAY3D_DESCRIPTOR desc; /* of the first level */
    enum ct_image_shape shape;
    bool layered; /* the depth is the number of layers or faces */
    uint32_t texel_bytes, levels;
    uint32_t block_side; /* as in struct ct_texels */
};

/* Whether the array owns its memory. */
enum ct_array_origin { CT_ARRAY_OWN, CT_ARRAY_IMPORTED };

/* INVALID_VALUE: the descriptor is invalid, or exceeds the device's limits; NOT_SUPPORTED: formats and flags that are not supported. The
 * number of levels is clamped to the range from 1 to the length of a full chain. */
CUresult ct_array_check(const struct ct_device_info *info, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels,
                        enum ct_array_origin origin, struct ct_array_shape *out);
/* Whether elements of the format are compressed blocks. */
bool ct_array_format_has_blocks(CUarray_format format, enum ct_block_format *out, bool *out_srgb);
/* The planes of a format with several. */
struct ct_array_planes {
    unsigned n, channels, x, y; /* those after the first one have so many channels, and 1/x of the width and 1/y of the height */
    CUarray_format format;
};
bool ct_array_format_has_planes(CUarray_format format, struct ct_array_planes *out);
/* Each level halves the sides of the previous one, but not the number of layers. */
CUDA_ARRAY3D_DESCRIPTOR ct_array_level_descriptor(const struct ct_array_shape *shape, unsigned level);
struct ct_texels ct_array_texels(const struct ct_array_shape *shape, const CUDA_ARRAY3D_DESCRIPTOR *level);
/* The request to the backend, without an import. */
void ct_array_request(const struct ct_array_shape *shape, struct ct_image_request *out);
/* The shape and the request of an array that is not imported. The errors of ct_array_check. */
CUresult ct_array_own_request(const struct ct_device_info *info, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels,
                              struct ct_array_shape *out_shape, struct ct_image_request *out);

#endif
