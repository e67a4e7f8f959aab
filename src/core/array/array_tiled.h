/* SPDX-License-Identifier: Apache-2.0 */
/* Images of the device with its own tiling beside the plain memory of an array: textures read them where the device has no linear image over that
 * memory, or reads one slowly. A launch of a kernel that may access textures copies the texels into the image first, if copies have written to the array
 * (core/copy/place_changes.h). Arrays that kernels write to have none: they would be copied for each launch. */
#ifndef CT_CORE_ARRAY_TILED_H
#define CT_CORE_ARRAY_TILED_H

#include "array.h"

/* Whether such an image may be better than a linear one. CUTTLE_TEXTURES=tiled: wherever one is possible. */
bool ct_array_prefers_tiled(const struct ct_array *level);
/* The image of all levels of the array, which is created if needed; it belongs to the array. NOT_SUPPORTED: the array cannot have one, or the device has
 * no such image; OUT_OF_MEMORY. */
CUresult ct_array_tiled(const struct ct_array *level, struct ct_texel_image **out);

/* A part of launches (array_refresh.c). A no-op for an array without an image. */
struct ct_array_group;
CUresult ct_array_tiled_refresh(struct ct_stream *stream, struct ct_array_group *group);

void ct_array_tiled_free(struct ct_array_group *group);

#endif
