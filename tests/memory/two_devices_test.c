/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of one device in contexts of another. ctest lists one device twice (CUTTLE_DEVICE=0,0): two devices as far as memory
 * is concerned. */
#include "virtual_memory.h"

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

static void take_a_while(void *unused)
{
    (void)unused;
    usleep(20000);
}

/* Copies and fills between devices keep the order of their stream, and that of blocking streams behind the default stream. */
static void in_stream_order(void **state)
{
    unsigned char bytes[2] = {0, 0};
    CUdeviceptr here, there;
    CUcontext other;
    CUstream stream;
    int devices = 0;

    ok(cuDeviceGetCount(&devices));
    if (devices < 2)
        skip();
    ok(cuMemAlloc(&here, BYTES));
    ok(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    ok(cuCtxCreate(&other, NULL, 0, 1));
    ok(cuMemAlloc(&there, BYTES));
    ok(cuMemsetD8(there, 9, BYTES));
    ok(cuCtxSynchronize());
    ok(cuCtxSetCurrent(*state));
    ok(cuLaunchHostFunc(NULL, take_a_while, NULL));
    ok(cuMemsetD8Async(here, 1, BYTES, NULL));
    ok(cuMemcpyAsync(there, here, BYTES, stream));
    ok(cuLaunchHostFunc(NULL, take_a_while, NULL));
    ok(cuMemcpyAsync(here, there, BYTES / 2, NULL));
    ok(cuMemsetD8Async(there, 2, BYTES, stream));
    ok(cuStreamSynchronize(stream));
    ok(cuMemcpyDtoH(&bytes[0], here, 1));
    assert_int_equal(bytes[0], 1);
    ok(cuCtxSetCurrent(other));
    ok(cuMemcpyDtoH(&bytes[1], there + BYTES - 1, 1));
    assert_int_equal(bytes[1], 2);
    ok(cuCtxDestroy(other));
    ok(cuCtxSetCurrent(*state));
    ok(cuMemFree(here));
    ok(cuStreamDestroy(stream));
}

/* Where a device does not reach the memory of another it cannot be given access to it. */
static void access_of_the_other_device(void **state)
{
    const CUmemAccessDesc desc = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    int devices = 0, reaches = 0;
    struct vm_range range;

    (void)state;
    ok(cuDeviceGetCount(&devices));
    if (devices < 2 || !vm_is_there())
        skip();
    ok(cuDeviceCanAccessPeer(&reaches, 1, 0));
    if (reaches)
        skip();
    range = vm_range_make(2);
    refuses(CUDA_ERROR_INVALID_DEVICE, cuMemSetAccess(range.start, range.size, &desc, 1));
    ok(cuMemUnmap(range.start, range.size));
    ok(cuMemAddressFree(range.start, range.size));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_the_other_device), cmocka_unit_test(in_stream_order),
                                       cmocka_unit_test(access_of_the_other_device)};

    return cmocka_run_group_tests(tests, with_context, without_context);
}
