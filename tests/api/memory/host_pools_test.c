/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools of the host (Driver API: Stream Ordered Memory Allocator). A plain program of the driver API: NVIDIA's own driver must pass, too. */
#include "seeds.h"

#define BYTES (SEEDS_WORDS * 4)

static CUmemLocation of_host = {.type = CU_MEM_LOCATION_TYPE_HOST};

static CUmemPoolProps host_props(void)
{
    return (CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = of_host};
}

static bool are_supported(void)
{
    return seeds_attribute(CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED);
}

static CUmemoryPool make_pool(void)
{
    CUmemPoolProps props = host_props();
    CUmemoryPool pool;

    ok(cuMemPoolCreate(&pool, &props));
    return pool;
}

static CUmemAccessDesc access_of_device(CUmemAccess_flags flags)
{
    CUdevice device;

    ok(cuCtxGetDevice(&device));
    return (CUmemAccessDesc){.location = {CU_MEM_LOCATION_TYPE_DEVICE, device}, .flags = flags};
}

static void give_access(CUmemoryPool pool)
{
    const CUmemAccessDesc access = access_of_device(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

    ok(cuMemPoolSetAccess(pool, &access, 1));
}

static CUmemAccess_flags access_from(CUmemoryPool pool, CUmemLocation location)
{
    CUmemAccess_flags flags;

    ok(cuMemPoolGetAccess(&flags, pool, &location));
    return flags;
}

static void is_memory_of_both(void **state)
{
    CUmemoryPool pool;

    (void)state;
    if (!are_supported())
        skip();
    pool = make_pool();
    give_access(pool);
    seeds_use_pool(pool);
    ok(cuMemPoolDestroy(pool));
}

static void copies_reach_it(void **state)
{
    uint32_t back[SEEDS_WORDS];
    CUdeviceptr p, device;
    CUmemoryPool pool;

    (void)state;
    if (!are_supported())
        skip();
    pool = make_pool();
    give_access(pool);
    ok(cuMemAllocFromPoolAsync(&p, BYTES, pool, NULL));
    ok(cuMemAlloc(&device, BYTES));
    ok(cuStreamSynchronize(NULL));
    for (uint32_t i = 0; i < SEEDS_WORDS; i++)
        ((uint32_t *)(uintptr_t)p)[i] = 7 * i;
    ok(cuMemcpyHtoD(device, (void *)(uintptr_t)p, BYTES));
    ok(cuMemcpyDtoH(back, device, BYTES));
    for (uint32_t i = 0; i < SEEDS_WORDS; i++)
        assert_int_equal(back[i], 7 * i);
    ok(cuMemsetD32(device, 5, SEEDS_WORDS));
    ok(cuMemcpyDtoH((void *)(uintptr_t)p, device, BYTES));
    for (uint32_t i = 0; i < SEEDS_WORDS; i++)
        assert_int_equal(((uint32_t *)(uintptr_t)p)[i], 5);
    ok(cuMemFree(device));
    ok(cuMemFree(p));
    ok(cuMemPoolDestroy(pool));
}

static void pointers_tell_what_it_is(void **state)
{
    CUmemAccessDesc access = access_of_device(CU_MEM_ACCESS_FLAGS_PROT_NONE);
    unsigned type, managed;
    CUmemoryPool pool, found;
    CUcontext context;
    CUdeviceptr p, device;
    void *host;

    (void)state;
    if (!are_supported())
        skip();
    pool = make_pool();
    ok(cuMemAllocFromPoolAsync(&p, BYTES, pool, NULL));
    ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 4));
    assert_int_equal(type, CU_MEMORYTYPE_HOST);
    ok(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, p + 4));
    assert_ptr_equal(host, (void *)(uintptr_t)(p + 4));
    ok(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    assert_ptr_equal(found, pool);
    ok(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
    assert_int_equal(managed, 0);
    ok(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, p));
    assert_null(context);
    gives(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p));
    give_access(pool);
    ok(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p));
    assert_int_equal(device, p);
    ok(cuMemPoolSetAccess(pool, &access, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p));
    ok(cuMemFreeAsync(p, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(p, NULL));
    ok(cuStreamSynchronize(NULL));
    ok(cuMemPoolDestroy(pool));
}

