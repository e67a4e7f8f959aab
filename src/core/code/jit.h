/* SPDX-License-Identifier: Apache-2.0 */
/* The JIT options of a load, its log buffers, and the conversion of the compiler's statuses to CUDA's result codes. */
#ifndef CT_CORE_JIT_H
#define CT_CORE_JIT_H

#include "cuda.h"
#include "cuttle/ptx2spv.h"

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

struct ct_jit_log {
    char *buffer;    /* the application's buffer; NULL: none */
    size_t capacity; /* bytes, with the NUL */
    size_t length;   /* bytes written so far, without the NUL */
};

/* The options of one load. Zeroed: none. */
struct ct_jit {
    struct ct_jit_log info, error;
    bool verbose;
    unsigned max_registers; /* CU_JIT_MAX_REGISTERS, the limit for each thread; 0: none */
    struct timespec start;

    /* pointers to the results in the application's array; NULL: not requested */
    void **wall_time, **info_size, **error_size;
};

/* Reads the arrays of cuModuleLoadDataEx. INVALID_VALUE: an option does not exist, has an invalid value, or excludes another;
 * NOT_SUPPORTED: an unsupported option that would change the results of the program. */
CUresult ct_jit_init(struct ct_jit *jit, unsigned count, const CUjit_option *options, void **values);
/* Adds a line to the info log, with a format as in printf. */
void ct_jit_inform(struct ct_jit *jit, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes sizes and times back to the application; must be called once, whether the load succeeded or not. */
void ct_jit_finish(struct ct_jit *jit);

/* Converts a status of the compiler to a result code of CUDA. */
CUresult ct_jit_result(enum ptx2spv_status status);
/* The options that every compilation reads from the environment. */
struct ptx2spv_options ct_jit_compiler_options(struct ct_jit *jit_or_null);

#endif
