/* SPDX-License-Identifier: Apache-2.0 */
/* The JIT options of a load, its log buffers, and what the compiler's statuses mean in CUDA. */
#ifndef CT_CORE_JIT_H
#define CT_CORE_JIT_H

#include "cuda.h"
#include "cuttle/ptx2spv.h"

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

struct ct_jit_log {
    char *buffer;    /* the application's; NULL: none */
    size_t capacity; /* bytes, with the NUL */
    size_t length;   /* bytes written so far, without the NUL */
};

/* One load. All zero: no options. */
struct ct_jit {
    struct ct_jit_log info, error;
    bool verbose;
    struct timespec start;

    /* where the results go, in the application's array; NULL: not asked for */
    void **wall_time, **info_size, **error_size;
};

/* Reads the arrays of cuModuleLoadDataEx. INVALID_VALUE: no such option, a bad value, two that exclude each other;
 * NOT_SUPPORTED: an option that would change what the program computes and that we lack. */
CUresult ct_jit_init(struct ct_jit *jit, unsigned count, const CUjit_option *options, void **values);
/* Adds a line to the info log, printf-style. */
void ct_jit_inform(struct ct_jit *jit, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes sizes and times back to the application; call once, whether the load succeeded or not. */
void ct_jit_finish(struct ct_jit *jit);

/* A status of the compiler as CUDA's code. */
CUresult ct_jit_result(enum ptx2spv_status status);
/* The options that every compilation takes from the environment. */
struct ptx2spv_options ct_jit_compiler_options(struct ct_jit *jit_or_null);

#endif
