/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management (the manual's chapter of that name): addresses, memory, mappings and their attributes. */
#include "virtual_memory.h"

#define ACCESS_NONE CU_MEM_ACCESS_FLAGS_PROT_NONE
#define ACCESS_READ CU_MEM_ACCESS_FLAGS_PROT_READ
#define ACCESS_ALL CU_MEM_ACCESS_FLAGS_PROT_READWRITE

/* ---- addresses ---- */

static void addresses_are_reserved_and_freed(void **state)
{
    size_t granule = vm_granule(), size = 3 * granule;
    size_t large = getenv("CUTTLE_VIRTUAL_MEMORY") ? (size_t)1 << 30 : (size_t)64 << 30; /* sparse buffers of lavapipe end at 2 GiB */
    CUdeviceptr first, second, big;

    (void)state;
    assert_int_equal(granule & (granule - 1), 0);
    ok(cuMemAddressReserve(&first, size, 0, 0, 0));
    ok(cuMemAddressReserve(&second, size, 0, 0, 0));
    assert_int_equal(first % granule, 0);
    assert_true(first + size <= second || second + size <= first);
    ok(cuMemAddressReserve(&big, large, 0, 0, 0)); /* may be larger than the memory */
    ok(cuMemAddressFree(big, large));
    ok(cuMemAddressFree(second, size));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(first, granule));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(first + granule, size - granule));
    ok(cuMemAddressFree(first, size));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(first, size));
}

static void addresses_are_aligned(void **state)
{
    size_t granule = vm_granule();
    CUdeviceptr address;

    (void)state;
    for (size_t align = granule; align <= (size_t)1 << 30; align *= 8) {
        ok(cuMemAddressReserve(&address, granule, align, 0, 0));
        assert_int_equal(address % align, 0);
        ok(cuMemAddressFree(address, granule));
    }
}

/* "when it is non-zero then the driver treats it as a hint about where to place the reservation" */
static void an_address_is_a_hint(void **state)
{
    size_t granule = vm_granule(), size = 4 * granule;
    CUdeviceptr address, again, other;

    (void)state;
    ok(cuMemAddressReserve(&address, size, 0, 0, 0));
    ok(cuMemAddressFree(address, size));
    ok(cuMemAddressReserve(&again, size, 0, address, 0));
    if (on_cuttle())
        assert_int_equal(again, address);
    ok(cuMemAddressReserve(&other, size, 0, again, 0)); /* not free: another address */
    assert_true(other + size <= again || again + size <= other);
    ok(cuMemAddressFree(other, size));
    ok(cuMemAddressFree(again, size));
}

static void wrong_reservations_are_refused(void **state)
{
    size_t granule = vm_granule();
    CUdeviceptr address = 77;

    (void)state;
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(NULL, granule, 0, 0, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&address, 0, 0, 0, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&address, 100, 0, 0, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&address, granule, 3 * granule, 0, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&address, granule, 0, 0, 1));
    refuses(CUDA_ERROR_OUT_OF_MEMORY, cuMemAddressReserve(&address, (size_t)1 << 60, 0, 0, 0));
    assert_int_equal(address, 77);
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(granule, granule));
}

/* ---- memory ---- */

static void wrong_memory_is_refused(void **state)
{
    size_t granule = vm_granule(), free_bytes, total_bytes;
    CUmemAllocationProp good = vm_properties(), bad;
    CUmemGenericAllocationHandle handle = 77;

    (void)state;
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemCreate(NULL, granule, &good, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, granule, NULL, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, granule, &good, 1));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, 0, &good, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, granule / 2, &good, 0));
    bad = good;
    bad.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, granule, &bad, 0));
    bad = good;
    bad.location.type = CU_MEM_LOCATION_TYPE_INVALID;
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, granule, &bad, 0));
    bad.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, granule, &bad, 0));
    bad = good;
    bad.location.id = 4711;
    refuses(CUDA_ERROR_INVALID_DEVICE, cuMemCreate(&handle, granule, &bad, 0));
    bad = good;
    bad.requestedHandleTypes = CU_MEM_HANDLE_TYPE_WIN32;
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, granule, &bad, 0));
    ok(cuMemGetInfo(&free_bytes, &total_bytes));
    refuses(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&handle, (total_bytes / granule + 1) * granule, &good, 0));
    assert_int_equal(handle, 77);
}

