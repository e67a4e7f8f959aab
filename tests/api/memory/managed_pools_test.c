/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools of managed memory (Driver API: Stream Ordered Memory Allocator). A plain program of the driver API: NVIDIA's own driver must pass, too. */
#include "seeds.h"

#define BYTES (SEEDS_WORDS * 4)

static CUmemLocation locations[] = {
    {.type = CU_MEM_LOCATION_TYPE_INVALID}, /* none */
    {.type = CU_MEM_LOCATION_TYPE_DEVICE},
    {.type = CU_MEM_LOCATION_TYPE_HOST},
};
enum { NONE, DEVICE, HOST, LOCATIONS };

static bool are_supported(void)
{
    return seeds_attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
}

static CUmemPoolProps props_at(unsigned location)
{
    return (CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED, .location = locations[location]};
}

static CUmemoryPool make_pool(unsigned location)
{
    CUmemPoolProps props = props_at(location);
    CUmemoryPool pool;

    ok(cuMemPoolCreate(&pool, &props));
    return pool;
}

/* Calls the function with a new pool at each location. */
static void with_each_pool(void (*use)(unsigned location, CUmemoryPool pool))
{
    if (!are_supported())
        skip();
    for (unsigned location = 0; location < LOCATIONS; location++) {
        const CUmemoryPool pool = make_pool(location);

        use(location, pool);
        ok(cuMemPoolDestroy(pool));
    }
}

/* Nobody has to be given access. */
static void use_it(unsigned location, CUmemoryPool pool)
{
    (void)location;
    seeds_use_pool(pool);
}

static void is_memory_of_both(void **state)
{
    (void)state;
    with_each_pool(use_it);
}

static void ask_about_pointers(unsigned location, CUmemoryPool pool)
{
    unsigned type, managed, synchronous;
    CUmemoryPool found;
    CUcontext context;
    CUdeviceptr p, device;
    size_t size;
    void *host;
    int ordinal;

    (void)location;
    ok(cuMemAllocFromPoolAsync(&p, BYTES - 4, pool, NULL));
    ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 4));
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    ok(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p + 4));
    assert_int_equal(managed, 1);
    ok(cuPointerGetAttribute(&synchronous, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p + 4));
    assert_int_equal(synchronous, 1);
    ok(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, p + 4));
    assert_ptr_equal(host, (void *)(uintptr_t)(p + 4));
    ok(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p + 4));
    assert_int_equal(device, p + 4);
    ok(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    assert_ptr_equal(found, pool);
    ok(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, p));
    assert_null(context);
    ok(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
    assert_int_equal(ordinal, 0);
    ok(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p));
    assert_int_equal(size, BYTES - 4);
    ok(cuMemFreeAsync(p, NULL));
    ok(cuStreamSynchronize(NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(p, NULL));
}

static void pointers_tell_what_it_is(void **state)
{
    (void)state;
    with_each_pool(ask_about_pointers);
}

/* cuMemPoolGetAccess reports no access until cuMemPoolSetAccess has given it, and again after it was taken away. */
static void give_and_take_access(unsigned location, CUmemoryPool pool)
{
    (void)location;
    for (unsigned from = DEVICE; from < LOCATIONS; from++) {
        CUmemAccessDesc access = {.location = locations[from], .flags = CU_MEM_ACCESS_FLAGS_PROT_READ};
        CUmemAccess_flags flags;

        ok(cuMemPoolGetAccess(&flags, pool, &locations[from]));
        assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
        gives(CUDA_ERROR_NOT_SUPPORTED, cuMemPoolSetAccess(pool, &access, 1));
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        ok(cuMemPoolSetAccess(pool, &access, 1));
        ok(cuMemPoolGetAccess(&flags, pool, &locations[from]));
        assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
        ok(cuMemPoolSetAccess(pool, &access, 1));
        ok(cuMemPoolGetAccess(&flags, pool, &locations[from]));
        assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
        access.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 1000};
        gives(CUDA_ERROR_INVALID_DEVICE, cuMemPoolSetAccess(pool, &access, 1));
    }
}

static void access_is_told(void **state)
{
    (void)state;
    with_each_pool(give_and_take_access);
}

static void locations_have_pools(void **state)
{
    CUmemoryPool standard[LOCATIONS], current;

    (void)state;
    if (!are_supported())
        skip();
    for (unsigned location = 0; location < LOCATIONS; location++) {
        const CUmemoryPool pool = make_pool(location);

        ok(cuMemGetDefaultMemPool(&standard[location], &locations[location], CU_MEM_ALLOCATION_TYPE_MANAGED));
        for (unsigned other = 0; other < location; other++)
            assert_ptr_not_equal(standard[other], standard[location]);
        ok(cuMemGetMemPool(&current, &locations[location], CU_MEM_ALLOCATION_TYPE_MANAGED));
        assert_ptr_equal(current, standard[location]);
        gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(standard[location]));
        ok(cuMemSetMemPool(&locations[location], CU_MEM_ALLOCATION_TYPE_MANAGED, pool));
        ok(cuMemGetMemPool(&current, &locations[location], CU_MEM_ALLOCATION_TYPE_MANAGED));
        assert_ptr_equal(current, pool);
        ok(cuMemSetMemPool(&locations[location], CU_MEM_ALLOCATION_TYPE_MANAGED, standard[location]));
        ok(cuMemPoolDestroy(pool));
    }
}

