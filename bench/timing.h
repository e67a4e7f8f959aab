/* SPDX-License-Identifier: Apache-2.0 */
/* Clock and statistics of the benchmarks. */
#ifndef CUTTLE_BENCH_TIMING_H
#define CUTTLE_BENCH_TIMING_H

#include <stdlib.h>
#include <time.h>

static inline double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static inline int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sorts the values. */
static inline double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return values[count / 2];
}

#endif