static void granularity_is_reported(void **state)
{
    CUmemAllocationProp properties = vm_properties();
    size_t least = 0, best = 0;

    (void)state;
    ok(cuMemGetAllocationGranularity(&least, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    ok(cuMemGetAllocationGranularity(&best, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    assert_true(least > 0 && best >= least && best % least == 0);
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemGetAllocationGranularity(NULL, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemGetAllocationGranularity(&least, NULL, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemGetAllocationGranularity(&least, &properties, (CUmemAllocationGranularity_flags)5));
}

static void properties_come_back(void **state)
{
    CUmemAllocationProp properties = vm_properties(), got;
    CUmemGenericAllocationHandle handle;

    (void)state;
    if (seeds_attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED))
        properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    ok(cuMemCreate(&handle, vm_granule(), &properties, 0));
    memset(&got, 0xff, sizeof got);
    ok(cuMemGetAllocationPropertiesFromHandle(&got, handle));
    assert_int_equal(got.type, properties.type);
    assert_int_equal(got.location.type, properties.location.type);
    assert_int_equal(got.location.id, properties.location.id);
    assert_int_equal(got.requestedHandleTypes, properties.requestedHandleTypes);
    assert_int_equal(got.allocFlags.compressionType, CU_MEM_ALLOCATION_COMP_NONE);
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemGetAllocationPropertiesFromHandle(NULL, handle));
    ok(cuMemRelease(handle));
    if (on_cuttle()) { /* "If handle is not a valid handle the behavior is undefined." */
        gives(CUDA_ERROR_INVALID_VALUE, cuMemRelease(handle));
        gives(CUDA_ERROR_INVALID_VALUE, cuMemRelease(0));
        gives(CUDA_ERROR_INVALID_VALUE, cuMemRelease(MADE_UP(CUmemGenericAllocationHandle)));
        gives(CUDA_ERROR_INVALID_VALUE, cuMemGetAllocationPropertiesFromHandle(&got, handle));
    }
}

/* ---- mappings ---- */

/* "Maps bytes of memory represented by handle starting from byte offset to size to address range [addr, addr + size]." */
static void mapped_memory_is_memory(void **state)
{
    struct vm_range range = vm_range_make(4);
    uint32_t *words = calloc(1, range.size);
    const unsigned count = (unsigned)(range.granule / 4);
    const CUdeviceptr middle = range.start + range.granule / 2; /* half of the first and of the second handle */

    (void)state;
    ok(cuMemsetD32(range.start, 5, range.size / 4));
    ok(cuMemsetD16(range.start + range.granule - 6, 0x0101, 6)); /* across a boundary of mappings */
    seeds_step(middle, count);
    ok(cuMemcpyDtoH(words, range.start, range.size));
    for (size_t i = 0; i < range.size / 4; i++) {
        const uint32_t near_seam[4] = {0x01010005, 0x01010101, 0x01010101, 0x00000101};
        uint32_t value = i + 2 >= count && i + 2 < (size_t)count + 4 ? near_seam[i + 2 - count] : 5;

        assert_int_equal(words[i], i >= count / 2 && i < count / 2 + count ? value * 3 + 1 : value);
    }
    for (size_t i = 0; i < range.size / 4; i++)
        words[i] = (uint32_t)i * 2654435761u;
    ok(cuMemcpyHtoD(range.start, words, range.size));
    ok(cuMemcpyDtoD(range.start + 2 * range.granule + 64, range.start + 64, range.granule)); /* across two boundaries */
    memset(words, 0, range.size);
    ok(cuMemcpyDtoH(words, range.start, range.size));
    for (size_t i = 0; i < range.granule / 4; i++)
        assert_int_equal(words[range.granule / 2 + 16 + i], (uint32_t)(16 + i) * 2654435761u);
    free(words);
    vm_range_free(&range);
}

static void asynchronous_copies_and_pitches(void **state)
{
    struct vm_range range = vm_range_make(2);
    CUdeviceptr at = range.start + range.granule - 4096;
    unsigned char *bytes;
    CUstream stream;
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcPitch = 100,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = at,
                          .dstPitch = 256,
                          .WidthInBytes = 100,
                          .Height = 32};

    (void)state;
    ok(cuMemAllocHost((void **)&bytes, 8192));
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 8192; i++)
        bytes[i] = (unsigned char)(i * 7);
    copy.srcHost = bytes;
    ok(cuMemsetD2D8Async(at, 256, 9, 256, 32, stream));
    ok(cuMemcpy2DAsync(&copy, stream));
    ok(cuStreamSynchronize(stream));
    memset(bytes, 0, 8192);
    ok(cuMemcpyDtoHAsync(bytes, at, 8192, stream));
    ok(cuStreamSynchronize(stream));
    for (int row = 0; row < 32; row++)
        for (int column = 0; column < 256; column++)
            assert_int_equal(bytes[row * 256 + column], column < 100 ? (unsigned char)((row * 100 + column) * 7) : 9);
    ok(cuStreamDestroy(stream));
    ok(cuMemFreeHost(bytes));
    vm_range_free(&range);
}

/* "This range must be an address reservation previously reserved with cuMemAddressReserve, and offset + size must be less than the size of
 * the memory allocation. Both ptr, size, and offset must be a multiple of the value given via cuMemGetAllocationGranularity"; "cuMemMap can
 * only create mappings on VA range reservations that are not currently mapped"; "flags for future use, must be zero now". */
static void wrong_mappings_are_refused(void **state)
{
    size_t granule = vm_granule();
    CUmemGenericAllocationHandle two = vm_create(2), one = vm_create(1);
    CUdeviceptr start, other;

    (void)state;
    ok(cuMemAddressReserve(&start, 4 * granule, 0, 0, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemMap(start + granule / 2, granule, 0, one, 0));
    refuses(CUDA_ERROR_NOT_SUPPORTED, cuMemMap(start, granule / 2, 0, one, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemMap(start, 0, 0, one, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemMap(start, granule, 0, one, 1));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemMap(start, granule, 0, 0, 0));
    refuses(CUDA_ERROR_NOT_SUPPORTED, cuMemMap(start, 2 * granule, 0, one, 0)); /* more than the handle has */
    if (on_cuttle()) { /* NVIDIA's driver maps it, and then considers the next reservation mapped */
        refuses(CUDA_ERROR_INVALID_VALUE, cuMemMap(start + 3 * granule, 2 * granule, 0, two, 0)); /* exceeds the reservation */
        gives(CUDA_ERROR_INVALID_VALUE, cuMemMap(start, granule, 0, MADE_UP(CUmemGenericAllocationHandle), 0));
    }
    ok(cuMemAlloc(&other, granule));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemMap(other, granule, 0, one, 0));
    ok(cuMemFree(other));

    ok(cuMemMap(start + granule, 2 * granule, 0, two, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemMap(start + granule, granule, 0, one, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemMap(start + 2 * granule, granule, 0, one, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemMap(start, 2 * granule, 0, two, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(start + granule, granule)); /* "cannot unmap a sub-range" */
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(start + 2 * granule, granule));
    if (on_cuttle()) {                                                   /* the effect of these on other drivers is not specified */
        gives(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(start, 3 * granule)); /* begins where nothing is mapped */
        gives(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(start, 4 * granule));
        gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(start + granule));
    }
    refuses(CUDA_ERROR_NOT_SUPPORTED, cuMemMap(start, granule, granule, two, 0)); /* "offset [...] must be zero" */
    ok(cuMemMap(start, granule, 0, one, 0));
    ok(cuMemUnmap(start, 3 * granule)); /* both */
    if (on_cuttle())                    /* NVIDIA's driver accepts an empty range without a mapping */
        refuses(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(start, 3 * granule));
    ok(cuMemMap(start, granule, 0, one, 0)); /* "can be used for a future calls to cuMemMap" */
    ok(cuMemUnmap(start, granule));
    ok(cuMemAddressFree(start, 4 * granule));
    ok(cuMemRelease(one));
    ok(cuMemRelease(two));
}

/* "The memory allocation will be freed when all outstanding mappings to the memory are unmapped and when all outstanding references to the
 * handle [...] are also released." */
static void memory_lives_while_it_is_mapped(void **state)
{
    size_t granule = vm_granule();
    CUmemGenericAllocationHandle handle = vm_create(1), again = 0, third = 0;
    CUmemAllocationProp properties;
    CUdeviceptr start;
    uint32_t word = 0;

    (void)state;
    ok(cuMemAddressReserve(&start, granule, 0, 0, 0));
    ok(cuMemMap(start, granule, 0, handle, 0));
    ok(vm_access(start, granule, ACCESS_ALL));
    ok(cuMemsetD32(start, 0xabcd, granule / 4));
    ok(cuMemRelease(handle));
    if (on_cuttle())
        gives(CUDA_ERROR_INVALID_VALUE, cuMemRelease(handle));
    ok(cuMemcpyDtoH(&word, start + 8, 4));
    assert_int_equal(word, 0xabcd);
    ok(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(start + 12345))); /* "can be any address in a range" */
    assert_int_equal(again, handle); /* "guaranteed to be the same handle value used to map the memory" */
    ok(cuMemRetainAllocationHandle(&third, (void *)(uintptr_t)start));
    assert_int_equal(third, handle);
    ok(cuMemGetAllocationPropertiesFromHandle(&properties, again));
    ok(cuMemUnmap(start, granule));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemRetainAllocationHandle(&third, (void *)(uintptr_t)start));
    ok(cuMemMap(start, granule, 0, again, 0)); /* it has kept its contents */
    ok(vm_access(start, granule, ACCESS_ALL));
    ok(cuMemcpyDtoH(&word, start + granule - 4, 4));
    assert_int_equal(word, 0xabcd);
    ok(cuMemUnmap(start, granule));
    ok(cuMemRelease(again));
    ok(cuMemRelease(again)); /* "must be released with corresponding number of calls" */
    if (on_cuttle())
        gives(CUDA_ERROR_INVALID_VALUE, cuMemMap(start, granule, 0, again, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemRetainAllocationHandle(&third, &word));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemRetainAllocationHandle(NULL, (void *)(uintptr_t)start));
    ok(cuMemAddressFree(start, granule));
}

static void one_memory_at_two_addresses(void **state)
{
    size_t granule = vm_granule();
    CUmemGenericAllocationHandle handle = vm_create(1);
    unsigned count = SEEDS_WORDS;
    CUdeviceptr start, second;
    uint32_t words[4] = {0};

    (void)state;
    ok(cuMemAddressReserve(&start, 3 * granule, 0, 0, 0));
    second = start + 2 * granule;
    ok(cuMemMap(start, granule, 0, handle, 0));
    ok(cuMemMap(second, granule, 0, handle, 0));
    ok(vm_access(start, granule, ACCESS_ALL));
    ok(vm_access(second, granule, ACCESS_ALL));
    ok(cuMemsetD32(start, 10, count));
    ok(cuCtxSynchronize());
    seeds_step(second, count);
    ok(cuMemcpyDtoH(words, start, sizeof words));
    assert_int_equal(words[3], 31);
    ok(cuMemUnmap(start, granule));
    ok(cuMemcpyDtoH(words, second, sizeof words));
    assert_int_equal(words[0], 31);
    ok(cuMemUnmap(second, granule));
    ok(cuMemRelease(handle));
    ok(cuMemAddressFree(start, 3 * granule));
}

/* Memory is not unmapped while a kernel that was launched before uses it; with NVIDIA's driver it is, which ends the context. */
static void unmapping_waits_for_work(void **state)
{
    size_t granule = vm_granule();
    CUmemGenericAllocationHandle handle = vm_create(1);
    unsigned count = (unsigned)(granule / 4);
    CUfunction function;
    CUdeviceptr start;
    CUmodule module;
    uint32_t word = 0;

    (void)state;
    ok(cuModuleLoadData(&module, seeds_ptx));
    ok(cuModuleGetFunction(&function, module, "step"));
    ok(cuMemAddressReserve(&start, 2 * granule, 0, 0, 0));
    for (int round = 0; round < 3; round++) {
        CUdeviceptr at = start + (round & 1) * granule;

        ok(cuMemMap(at, granule, 0, handle, 0));
        ok(vm_access(at, granule, ACCESS_ALL));
        if (round == 0)
            ok(cuMemsetD32(at, 0, count));
        for (int i = 0; i < 3; i++)
            ok(cuLaunchKernel(function, (count + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, (void *[]){&at, &count}, NULL));
        if (!on_cuttle())
            ok(cuCtxSynchronize());
        ok(cuMemUnmap(at, granule));
    }
    ok(cuMemMap(start, granule, 0, handle, 0));
    ok(vm_access(start, granule, ACCESS_ALL));
    ok(cuMemcpyDtoH(&word, start + granule - 4, 4));
    assert_int_equal(word, 9841); /* nine times x * 3 + 1 from 0: (3^9 - 1) / 2 */
    ok(cuMemUnmap(start, granule));
    ok(cuMemAddressFree(start, 2 * granule));
    ok(cuMemRelease(handle));
    ok(cuModuleUnload(module));
}

/* A reservation that grows at its end and frees memory in its middle, as allocators of frameworks do. */
static void a_range_grows_and_shrinks(void **state)
{
    enum { GRANULES = 8 };
    size_t granule = vm_granule();
    CUmemGenericAllocationHandle handles[GRANULES];
    CUdeviceptr start;
    uint32_t word;

    (void)state;
    ok(cuMemAddressReserve(&start, 64 * granule, 0, 0, 0));
    for (unsigned i = 0; i < GRANULES; i++) {
        handles[i] = vm_create(1);
        ok(cuMemMap(start + i * granule, granule, 0, handles[i], 0));
        ok(vm_access(start, (i + 1) * granule, ACCESS_ALL)); /* including what is already accessible */
        ok(cuMemsetD32(start + i * granule, i + 1, granule / 4));
    }
    ok(cuCtxSynchronize());
    ok(cuMemUnmap(start + 2 * granule, 3 * granule));
    if (on_cuttle()) /* "must be a fully mapped address range"; NVIDIA's driver accepts a partly mapped range */
        refuses(CUDA_ERROR_INVALID_VALUE, vm_access(start, GRANULES * granule, ACCESS_ALL));
    for (unsigned i = 4; i >= 2; i--) /* in the reverse order */
        ok(cuMemMap(start + i * granule, granule, 0, handles[6 - i], 0));
    ok(vm_access(start, GRANULES * granule, ACCESS_ALL));
    for (unsigned i = 0; i < GRANULES; i++) {
        ok(cuMemcpyDtoH(&word, start + i * granule + 16, 4));
        assert_int_equal(word, i >= 2 && i <= 4 ? 7 - i : i + 1);
    }
    for (unsigned i = 0; i < GRANULES; i++)
        ok(cuMemRelease(handles[i]));
    ok(cuMemUnmap(start, GRANULES * granule));
    ok(cuMemAddressFree(start, 64 * granule));
}

/* ---- access ---- */

static unsigned long long access_at(CUdeviceptr address)
{
    CUmemLocation location = vm_properties().location;
    unsigned long long flags = 77;

    ok(cuMemGetAccess(&flags, &location, address));
    return flags;
}

static void access_is_set_and_returned(void **state)
{
    size_t granule = vm_granule();
    CUmemGenericAllocationHandle handle = vm_create(2);
    CUmemLocation location = vm_properties().location;
    CUmemAccessDesc desc = {.location = location, .flags = ACCESS_ALL};
    unsigned long long flags;
    CUdeviceptr start;

    (void)state;
    ok(cuMemAddressReserve(&start, 4 * granule, 0, 0, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(start, granule, &desc, 1)); /* nothing is mapped */
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemGetAccess(&flags, &location, start));
    ok(cuMemMap(start + granule, 2 * granule, 0, handle, 0));
    assert_int_equal(access_at(start + granule), ACCESS_NONE); /* "all mappings start with no accessibility setup" */
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(start + granule, 2 * granule, NULL, 1));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(start, 3 * granule, &desc, 1));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(start + granule, 3 * granule, &desc, 1));
    if (on_cuttle()) {
        gives(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(start + granule, granule, &desc, 1)); /* a part of a mapping */
        gives(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(start + granule, 2 * granule, &desc, 0));
    }
    desc.location.id = 4711;
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(start + granule, 2 * granule, &desc, 1));
    refuses(CUDA_ERROR_INVALID_DEVICE, cuMemGetAccess(&flags, &desc.location, start + granule));
    desc.location = location;
    desc.flags = (CUmemAccess_flags)2;
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(start + granule, 2 * granule, &desc, 1));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemGetAccess(NULL, &location, start + granule));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemGetAccess(&flags, NULL, start + granule));
    assert_int_equal(access_at(start + granule), ACCESS_NONE);
    ok(vm_access(start + granule, 2 * granule, ACCESS_ALL));
    assert_int_equal(access_at(start + 3 * granule - 1), ACCESS_ALL);
    ok(vm_access(start + granule, 2 * granule, ACCESS_NONE));
    assert_int_equal(access_at(start + granule), ACCESS_NONE);
    ok(cuMemUnmap(start + granule, 2 * granule));
    ok(cuMemMap(start + granule, 2 * granule, 0, handle, 0));
    assert_int_equal(access_at(start + granule), ACCESS_NONE);
    ok(cuMemUnmap(start + granule, 2 * granule));
    ok(cuMemAddressFree(start, 4 * granule));
    ok(cuMemRelease(handle));
}

