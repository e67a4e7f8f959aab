/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory (Driver API: Memory Management, Unified Addressing, Stream Management), tested according to the manual. The same binary
 * runs with NVIDIA's own driver. */
#include "../which_driver.h"
#include "seeds.h"

static bool has_managed(void)
{
    return seeds_attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
}

/* Whether managed memory can be prefetched, and given advice about the device: where access is concurrent, and with our library also
 * elsewhere, unless the manual's errors are requested. */
static bool is_prefetched(void)
{
    const char *strict = getenv("CUTTLE_STRICT");

    return seeds_attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) || (on_cuttle() && !(strict && !strcmp(strict, "1")));
}

static bool is_concurrent(void)
{
    return seeds_attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
}

#define NEEDS_MANAGED()                                                                                                                    \
    do {                                                                                                                                   \
        if (!has_managed())                                                                                                                \
            skip();                                                                                                                        \
    } while (0)

static uint32_t *words_at(CUdeviceptr pointer)
{
    return (uint32_t *)(uintptr_t)pointer;
}

static CUdeviceptr allocate(size_t bytes)
{
    CUdeviceptr pointer = 0;

    ok(cuMemAllocManaged(&pointer, bytes, CU_MEM_ATTACH_GLOBAL));
    assert_int_not_equal(pointer, 0);
    return pointer;
}

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static const CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST};
static const CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE};

/* ---- allocation ---- */

/* "If the device doesn't support allocating managed memory, NOT_SUPPORTED": it does where addresses are unified. */
static void the_attribute_tells(void **state)
{
    CUdeviceptr pointer = 7;

    (void)state;
    if (has_managed())
        assert_true(seeds_attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING));
    else
        gives(CUDA_ERROR_NOT_SUPPORTED, cuMemAllocManaged(&pointer, 64, CU_MEM_ATTACH_GLOBAL));
    if (is_concurrent())
        assert_true(has_managed());
}

/* "The pointer is valid on the CPU and on all GPUs": small, in a chunk with others; large, on its own. */
static void host_and_kernels_use_one_pointer(void **state)
{
    const unsigned counts[] = {1, 1000, 300000};
    CUdeviceptr pointers[3];

    (void)state;
    NEEDS_MANAGED();
    for (int i = 0; i < 3; i++)
        pointers[i] = allocate(counts[i] * 4);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pointers[i] % 256, 0);
        seeds_shared_words(words_at(pointers[i]), pointers[i], counts[i]);
    }
    for (int i = 0; i < 3; i++)
        ok(cuMemFree(pointers[i]));
}

static void flags_of_allocation(void **state)
{
    const unsigned bad[] = {0, CU_MEM_ATTACH_SINGLE, CU_MEM_ATTACH_GLOBAL | CU_MEM_ATTACH_HOST, 8, ~0u};
    CUdeviceptr pointer = 7;

    (void)state;
    NEEDS_MANAGED();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        gives(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&pointer, 64, bad[i]));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&pointer, 0, CU_MEM_ATTACH_GLOBAL));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(NULL, 64, CU_MEM_ATTACH_GLOBAL));
    if (on_cuttle()) /* NVIDIA's driver has written 0 by then */
        assert_int_equal(pointer, 7);
    ok(cuMemAllocManaged(&pointer, 64, CU_MEM_ATTACH_HOST));
    words_at(pointer)[0] = 5; /* host memory from the beginning */
    ok(cuStreamAttachMemAsync(NULL, pointer, 0, CU_MEM_ATTACH_GLOBAL));
    ok(cuStreamSynchronize(NULL));
    seeds_step(pointer, 1);
    assert_int_equal(words_at(pointer)[0], 16);
    ok(cuMemFree(pointer));
}

static void frees_once(void **state)
{
    CUdeviceptr pointer;

    (void)state;
    NEEDS_MANAGED();
    pointer = allocate(4096);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(pointer + 4));
    ok(cuMemFree(pointer));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(pointer));
}

static void is_reused(void **state)
{
    (void)state;
    NEEDS_MANAGED();
    for (unsigned i = 0; i < 300; i++) {
        CUdeviceptr small = allocate(8 + i * 40), large = i % 50 ? 0 : allocate(1500000);

        words_at(small)[1] = i;
        if (large)
            words_at(large)[374999] = i;
        assert_int_equal(words_at(small)[1], i);
        ok(cuMemFree(small));
        if (large)
            ok(cuMemFree(large));
    }
}

