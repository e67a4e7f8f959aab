/* SPDX-License-Identifier: Apache-2.0 */
/* cuMemHostAlloc, sentence by sentence of the driver API's manual. Each test quotes the sentence that it tests. */
#include "seeds.h"

#define BYTES (SEEDS_WORDS * 4)
#define ALL_FLAGS (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)

/* "CUDA_ERROR_NOT_INITIALIZED" */
static void before_init(void **state)
{
    void *host = NULL;

    (void)state;
    gives(CUDA_ERROR_NOT_INITIALIZED, cuMemHostAlloc(&host, BYTES, 0));
    assert_null(host);
}

/* "Allocates bytesize bytes of host memory that is page-locked and accessible to the device." */
static void is_accessible_to_the_device(void **state)
{
    CUdeviceptr device;
    uint32_t *host;

    (void)state;
    ok(cuMemHostAlloc((void **)&host, BYTES, CU_MEMHOSTALLOC_DEVICEMAP));
    ok(cuMemHostGetDevicePointer(&device, host, 0));
    seeds_shared_words(host, device, SEEDS_WORDS);
    ok(cuMemFreeHost(host));
}

/* "The driver tracks the virtual memory ranges allocated with this function" */
static void is_tracked(void **state)
{
    unsigned type = 0;
    size_t size = 0;
    CUdeviceptr start = 0;
    char *host;

    (void)state;
    ok(cuMemHostAlloc((void **)&host, BYTES, 0));
    ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)(host + 100)));
    assert_int_equal(type, CU_MEMORYTYPE_HOST);
    ok(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, (CUdeviceptr)(uintptr_t)(host + 100)));
    ok(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, (CUdeviceptr)(uintptr_t)(host + 100)));
    assert_int_equal(start, (uintptr_t)host);
    assert_true(size >= BYTES);
    ok(cuMemFreeHost(host));
    gives(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)host));
}

/* "and automatically accelerates calls to functions such as cuMemcpyHtoD(). Since the memory can be accessed directly by the device, it can
 * be read or written with much higher bandwidth than pageable memory": nothing is staged; bench/memory measures what that gains. */
static void copies_are_direct(void **state)
{
    void *host;

    (void)state;
    ok(cuMemHostAlloc(&host, BYTES, 0));
    seeds_copy_is_direct(host);
    ok(cuMemFreeHost(host));
}

/* "PORTABLE: The memory returned by this call will be considered as pinned memory by all CUDA contexts, not just the one that performed
 * the allocation." */
static void portable_is_pinned_in_other_contexts(void **state)
{
    CUcontext other;
    void *host;

    (void)state;
    ok(cuMemHostAlloc(&host, BYTES, CU_MEMHOSTALLOC_PORTABLE));
    ok(cuCtxCreate(&other, NULL, 0, 0));
    seeds_copy_is_direct(host);
    ok(cuCtxDestroy(other));
    ok(cuMemFreeHost(host));
}

/* "WRITECOMBINED: Allocates the memory as write-combined (WC)": backend_vk_failures_test.c tests the memory type. "WC memory is a good
 * option for buffers that will be written by the CPU and read by the GPU via mapped pinned memory or host->device transfers." "then the
 * function cuMemHostGetDevicePointer() must be used to query the device pointer, even if the context supports unified addressing" */
static void write_combined_is_read_by_the_device(void **state)
{
    CUdeviceptr from, to;
    uint32_t *host, *back = malloc(BYTES);
    unsigned count = SEEDS_WORDS;

    (void)state;
    ok(cuMemHostAlloc((void **)&host, BYTES, CU_MEMHOSTALLOC_WRITECOMBINED | CU_MEMHOSTALLOC_DEVICEMAP));
    ok(cuMemHostGetDevicePointer(&from, host, 0));
    ok(cuMemAlloc(&to, BYTES));
    for (unsigned i = 0; i < count; i++)
        host[i] = i * 7;
    ok(seeds_run("move", (void *[]){&to, &from, &count}, count));
    ok(cuMemcpyDtoH(back, to, BYTES));
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(back[i], i * 7);
    for (unsigned i = 0; i < count; i++)
        host[i] = i * 11;
    ok(cuMemcpyHtoD(to, host, BYTES));
    ok(cuMemcpyDtoH(back, to, BYTES));
    assert_int_equal(back[count - 1], (count - 1) * 11);
    ok(cuMemFree(to));
    ok(cuMemFreeHost(host));
    free(back);
}

/* "DEVICEMAP: Maps the allocation into the CUDA address space. The device pointer to the memory may be obtained by calling
 * cuMemHostGetDevicePointer()." "All of these flags are orthogonal to one another: a developer may allocate memory that is portable, mapped
 * and/or write-combined with no restrictions." */