static void what_may_be_read_only(void **state)
{
    struct vm_range range = vm_range_make(1);
    uint32_t word = 0;
    CUdeviceptr other;
    unsigned count = 64;

    (void)state;
    ok(cuMemsetD32(range.start, 42, range.size / 4));
    ok(cuCtxSynchronize());
    if (vm_access(range.start, range.size, ACCESS_READ) != CUDA_SUCCESS) {
        assert_false(on_cuttle());
        print_message("no read-only access\n");
        vm_range_free(&range);
        skip();
    }
    assert_int_equal(access_at(range.start), ACCESS_READ);
    ok(cuMemcpyDtoH(&word, range.start, 4));
    assert_int_equal(word, 42);
    ok(cuMemAlloc(&other, 4096));
    ok(seeds_run("move", (void *[]){&other, &range.start, &count}, count));
    ok(cuMemcpyDtoD(other + 1024, range.start, 1024));
    ok(cuMemcpyDtoH(&word, other + 1024, 4));
    assert_int_equal(word, 42);
    if (on_cuttle()) { /* another driver may leave the detection to the hardware, which invalidates the context */
        gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(range.start, &word, 4));
        gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(range.start, other, 4));
        gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoDAsync(range.start, &word, 4, NULL));
        gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(range.start, 1, 1));
        gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD32Async(range.start, 1, 1, NULL));
    }
    ok(vm_access(range.start, range.size, ACCESS_ALL));
    ok(cuMemcpyHtoD(range.start + 4, &word, 4));
    ok(cuMemFree(other));
    vm_range_free(&range);
}

