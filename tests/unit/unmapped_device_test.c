/* SPDX-License-Identifier: Apache-2.0 */
/* A device that maps no page-locked memory, beside one that does: "The CU_MEMHOSTALLOC_DEVICEMAP flag may be specified on CUDA contexts for
 * devices that do not support mapped pinned memory. The failure is deferred to cuMemHostGetDevicePointer() because the memory may be mapped
 * into other CUDA contexts via the CU_MEMHOSTALLOC_PORTABLE flag" (and the same for CU_MEMHOSTREGISTER_*). No real backend lists such a
 * device, so the mock provides it. What the other device can access depends on its address rule: without unified addressing no pointers are
 * equal. */
#include "../api/api_test.h"

#include "mock_backend.h"

#include <stdbool.h>
#include <unistd.h>

#define BYTES ((size_t)100000)
#define PAGE 4096
#define ALLOC_FLAGS (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define REGISTER_FLAGS (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP)

static CUcontext mapped, unmapped;
static CUdevice unmapped_device;
static unsigned char pages[32 * PAGE] __attribute__((aligned(PAGE)));

static int attribute_of(CUdevice device, CUdevice_attribute attribute)
{
    int value = -1;

    ok(cuDeviceGetAttribute(&value, attribute, device));
    return value;
}

static int set_up(void **state)
{
    int devices = 0;

    (void)state;
    ok(cuInit(0));
    ok(cuDeviceGetCount(&devices));
    assert_int_equal(devices, 2);
    unmapped_device = attribute_of(0, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY) ? 1 : 0;
    ok(cuCtxCreate(&mapped, NULL, CU_CTX_MAP_HOST, !unmapped_device));
    ok(cuCtxCreate(&unmapped, NULL, CU_CTX_MAP_HOST, unmapped_device));
    return 0;
}

static int take_down(void **state)
{
    (void)state;
    ok(cuCtxDestroy(unmapped));
    ok(cuCtxDestroy(mapped));
    assert_int_equal(mock_count().memories, 0);
    return 0;
}

static void attributes_say_so(void **state)
{
    (void)state;
    assert_int_equal(attribute_of(!unmapped_device, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY), 1);
    assert_int_equal(attribute_of(unmapped_device, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY), 0);
    assert_int_equal(attribute_of(unmapped_device, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING), 0);
    assert_int_equal(attribute_of(unmapped_device, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY), 0);
    assert_int_equal(attribute_of(unmapped_device, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM), 0);
}

/* cuMemHostGetDevicePointer "will fail if [...] the function is called on a GPU that does not support mapped pinned memory". */
static void is_not_mapped(void *host)
{
    const CUdeviceptr pointer = (CUdeviceptr)(uintptr_t)host;
    CUdeviceptr device = 7;

    ok(cuCtxSetCurrent(unmapped));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&device, host, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&device, (char *)host + BYTES - 1, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, pointer));
    assert_int_equal(device, 7);
}

/* "the memory may be mapped into other CUDA contexts": of devices with unified addressing, at the host's pointer. */
static void is_mapped_elsewhere(void *host)
{
    CUdeviceptr device = 0;

    ok(cuCtxSetCurrent(mapped));
    if (attribute_of(!unmapped_device, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING)) {
        ok(cuMemHostGetDevicePointer(&device, (char *)host + 100, 0));
        assert_int_equal(device, (uintptr_t)host + 100);
        ok(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, (CUdeviceptr)(uintptr_t)host));
        assert_int_equal(device, (uintptr_t)host);
    } else {
        gives(CUDA_ERROR_NOT_SUPPORTED, cuMemHostGetDevicePointer(&device, host, 0));
    }
}

static void is_known_as_host_memory(void *host)
{
    const CUdeviceptr pointer = (CUdeviceptr)(uintptr_t)host;
    unsigned type = 0;
    void *back = NULL;

    ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer + BYTES - 1));
    assert_int_equal(type, CU_MEMORYTYPE_HOST);
    ok(cuPointerGetAttribute(&back, CU_POINTER_ATTRIBUTE_HOST_POINTER, pointer + 5));
    assert_ptr_equal(back, (char *)host + 5);
}

/* Copies to the device of `context` and back to another part of the memory; an asynchronous copy reads page-locked memory when it executes. */
static void is_copied_in(CUcontext context, unsigned char *host)
{
    const size_t half = BYTES / 2;
    CUdeviceptr device;
    CUstream stream;

    ok(cuCtxSetCurrent(context));
    ok(cuMemAlloc(&device, half));
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (size_t i = 0; i < half; i++)
        host[i] = (unsigned char)(i * 7);
    ok(cuMemcpyHtoD(device, host, half));
    ok(cuMemcpyDtoH(host + half, device, half));
    assert_memory_equal(host, host + half, half);
    memset(host, 9, half);
    ok(cuMemcpyHtoDAsync(device, host, half, stream));
    ok(cuMemcpyDtoHAsync(host + half, device, half, stream));
    ok(cuStreamSynchronize(stream));
    assert_memory_equal(host, host + half, half);
    ok(cuStreamDestroy(stream));
    ok(cuMemFree(device));
}

