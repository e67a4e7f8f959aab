/* SPDX-License-Identifier: Apache-2.0 */
/* The records of textures and surfaces, made from descriptors that are valid by themselves. */
#ifndef CT_CORE_TEXTURE_RECORD_H
#define CT_CORE_TEXTURE_RECORD_H

#include "core/device/context.h"

/* The levels that a texture of an array's levels reads: these, or decoded ones if the format or the view is one of compressed blocks. INVALID_VALUE: the
 * view cannot be one of such elements; errors of ct_array_decoded. */
struct ct_array;
CUresult ct_texture_levels(const struct ct_array *levels, const CUDA_RESOURCE_VIEW_DESC *view_or_null, const struct ct_array **out);

/* The levels and the texels of a resource, of which only the view's format counts here. INVALID_VALUE: the resource is invalid; INVALID_HANDLE: there is no
 * such array; NOT_SUPPORTED: its format. */
CUresult ct_texture_record_resource(struct ct_context *context, const CUDA_RESOURCE_DESC *resource,
                                    const CUDA_RESOURCE_VIEW_DESC *view_or_null, struct ptx2spv_texture *out);
/* The same for a surface, to which kernels will write. */
CUresult ct_texture_record_surface(struct ct_context *context, const CUDA_RESOURCE_DESC *resource, struct ptx2spv_texture *out);
/* Restricts the levels and layers to those of a view. INVALID_VALUE: it does not fit the resource. */
CUresult ct_texture_record_view(const CUDA_RESOURCE_VIEW_DESC *view, struct ptx2spv_texture *record);
/* Whether linear filtering gives integers, of which the manuals are silent: NVIDIA's GPUs do it, and FFmpeg's scale_cuda uses it. */
bool ct_texture_filters_integers(const struct ptx2spv_texture *record);
/* How the texels are read. As in NVIDIA's driver, sRGB of other texels than 8-bit integers has no effect. Nor has filtering of integers between
 * levels or across the edges of a cube; what NVIDIA's GPUs do there is not known.
 * INVALID_VALUE: seamless filtering of a texture that is no cube, or a format of sRGB without CU_TRSF_SRGB. */
CUresult ct_texture_record_sampler(const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture, struct ptx2spv_texture *record);

#endif