/* cuDeviceSetMemPool with a managed pool sets the device's current pool of managed memory. cuMemAllocAsync goes on using the other one. */
static void devices_have_one_more(void **state)
{
    CUmemoryPool standard, current, pool[LOCATIONS];

    (void)state;
    if (!are_supported())
        skip();
    ok(cuDeviceGetDefaultMemPool(&standard, 0));
    for (unsigned location = 0; location < LOCATIONS; location++)
        pool[location] = make_pool(location);
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceSetMemPool(0, pool[NONE]));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceSetMemPool(0, pool[HOST]));
    ok(cuDeviceSetMemPool(0, pool[DEVICE]));
    ok(cuDeviceGetMemPool(&current, 0));
    assert_ptr_equal(current, standard);
    ok(cuMemGetMemPool(&current, &locations[DEVICE], CU_MEM_ALLOCATION_TYPE_MANAGED));
    assert_ptr_equal(current, pool[DEVICE]);
    for (unsigned location = 0; location < LOCATIONS; location++)
        ok(cuMemPoolDestroy(pool[location]));
}

static int range_attribute(CUdeviceptr p, CUmem_range_attribute attribute)
{
    int value;

    ok(cuMemRangeGetAttribute(&value, sizeof value, attribute, p, 1 << 21));
    return value;
}

/* It prefers the pool's location, and takes no other advice. */
static void ask_for_location(unsigned location, CUmemoryPool pool)
{
    static const int preferred[LOCATIONS] = {CU_DEVICE_INVALID, 0, CU_DEVICE_CPU}, ids[LOCATIONS] = {CU_DEVICE_INVALID, 0, 0};
    CUstream stream;
    CUdeviceptr p;

    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuMemAllocFromPoolAsync(&p, 1 << 21, pool, stream));
    ok(cuStreamSynchronize(stream));
    assert_int_equal(range_attribute(p, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), preferred[location]);
    assert_int_equal(range_attribute(p, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE), locations[location].type);
    assert_int_equal(range_attribute(p, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID), ids[location]);
    assert_int_equal(range_attribute(p, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 0);
    assert_int_equal(range_attribute(p, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION), CU_DEVICE_INVALID);
    for (int advice = CU_MEM_ADVISE_SET_READ_MOSTLY; advice <= CU_MEM_ADVISE_UNSET_ACCESSED_BY; advice++)
        gives(CUDA_ERROR_NOT_SUPPORTED, cuMemAdvise(p, 1 << 21, (CUmem_advise)advice, locations[DEVICE]));
    ok(cuMemPrefetchAsync(p, 1 << 21, locations[DEVICE], 0, stream));
    assert_int_equal(range_attribute(p, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION), 0);
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(stream, p, 0, CU_MEM_ATTACH_SINGLE));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, p, 1, 0));
    ok(cuMemFreeAsync(p, stream));
    ok(cuStreamSynchronize(stream));
    ok(cuStreamDestroy(stream));
}

static void it_prefers_its_location(void **state)
{
    (void)state;
    with_each_pool(ask_for_location);
}

static void capture_allocation(unsigned location, CUmemoryPool pool)
{
    static const CUresult results[LOCATIONS] = {CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS, CUDA_ERROR_NOT_SUPPORTED};
    CUstream stream;
    CUdeviceptr p;
    CUgraph graph;

    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    gives(results[location], cuMemAllocFromPoolAsync(&p, BYTES, pool, stream));
    if (results[location] == CUDA_SUCCESS)
        ok(cuMemFreeAsync(p, stream));
    ok(cuStreamEndCapture(stream, &graph));
    ok(cuGraphDestroy(graph));
    ok(cuStreamDestroy(stream));
}

static void graphs_allocate_at_devices(void **state)
{
    (void)state;
    with_each_pool(capture_allocation);
}

static void wrong_arguments_are_refused(void **state)
{
    CUmemPoolProps props = props_at(DEVICE);
    CUmemoryPool pool;
    CUdeviceptr p;

    (void)state;
    if (!are_supported()) {
        gives(CUDA_ERROR_NOT_SUPPORTED, cuMemPoolCreate(&pool, &props));
        gives(CUDA_ERROR_NOT_SUPPORTED, cuMemGetDefaultMemPool(&pool, &locations[DEVICE], CU_MEM_ALLOCATION_TYPE_MANAGED));
        return;
    }
    props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&pool, &props));
    props = props_at(DEVICE);
    props.location.id = 1000;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&pool, &props));
    props = props_at(DEVICE);
    props.maxSize = 1 << 20;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&pool, &props));
    props = props_at(NONE);
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&pool, &props));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemGetDefaultMemPool(NULL, &locations[HOST], CU_MEM_ALLOCATION_TYPE_MANAGED));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemSetMemPool(&locations[HOST], CU_MEM_ALLOCATION_TYPE_MANAGED, NULL));
    pool = make_pool(NONE);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemSetMemPool(&locations[HOST], CU_MEM_ALLOCATION_TYPE_MANAGED, pool));
    ok(cuMemAllocFromPoolAsync(&p, BYTES, pool, NULL));
    ok(cuStreamSynchronize(NULL));
    seeds_free_once(p);
    ok(cuMemPoolDestroy(pool));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_memory_of_both),
        cmocka_unit_test(pointers_tell_what_it_is),
        cmocka_unit_test(access_is_told),
        cmocka_unit_test(locations_have_pools),
        cmocka_unit_test(devices_have_one_more),
        cmocka_unit_test(it_prefers_its_location),
        cmocka_unit_test(graphs_allocate_at_devices),
        cmocka_unit_test(wrong_arguments_are_refused),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
