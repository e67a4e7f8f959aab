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
};

/* What a fat binary contains. */
struct ct_fatbin {
    size_t size_bytes; /* of the whole container */
    unsigned n_ptx, n_cubins, n_others;
    struct ct_ptx ptx; /* the best one for the compute capability; all zero: there is none */
};

/* Reads the container at `bytes`, of at most `size` bytes, and unpacks the PTX that fits `capability` (ten times major + minor) best.
 * *out is untouched on failure; ptx.owned is the caller's to free. INVALID_IMAGE: damaged; OUT_OF_MEMORY. */
CUresult ct_fatbin_read(const void *bytes, size_t size, unsigned capability, struct ct_fatbin *out);

#endif
