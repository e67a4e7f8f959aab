/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface objects (Driver API: Texture Object Management, Surface Object Management). */
#ifndef CT_CORE_TEXTURE_OBJECT_H
#define CT_CORE_TEXTURE_OBJECT_H

#include "texture_table.h"

/* Creates a texture object. `view` may be NULL. `flags`: 0, or PTX2SPV_TEXTURE_REFERENCE for that of a reference. INVALID_VALUE: a descriptor is invalid, or does not fit the resource; INVALID_HANDLE: there is no
 * such array; NOT_SUPPORTED: arrays whose memory kernels cannot address; OUT_OF_MEMORY. */
CUresult ct_texture_object_create(struct ct_context *context, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture,
                                  const CUDA_RESOURCE_VIEW_DESC *view, uint32_t flags, CUtexObject *out);
/* Creates a surface object over an array, whether or not that has CUDA_ARRAY3D_SURFACE_LDST, as in NVIDIA's driver. INVALID_VALUE: another resource;
 * the other errors as above. */
CUresult ct_surface_object_create(struct ct_context *context, const CUDA_RESOURCE_DESC *resource, uint32_t flags, CUsurfObject *out);

#endif
