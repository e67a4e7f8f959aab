/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of virtual memory management, which run with NVIDIA's own driver, too. */
#ifndef CUTTLE_TESTS_MEMORY_VIRTUAL_MEMORY_H
#define CUTTLE_TESTS_MEMORY_VIRTUAL_MEMORY_H

#include "seeds.h"

/* The manual lists the errors of a function, but seldom their causes. With our library `call` must return `code`; another driver must fail,
 * too, and its code is printed if it differs. */
#define refuses(code, call)                                                                                                                \
    do {                                                                                                                                   \
        CUresult refuses_got = (call);                                                                                                     \
        if (refuses_got != (code))                                                                                                         \
            print_message("%s: %s, not %s\n", #call, api_error_name(refuses_got), api_error_name(code));                                   \
        if (on_cuttle())                                                                                                                   \
            assert_int_equal(refuses_got, code);                                                                                           \
        assert_int_not_equal(refuses_got, CUDA_SUCCESS);                                                                                   \
    } while (0)

static inline CUmemAllocationProp vm_properties(void)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};

    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    ok(cuCtxGetDevice(&properties.location.id));
    return properties;
}

static inline size_t vm_granule(void)
{
    CUmemAllocationProp properties = vm_properties();
    size_t granule = 0;

    ok(cuMemGetAllocationGranularity(&granule, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    return granule;
}

static inline CUmemGenericAllocationHandle vm_create(size_t granules)
{
    CUmemAllocationProp properties = vm_properties();
    CUmemGenericAllocationHandle handle = 0;

    ok(cuMemCreate(&handle, granules * vm_granule(), &properties, 0));
    return handle;
}

static inline CUresult vm_access(CUdeviceptr at, size_t size, CUmemAccess_flags flags)
{
    CUmemAccessDesc desc = {.location = vm_properties().location, .flags = flags};

    return cuMemSetAccess(at, size, &desc, 1);
}

/* Whether the device supports virtual memory; the attribute must be correct. */
static inline int vm_is_there(void)
{
    return seeds_attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 1;
}

/* A reservation with handles of one granule each, mapped and accessible. */
struct vm_range {
    CUdeviceptr start;
    size_t granule, size;
};

static inline struct vm_range vm_range_make(size_t granules)
{
    struct vm_range range = {.granule = vm_granule()};

    range.size = granules * range.granule;
    ok(cuMemAddressReserve(&range.start, range.size, 0, 0, 0));
    for (size_t i = 0; i < granules; i++) {
        CUmemGenericAllocationHandle handle = vm_create(1);

        ok(cuMemMap(range.start + i * range.granule, range.granule, 0, handle, 0));
        ok(cuMemRelease(handle));
    }
    ok(vm_access(range.start, range.size, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    return range;
}

static inline void vm_range_free(const struct vm_range *range)
{
    ok(cuMemUnmap(range->start, range->size));
    ok(cuMemAddressFree(range->start, range->size));
}

#endif
