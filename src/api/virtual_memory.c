/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Virtual Memory Management. No context need be current, and a kernel that failed in the current one has no effect: addresses
 * belong to the process, memory to a device.
 * Every function: NOT_INITIALIZED, DEINITIALIZED, NOT_PERMITTED in a host function of a stream; functions of addresses and mappings also
 * NOT_SUPPORTED if CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED is 0 on all devices (handles may still exist, for sparse
 * arrays). Null pointers and nonzero flags give INVALID_VALUE. The functions of multicast objects are missing, since no device supports
 * them. */
#include "entry_points.h"

#include "core/command/command.h"
#include "core/device/context.h"
#include "core/graph/capture_state.h"
#include "core/share/dma_buf.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "core/device/device.h"
#include "core/vmm/vmm.h"

#include <unistd.h>

#define CT_CHANNEL "memory"

/* Checks that the calling thread may call the driver. */
static CUresult check_call(void)
{
    struct ct_context *context;
    CUresult r = ct_context_failed_or_null(&context);

    if (r == CUDA_SUCCESS)
        ct_context_release(context);
    return r;
}

static CUresult check_arguments(bool is_valid, const char *function)
{
    return is_valid ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_INVALID_VALUE, "invalid arguments of %s", function);
}

/* Checks both the call and the arguments. */
static CUresult enter(bool is_valid, const char *function)
{
    CUresult r = check_call();

    return r == CUDA_SUCCESS ? check_arguments(is_valid, function) : r;
}

/* The same for functions of addresses and mappings. */
static CUresult enter_mappings(bool is_valid, const char *function)
{
    CUresult r = check_call();

    if (r == CUDA_SUCCESS && !ct_vmm_is_supported())
        r = ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s: no device supports mappings in reservations", function);
    return r == CUDA_SUCCESS ? check_arguments(is_valid, function) : r;
}

/* cuMemAddressReserve. Reserves `size` bytes of addresses, a multiple of the granularity of mappings, at a multiple of that and of
 * `alignment` (a power of two, or 0), and at `addr` if that is not 0 and the range is free. INVALID_VALUE: also an `addr` that is not
 * such a multiple; OUT_OF_MEMORY: no such range is free. */
CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags)
{
    uint64_t address;
    CUresult r = enter_mappings(ptr && !flags, "cuMemAddressReserve");

    if (r == CUDA_SUCCESS)
        r = ct_vmm_reserve(size, alignment, addr, &address);
    if (r == CUDA_SUCCESS)
        *ptr = address;
    return r;
}

/* cuMemAddressFree. INVALID_VALUE: the range is not a reservation, or still contains a mapping. */
CUresult CUDAAPI cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    CUresult r = enter_mappings(true, "cuMemAddressFree");

    return r == CUDA_SUCCESS ? ct_vmm_unreserve(ptr, size) : r;
}

/* cuMemCreate. Allocates physical memory of a device; the size in bytes is a multiple of the granularity. A request for compression is
 * ignored, which cuMemGetAllocationPropertiesFromHandle reports. CU_MEM_CREATE_USAGE_TILE_POOL: for cuMemMapArrayAsync only.
 * INVALID_VALUE: also handles of Windows; INVALID_DEVICE, OUT_OF_MEMORY; NOT_SUPPORTED: memory of the host, fabric handles, GPUDirect
 * RDMA, tile pools if CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED is 0, and shareable tile pools. */
CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop, unsigned long long flags)
{
    CUresult r = enter(handle && prop && !flags, "cuMemCreate");

    return r == CUDA_SUCCESS ? ct_vmm_create(prop, size, handle) : r;
}

/* cuMemRelease. The memory is freed when it is also no longer mapped. INVALID_VALUE: the handle does not exist, or was released. */
CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CUresult r = enter(true, "cuMemRelease");

    return r == CUDA_SUCCESS ? ct_vmm_release(handle) : r;
}