static void is_as_it_should(void *host)
{
    is_not_mapped(host);
    is_known_as_host_memory(host);
    is_copied_in(unmapped, host);
    is_mapped_elsewhere(host);
    is_copied_in(mapped, host);
}

/* Memory of the device that maps none, with any flags: only cuMemHostGetDevicePointer reports that it is not mapped. It is freed in either
 * context. */
static void allocate(unsigned flags)
{
    unsigned got = 77;
    void *host;

    ok(cuCtxSetCurrent(unmapped));
    ok(cuMemHostAlloc(&host, BYTES, flags));
    ok(cuMemHostGetFlags(&got, host));
    assert_int_equal(got, flags);
    is_as_it_should(host);
    ok(cuMemHostGetFlags(&got, host)); /* the flags belong to the memory, in every context */
    assert_int_equal(got, flags);
    ok(cuCtxSetCurrent(flags % 2 ? mapped : unmapped));
    ok(cuMemFreeHost(host));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(host));
}

static void register_pages(unsigned flags)
{
    unsigned char *host = pages + 5;

    ok(cuCtxSetCurrent(unmapped));
    ok(cuMemHostRegister(host, BYTES, flags));
    gives(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(host + 1, 1, flags));
    is_as_it_should(host);
    ok(cuCtxSetCurrent(flags % 2 ? mapped : unmapped));
    ok(cuMemHostUnregister(host));
    gives(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(host));
}

static void with_any_flags(void (*make)(unsigned flags), unsigned all_flags)
{
    unsigned before;

    make(0); /* contexts allocate their buffers for copies at the first copy */
    before = mock_count().memories;
    for (unsigned flags = 0; flags <= all_flags; flags++) {
        make(flags);
        assert_int_equal(mock_count().memories, before);
    }
}

static void allocated(void **state)
{
    (void)state;
    with_any_flags(allocate, ALLOC_FLAGS);
}

static void registered(void **state)
{
    (void)state;
    with_any_flags(register_pages, REGISTER_FLAGS);
}

/* The reverse: memory of the device that maps it is mapped there, and in the context of the other device the call fails. */
static void of_the_other_device(void **state)
{
    const unsigned before = mock_count().memories;
    CUdeviceptr device;
    unsigned got = 0;
    void *host;

    (void)state;
    ok(cuCtxSetCurrent(mapped));
    ok(cuMemHostAlloc(&host, BYTES, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
    ok(cuMemHostRegister(pages, BYTES, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
    ok(cuMemHostGetDevicePointer(&device, host, 0));
    ok(cuMemHostGetDevicePointer(&device, pages, 0));
    is_not_mapped(host);
    is_not_mapped(pages);
    ok(cuMemHostGetFlags(&got, host));
    assert_int_equal(got, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    is_copied_in(unmapped, host);
    is_copied_in(unmapped, pages);
    ok(cuMemHostUnregister(pages));
    ok(cuMemFreeHost(host));
    assert_int_equal(mock_count().memories, before);
}

/* Remaining memory is freed with the context; the error is not sticky. */
static void left_behind(void **state)
{
    const unsigned before = mock_count().memories;
    CUcontext context;
    void *host;

    (void)state;
    ok(cuCtxCreate(&context, NULL, 0, unmapped_device));
    ok(cuMemHostAlloc(&host, BYTES, CU_MEMHOSTALLOC_DEVICEMAP));
    ok(cuMemHostRegister(pages, BYTES, CU_MEMHOSTREGISTER_DEVICEMAP));
    is_not_mapped(host);
    ok(cuCtxSetCurrent(context));
    ok(cuCtxSynchronize());
    ok(cuCtxDestroy(context));
    assert_int_equal(mock_count().memories, before);
}

/* Kernels report traps in host memory: a device that cannot access it runs no kernels, and reports that. */
static void there_are_no_kernels(void **state)
{
    static const char ptx[] = ".version 6.0\n.target sm_70\n.address_size 64\n.visible .entry nothing()\n{\n    ret;\n}\n";
    CUfunction function;
    CUmodule module;

    (void)state;
    ok(cuCtxSetCurrent(unmapped));
    ok(cuModuleLoadData(&module, ptx));
    ok(cuModuleGetFunction(&function, module, "nothing"));
    gives(CUDA_ERROR_NOT_SUPPORTED, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    ok(cuModuleUnload(module));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_say_so),   cmocka_unit_test(allocated),   cmocka_unit_test(registered),
        cmocka_unit_test(of_the_other_device), cmocka_unit_test(left_behind), cmocka_unit_test(there_are_no_kernels),
    };

    mock_add_unmapped();
    return cmocka_run_group_tests(tests, set_up, take_down);
}
