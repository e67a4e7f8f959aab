/* SPDX-License-Identifier: Apache-2.0 */
/* Fat binaries: the container in which nvcc stores PTX and machine code of one source file for several GPUs. */
#ifndef CT_CORE_FATBIN_H
#define CT_CORE_FATBIN_H

#include "cuda.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CT_FATBIN_MAGIC 0xba55ed50u
/* The size of an image in memory that is known only from its own headers. */
#define CT_SIZE_UNKNOWN SIZE_MAX

/* PTX text, which is not always terminated by a NUL. */
struct ct_ptx {
    const char *text;
    size_t length;
    char *owned; /* the memory of `text` if it was decompressed, else NULL: `text` is then a part of the image */
    char *name;  /* the name of the source file, on the heap; NULL: unknown */
};

/* The contents of a fat binary. */
struct ct_fatbin {
    size_t size_bytes; /* of the whole container */
    unsigned n_ptx, n_cubins, n_others;
    struct ct_ptx ptx; /* the best PTX for the compute capability, to be freed with ct_ptx_finish; zeroed: there is none */
};

void ct_ptx_finish(struct ct_ptx *ptx);

/* Reads the container at `bytes`, of at most `size` bytes, and decompresses the PTX that fits `capability` (ten times major + minor)
 * best. *out is untouched on failure. INVALID_IMAGE: the container is damaged; OUT_OF_MEMORY. */
CUresult ct_fatbin_read(const void *bytes, size_t size, unsigned capability, struct ct_fatbin *out);

/* A container with only this PTX: its size, a multiple of 8, and its bytes. */
size_t ct_fatbin_bytes(const struct ct_ptx *ptx);
void ct_fatbin_write(const struct ct_ptx *ptx, unsigned char *out);

#endif
