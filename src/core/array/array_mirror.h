/* SPDX-License-Identifier: Apache-2.0 */
/* Mirrors: memory in which kernels find the texels of arrays that are opaque images, such as those of other APIs and sparse ones. A mirror
 * exists from the first texture or surface object of its array on. A launch of a kernel that may access textures copies the images into
 * their mirrors first, and those that have surfaces back afterwards, so that other APIs, and copies, see the images only. Such launches run
 * one after another. */
#ifndef CT_CORE_ARRAY_MIRROR_H
#define CT_CORE_ARRAY_MIRROR_H

#include "array.h"

enum ct_mirror_use { CT_MIRROR_READ, CT_MIRROR_WRITE /* kernels write to it from now on */ };

/* Where kernels find the texels of a level, which belongs to an array that is an opaque image; its mirror is created if needed. The address is that
 * of the first texel, and valid until the array is destroyed. NOT_SUPPORTED: the array has deferred mapping. OUT_OF_MEMORY. */
CUresult ct_array_mirror(const struct ct_array *level, enum ct_mirror_use use, uint64_t *out_address);

/* Whether the context has mirrors, so that launches of kernels that may access textures need what follows. */
bool ct_array_mirrors_exist(struct ct_context *context);
/* Before such a launch, and after it if begin succeeded. The caller holds no lock. */
CUresult ct_array_mirrors_begin(struct ct_stream *stream);
CUresult ct_array_mirrors_end(struct ct_stream *stream);

/* Parts of destroying an array, whose last user calls it, and of destroying a context. Both take what was never created. */
struct ct_array_group;
void ct_array_mirror_free(struct ct_array_group *group);
void ct_array_mirrors_destroy(struct ct_context *context);

#endif