static void pointer_attributes(void **state)
{
    CUdeviceptr pointer, device_pointer = 0, base = 0;
    unsigned managed = 0, type = 0;
    void *host_pointer = NULL;
    size_t bytes = 0;

    (void)state;
    NEEDS_MANAGED();
    pointer = allocate(8192);
    ok(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer + 8));
    assert_int_equal(managed, 1);
    ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer));
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    ok(cuPointerGetAttribute(&device_pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, pointer + 8));
    assert_int_equal(device_pointer, pointer + 8);
    ok(cuPointerGetAttribute(&host_pointer, CU_POINTER_ATTRIBUTE_HOST_POINTER, pointer + 8));
    assert_int_equal((uintptr_t)host_pointer, pointer + 8);
    ok(cuMemGetAddressRange(&base, &bytes, pointer + 100));
    assert_int_equal(base, pointer);
    assert_int_equal(bytes, 8192);
    ok(cuMemFree(pointer));
}

static void copies_and_fills(void **state)
{
    CUdeviceptr pointer, other;
    uint32_t words[64], back[64];

    (void)state;
    NEEDS_MANAGED();
    pointer = allocate(sizeof words);
    ok(cuMemAlloc(&other, sizeof words));
    for (uint32_t i = 0; i < 64; i++)
        words[i] = i * 7;
    ok(cuMemcpyHtoD(pointer, words, sizeof words));
    assert_memory_equal(words_at(pointer), words, sizeof words);
    ok(cuMemcpyDtoD(other, pointer, sizeof words));
    ok(cuMemsetD32(pointer, 9, 32));
    ok(cuCtxSynchronize());
    assert_int_equal(words_at(pointer)[31], 9);
    assert_int_equal(words_at(pointer)[32], 224);
    ok(cuMemcpy(pointer, other, sizeof words));
    ok(cuMemcpyDtoH(back, pointer, sizeof back));
    assert_memory_equal(back, words, sizeof words);
    ok(cuMemcpyHtoD(other, words_at(pointer), sizeof words)); /* managed memory as host memory */
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(words_at(pointer), 64, 0));
    ok(cuMemFree(other));
    ok(cuMemFree(pointer));
}

static void lives_as_long_as_its_context(void **state)
{
    CUdeviceptr pointer;
    CUcontext own;
    unsigned managed = 0;

    NEEDS_MANAGED();
    ok(cuCtxCreate(&own, NULL, 0, 0));
    pointer = allocate(64);
    ok(cuCtxSetCurrent(*state));
    words_at(pointer)[0] = 4;
    ok(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer));
    seeds_step(pointer, 1); /* in another context */
    assert_int_equal(words_at(pointer)[0], 13);
    ok(cuMemFree(pointer)); /* from another context */
    ok(cuCtxDestroy(own));
}

/* ---- streams ---- */

static void attaching(void **state)
{
    CUdeviceptr pointer, not_managed;
    CUstream stream;

    (void)state;
    NEEDS_MANAGED();
    pointer = allocate(8192);
    words_at(pointer)[0] = 1;
    ok(cuMemAlloc(&not_managed, 64));
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuStreamAttachMemAsync(stream, pointer, 0, CU_MEM_ATTACH_SINGLE));
    ok(cuStreamAttachMemAsync(stream, pointer, 8192, CU_MEM_ATTACH_HOST));
    ok(cuStreamAttachMemAsync(NULL, pointer, 0, CU_MEM_ATTACH_GLOBAL));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(stream, pointer, 4096, CU_MEM_ATTACH_SINGLE)); /* a part */
    if (on_cuttle()) {                                                                                    /* NVIDIA's driver crashes */
        gives(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(stream, pointer, 0, 0));
        gives(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(stream, pointer, 0, 8));
    }
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(stream, not_managed, 0, CU_MEM_ATTACH_SINGLE));
    assert_int_not_equal(cuStreamAttachMemAsync(NULL, pointer, 0, CU_MEM_ATTACH_SINGLE), CUDA_SUCCESS); /* "An error will be returned" */
    ok(cuStreamAttachMemAsync(stream, pointer, 0, CU_MEM_ATTACH_SINGLE));
    ok(cuStreamSynchronize(stream));
    if (on_cuttle()) /* NVIDIA's driver may deny the host access now */
        words_at(pointer)[0] = 1;
    ok(cuStreamDestroy(stream)); /* back to its initial attachment */
    seeds_step(pointer, 1);
    assert_int_equal(words_at(pointer)[0], 4);
    ok(cuMemFree(not_managed));
    ok(cuMemFree(pointer));
}

