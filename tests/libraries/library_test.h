/* SPDX-License-Identifier: Apache-2.0 */
/* For programs that use NVIDIA's libraries as users have them: device arrays of small numbers, and comparisons with the CPU's result. */
#ifndef CUTTLE_TESTS_LIBRARY_TEST_H
#define CUTTLE_TESTS_LIBRARY_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime.h>

/* Fails the test unless `call` returns 0, which means success in all these libraries. */
#define ok(call)                                                                                                                           \
    do {                                                                                                                                   \
        const int ok_result = (int)(call);                                                                                                 \
        if (ok_result) {                                                                                                                   \
            print_error("%s: %d\n", #call, ok_result);                                                                                     \
            _fail(__FILE__, __LINE__);                                                                                                     \
        }                                                                                                                                  \
    } while (0)

/* Pseudo-random whole numbers from -range to range, the same in every run. */
static inline double next_small(uint64_t *seed, int range)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)((*seed >> 33) % (2 * (uint64_t)range + 1)) - range;
}

/* A copy of host memory on the device. */
static inline void *device_copy(const void *host, size_t size_bytes)
{
    void *device = NULL;

    ok(cudaMalloc(&device, size_bytes));
    ok(cudaMemcpy(device, host, size_bytes, cudaMemcpyHostToDevice));
    return device;
}

/* Copies the result to the host and frees the array. */
static inline void take_back(void *host, void *device, size_t size_bytes)
{
    ok(cudaDeviceSynchronize());
    ok(cudaMemcpy(host, device, size_bytes, cudaMemcpyDeviceToHost));
    ok(cudaFree(device));
}

static inline void assert_near(double got, double want, double tolerance)
{
    if (fabs(got - want) <= tolerance * fmax(1, fabs(want)))
        return;
    print_error("%.17g, not %.17g\n", got, want);
    fail();
}

#endif
