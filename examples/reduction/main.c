/* SPDX-License-Identifier: Apache-2.0 */
/* Sum of floats in a fixed order: the CPU repeats the order, so the sums are equal bit for bit. */
#include "example.h"

#include <stdio.h>
#include <stdlib.h>

#define BLOCK 256
#define BLOCKS 256

/* The result of one block. */
static float block_sum(const float *values, size_t n, unsigned block)
{
    float partial[BLOCK];

    for (unsigned t = 0; t < BLOCK; t++) {
        partial[t] = 0.0f;
        for (size_t i = block * BLOCK + t; i < n; i += (size_t)BLOCKS * BLOCK)
            partial[t] += values[i];
    }
    for (unsigned half = BLOCK / 2; half > 0; half /= 2)
        for (unsigned t = 0; t < half; t++)
            partial[t] += partial[t + half];
    return partial[0];
}

int main(int argc, char **argv)
{
    struct example example;
    unsigned seed = 3;
    float sums[BLOCKS];
    size_t errors = 0;
    double total = 0;
    char work[64];

    example_begin(&example, argc, argv, "reduction", (size_t)1 << 22);
    const size_t n = example.size, bytes = n * sizeof(float);
    float *values = malloc(bytes);
    for (size_t i = 0; i < n; i++)
        values[i] = example_random_float(&seed);
    CUdeviceptr device_values = example_upload(values, bytes), device_sums = example_upload(NULL, sizeof sums);
    unsigned count = (unsigned)n;
    void *params[] = {&device_values, &device_sums, &count};
    const double ms = example_launch(&example, example_function(&example, "reduction"), (struct example_grid){BLOCKS, 1, BLOCK, 1}, params);

    example_download(sums, device_sums, sizeof sums);
    for (unsigned block = 0; block < BLOCKS; block++) {
        errors += sums[block] != block_sum(values, n, block);
        total += sums[block];
    }
    snprintf(work, sizeof work, "%zu floats, sum %.6g", n, total);
    example_report(&example, work, ms, (double)bytes / 1e9, "GB/s", errors);
    CHECK(cuMemFree(device_values));
    CHECK(cuMemFree(device_sums));
    free(values);
    return example_end(&example);
}