/* "calling cuMemMap does not make the address accessible, the caller needs to update accessibility of a contiguous mapped VA range by
 * calling cuMemSetAccess": copies and fills of memory that is mapped, but not accessible; in a context of its own, since another driver may
 * detect the error late. */
static void without_access_nothing_works(void **state)
{
    size_t granule = vm_granule();
    CUmemGenericAllocationHandle handle = vm_create(1);
    CUdeviceptr start, end;
    CUcontext context;
    uint32_t word = 0;

    (void)state;
    ok(cuCtxCreate(&context, NULL, 0, 0));
    ok(cuMemAddressReserve(&start, 2 * granule, 0, 0, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(&word, start, 4));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(start, 0, 1));
    ok(cuMemMap(start, granule, 0, handle, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(&word, start, 4));
    if (on_cuttle()) {
        end = start + granule - 4;
        gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(start, &word, 4));
        gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoDAsync(start, &word, 4, NULL));
        gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(start, 1, 1));
        ok(vm_access(start, granule, ACCESS_ALL));
        ok(cuMemcpyHtoD(end, &word, 4));
        gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(end, (uint32_t[2]){0}, 8)); /* into an address that is reserved only */
        gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(end, 0, 5));
    }
    cuMemUnmap(start, granule);
    cuMemAddressFree(start, 2 * granule);
    cuMemRelease(handle);
    cuCtxDestroy(context);
}

