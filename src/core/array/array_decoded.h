/* SPDX-License-Identifier: Apache-2.0 */
/* Textures of compressed blocks (BC1 to BC7): the texels are decoded into arrays that the application does not see. Like a mirror (array_mirror.h) a
 * decoded array is brought up to date by each launch of a kernel that may access textures, since nothing says when blocks change. */
#ifndef CT_CORE_ARRAY_DECODED_H
#define CT_CORE_ARRAY_DECODED_H

#include "array.h"
#include "core/blocks/block_tables.h"

/* The level of the decoded array that belongs to a level of an array. Its elements are blocks of the format, or, for views, integers that are read as
 * such: then the extents are four times as large, and alpha is 0 where blocks have none, not 1 (as in NVIDIA's driver, measured on an H200). The array
 * is created if needed, and destroyed with the other one. NOT_SUPPORTED: the device cannot decode; OUT_OF_MEMORY. */
CUresult ct_array_decoded(const struct ct_array *level, enum ct_block_format format, const struct ct_array **out);

/* A part of launches (array_refresh.c). A no-op for an array that is not decoded. */
struct ct_array_group;
CUresult ct_array_decode(struct ct_stream *stream, const struct ct_array_group *group);

void ct_array_decoded_free(struct ct_array_group *group);

#endif
