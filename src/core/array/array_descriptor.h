/* SPDX-License-Identifier: Apache-2.0 */
/* What a descriptor of an array says, checked. */
#ifndef CT_CORE_ARRAY_DESCRIPTOR_H
#define CT_CORE_ARRAY_DESCRIPTOR_H

#include "core/device/backend.h"

struct ct_array_shape {
    CUDA_ARRAY3D_DESCRIPTOR desc; /* of the first level */
    enum ct_image_shape shape;
    bool layered; /* the depth counts layers or faces */
    uint32_t texel_bytes, levels;
};

/* Whose memory it will have. */
enum ct_array_origin { CT_ARRAY_OWN, CT_ARRAY_IMPORTED };

/* INVALID_VALUE: not as the manual wants it, or larger than the device takes; NOT_SUPPORTED: formats and flags that are not done. Levels
 * are brought into the range from 1 to what halving gives. */
CUresult ct_array_check(const struct ct_device_info *info, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels,
                        enum ct_array_origin origin, struct ct_array_shape *out);
/* Sides are halved from level to level; layers are not. */
CUDA_ARRAY3D_DESCRIPTOR ct_array_level_descriptor(const struct ct_array_shape *shape, unsigned level);
struct ct_texels ct_array_texels(const struct ct_array_shape *shape, const CUDA_ARRAY3D_DESCRIPTOR *level);
/* What a backend is asked for; without an import. */
void ct_array_request(const struct ct_array_shape *shape, struct ct_image_request *out);

#endif
