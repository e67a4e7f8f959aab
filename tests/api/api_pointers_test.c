/* SPDX-License-Identifier: Apache-2.0 */
/* Unified addressing: the attributes of pointers, with the type of each attribute, and of pointers that CUDA does not know. */
#include "api_test.h"

#define BYTES ((size_t)100000)

static CUdeviceptr device;
static char *host;
static char pageable[64];

static int set_up(void **state)
{
    return with_context(state) || cuMemAlloc(&device, BYTES) || cuMemAllocHost((void **)&host, BYTES);
}

static int take_down(void **state)
{
    if (cuMemFree(device) || cuMemFreeHost(host))
        return -1;
    return without_context(state);
}

/* Attributes with their sizes: the caller's memory behind the value is unchanged. */
static const struct {
    CUpointer_attribute attribute;
    size_t bytes;
} sizes[] = {
    {CU_POINTER_ATTRIBUTE_CONTEXT, sizeof(CUcontext)},
    {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 4},
    {CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 8},
    {CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 4},
    {CU_POINTER_ATTRIBUTE_BUFFER_ID, 8},
    {CU_POINTER_ATTRIBUTE_IS_MANAGED, 4},
    {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 4},
    {CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 4},
    {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 8},
    {CU_POINTER_ATTRIBUTE_RANGE_SIZE, 8},
    {CU_POINTER_ATTRIBUTE_MAPPED, 4},
    {CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, 8},
    {CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, 4},
    {CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, 4},
    {CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, sizeof(CUmemoryPool)},
    {CU_POINTER_ATTRIBUTE_MAPPING_SIZE, 8},
    {CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, 8},
    {CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, 8},
    {CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, 4},
};

static void values_have_the_size_of_their_type(void **state)
{
    const CUdeviceptr pointers[] = {device, (CUdeviceptr)(uintptr_t)host};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int k = 0; k < 2; k++) {
            unsigned char data[16];

            memset(data, 0xaa, sizeof data);
            ok(cuPointerGetAttribute(data, sizes[i].attribute, pointers[k]));
            for (size_t byte = sizes[i].bytes; byte < sizeof data; byte++)
                assert_int_equal(data[byte], 0xaa);
            assert_int_not_equal(data[sizes[i].bytes - 1], 0xaa);
        }
    }
}

static void device_memory(void **state)
{
    CUcontext context = NULL;
    CUmemorytype type = 0;
    CUdeviceptr pointer = 0, start = 0;
    size_t size = 0;
    int ordinal = -1, managed = 9, mapped = 0;
    unsigned access = 0;
    void *host_pointer;

    ok(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, device + 5));
    assert_ptr_equal(context, *state);
    ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device + 5));
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    ok(cuPointerGetAttribute(&pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, device + 5));
    assert_int_equal(pointer, device + 5);
    gives(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&host_pointer, CU_POINTER_ATTRIBUTE_HOST_POINTER, device));
    ok(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, device + BYTES - 1));
    assert_int_equal(start, device);
    ok(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, device));
    assert_int_equal(size, BYTES);
    ok(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, device));
    assert_int_equal(ordinal, 0);
    ok(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, device));
    assert_int_equal(managed, 0);
    ok(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, device));
    assert_int_equal(mapped, 1);
    ok(cuPointerGetAttribute(&access, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, device));
    assert_int_equal(access, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
}

static void host_memory(void **state)
{
    CUdeviceptr pointer = 0, mapped = 0, at = (CUdeviceptr)(uintptr_t)host;
    CUmemorytype type = 0;
    void *host_pointer = NULL;

    (void)state;
    ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at + 7));
    assert_int_equal(type, CU_MEMORYTYPE_HOST);
    ok(cuPointerGetAttribute(&host_pointer, CU_POINTER_ATTRIBUTE_HOST_POINTER, at + 7));
    assert_ptr_equal(host_pointer, host + 7);
    ok(cuPointerGetAttribute(&pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at + 7));
    ok(cuMemHostGetDevicePointer(&mapped, host + 7, 0));
    assert_int_equal(pointer, mapped);
}

static void ids_differ(void **state)
{
    unsigned long long first = 0, second = 0;
    CUdeviceptr p;

    (void)state;
    ok(cuPointerGetAttribute(&first, CU_POINTER_ATTRIBUTE_BUFFER_ID, device));
    ok(cuMemAlloc(&p, 16));
    ok(cuPointerGetAttribute(&second, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
    assert_int_not_equal(first, second);
    ok(cuMemFree(p));
    ok(cuMemAlloc(&p, 16)); /* perhaps at the same address */
    ok(cuPointerGetAttribute(&first, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
    assert_int_not_equal(first, second);
    ok(cuMemFree(p));
}

static void unknown_pointers(void **state)
{
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)pageable;
    CUmemorytype type = 7;
    int ordinal = 7, managed = 7;
    CUdeviceptr pointer = 7;
    void *host_pointer = NULL;
    CUcontext context = (CUcontext)7;
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_CONTEXT,        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                        CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER,
                                        CU_POINTER_ATTRIBUTE_IS_MANAGED,     CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *data[] = {&context, &type, &pointer, &host_pointer, &managed, &ordinal};

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at));
    gives(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0));
    ok(cuPointerGetAttributes(6, attributes, data, at));
    assert_null(context);
    assert_int_equal(type, 0);
    assert_int_equal(pointer, 0);
    assert_ptr_equal(host_pointer, pageable);
    assert_int_equal(managed, 0);
    assert_int_equal(ordinal, CU_DEVICE_INVALID);
}

static void several_at_once(void **state)
{
    CUmemorytype type = 0;
    void *host_pointer = pageable;
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void *data[] = {&type, &host_pointer};

    (void)state;
    ok(cuPointerGetAttributes(2, attributes, data, device));
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    assert_null(host_pointer); /* device memory has no such value */
}

static void attributes_refuse(void **state)
{
    unsigned on = 1, value = 0;
    void *data[] = {NULL};
    CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(NULL, attribute, device));
    gives(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&value, (CUpointer_attribute)0, device));
    gives(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&value, (CUpointer_attribute)1000, device));
    gives(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttributes(0, &attribute, data, device));
    gives(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttributes(1, &attribute, data, device));
    gives(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(&on, attribute, device));
    gives(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device));
    gives(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)(uintptr_t)pageable));
}

static void sync_memops_can_be_switched(void **state)
{
    unsigned on = 1, got = 0;

    (void)state;
    ok(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device));
    ok(cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device + 3));
    assert_int_equal(got, 1);
    for (int i = 0; i < 20; i++) {
        ok(cuMemcpyDtoD(device, device + BYTES / 2, BYTES / 2));
        if (on_cuttle()) /* it has waited; NVIDIA's driver 580 was seen to return NOT_READY */
            ok(cuStreamQuery(NULL));
    }
    ok(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)(uintptr_t)host));
}

static void no_context_need_be_current(void **state)
{
    CUcontext context = *state;
    CUmemorytype type = 0;

    ok(cuCtxSetCurrent(NULL));
    ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    gives(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 1));
    ok(cuCtxSetCurrent(context));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_have_the_size_of_their_type),
        cmocka_unit_test(device_memory),
        cmocka_unit_test(host_memory),
        cmocka_unit_test(ids_differ),
        cmocka_unit_test(unknown_pointers),
        cmocka_unit_test(several_at_once),
        cmocka_unit_test(attributes_refuse),
        cmocka_unit_test(sync_memops_can_be_switched),
        cmocka_unit_test(no_context_need_be_current),
    };

    return cmocka_run_group_tests(tests, set_up, take_down);
}