/* Device locations, and streams of this device, may be rejected if it has no concurrent managed access. */
static void prefetching(void **state)
{
    const CUresult fine = is_prefetched() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    CUdeviceptr pointer, not_managed;
    int where = 77, type = 77;

    (void)state;
    NEEDS_MANAGED();
    pointer = allocate(4 * page_bytes());
    ok(cuMemAlloc(&not_managed, 64));
    ok(cuMemRangeGetAttribute(&where, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, pointer, 4 * page_bytes()));
    assert_int_equal(where, CU_DEVICE_INVALID);
    words_at(pointer)[0] = 2;
    gives(fine, cuMemPrefetchAsync(pointer, 4 * page_bytes(), device, 0, NULL));
    seeds_step(pointer, 1);
    gives(fine, cuMemPrefetchAsync(pointer, page_bytes(), host, 0, NULL));
    ok(cuCtxSynchronize());
    assert_int_equal(words_at(pointer)[0], 7);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(pointer, 0, device, 0, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(pointer, 4096, device, 1, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(not_managed, 64, device, 0, NULL));
    gives(CUDA_ERROR_INVALID_DEVICE, cuMemPrefetchAsync(pointer, 4096, (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 1000}, 0, NULL));
    if (is_prefetched()) {
        ok(cuMemRangeGetAttribute(&where, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, pointer, page_bytes()));
        assert_int_equal(where, CU_DEVICE_CPU);
        ok(cuMemRangeGetAttribute(&type, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, pointer, page_bytes()));
        assert_int_equal(type, CU_MEM_LOCATION_TYPE_HOST);
        ok(cuMemRangeGetAttribute(&where, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, pointer + page_bytes(), page_bytes()));
        assert_int_equal(where, 0);
        ok(cuMemRangeGetAttribute(&where, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, pointer, 2 * page_bytes()));
        assert_int_equal(where, CU_DEVICE_INVALID); /* not all to one location */
    }
    ok(cuMemFree(not_managed));
    ok(cuMemFree(pointer));
}

static void batches(void **state)
{
    CUdeviceptr pointers[3];
    size_t sizes[3] = {4096, 4096, 4096}, from[2] = {0, 2}, wrong_from[2] = {1, 2};
    CUmemLocation places[2] = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, {CU_MEM_LOCATION_TYPE_HOST, 0}};
    int where[3];
    CUstream stream;

    (void)state;
    NEEDS_MANAGED();
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 3; i++)
        pointers[i] = allocate(page_bytes());
    if (!is_prefetched()) {
        assert_int_not_equal(cuMemPrefetchBatchAsync(pointers, sizes, 3, places, from, 2, 0, stream), CUDA_SUCCESS);
        assert_int_not_equal(cuMemDiscardBatchAsync(pointers, sizes, 3, 0, stream), CUDA_SUCCESS);
    } else {
        ok(cuMemPrefetchBatchAsync(pointers, sizes, 3, places, from, 2, 0, stream));
        ok(cuStreamSynchronize(stream));
        for (int i = 0; i < 3; i++)
            ok(cuMemRangeGetAttribute(&where[i], 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, pointers[i], 4096));
        assert_true(where[0] == 0 && where[1] == 0 && where[2] == CU_DEVICE_CPU);
        ok(cuMemDiscardBatchAsync(pointers, sizes, 3, 0, stream));
        ok(cuMemDiscardAndPrefetchBatchAsync(pointers, sizes, 3, places, from, 2, 0, stream));
        ok(cuStreamSynchronize(stream));
        words_at(pointers[1])[0] = 6;
        seeds_step(pointers[1], 1);
        assert_int_equal(words_at(pointers[1])[0], 19);
    }
    assert_int_not_equal(cuMemPrefetchBatchAsync(pointers, sizes, 3, places, wrong_from, 2, 0, stream), CUDA_SUCCESS);
    assert_int_not_equal(cuMemPrefetchBatchAsync(pointers, sizes, 1, places, from, 2, 0, stream), CUDA_SUCCESS);
    assert_int_not_equal(cuMemPrefetchBatchAsync(pointers, sizes, 3, places, from, 2, 0, CU_STREAM_LEGACY), CUDA_SUCCESS);
    assert_int_not_equal(cuMemPrefetchBatchAsync(pointers, sizes, 3, places, from, 2, 1, stream), CUDA_SUCCESS);
    for (int i = 0; i < 3; i++)
        ok(cuMemFree(pointers[i]));
    ok(cuStreamDestroy(stream));
}

