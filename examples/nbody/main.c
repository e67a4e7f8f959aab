/* SPDX-License-Identifier: Apache-2.0 */
/* Accelerations of n bodies, single and double precision, compared with a double-precision sum on the CPU (a sample of bodies).
 * Tolerances, relative to the size of the sum's terms: single precision 1e-5 (rsqrt.approx and n roundings), double 1e-12. */
#include "example.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 256
#define CHECKED 64
#define SOFTENING 1e-3
#define FLOPS_PER_PAIR 20.0

/* Computes body i's acceleration in sum[3], and the sum of the terms' magnitudes in scale[3]. Bodies are x, y, z, mass. */
static void reference(const double *bodies, size_t n, size_t i, double *sum, double *scale)
{
    for (int axis = 0; axis < 3; axis++)
        sum[axis] = scale[axis] = 0;
    for (size_t j = 0; j < n; j++) {
        double d[3], r2 = SOFTENING;

        for (int axis = 0; axis < 3; axis++) {
            d[axis] = bodies[4 * j + axis] - bodies[4 * i + axis];
            r2 += d[axis] * d[axis];
        }
        const double s = bodies[4 * j + 3] / (r2 * sqrt(r2));
        for (int axis = 0; axis < 3; axis++) {
            sum[axis] += d[axis] * s;
            scale[axis] += fabs(d[axis] * s);
        }
    }
}

static size_t wrong_values(const double *bodies, const double *accelerations, size_t n, double tolerance)
{
    const size_t step = n > CHECKED ? n / CHECKED : 1;
    size_t errors = 0;

    for (size_t i = 0; i < n; i += step) {
        double sum[3], scale[3];

        reference(bodies, n, i, sum, scale);
        for (int axis = 0; axis < 3; axis++)
            errors += !(fabs(accelerations[3 * i + axis] - sum[axis]) <= tolerance * scale[axis]);
    }
    return errors;
}

/* One precision: each number has `size` bytes, 4 or 8. The reference uses the bodies as the kernel does, rounded to that precision. */
static void run(struct example *example, const double *source, size_t n, size_t size)
{
    void *bodies = malloc(4 * n * size), *raw = malloc(3 * n * size);
    double *seen = malloc(4 * n * sizeof(double)), *accelerations = malloc(3 * n * sizeof(double));
    char work[64];

    for (size_t i = 0; i < 4 * n; i++) {
        seen[i] = size == 4 ? (float)source[i] : source[i];
        if (size == 4)
            ((float *)bodies)[i] = (float)source[i];
        else
            ((double *)bodies)[i] = source[i];
    }
    CUdeviceptr device_bodies = example_upload(bodies, 4 * n * size), device_out = example_upload(NULL, 3 * n * size);
    unsigned count = (unsigned)n;
    float softening_f32 = (float)SOFTENING;
    double softening_f64 = SOFTENING;
    void *params[] = {&device_bodies, &device_out, &count, size == 4 ? (void *)&softening_f32 : (void *)&softening_f64};
    const double ms = example_launch(example, example_function(example, size == 4 ? "nbody_f32" : "nbody_f64"),
                                     (struct example_grid){count / BLOCK, 1, BLOCK, 1}, params);

    example_download(raw, device_out, 3 * n * size);
    for (size_t i = 0; i < 3 * n; i++)
        accelerations[i] = size == 4 ? ((float *)raw)[i] : ((double *)raw)[i];
    snprintf(work, sizeof work, "%zu bodies, fp%zu", n, 8 * size);
    example_report(example, work, ms, FLOPS_PER_PAIR * (double)n * (double)n / 1e9, "GFLOP/s",
                   wrong_values(seen, accelerations, n, size == 4 ? 1e-5 : 1e-12));
    CHECK(cuMemFree(device_bodies));
    CHECK(cuMemFree(device_out));
    free(bodies);
    free(raw);
    free(seen);
    free(accelerations);
}

int main(int argc, char **argv)
{
    struct example example;
    unsigned seed = 5;

    example_begin(&example, argc, argv, "nbody", 2048);
    const size_t n = (example.size + BLOCK - 1) / BLOCK * BLOCK;
    double *bodies = malloc(4 * n * sizeof *bodies);
    for (size_t i = 0; i < 4 * n; i++)
        bodies[i] = i % 4 == 3 ? 1.0 / (double)n : (double)example_random_float(&seed);
    run(&example, bodies, n, 4);
    run(&example, bodies, n, 8);
    free(bodies);
    return example_end(&example);
}