static void flags_are_orthogonal(void **state)
{
    (void)state;
    for (unsigned flags = 0; flags <= ALL_FLAGS; flags++) {
        unsigned got = 0;
        CUdeviceptr device;
        uint32_t *host;

        ok(cuMemHostAlloc((void **)&host, BYTES, flags));
        ok(cuMemHostGetFlags(&got, host));
        assert_int_equal(got | CU_MEMHOSTALLOC_DEVICEMAP, flags | CU_MEMHOSTALLOC_DEVICEMAP); /* unified addressing maps all memory */
        assert_int_equal(got & flags, flags);
        ok(cuMemHostGetDevicePointer(&device, host, 0));
        seeds_shared_words(host, device, 300);
        ok(cuMemFreeHost(host));
    }
}

/* "The CU_MEMHOSTALLOC_DEVICEMAP flag may be specified on CUDA contexts for devices that do not support mapped pinned memory. The failure
 * is deferred to cuMemHostGetDevicePointer()" */
static void failure_to_map_is_deferred(void **state)
{
    CUdeviceptr device = 0;
    void *host;
    CUresult r;

    (void)state;
    ok(cuMemHostAlloc(&host, BYTES, CU_MEMHOSTALLOC_DEVICEMAP));
    r = cuMemHostGetDevicePointer(&device, host, 0);
    assert_int_equal(r == CUDA_SUCCESS, seeds_attribute(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY));
    ok(cuMemFreeHost(host));
}

/* "The memory allocated by this function must be freed with cuMemFreeHost()." */
static void is_freed_with_free_host(void **state)
{
    void *host;

    (void)state;
    ok(cuMemHostAlloc(&host, BYTES, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree((CUdeviceptr)(uintptr_t)host));
    memset(host, 1, BYTES);
    ok(cuMemFreeHost(host));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(host));
}

static void in_every_context(uint32_t *host, int devices)
{
    for (int i = 0; i < devices; i++) {
        CUcontext context;
        CUdevice device;

        ok(cuDeviceGet(&device, i));
        ok(cuCtxCreate(&context, NULL, 0, device));
        if (seeds_attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING))
            seeds_shared_words(host, (CUdeviceptr)(uintptr_t)host, SEEDS_WORDS);
        ok(cuCtxDestroy(context));
    }
}

/* "all host memory allocated using cuMemHostAlloc() will automatically be immediately accessible to all contexts on all devices which
 * support unified addressing" */
static void is_accessible_to_all_contexts(void **state)
{
    uint32_t *host;
    int devices = 0;

    (void)state;
    ok(cuDeviceGetCount(&devices));
    ok(cuMemHostAlloc((void **)&host, BYTES, 0));
    in_every_context(host, devices);
    ok(cuMemFreeHost(host));
}

/* "Unless the flag CU_MEMHOSTALLOC_WRITECOMBINED is specified, the device pointer that may be used to access this host memory from those
 * contexts is always equal to the returned host pointer *pp." */
static void device_pointer_equals_host_pointer(void **state)
{
    (void)state;
    for (unsigned flags = 0; flags <= (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP); flags++) {
        CUdeviceptr device = 0;
        char *host;

        ok(cuMemHostAlloc((void **)&host, BYTES, flags));
        ok(cuMemHostGetDevicePointer(&device, host + 12, 0));
        if (seeds_attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING))
            assert_int_equal(device, (uintptr_t)host + 12);
        ok(cuMemFreeHost(host));
    }
}

/* "Returns" */
static void refuses(void **state)
{
    void *host = NULL;
    CUcontext context;

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostAlloc(NULL, BYTES, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostAlloc(&host, BYTES, 0x100));
    gives(CUDA_ERROR_OUT_OF_MEMORY, cuMemHostAlloc(&host, (size_t)1 << 46, 0));
    ok(cuCtxPopCurrent(&context));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuMemHostAlloc(&host, BYTES, 0));
    ok(cuCtxPushCurrent(context));
    assert_null(host);
}

/* "Note that this function may also return error codes from previous, asynchronous launches." */
static void tells_earlier_errors(void **state)
{
    void *host;

    (void)state;
    seeds_tells_earlier_error(cuMemHostAlloc(&host, BYTES, 0));
}

int main(void)
{
    const struct CMUnitTest first[] = {cmocka_unit_test(before_init)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_accessible_to_the_device),
        cmocka_unit_test(is_tracked),
        cmocka_unit_test(copies_are_direct),
        cmocka_unit_test(portable_is_pinned_in_other_contexts),
        cmocka_unit_test(write_combined_is_read_by_the_device),
        cmocka_unit_test(flags_are_orthogonal),
        cmocka_unit_test(failure_to_map_is_deferred),
        cmocka_unit_test(is_freed_with_free_host),
        cmocka_unit_test(is_accessible_to_all_contexts),
        cmocka_unit_test(device_pointer_equals_host_pointer),
        cmocka_unit_test(refuses),
    };
    const struct CMUnitTest last[] = {cmocka_unit_test(tells_earlier_errors)};

    return cmocka_run_group_tests(first, NULL, NULL) || cmocka_run_group_tests(tests, with_context, without_context) ||
           cmocka_run_group_tests(last, with_context, NULL);
}
