/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that others can open. */
#include "selftest.h"

#include <stdint.h>
#include <unistd.h>

struct mapping {
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
};

static CUresult map(struct mapping *mapping, size_t bytes, CUdevice device)
{
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult r = cuMemAddressReserve(&mapping->address, bytes, 0, 0, 0);

    if (r == CUDA_SUCCESS)
        r = cuMemMap(mapping->address, bytes, 0, mapping->handle, 0);
    return r == CUDA_SUCCESS ? cuMemSetAccess(mapping->address, bytes, &access, 1) : r;
}

static CUresult unmap(const struct mapping *mapping, size_t bytes)
{
    CUresult r = cuMemUnmap(mapping->address, bytes);

    if (r == CUDA_SUCCESS)
        r = cuMemAddressFree(mapping->address, bytes);
    return r == CUDA_SUCCESS ? cuMemRelease(mapping->handle) : r;
}

/* Memory is exported as a file descriptor, and imported from it again: both mappings are the same memory. */
enum selftest_result selftest_sharing(struct selftest *test)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = test->device}};
    struct mapping made, imported;
    uint32_t value = 0;
    int supported, file = -1;
    size_t bytes;

    TRY(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, test->device));
    if (!supported) {
        selftest_say(test, "the driver shares no memory");
        return SELFTEST_ABSENT;
    }
    TRY(cuMemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    TRY(cuMemCreate(&made.handle, bytes, &prop, 0));
    TRY(cuMemExportToShareableHandle(&file, made.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    TRY(cuMemImportFromShareableHandle(&imported.handle, (void *)(uintptr_t)file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(file);
    TRY(map(&made, bytes, test->device));
    TRY(map(&imported, bytes, test->device));
    TRY(cuMemsetD32(made.address, 0x5e1f7e57, bytes / sizeof value));
    TRY(cuMemcpyDtoH(&value, imported.address + bytes - sizeof value, sizeof value));
    TRY(unmap(&imported, bytes));
    TRY(unmap(&made, bytes));
    selftest_say(test, "%zu KiB exported and imported", bytes >> 10);
    if (value == 0x5e1f7e57)
        return SELFTEST_PASSED;
    selftest_say(test, "; the import has 0x%x", value);
    return SELFTEST_FAILED;
}
