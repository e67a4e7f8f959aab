/* SPDX-License-Identifier: Apache-2.0 */
/* Which texture objects kernels read through images of the device. */
#ifndef CT_CORE_TEXTURE_IMAGE_H
#define CT_CORE_TEXTURE_IMAGE_H

#include "texture_table.h"

/* Gives an object an image if the device then fetches what CUDA documents (CUTTLE_TEXTURES); otherwise it stays without one, and generated code
 * reads it by its record. */
void ct_texture_image_create(struct ct_context *context, const CUDA_RESOURCE_DESC *resource, const struct ptx2spv_texture *record,
                             struct ct_texture *object);

#endif
