/* SPDX-License-Identifier: Apache-2.0 */
/* Which texture objects kernels read through images of the device. */
#ifndef CT_CORE_TEXTURE_IMAGE_H
#define CT_CORE_TEXTURE_IMAGE_H

#include "texture_table.h"

/* Gives an object an image if the device then fetches what CUDA documents (CUTTLE_TEXTURES); otherwise it stays without one, and generated code
 * reads it by its record. The view is one of an array, or NULL. */
void ct_texture_image_create(struct ct_context *context, const CUDA_RESOURCE_DESC *resource, const CUDA_RESOURCE_VIEW_DESC *view,
                             const struct ptx2spv_texture *record, struct ct_texture *object);

#endif
