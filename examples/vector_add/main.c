/* SPDX-License-Identifier: Apache-2.0 */
/* c = a + b over floats; every result is compared with the CPU's, bit for bit. */
#include "example.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    struct example example;
    unsigned seed = 1;
    size_t errors = 0;
    char work[64];

    example_begin(&example, argc, argv, "vector_add", (size_t)1 << 22);
    const size_t n = example.size, bytes = n * sizeof(float);
    float *a = malloc(bytes), *b = malloc(bytes), *c = malloc(bytes);
    for (size_t i = 0; i < n; i++) {
        a[i] = example_random_float(&seed);
        b[i] = example_random_float(&seed);
    }
    CUdeviceptr device_a = example_upload(a, bytes), device_b = example_upload(b, bytes), device_c = example_upload(NULL, bytes);
    unsigned count = (unsigned)n;
    void *params[] = {&device_a, &device_b, &device_c, &count};
    const double ms =
        example_launch(&example, example_function(&example, "vector_add"), (struct example_grid){(count + 255) / 256, 1, 256, 1}, params);

    example_download(c, device_c, bytes);
    for (size_t i = 0; i < n; i++)
        errors += c[i] != a[i] + b[i];
    snprintf(work, sizeof work, "%zu floats", n);
    example_report(&example, work, ms, 3.0 * (double)bytes / 1e9, "GB/s", errors);
    CHECK(cuMemFree(device_a));
    CHECK(cuMemFree(device_b));
    CHECK(cuMemFree(device_c));
    free(a);
    free(b);
    free(c);
    return example_end(&example);
}
