/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses on RADV, with Mesa's drm-shim in place of a GPU: nothing executes there, but the driver hands out its true addresses. On GFX9
 * and newer chips they are those of the host behind a mask, on GFX8 low ones. */
#include "../api/api_test.h"

#include "memory.h"
#include "process.h"

#include <stdbool.h>
#include <sys/mman.h>

#define RADV_MASK UINT64_C(0xffff800000000000)

static const struct ct_device_info *info(void)
{
    return &ct_process.devices[0].info;
}

/* The device address of a CUDA pointer, as the driver gave it. */
static uint64_t device_address(uint64_t pointer)
{
    struct ct_range range;

    ok(ct_address_find(pointer, 1, &range));
    return range.memory->address.v + range.memory_offset + (pointer - range.start);
}

static void is_masked(uint64_t pointer)
{
    assert_int_equal(device_address(pointer), pointer | info()->target.pointer_mask);
}

static void rule_of_the_chip(void **state)
{
    bool gfx8 = !strncmp(getenv("AMDGPU_GPU_ID"), "polaris", 7);
    int unified = 0, own_pointers = 0;

    (void)state;
    assert_int_equal(info()->address_rule, gfx8 ? CT_ADDRESS_CHOSEN : CT_ADDRESS_CHOSEN_MASK);
    assert_int_equal(info()->target.pointer_mask, gfx8 ? 0 : RADV_MASK);
    ok(cuDeviceGetAttribute(&unified, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 0));
    ok(cuDeviceGetAttribute(&own_pointers, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 0));
    assert_int_equal(unified, 1);
    assert_int_equal(own_pointers, !gfx8);
}

static void device_memory(void **state)
{
    static const size_t sizes[] = {100, 4096, 1 << 20, (4 << 20) + 1, 64 << 20};
    CUdeviceptr p[5];

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        ok(cuMemAlloc(&p[i], sizes[i]));
        assert_true(p[i] >= info()->arenas[0].first && p[i] < info()->arenas[0].end);
        is_masked(p[i]);
        is_masked(p[i] + sizes[i] - 1);
    }
    for (size_t i = 0; i < 5; i++)
        ok(cuMemFree(p[i]));
}

static void host_memory(void **state)
{
    static const size_t sizes[] = {100, 4097, 3 << 20, (8 << 20) + 4096};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CUdeviceptr device;
        char *host;

        ok(cuMemHostAlloc((void **)&host, sizes[i], 0));
        ok(cuMemHostGetDevicePointer(&device, host, 0));
        assert_int_equal(device, (uintptr_t)host);
        is_masked(device);
        is_masked(device + sizes[i] - 1);
        memset(host, 1, sizes[i]);
        ok(cuMemFreeHost(host));
    }
}

/* At its own pointer, whatever page that is; two registrations in one fragment of 2 MiB, too. */
static void registered_memory(void **state)
{
    const size_t size = 6 << 20;
    char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *ranges[] = {pages + 4096, pages + 3 * 4096 + 20, pages + (64 << 10)};
    static const size_t sizes[] = {4096, 5000, (5 << 20) + 300};
    CUdeviceptr device;

    (void)state;
    assert_ptr_not_equal(pages, MAP_FAILED);
    for (size_t i = 0; i < 3; i++)
        ok(cuMemHostRegister(ranges[i], sizes[i], CU_MEMHOSTREGISTER_DEVICEMAP));
    for (size_t i = 0; i < 3; i++) {
        ok(cuMemHostGetDevicePointer(&device, ranges[i], 0));
        is_masked(device);
        is_masked(device + sizes[i] - 1);
        if (info()->target.pointer_mask)
            assert_int_equal(device, (uintptr_t)ranges[i]);
    }
    for (size_t i = 0; i < 3; i++)
        ok(cuMemHostUnregister(ranges[i]));
    munmap(pages, size);
}

/* Addresses of mappings are where sparse buffers go; more than 4 GiB of them are several such. Nothing is bound: without hardware no
 * binding ever ends. */
static void mapped_memory(void **state)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    const size_t size = (size_t)5 << 30, granule = (size_t)2 << 20;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr start;
    int value = 0;

    (void)state;
    ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
    assert_int_equal(value, 1);
    ok(cuMemCreate(&handle, granule, &properties, 0));
    for (int i = 0; i < 3; i++) {
        ok(cuMemAddressReserve(&start, size, 0, 0, 0));
        assert_int_equal(start % granule, 0);
        ok(cuMemMap(start, granule, 0, handle, 0)); /* fails unless the driver gives what it is asked for */
        ok(cuMemMap(start + size - granule, granule, 0, handle, 0));
        ok(cuMemUnmap(start, granule));
        ok(cuMemUnmap(start + size - granule, granule));
        ok(cuMemAddressFree(start, size));
    }
    ok(cuMemRelease(handle));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_of_the_chip),
        cmocka_unit_test(device_memory),
        cmocka_unit_test(host_memory),
        cmocka_unit_test(registered_memory),
        cmocka_unit_test(mapped_memory),
    };

    if (!getenv("AMDGPU_GPU_ID"))
        return 77;
    return cmocka_run_group_tests(tests, with_context, without_context);
}
