/* SPDX-License-Identifier: Apache-2.0 */
/* More allocations than the driver permits at a time (maxMemoryAllocationCount=4096, lacking_layer.c): small ones share the driver's; of large ones that many
 * exist, then cuMemAlloc gives CUDA_ERROR_OUT_OF_MEMORY, and nothing is lost: all of it can be freed and allocated again. */
#include <cuda.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { SMALL_BYTES = 64 << 10, LARGE_BYTES = 1 << 20, MANY = 6000, LIMIT = 4096, OWN = 128 /* that the library needs itself */ };

static CUdeviceptr pointers[MANY];

static CUresult allocate(size_t bytes, unsigned *n)
{
    CUresult result = CUDA_SUCCESS;

    for (*n = 0; *n < MANY && result == CUDA_SUCCESS; *n += result == CUDA_SUCCESS)
        result = cuMemAlloc(&pointers[*n], bytes);
    return result;
}

static void free_all(unsigned n)
{
    while (n)
        assert_int_equal(cuMemFree(pointers[--n]), CUDA_SUCCESS);
}

static void test_small(void **state)
{
    unsigned n;

    (void)state;
    assert_int_equal(allocate(SMALL_BYTES, &n), CUDA_SUCCESS);
    assert_int_equal(n, MANY);
    assert_int_equal(cuMemsetD32(pointers[MANY - 1], 7, SMALL_BYTES / 4), CUDA_SUCCESS);
    free_all(n);
}

static void test_large(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 2; round++) {
        uint32_t word = 0;
        unsigned n;

        assert_int_equal(allocate(LARGE_BYTES, &n), CUDA_ERROR_OUT_OF_MEMORY);
        assert_in_range(n, LIMIT - OWN, LIMIT);
        assert_int_equal(cuMemsetD32(pointers[n - 1], 7 + round, LARGE_BYTES / 4), CUDA_SUCCESS);
        assert_int_equal(cuMemcpyDtoH(&word, pointers[n - 1] + LARGE_BYTES - 4, sizeof word), CUDA_SUCCESS);
        assert_int_equal(word, 7 + round);
        free_all(n);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_small), cmocka_unit_test(test_large)};
    CUcontext context;
    CUdevice device;

    if (cuInit(0) || cuDeviceGet(&device, 0) || cuCtxCreate(&context, NULL, 0, device))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL) + (cuCtxDestroy(context) != CUDA_SUCCESS);
}
