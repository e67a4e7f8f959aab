/* SPDX-License-Identifier: Apache-2.0 */
/* Page-locked memory of one device in contexts of another. ctest lists one device twice (CUTTLE_DEVICE=0,0): two devices as far as memory
 * is concerned. */
#include "seeds.h"

#define BYTES (SEEDS_WORDS * 4)

/* The device pointer is for the current context: where its device reaches all host memory it is the host pointer; where it does not reach
 * that of another device the call says so, rather than giving an address that means nothing there. */
static void in_the_other_device(void **state)
{
    CUdeviceptr device = 0;
    CUcontext other;
    uint32_t *host;
    int devices = 0;

    (void)state;
    ok(cuDeviceGetCount(&devices));
    if (devices < 2)
        skip();
    ok(cuMemHostAlloc((void **)&host, BYTES, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
    ok(cuCtxCreate(&other, NULL, 0, 1));
    if (!on_cuttle() || seeds_attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS)) {
        ok(cuMemHostGetDevicePointer(&device, host, 0));
        assert_int_equal(device, (uintptr_t)host);
        seeds_shared_words(host, device, SEEDS_WORDS);
    } else {
        gives(CUDA_ERROR_NOT_SUPPORTED, cuMemHostGetDevicePointer(&device, host, 0));
        assert_int_equal(device, 0);
    }
    ok(cuCtxDestroy(other));
    ok(cuMemHostGetDevicePointer(&device, host, 0));
    seeds_shared_words(host, device, SEEDS_WORDS);
    ok(cuMemFreeHost(host));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_the_other_device)};

    return cmocka_run_group_tests(tests, with_context, without_context);
}
