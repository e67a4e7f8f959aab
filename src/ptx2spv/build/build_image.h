/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches from textures that may be images (PTX2SPV_IMAGE_DESCRIPTORS). */
#ifndef PTX2SPV_BUILD_IMAGE_H
#define PTX2SPV_BUILD_IMAGE_H

#include "build.h"
#include "ptx2spv/textures/texture_access.h"

struct ct_image_fetch {
    const struct ct_texture_access *access; /* BASE, LEVEL or GRAD */
    struct ptx_function *function;          /* that of ct_texture_image_function_or_null, or NULL */
    const ct_value *arguments; /* of the function that fetches by generated code: the handle, the layer, coordinates, and so on */
    const ct_value *channels;  /* the four results, which are assigned */
};

/* Fetches from an image, after which the current block goes on. It jumps to `code` if the object is none, or one that needs generated code for this
 * instruction. */
void ct_build_image_fetch(struct ct_build *b, const struct ct_image_fetch *fetch, struct ct_block *code);

#endif
