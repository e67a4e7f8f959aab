/* SPDX-License-Identifier: Apache-2.0 */
/* The records of textures and surfaces, made from descriptors that are valid by themselves. */
#ifndef CT_CORE_TEXTURE_RECORD_H
#define CT_CORE_TEXTURE_RECORD_H

#include "core/device/context.h"

/* The levels and the texels of a resource. INVALID_VALUE: the resource is invalid; INVALID_HANDLE: there is no such array; NOT_SUPPORTED: its
 * format, or an array with deferred mapping. */
CUresult ct_texture_record_resource(struct ct_context *context, const CUDA_RESOURCE_DESC *resource, struct ptx2spv_texture *out);
/* The same for a surface, to which kernels will write. */
CUresult ct_texture_record_surface(struct ct_context *context, const CUDA_RESOURCE_DESC *resource, struct ptx2spv_texture *out);
/* Restricts the levels and layers to those of a view. INVALID_VALUE: it does not fit the resource. */
CUresult ct_texture_record_view(const CUDA_RESOURCE_VIEW_DESC *view, struct ptx2spv_texture *record);
/* How the texels are read. As in NVIDIA's driver, linear filtering of integers and sRGB of other texels than 8-bit integers have no effect.
 * INVALID_VALUE: seamless filtering of a texture that is no cube. */
CUresult ct_texture_record_sampler(const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture, struct ptx2spv_texture *record);

#endif
