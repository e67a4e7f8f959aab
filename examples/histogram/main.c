/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of the 256 byte values, with atomics in shared and in global memory. */
#include "example.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BINS 256
#define BLOCKS 256

int main(int argc, char **argv)
{
    struct example example;
    unsigned seed = 4, expected[BINS] = {0}, counts[BINS];
    size_t errors = 0;
    char work[64];

    example_begin(&example, argc, argv, "histogram", (size_t)1 << 22);
    const size_t n = example.size / 4, bytes = n * 4;
    unsigned *words = malloc(bytes);
    for (size_t i = 0; i < n; i++) {
        /* Sums of two random numbers are not evenly distributed: some bins are crowded, as in real pictures. */
        words[i] = (example_random(&seed) & 0x3f3f3f3fu) + (example_random(&seed) & 0x1f0f1f0fu);
        for (unsigned byte = 0; byte < 4; byte++)
            expected[words[i] >> (8 * byte) & 255u]++;
    }
    CUdeviceptr device_words = example_upload(words, bytes), device_counts = example_upload(NULL, sizeof counts);
    unsigned count = (unsigned)n;
    void *params[] = {&device_words, &device_counts, &count};
    CUfunction function = example_function(&example, "histogram");
    const double ms = example_launch(&example, function, (struct example_grid){BLOCKS, 1, 256, 1}, params);

    /* The timed launches added to the counts; the result of one more launch on a cleared array is checked. */
    CHECK(cuMemsetD32(device_counts, 0, BINS));
    CHECK(cuLaunchKernel(function, BLOCKS, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
    example_download(counts, device_counts, sizeof counts);
    for (unsigned bin = 0; bin < BINS; bin++)
        errors += counts[bin] != expected[bin];
    snprintf(work, sizeof work, "%zu bytes", bytes);
    example_report(&example, work, ms, (double)bytes / 1e9, "GB/s", errors);
    CHECK(cuMemFree(device_words));
    CHECK(cuMemFree(device_counts));
    free(words);
    return example_end(&example);
}