/* cuMemMap. Maps the first `size` bytes of the memory at `ptr`, inside of one reservation where nothing is mapped; both are multiples of
 * the granularity, and `offset` is 0. No device has access before cuMemSetAccess. INVALID_VALUE, OUT_OF_MEMORY; NOT_SUPPORTED: another
 * offset, or a size that exceeds the memory or is not a multiple. */
CUresult CUDAAPI cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    CUresult r = enter_mappings(ptr && !flags, "cuMemMap");

    return r == CUDA_SUCCESS ? ct_vmm_map(ptr, size, offset, handle) : r;
}

/* cuMemMapArrayAsync. Binds memory of a tile pool to tiles of sparse arrays, or unbinds it, in stream order; arrays with deferred
 * mapping are bound as a whole. Offsets and extents are whole tiles, except at the far end of a level. If an entry is invalid, none
 * takes effect. INVALID_HANDLE: an array or the stream does not exist; INVALID_VALUE: all other errors; OUT_OF_MEMORY. */
CUresult CUDAAPI cuMemMapArrayAsync(CUarrayMapInfo *mapInfoList, unsigned int count, CUstream hStream)
{
    struct ct_tile_work work;
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup_uncaptured(hStream, "cuMemMapArrayAsync", &stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = mapInfoList && count ? ct_tile_work_init(&work, stream->context->device, mapInfoList, count)
                             : ct_fail(CUDA_ERROR_INVALID_VALUE, "mapInfoList is NULL or empty");
    if (r == CUDA_SUCCESS) {
        r = ct_stream_enqueue(stream, &(struct ct_command){.kind = CT_COMMAND_TILES_BIND, .tiles_bind = &work});
        ct_tile_work_finish(&work);
    }
    ct_stream_release(stream);
    return r;
}

/* cuMemUnmap. Unmaps one or several adjacent mappings; waits for all work first. INVALID_VALUE: the range contains a part of a mapping,
 * or a gap. */
CUresult CUDAAPI cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    CUresult r = enter_mappings(true, "cuMemUnmap");

    return r == CUDA_SUCCESS ? ct_vmm_unmap(ptr, size) : r;
}

/* cuMemSetAccess. Sets the access of devices to one or several adjacent mappings. INVALID_VALUE: also if the device does not exist;
 * INVALID_DEVICE: the memory belongs to another device; NOT_SUPPORTED: access of the host. */
CUresult CUDAAPI cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
    CUresult r = enter_mappings(desc && count, "cuMemSetAccess");

    return r == CUDA_SUCCESS ? ct_vmm_set_access(ptr, size, desc, count) : r;
}

/* cuMemGetAccess. The CUmemAccess_flags of one location at a mapped address; the host has no access. INVALID_VALUE; INVALID_DEVICE: the
 * location does not exist. */
CUresult CUDAAPI cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
    struct ct_vmm_mapping_info mapping;
    struct ct_device *device;
    CUresult r = enter_mappings(flags && location, "cuMemGetAccess");
    bool is_device;

    if (r != CUDA_SUCCESS)
        return r;
    is_device = location->type == CU_MEM_LOCATION_TYPE_DEVICE;
    if (!is_device && location->type != CU_MEM_LOCATION_TYPE_HOST && location->type != CU_MEM_LOCATION_TYPE_HOST_NUMA)
        return ct_fail(CUDA_ERROR_INVALID_DEVICE, "memory location type %d does not exist", (int)location->type);
    if ((is_device && (r = ct_device_lookup(location->id, &device)) != CUDA_SUCCESS) ||
        (r = ct_vmm_mapping_at(ptr, &mapping)) != CUDA_SUCCESS)
        return r;
    *flags = is_device && mapping.device == location->id ? mapping.access : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

/* cuMemExportToShareableHandle. Stores a new file descriptor of the memory in shareableHandle (an int); the caller closes it. Other
 * processes can import it, and so can Vulkan if the memory was allocated by Vulkan. INVALID_VALUE: the handle was not created for that
 * type, or was imported. */