/* ---- advice ---- */

static int attribute_of(CUdeviceptr pointer, size_t bytes, CUmem_range_attribute attribute)
{
    int value = 77;

    ok(cuMemRangeGetAttribute(&value, 4, attribute, pointer, bytes));
    return value;
}

/* Advice on the middle two of four pages, then on the first three: a query returns the value that all pages of the range have in common. */
static void advice_is_kept_by_page(void **state)
{
    CUdeviceptr pointer;
    size_t page = on_cuttle() ? page_bytes() : (size_t)2 << 20; /* NVIDIA's driver keeps advice for larger pages */

    (void)state;
    NEEDS_MANAGED();
    pointer = allocate(4 * page);
    assert_int_equal(attribute_of(pointer, 4 * page, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 0);
    assert_int_equal(attribute_of(pointer, 4 * page, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), CU_DEVICE_INVALID);
    ok(cuMemAdvise(pointer + page, 2 * page, CU_MEM_ADVISE_SET_READ_MOSTLY, host));
    assert_int_equal(attribute_of(pointer + page, 2 * page, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 1);
    assert_int_equal(attribute_of(pointer, 2 * page, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 0);
    if (on_cuttle()) /* NVIDIA's driver returns the first page's value, the manual specifies "1 if all pages in the given range" */
        assert_int_equal(attribute_of(pointer + 2 * page, 2 * page, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 0);
    ok(cuMemAdvise(pointer + 8, page - 8, CU_MEM_ADVISE_SET_READ_MOSTLY, host)); /* widened to pages */
    assert_int_equal(attribute_of(pointer, 3 * page, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 1);
    ok(cuMemAdvise(pointer, 3 * page, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
    assert_int_equal(attribute_of(pointer, 3 * page, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), CU_DEVICE_CPU);
    assert_int_equal(attribute_of(pointer, 3 * page, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE), CU_MEM_LOCATION_TYPE_HOST);
    assert_int_equal(attribute_of(pointer, 4 * page, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), CU_DEVICE_INVALID);
    assert_int_equal(attribute_of(pointer, 4 * page, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE), CU_MEM_LOCATION_TYPE_INVALID);
    ok(cuMemAdvise(pointer, 4 * page, CU_MEM_ADVISE_UNSET_READ_MOSTLY, host));
    ok(cuMemAdvise(pointer, page, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, host));
    assert_int_equal(attribute_of(pointer + page, 2 * page, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 0);
    assert_int_equal(attribute_of(pointer, page, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), CU_DEVICE_INVALID);
    assert_int_equal(attribute_of(pointer + page, 2 * page, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), CU_DEVICE_CPU);
    ok(cuMemFree(pointer));
    pointer = allocate(4 * page); /* perhaps the same pages: their advice has been reset */
    if (on_cuttle())
        assert_int_equal(attribute_of(pointer + page, page, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), CU_DEVICE_INVALID);
    ok(cuMemFree(pointer));
}

/* cuMemAdvise and cuMemPrefetchAsync of CUDA 8.0, which take a device number, or CU_DEVICE_CPU for the host. */
static void forms_of_cuda_8(void **state)
{
    CUresult (*advise)(CUdeviceptr, size_t, CUmem_advise, CUdevice) =
        (CUresult(*)(CUdeviceptr, size_t, CUmem_advise, CUdevice))dlsym(RTLD_DEFAULT, "cuMemAdvise");
    CUresult (*prefetch)(CUdeviceptr, size_t, CUdevice, CUstream) =
        (CUresult(*)(CUdeviceptr, size_t, CUdevice, CUstream))dlsym(RTLD_DEFAULT, "cuMemPrefetchAsync");
    const CUresult fine = is_prefetched() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    const size_t bytes = (size_t)2 << 20;
    CUdeviceptr pointer;

    (void)state;
    NEEDS_MANAGED();
    assert_non_null(advise);
    assert_non_null(prefetch);
    pointer = allocate(bytes);
    ok(advise(pointer, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
    assert_int_equal(attribute_of(pointer, bytes, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), CU_DEVICE_CPU);
    gives(fine, advise(pointer, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 0));
    gives(fine, prefetch(pointer, bytes, 0, NULL));
    ok(cuCtxSynchronize());
    if (is_prefetched()) {
        assert_int_equal(attribute_of(pointer, bytes, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), 0);
        assert_int_equal(attribute_of(pointer, bytes, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION), 0);
        ok(prefetch(pointer, bytes, CU_DEVICE_CPU, NULL));
        ok(cuCtxSynchronize());
        assert_int_equal(attribute_of(pointer, bytes, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION), CU_DEVICE_CPU);
    }
    ok(cuMemFree(pointer));
}

static void advice_about_the_device(void **state)
{
    const CUresult fine = is_prefetched() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    CUdeviceptr pointer;
    int list[3] = {77, 77, 77};

    (void)state;
    NEEDS_MANAGED();
    pointer = allocate(8192);
    gives(fine, cuMemAdvise(pointer, 8192, CU_MEM_ADVISE_SET_ACCESSED_BY, device));
    gives(fine, cuMemAdvise(pointer, 8192, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device));
    if (is_prefetched()) {
        ok(cuMemRangeGetAttribute(list, sizeof list, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, pointer, 8192));
        assert_true(list[0] == 0 && list[1] == CU_DEVICE_INVALID && list[2] == CU_DEVICE_INVALID);
        assert_int_equal(attribute_of(pointer, 8192, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), 0);
        assert_int_equal(attribute_of(pointer, 8192, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE), CU_MEM_LOCATION_TYPE_DEVICE);
        assert_int_equal(attribute_of(pointer, 8192, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID), 0);
        ok(cuMemAdvise(pointer, 8192, CU_MEM_ADVISE_UNSET_ACCESSED_BY, device));
        ok(cuMemRangeGetAttribute(list, sizeof list, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, pointer, 8192));
        assert_int_equal(list[0], CU_DEVICE_INVALID);
    }
    ok(cuMemFree(pointer));
}

/* cuMemRangeGetAttributes: "each element in dataSizes corresponds to the size of the memory pointed to by the corresponding element in
 * data": all attributes in one call, with the same values as single queries. */
static void all_attributes_of_a_range(void **state)
{
    static CUmem_range_attribute attributes[] = {
        CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
        CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
        CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
        CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION,
        CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE,
        CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE,
        CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID,
        CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID,
    };
    enum { COUNT = sizeof attributes / sizeof *attributes, ACCESSED_BY = 2 };
    const size_t bytes = (size_t)2 << 20; /* NVIDIA's driver keeps advice for as many bytes */
    const int there[COUNT] = {1, CU_DEVICE_CPU, 0, 0, CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_DEVICE, 0, 0};
    int values[COUNT][3];
    size_t sizes[COUNT];
    void *data[COUNT];
    CUdeviceptr pointer;

    (void)state;
    NEEDS_MANAGED();
    if (!is_prefetched())
        skip(); /* advice about the device is rejected */
    pointer = allocate(bytes);
    ok(cuMemAdvise(pointer, bytes, CU_MEM_ADVISE_SET_READ_MOSTLY, host));
    ok(cuMemAdvise(pointer, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
    ok(cuMemAdvise(pointer, bytes, CU_MEM_ADVISE_SET_ACCESSED_BY, device));
    ok(cuMemPrefetchAsync(pointer, bytes, device, 0, NULL));
    ok(cuCtxSynchronize());
    memset(values, 0x55, sizeof values);
    for (unsigned i = 0; i < COUNT; i++) {
        data[i] = values[i];
        sizes[i] = i == ACCESSED_BY ? 2 * sizeof(int) : sizeof(int);
    }
    ok(cuMemRangeGetAttributes(data, sizes, attributes, COUNT, pointer, bytes));
    for (unsigned i = 0; i < COUNT; i++) {
        int alone[2] = {77, 77};

        ok(cuMemRangeGetAttribute(alone, sizes[i], attributes[i], pointer, bytes));
        assert_memory_equal(values[i], alone, sizes[i]);
        if (attributes[i] != CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID) /* for the host it "should be ignored" */
            assert_int_equal(values[i][0], there[i]);
        assert_int_equal(values[i][sizes[i] / sizeof(int)], 0x55555555); /* no more bytes were written */
    }
    assert_int_equal(values[ACCESSED_BY][1], CU_DEVICE_INVALID);
    ok(cuMemFree(pointer));
}

static void bad_advice_and_queries(void **state)
{
    const CUmemLocation nowhere = {CU_MEM_LOCATION_TYPE_DEVICE, 1000}, node = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}, odd = {99, 0};
    CUdeviceptr pointer, not_managed;
    uint64_t value;
    size_t size = 4;
    CUmem_range_attribute attribute = CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY;
    void *data = &value;

    (void)state;
    NEEDS_MANAGED();
    pointer = allocate(8192);
    ok(cuMemAlloc(&not_managed, 8192));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(pointer, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, host));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(pointer, 8192, (CUmem_advise)99, host));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(not_managed, 8192, CU_MEM_ADVISE_SET_READ_MOSTLY, host));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(pointer, 8192, CU_MEM_ADVISE_SET_ACCESSED_BY, node));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(pointer, 8192, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, odd));
    assert_int_not_equal(cuMemAdvise(pointer, 8192, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, nowhere), CUDA_SUCCESS); /* VALUE or DEVICE */
    gives(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(&value, 8, attribute, pointer, 8192));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(&value, 6, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, pointer, 8192));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(&value, 4, (CUmem_range_attribute)99, pointer, 8192));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(&value, 4, attribute, not_managed, 8192));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(NULL, 4, attribute, pointer, 8192));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttributes(&data, &size, &attribute, 0, pointer, 8192));
    ok(cuMemRangeGetAttributes(&data, &size, &attribute, 1, pointer, 8192));
    ok(cuMemFree(not_managed));
    ok(cuMemFree(pointer));
}

/* ---- variables ---- */

/* clang-format off */
static const char variables_ptx[] =
    ".version 6.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .u32 plain = 5;\n"
    ".visible .global .align 4 .attribute(.managed) .u32 shared_word = 11;\n"
    ".visible .global .align 16 .attribute(.managed) .b8 shared_words[64];\n"
    ".visible .global .u64 pointer = shared_words;\n"
    /* shared_word = shared_word * 2 + plain, by name and by address; shared_words[1] = the same, through a pointer in memory; out = its address */
    ".visible .entry work(.param .u64 out)\n"
    "{\n"
    "    .reg .b32 %r<4>;\n    .reg .b64 %d<6>;\n"
    "    ld.global.u32 %r1, [shared_word];\n    ld.global.u32 %r2, [plain];\n    shl.b32 %r1, %r1, 1;\n    add.u32 %r1, %r1, %r2;\n"
    "    mov.u64 %d1, shared_word;\n    cvta.global.u64 %d2, %d1;\n    st.u32 [%d2], %r1;\n"
    "    ld.global.u64 %d3, [pointer];\n    st.global.u32 [%d3+4], %r1;\n    atom.global.add.u32 %r3, [shared_words+8], 3;\n"
    "    ld.param.u64 %d4, [out];\n    st.global.u64 [%d4], %d2;\n"
    "    ret;\n}\n";
/* clang-format on */

static void check_variables(CUfunction work, uint32_t *word, uint32_t *words)
{
    CUdeviceptr out;
    uint64_t seen = 0;

    assert_int_equal(*word, 11);
    assert_int_equal(words[2], 0);
    *word = 100;
    words[2] = 40;
    ok(cuMemAlloc(&out, 8));
    ok(cuLaunchKernel(work, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&out}, NULL));
    ok(cuCtxSynchronize());
    assert_int_equal(*word, 205);
    assert_int_equal(words[1], 205);
    assert_int_equal(words[2], 43);
    ok(cuMemcpyDtoH(&seen, out, 8));
    assert_int_equal(seen, (uintptr_t)word); /* one address for both */
    ok(cuMemFree(out));
}