/* ---- attributes of such pointers ---- */

static unsigned long long number_of(CUpointer_attribute attribute, CUdeviceptr pointer)
{
    unsigned long long value = 0;

    ok(cuPointerGetAttribute(&value, attribute, pointer));
    return value;
}

static void pointers_are_known(void **state)
{
    size_t granule = vm_granule(), size = 0;
    CUmemGenericAllocationHandle handle = vm_create(2);
    CUdeviceptr start, base = 0, at;
    unsigned long long id;
    void *host;

    (void)state;
    ok(cuMemAddressReserve(&start, 8 * granule, 0, 0, 0));
    ok(cuMemMap(start + 2 * granule, 2 * granule, 0, handle, 0));
    ok(vm_access(start + 2 * granule, 2 * granule, ACCESS_ALL));
    at = start + 3 * granule + 100;
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at), CU_MEMORYTYPE_DEVICE);
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at), at);
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_IS_MANAGED, at), 0);
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_MAPPED, at), 1);
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at), vm_properties().location.id);
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at), start);
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_RANGE_SIZE, at), 8 * granule);
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, at), start + 2 * granule);
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, at), 2 * granule);
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, at), 0);
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, at), CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, at), 0);
    id = number_of(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, at);
    refuses(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, at));
    ok(cuMemGetAddressRange(&base, &size, at));
    assert_int_equal(base, start + 2 * granule);
    assert_int_equal(size, 2 * granule);
    ok(cuMemMap(start + 6 * granule, 2 * granule, 0, handle, 0)); /* the same memory */
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, start + 7 * granule), id);
    /* no location has access there */
    refuses(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, start + 7 * granule));
    refuses(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &size, start + 7 * granule));
    if (on_cuttle()) {
        assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, start + 7 * granule), CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE);
        assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_CONTEXT, at), 0); /* it belongs to no context */
        assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_MAPPED, start), 0);
        assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, start + 1), start);
        gives(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &size, start));
        gives(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, start));
    }
    ok(cuMemUnmap(start + 6 * granule, 2 * granule));
    ok(cuMemUnmap(start + 2 * granule, 2 * granule));
    ok(cuMemAddressFree(start, 8 * granule));
    ok(cuMemRelease(handle));
    refuses(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, start));
}

