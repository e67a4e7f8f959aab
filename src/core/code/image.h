/* SPDX-License-Identifier: Apache-2.0 */
/* Images: the inputs of cuModuleLoadData and cuLibraryLoadData, and the PTX in them. */
#ifndef CT_CORE_IMAGE_H
#define CT_CORE_IMAGE_H

#include "fatbin.h"

/* The PTX of an image: one text, or several that must be linked. Zeroed: none. */
struct ct_image {
    struct ct_ptx *texts;
    unsigned count, capacity;
    unsigned n_without_ptx; /* the number of further parts of the link that have only machine code */
    unsigned max_registers; /* the limit for each thread that the link was given; 0: none */
};

/* Finds the PTX in an image of `size` bytes, or of CT_SIZE_UNKNOWN: PTX text that ends with NUL, a fat binary, the wrapper of one that nvcc
 * registers, a result of cuLinkComplete, or a host program, library or object file with fat binaries in it (only of a known size). The
 * texts may be parts of the image. *out is untouched on failure.
 * INVALID_IMAGE: none of these kinds, or damaged; NO_BINARY_FOR_GPU: machine code without PTX; OUT_OF_MEMORY. */
CUresult ct_image_read(const void *bytes, size_t size, struct ct_image *out);
/* The same for one input of a link, which need not contain PTX; *out then says so. */
CUresult ct_image_read_part(const void *bytes, size_t size, struct ct_image *out);
void ct_image_finish(struct ct_image *image);

/* Reads a file and appends a NUL; *out is on the heap. FILE_NOT_FOUND, OUT_OF_MEMORY. */
CUresult ct_image_read_file(const char *name, char **out, size_t *out_size);

#endif