static void variables_of_a_module(void **state)
{
    CUdeviceptr word, words;
    CUfunction work;
    CUmodule module;
    unsigned managed = 0;
    size_t bytes;
    CUresult r = cuModuleLoadData(&module, variables_ptx);

    (void)state;
    if (!has_managed()) {
        assert_int_equal(r, CUDA_ERROR_NOT_SUPPORTED);
        return;
    }
    ok(r);
    ok(cuModuleGetGlobal(&word, &bytes, module, "shared_word"));
    assert_int_equal(bytes, 4);
    ok(cuModuleGetGlobal(&words, &bytes, module, "shared_words"));
    assert_int_equal(bytes, 64);
    ok(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, word));
    assert_int_equal(managed, 1);
    assert_int_not_equal(cuMemFree(word), CUDA_SUCCESS);
    ok(cuMemAdvise(word, 4, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
    ok(cuStreamAttachMemAsync(NULL, word, 4, CU_MEM_ATTACH_GLOBAL));
    ok(cuModuleGetFunction(&work, module, "work"));
    check_variables(work, words_at(word), words_at(words));
    ok(cuModuleUnload(module));
}

/* "shared across devices": all contexts of a library have one variable; they need not exist yet when its address is queried. */
static void variables_of_a_library(void **state)
{
    CUdeviceptr word, words, again, plain;
    CUlibrary library;
    CUkernel work;
    CUcontext other;
    size_t bytes = 0;

    NEEDS_MANAGED();
    ok(cuLibraryLoadData(&library, variables_ptx, NULL, NULL, 0, NULL, NULL, 0));
    ok(cuLibraryGetManaged(&word, &bytes, library, "shared_word"));
    assert_int_equal(bytes, 4);
    ok(cuLibraryGetManaged(&words, NULL, library, "shared_words"));
    gives(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&again, NULL, library, "plain"));
    gives(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&again, NULL, library, "nothing"));
    gives(CUDA_ERROR_INVALID_VALUE, cuLibraryGetManaged(NULL, NULL, library, "shared_word"));
    ok(cuLibraryGetGlobal(&plain, NULL, library, "plain"));
    ok(cuLibraryGetKernel(&work, library, "work"));
    check_variables((CUfunction)work, words_at(word), words_at(words));
    ok(cuCtxCreate(&other, NULL, 0, 0));
    ok(cuLibraryGetManaged(&again, NULL, library, "shared_word"));
    assert_int_equal(again, word);
    *words_at(word) = 11;
    words_at(words)[2] = 0;
    check_variables((CUfunction)work, words_at(word), words_at(words));
    ok(cuCtxDestroy(other));
    ok(cuCtxSetCurrent(*state));
    *words_at(word) = 3; /* still exists */
    assert_int_equal(words_at(words)[1], 205);
    ok(cuLibraryUnload(library));
}