static void access_is_given(void **state)
{
    CUmemAccessDesc access = access_of_device(CU_MEM_ACCESS_FLAGS_PROT_READ);
    CUmemLocation device = access.location;
    CUmemoryPool pool;

    (void)state;
    if (!are_supported())
        skip();
    pool = make_pool();
    assert_int_equal(access_from(pool, of_host), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    assert_int_equal(access_from(pool, device), CU_MEM_ACCESS_FLAGS_PROT_NONE);
    gives(CUDA_ERROR_NOT_SUPPORTED, cuMemPoolSetAccess(pool, &access, 1));
    give_access(pool);
    assert_int_equal(access_from(pool, device), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    access.location = of_host;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    ok(cuMemPoolSetAccess(pool, &access, 1));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    gives(CUDA_ERROR_NOT_SUPPORTED, cuMemPoolSetAccess(pool, &access, 1));
    access.location = device;
    ok(cuMemPoolSetAccess(pool, &access, 1));
    assert_int_equal(access_from(pool, device), CU_MEM_ACCESS_FLAGS_PROT_NONE);
    ok(cuMemPoolDestroy(pool));
}

static void the_host_has_pools(void **state)
{
    CUmemoryPool standard, current, pool, of_device;
    CUdevice device;

    (void)state;
    if (!are_supported())
        skip();
    pool = make_pool();
    ok(cuCtxGetDevice(&device));
    ok(cuDeviceGetDefaultMemPool(&of_device, device));
    ok(cuMemGetDefaultMemPool(&standard, &of_host, CU_MEM_ALLOCATION_TYPE_PINNED));
    ok(cuMemGetMemPool(&current, &of_host, CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_ptr_equal(current, standard);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(standard));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceSetMemPool(device, pool));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemSetMemPool(&of_host, CU_MEM_ALLOCATION_TYPE_PINNED, of_device));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemSetMemPool(&of_host, CU_MEM_ALLOCATION_TYPE_PINNED, NULL));
    ok(cuMemSetMemPool(&of_host, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
    ok(cuMemGetMemPool(&current, &of_host, CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_ptr_equal(current, pool);
    ok(cuMemSetMemPool(&of_host, CU_MEM_ALLOCATION_TYPE_PINNED, standard));
    ok(cuMemGetMemPool(&current, &of_host, CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_ptr_equal(current, standard);
    ok(cuMemPoolDestroy(pool));
}

static cuuint64_t number(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    cuuint64_t value;

    ok(cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

static void statistics_follow(void **state)
{
    CUmemoryPool pool;
    CUdeviceptr p;

    (void)state;
    if (!are_supported())
        skip();
    pool = make_pool();
    assert_int_equal(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    ok(cuMemAllocFromPoolAsync(&p, 1000, pool, NULL));
    assert_int_equal(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1000);
    assert_true(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 1000);
    ok(cuMemFreeAsync(p, NULL));
    ok(cuStreamSynchronize(NULL));
    ok(cuMemPoolTrimTo(pool, 0));
    assert_int_equal(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    assert_int_equal(number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 1000);
    ok(cuMemPoolDestroy(pool));
}

static void wrong_arguments_are_refused(void **state)
{
    CUmemPoolProps props = host_props();
    CUmemoryPool pool;
    CUstream stream;
    CUdeviceptr p;
    CUgraph graph;

    (void)state;
    if (!are_supported()) {
        gives(CUDA_ERROR_NOT_SUPPORTED, cuMemPoolCreate(&pool, &props));
        gives(CUDA_ERROR_NOT_SUPPORTED, cuMemGetDefaultMemPool(&pool, &of_host, CU_MEM_ALLOCATION_TYPE_PINNED));
        return;
    }
    props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&pool, &props));
    props = host_props();
    props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&pool, &props));
    props = host_props();
    props.maxSize = (size_t)1 << 50;
    gives(CUDA_ERROR_OUT_OF_MEMORY, cuMemPoolCreate(&pool, &props));
    props.maxSize = (size_t)1 << 20;
    ok(cuMemPoolCreate(&pool, &props));
    gives(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&p, (size_t)40 << 20, pool, NULL));
    ok(cuMemPoolDestroy(pool));

    pool = make_pool();
    ok(cuMemAllocFromPoolAsync(&p, BYTES, pool, NULL));
    ok(cuStreamSynchronize(NULL));
    seeds_free_once(p);
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    gives(CUDA_ERROR_NOT_SUPPORTED, cuMemAllocFromPoolAsync(&p, BYTES, pool, stream));
    ok(cuStreamEndCapture(stream, &graph));
    ok(cuGraphDestroy(graph));
    ok(cuStreamDestroy(stream));
    ok(cuMemPoolDestroy(pool));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemGetDefaultMemPool(NULL, &of_host, CU_MEM_ALLOCATION_TYPE_PINNED));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemGetMemPool(NULL, &of_host, CU_MEM_ALLOCATION_TYPE_PINNED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_memory_of_both),           cmocka_unit_test(copies_reach_it),
        cmocka_unit_test(pointers_tell_what_it_is),    cmocka_unit_test(access_is_given),
        cmocka_unit_test(the_host_has_pools),          cmocka_unit_test(statistics_follow),
        cmocka_unit_test(wrong_arguments_are_refused),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