CUresult CUDAAPI cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
                                              CUmemAllocationHandleType handleType, unsigned long long flags)
{
    CUresult r = enter_mappings(shareableHandle && !flags, "cuMemExportToShareableHandle");

    if (r == CUDA_SUCCESS && handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "memory cannot be shared by handles of type 0x%x", (unsigned)handleType);
    return r == CUDA_SUCCESS ? ct_vmm_export(handle, shareableHandle) : r;
}

/* cuMemImportFromShareableHandle. osHandle is the file descriptor itself, which the caller continues to own. INVALID_VALUE: it does not
 * refer to memory. */
CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                                CUmemAllocationHandleType shHandleType)
{
    intptr_t fd = (intptr_t)osHandle;
    CUresult r = enter_mappings(handle != NULL, "cuMemImportFromShareableHandle");

    if (r == CUDA_SUCCESS)
        r = ct_vmm_check_handle_type(shHandleType);
    if (r == CUDA_SUCCESS && (fd < 0 || fd > INT32_MAX))
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "file descriptor %lld", (long long)fd);
    return r == CUDA_SUCCESS ? ct_vmm_import((int)fd, handle) : r;
}

/* cuMemGetAllocationGranularity. In bytes; minimum and recommended are the same. INVALID_VALUE, INVALID_DEVICE. */
CUresult CUDAAPI cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                               CUmemAllocationGranularity_flags option)
{
    bool known = option == CU_MEM_ALLOC_GRANULARITY_MINIMUM || option == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
    struct ct_device *device;
    CUresult r = enter(granularity && prop && known, "cuMemGetAllocationGranularity");

    if (r == CUDA_SUCCESS)
        r = ct_vmm_check_properties(prop, &device);
    if (r == CUDA_SUCCESS)
        *granularity = CT_VMM_GRANULARITY;
    return r;
}

/* cuMemGetAllocationPropertiesFromHandle. INVALID_VALUE: the handle does not exist. */
CUresult CUDAAPI cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
    CUresult r = enter(prop != NULL, "cuMemGetAllocationPropertiesFromHandle");

    return r == CUDA_SUCCESS ? ct_vmm_properties(handle, prop) : r;
}

/* cuMemRetainAllocationHandle. Returns the handle whose memory is mapped at addr, even if it was released; the result needs its own
 * cuMemRelease. INVALID_VALUE: nothing is mapped there. */
CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    CUresult r = enter_mappings(handle != NULL, "cuMemRetainAllocationHandle");

    return r == CUDA_SUCCESS ? ct_vmm_retain_at((uint64_t)(uintptr_t)addr, handle) : r;
}

/* cuMemGetHandleForAddressRange (Driver API: Memory Management). Returns a dma-buf of `size` bytes at dptr, as a new file descriptor in
 * *handle. Both are multiples of the host's page size; the memory lives as long as the dma-buf. INVALID_VALUE: unknown type or flags,
 * not whole pages, not device memory, or not in one allocation; NOT_SUPPORTED: CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED is 0, the range
 * does not start at the beginning of a driver allocation (a dma-buf has no offset), or a mapping by PCIe's base address registers is
 * requested. */
CUresult CUDAAPI cuMemGetHandleForAddressRange(void *handle, CUdeviceptr dptr, size_t size, CUmemRangeHandleType handleType,
                                               unsigned long long flags)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    bool is_valid = handle && dptr && size && !((dptr | size) & (page - 1)) && handleType == CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD &&
                    !(flags & ~(unsigned long long)CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE);
    struct ct_context *context;
    CUresult r = ct_context_current(&context);
    int fd;

    if (r != CUDA_SUCCESS)
        return r;
    ct_context_release(context);
    if ((r = check_arguments(is_valid, "cuMemGetHandleForAddressRange")) != CUDA_SUCCESS)
        return r;
    if (flags)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "dma-bufs that are mapped by PCIe's base address registers are not supported");
    r = ct_dma_buf_export(dptr, size, &fd);
    if (r == CUDA_SUCCESS)
        *(int *)handle = fd;
    return r;
}