/* ---- concurrent access ---- */

/* Where access is concurrent, the host communicates with a running kernel through managed memory. */
static void host_and_running_kernel_meet(void **state)
{
    CUdeviceptr pointer, answer;
    CUfunction replies;
    CUmodule module;

    (void)state;
    if (!is_concurrent())
        skip();
    pointer = allocate(2 * page_bytes());
    answer = pointer + page_bytes();
    memset(words_at(pointer), 0, 2 * page_bytes());
    ok(cuModuleLoadData(&module, seeds_ptx));
    ok(cuModuleGetFunction(&replies, module, "replies"));
    ok(cuLaunchKernel(replies, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&pointer, &answer}, NULL));
    usleep(1000);
    __atomic_store_n(words_at(pointer), 21, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(words_at(answer), __ATOMIC_SEQ_CST))
        usleep(10);
    assert_int_equal(words_at(answer)[1], 42);
    ok(cuCtxSynchronize());
    ok(cuModuleUnload(module));
    ok(cuMemFree(pointer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_attribute_tells),
        cmocka_unit_test(host_and_kernels_use_one_pointer),
        cmocka_unit_test(flags_of_allocation),
        cmocka_unit_test(frees_once),
        cmocka_unit_test(is_reused),
        cmocka_unit_test(pointer_attributes),
        cmocka_unit_test(copies_and_fills),
        cmocka_unit_test(lives_as_long_as_its_context),
        cmocka_unit_test(attaching),
        cmocka_unit_test(prefetching),
        cmocka_unit_test(batches),
        cmocka_unit_test(advice_is_kept_by_page),
        cmocka_unit_test(forms_of_cuda_8),
        cmocka_unit_test(advice_about_the_device),
        cmocka_unit_test(all_attributes_of_a_range),
        cmocka_unit_test(bad_advice_and_queries),
        cmocka_unit_test(variables_of_a_module),
        cmocka_unit_test(variables_of_a_library),
        cmocka_unit_test(host_and_running_kernel_meet),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
