/* SPDX-License-Identifier: Apache-2.0 */
/* Fat binaries: the container in which nvcc puts PTX and machine code of one source file for several GPUs. */
#ifndef CT_CORE_FATBIN_H
#define CT_CORE_FATBIN_H

#include "cuda.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CT_FATBIN_MAGIC 0xba55ed50u
/* Of an image in memory: it is as long as its own headers say. */
#define CT_SIZE_UNKNOWN SIZE_MAX

/* PTX text, not always with a NUL behind it. */
struct ct_ptx {
    const char *text;
    size_t length;
    char *owned; /* what `text` points to where it had to be unpacked, else NULL: then it is a part of the image */
    char *name;  /* of the file that it was made from, on the heap; NULL: not known */
};

/* What a fat binary contains. */
struct ct_fatbin {
    size_t size_bytes; /* of the whole container */
    unsigned n_ptx, n_cubins, n_others;
    struct ct_ptx ptx; /* ct_ptx_finish it; the best one for the compute capability; all zero: there is none */
};

void ct_ptx_finish(struct ct_ptx *ptx);

/* Reads the container at `bytes`, of at most `size` bytes, and unpacks the PTX that fits `capability` (ten times major + minor) best.
 * *out is untouched on failure. INVALID_IMAGE: damaged; OUT_OF_MEMORY. */
CUresult ct_fatbin_read(const void *bytes, size_t size, unsigned capability, struct ct_fatbin *out);

/* A container with nothing but this PTX: its bytes, a multiple of 8, and the container itself. */
size_t ct_fatbin_bytes(const struct ct_ptx *ptx);
void ct_fatbin_write(const struct ct_ptx *ptx, unsigned char *out);

#endif
