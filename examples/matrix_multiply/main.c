/* SPDX-License-Identifier: Apache-2.0 */
/* C = A * B with tiles in shared memory. The CPU reference sums in the same order with fused multiply-adds: equal bit for bit.
 * For large matrices a sample of rows is checked. */
#include "example.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECKED_ROWS 64

static size_t wrong_elements(const float *a, const float *b, const float *c, size_t n)
{
    const size_t step = n > CHECKED_ROWS ? n / CHECKED_ROWS : 1;
    float *row = malloc(n * sizeof *row);
    size_t errors = 0;

    for (size_t i = 0; i < n; i += step) {
        for (size_t j = 0; j < n; j++)
            row[j] = 0.0f;
        for (size_t k = 0; k < n; k++)
            for (size_t j = 0; j < n; j++)
                row[j] = fmaf(a[i * n + k], b[k * n + j], row[j]);
        for (size_t j = 0; j < n; j++)
            errors += c[i * n + j] != row[j];
    }
    free(row);
    return errors;
}

int main(int argc, char **argv)
{
    struct example example;
    unsigned seed = 2;
    char work[64];

    example_begin(&example, argc, argv, "matrix_multiply", 256);
    const size_t n = (example.size + 63) / 64 * 64, bytes = n * n * sizeof(float);
    float *a = malloc(bytes), *b = malloc(bytes), *c = malloc(bytes);
    for (size_t i = 0; i < n * n; i++) {
        a[i] = example_random_float(&seed);
        b[i] = example_random_float(&seed);
    }
    CUdeviceptr device_a = example_upload(a, bytes), device_b = example_upload(b, bytes), device_c = example_upload(NULL, bytes);
    unsigned count = (unsigned)n;
    void *params[] = {&device_a, &device_b, &device_c, &count};
    const double ms = example_launch(&example, example_function(&example, "matrix_multiply"),
                                     (struct example_grid){count / 64, count / 64, 16, 16}, params);

    example_download(c, device_c, bytes);
    snprintf(work, sizeof work, "%zu x %zu floats", n, n);
    example_report(&example, work, ms, 2.0 * (double)n * (double)n * (double)n / 1e9, "GFLOP/s", wrong_elements(a, b, c, n));
    CHECK(cuMemFree(device_a));
    CHECK(cuMemFree(device_b));
    CHECK(cuMemFree(device_c));
    free(a);
    free(b);
    free(c);
    return example_end(&example);
}