static void memory_is_not_a_context_s(void **state)
{
    struct vm_range range = vm_range_make(1);
    CUcontext context;
    uint32_t word = 0;

    (void)state;
    ok(cuMemsetD32(range.start, 4, range.size / 4));
    ok(cuCtxSynchronize());
    ok(cuCtxCreate(&context, NULL, 0, 0));
    seeds_step(range.start, 1000);
    ok(cuCtxDestroy(context));
    ok(cuMemcpyDtoH(&word, range.start + 4 * 999, 4));
    assert_int_equal(word, 13);
    vm_range_free(&range);
}

/* ---- unsupported features ---- */

static void what_there_is_not(void **state)
{
    CUdeviceptr device;
    int fd = -1;

    (void)state;
    ok(cuMemAlloc(&device, 65536));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemGetHandleForAddressRange(NULL, device, 65536, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemGetHandleForAddressRange(&fd, device + 1, 65536, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    if (on_cuttle()) {
        CUmulticastObjectProp multicast = {.numDevices = 1, .size = vm_granule()};
        CUmemGenericAllocationHandle handle;

        assert_int_equal(seeds_attribute(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED), 0);
        gives(CUDA_ERROR_NOT_SUPPORTED, cuMemGetHandleForAddressRange(&fd, device, 65536, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
        assert_int_equal(seeds_attribute(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED), 0);
        gives(CUDA_ERROR_NOT_SUPPORTED, cuMulticastCreate(&handle, &multicast));
        assert_int_equal(seeds_attribute(CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED), 0);
        assert_int_equal(seeds_attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED), 0);
    }
    ok(cuMemFree(device));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_reserved_and_freed),
        cmocka_unit_test(addresses_are_aligned),
        cmocka_unit_test(an_address_is_a_hint),
        cmocka_unit_test(wrong_reservations_are_refused),
        cmocka_unit_test(wrong_memory_is_refused),
        cmocka_unit_test(granularity_is_reported),
        cmocka_unit_test(properties_come_back),
        cmocka_unit_test(mapped_memory_is_memory),
        cmocka_unit_test(asynchronous_copies_and_pitches),
        cmocka_unit_test(wrong_mappings_are_refused),
        cmocka_unit_test(memory_lives_while_it_is_mapped),
        cmocka_unit_test(one_memory_at_two_addresses),
        cmocka_unit_test(unmapping_waits_for_work),
        cmocka_unit_test(a_range_grows_and_shrinks),
        cmocka_unit_test(access_is_set_and_returned),
        cmocka_unit_test(what_may_be_read_only),
        cmocka_unit_test(pointers_are_known),
        cmocka_unit_test(memory_is_not_a_context_s),
        cmocka_unit_test(what_there_is_not),
        cmocka_unit_test(without_access_nothing_works),
    };
    void *state;
    CUdeviceptr address;

    if (with_context(&state) != 0)
        return 1;
    if (!vm_is_there()) { /* then no function works, and each returns an error */
        int refused = cuMemAddressReserve(&address, (size_t)2 << 20, 0, 0, 0) == CUDA_ERROR_NOT_SUPPORTED;

        print_message("no virtual memory management\n");
        return refused ? 0 : 1;
    }
    without_context(&state);
    return cmocka_run_group_tests(tests, with_context, without_context);
}
