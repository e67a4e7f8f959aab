/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels with warp instructions and barriers wherever CUDA allows them, and their results in host C: for programs.warps, which runs them
 * on a device, and for ptx.lanes, which interprets their SPIR-V. */
#ifndef TESTS_PROGRAMS_WARPS_ROWS_H
#define TESTS_PROGRAMS_WARPS_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WARPS_THREADS_MAX = 256, WARPS_PTX_BYTES = 8192 };

/* One block: the words that threads read and must write. */
struct warps_block {
    uint32_t in[WARPS_THREADS_MAX], out[WARPS_THREADS_MAX];
    uint32_t n, threads;
};

enum {
    WARPS_FULL = 1,     /* for blocks of whole warps only */
    WARPS_APART = 2,    /* lanes execute an instruction together from different places: for the collective forms only */
    WARPS_LOCKSTEP = 4, /* with CUTTLE_LOCKSTEP only */
    WARPS_GENERIC = 8,  /* accesses by generic addresses, which the interpreter of SPIR-V does not support */
};

/* A kernel `k` of (.u64 out, .u64 in, .u32 count), with a word of each buffer for every thread of one block; count is below 4. */
struct warps_row {
    const char *name, *body;
    void (*expect)(struct warps_block *b);
    unsigned flags;
    const char *functions;
    unsigned sm; /* of .target; 0: 80 */
};
extern const struct warps_row warps_rows[];
extern const size_t warps_row_count;

/* Writes the row's PTX, at most WARPS_PTX_BYTES. */
void warps_make_ptx(char *text, size_t size, const struct warps_row *row);
/* Sets n and the words that the threads read. */
void warps_fill(struct warps_block *block, uint32_t n, uint32_t threads);

#endif
