/* SPDX-License-Identifier: Apache-2.0 */
/* Mirrors: memory in which kernels find the texels of arrays that are opaque images, such as those of other APIs and sparse ones. A mirror
 * exists from the first texture or surface object of its array on. A launch of a kernel that may access textures copies the images into
 * their mirrors first, and those that have surfaces back afterwards, so that other APIs, and copies, see the images only. These launches run one after
 * another (array_mirrors.h): otherwise one could copy an image into its mirror while another one writes to that, and those texels would be lost. */
#ifndef CT_CORE_ARRAY_MIRROR_H
#define CT_CORE_ARRAY_MIRROR_H

#include "array.h"

enum ct_mirror_use { CT_MIRROR_READ, CT_MIRROR_WRITE /* kernels write to it from now on */ };

/* Where kernels find the texels of a level, which belongs to an array that is an opaque image; its mirror is created if needed. The address is that
 * of the first texel, and valid until the array is destroyed. NOT_SUPPORTED: the array is a layer of another one. OUT_OF_MEMORY. */
CUresult ct_array_mirror(const struct ct_array *level, enum ct_mirror_use use, uint64_t *out_address);

/* The address of the first texel of any level for kernels: in its mirror, if it belongs to an opaque image. The errors of ct_array_mirror. */
CUresult ct_array_address(const struct ct_array *level, enum ct_mirror_use use, uint64_t *out);

/* Parts of launches (array_refresh.c). READ: from the image; WRITE: back to it, if it has a surface. A no-op for an array without a mirror. */
struct ct_array_group;
CUresult ct_array_mirror_copy(struct ct_stream *stream, const struct ct_array_group *group, enum ct_mirror_use use);

/* A part of destroying an array, whose last user calls it. Takes one without a mirror. */
void ct_array_mirror_free(struct ct_array_group *group);

#endif
