/* SPDX-License-Identifier: Apache-2.0 */
/* Images: what cuModuleLoadData and cuLibraryLoadData take, and the PTX in it. */
#ifndef CT_CORE_IMAGE_H
#define CT_CORE_IMAGE_H

#include "fatbin.h"

/* The PTX of an image: one text, or several that have to be linked. All zero: none. */
struct ct_image {
    struct ct_ptx *texts;
    unsigned count, capacity;
    unsigned n_lacking; /* further parts to be linked, with machine code alone */
};

/* Finds the PTX in an image of `size` bytes, or of CT_SIZE_UNKNOWN: PTX text that ends with NUL, a fat binary, the wrapper of one that
 * nvcc registers, what cuLinkComplete made, a host program, library or object file with fat binaries in it (only of a known size). The
 * texts may be parts of the image. *out is untouched on failure.
 * INVALID_IMAGE: none of these, or damaged; NO_BINARY_FOR_GPU: machine code without PTX; OUT_OF_MEMORY. */
CUresult ct_image_read(const void *bytes, size_t size, struct ct_image *out);
/* The same of a part of what is linked: there may be no PTX in it, which *out then says. */
CUresult ct_image_read_part(const void *bytes, size_t size, struct ct_image *out);
void ct_image_finish(struct ct_image *image);

/* Reads a file and puts a NUL behind it; *out is on the heap. FILE_NOT_FOUND, OUT_OF_MEMORY. */
CUresult ct_image_read_file(const char *name, char **out, size_t *out_size);

#endif
