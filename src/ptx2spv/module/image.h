/* SPDX-License-Identifier: Apache-2.0 */
/* Images: the initial bytes of a module's variables. Large variables are mostly zero, so only pieces of an image are kept. */
#ifndef PTX2SPV_IMAGE_H
#define PTX2SPV_IMAGE_H

#include "compilation.h"

struct ct_module_image {
    struct ptx2spv_image contents;
    uint8_t *bytes; /* of all pieces; allocated with calloc, owned */
    CT_VEC(struct ct_span) spans;
};

/* Bytes of an image that a piece must contain. */
struct ct_span {
    uint64_t start, end;
};

/* Adds bytes that are not zero, or not yet known. In the scratch arena. */
void ct_image_note(struct ct_compilation *compilation, struct ct_module_image *image, uint64_t start, uint64_t size_bytes);
/* Makes pieces, with all bytes zero, that contain everything noted. */
void ct_image_make_pieces(struct ct_compilation *compilation, struct ct_module_image *image);
/* The bytes at an offset that was noted. */
uint8_t *ct_image_at(const struct ct_module_image *image, uint64_t offset);

#endif
