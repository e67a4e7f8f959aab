/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of approximate instructions of f32: arguments, a kernel that computes their results, and how far these are from the C library's functions of
 * f64. The kernel is for the probe, which compiles it to the device's own functions, and for `cuttle selftest`, which runs it as any program's. */
#ifndef CT_CORE_FUNCTION_SAMPLES_H
#define CT_CORE_FUNCTION_SAMPLES_H

#include <cuttle/ptx2spv.h>

#include <stddef.h>

#define CT_SAMPLE_BLOCK_THREADS 128u
#define CT_SAMPLE_ROW_BLOCKS 32u
#define CT_SAMPLES_OF_ROW (CT_SAMPLE_ROW_BLOCKS * CT_SAMPLE_BLOCK_THREADS)
enum {
    CT_SAMPLE_ROWS = 0
#define SAMPLES(function, name, want, kind, bound, spacing, least, greatest) +1
#include "function_samples.def"
};
#define CT_SAMPLE_COUNT (CT_SAMPLE_ROWS * CT_SAMPLES_OF_ROW)

struct ct_sample {
    float argument, result;
};

/* The PTX of a kernel `name` with one thread for each sample, in blocks of CT_SAMPLE_BLOCK_THREADS. Its parameter is the address of all samples, whose
 * results it sets. */
#define CT_SAMPLE_TEXT_BYTES 8192
void ct_samples_write_kernel(const char *name, char text[CT_SAMPLE_TEXT_BYTES]);
void ct_samples_write_arguments(struct ct_sample samples[CT_SAMPLE_COUNT]);

/* What the results of a row say of its function. */
struct ct_sample_errors {
    enum ptx2spv_near function;
    const char *name;
    float least, greatest; /* of the arguments */
    bool relative;
    double error, bound; /* the greatest error, infinite if a result is no number; and that which PTX allows */
};
struct ct_sample_errors ct_samples_errors(const struct ct_sample samples[CT_SAMPLE_COUNT], unsigned row);

#endif
