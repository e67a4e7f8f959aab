/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Virtual Memory Management. No context need be current, and it does not matter whether a kernel failed in that one: addresses
 * are the process's, memory is a device's.
 * Every function: NOT_INITIALIZED, DEINITIALIZED, NOT_PERMITTED in a host function of a stream; those of addresses and mappings
 * NOT_SUPPORTED where CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED is 0 of all devices (handles there may be for sparse arrays).
 * INVALID_VALUE is of null pointers and nonzero flags, too. The functions of multicast objects are not here: no device of ours has such. */
#include "entry_points.h"

#include "core/command/command.h"
#include "core/device/context.h"
#include "core/share/dma_buf.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "core/device/device.h"
#include "core/vmm/vmm.h"

#include <unistd.h>

#define CT_CHANNEL "memory"

/* Whether the calling thread may call. */
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
    return is_valid ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_INVALID_VALUE, "arguments of %s", function);
}

/* Both. */
static CUresult enter(bool is_valid, const char *function)
{
    CUresult r = check_call();

    return r == CUDA_SUCCESS ? check_arguments(is_valid, function) : r;
}

/* The same of functions of addresses and mappings. */
static CUresult enter_mappings(bool is_valid, const char *function)
{
    CUresult r = check_call();

    if (r == CUDA_SUCCESS && !ct_vmm_is_there())
        r = ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s: no device can map memory at addresses that were reserved", function);
    return r == CUDA_SUCCESS ? check_arguments(is_valid, function) : r;
}

/* cuMemAddressReserve. Addresses of `size` bytes, a multiple of the granularity of mappings, at a multiple of that and of `alignment` (a
 * power of two, or 0), at `addr` if that is not 0 and free. INVALID_VALUE: also an `addr` that is no such multiple; OUT_OF_MEMORY: no such
 * addresses are free. */
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

/* cuMemAddressFree. INVALID_VALUE: not what was reserved, or something is still mapped there. */
CUresult CUDAAPI cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    CUresult r = enter_mappings(true, "cuMemAddressFree");

    return r == CUDA_SUCCESS ? ct_vmm_unreserve(ptr, size) : r;
}

/* cuMemCreate. Memory of a device, of a size in bytes that is a multiple of the granularity. Compression is not to be had and not given;
 * cuMemGetAllocationPropertiesFromHandle says so. CU_MEM_CREATE_USAGE_TILE_POOL: for cuMemMapArrayAsync alone.
 * INVALID_VALUE: also handles of Windows; INVALID_DEVICE, OUT_OF_MEMORY; NOT_SUPPORTED: memory of the host, handles of fabrics, GPUDirect
 * RDMA, tile pools where CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED is 0 or which are to be shared. */
CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop, unsigned long long flags)
{
    CUresult r = enter(handle && prop && !flags, "cuMemCreate");

    return r == CUDA_SUCCESS ? ct_vmm_create(prop, size, handle) : r;
}

/* cuMemRelease. The memory goes when nothing of it is mapped any more, either. INVALID_VALUE: no such handle, or released already. */
CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CUresult r = enter(true, "cuMemRelease");

    return r == CUDA_SUCCESS ? ct_vmm_release(handle) : r;
}

/* cuMemMap. Puts the first `size` bytes of the memory at `ptr`, inside of one reservation where nothing is mapped; both are multiples of
 * the granularity, `offset` is 0. Nobody has access until cuMemSetAccess. INVALID_VALUE, OUT_OF_MEMORY; NOT_SUPPORTED: another offset, more
 * than there is of the memory, or other than multiples. */
CUresult CUDAAPI cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    CUresult r = enter_mappings(ptr && !flags, "cuMemMap");

    return r == CUDA_SUCCESS ? ct_vmm_map(ptr, size, offset, handle) : r;
}

/* cuMemMapArrayAsync. Gives tiles of sparse arrays memory of a tile pool, or takes it, in the order of the stream; of arrays with deferred
 * mapping all at once. Offsets and extents are whole tiles, except at the far end of a level. An entry that is not valid leaves all
 * undone. INVALID_HANDLE: an array or the stream; INVALID_VALUE: all else; OUT_OF_MEMORY. */
CUresult CUDAAPI cuMemMapArrayAsync(CUarrayMapInfo *mapInfoList, unsigned int count, CUstream hStream)
{
    struct ct_tile_work work;
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(hStream, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = mapInfoList && count ? ct_tile_work_init(&work, stream->context->device, mapInfoList, count)
                             : ct_fail(CUDA_ERROR_INVALID_VALUE, "an empty list");
    if (r == CUDA_SUCCESS) {
        r = ct_stream_enqueue(stream, &(struct ct_command){.kind = CT_COMMAND_TILES_BIND, .tiles_bind = &work});
        ct_tile_work_finish(&work);
    }
    ct_stream_release(stream);
    return r;
}

/* cuMemUnmap. All of one or several mappings that follow each other; waits for all work first. INVALID_VALUE: a part of one, or a gap. */
CUresult CUDAAPI cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    CUresult r = enter_mappings(true, "cuMemUnmap");

    return r == CUDA_SUCCESS ? ct_vmm_unmap(ptr, size) : r;
}

/* cuMemSetAccess. What devices may do with all of one or several mappings that follow each other. INVALID_VALUE: also no
 * such device; INVALID_DEVICE: not the one whose memory it is; NOT_SUPPORTED: for the host. */
CUresult CUDAAPI cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
    CUresult r = enter_mappings(desc && count, "cuMemSetAccess");

    return r == CUDA_SUCCESS ? ct_vmm_set_access(ptr, size, desc, count) : r;
}

/* cuMemGetAccess. CUmemAccess_flags of one location at a mapped address; the host has none. INVALID_VALUE; INVALID_DEVICE: no such
 * location. */
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
        return ct_fail(CUDA_ERROR_INVALID_DEVICE, "memory location type %d", (int)location->type);
    if ((is_device && (r = ct_device_lookup(location->id, &device)) != CUDA_SUCCESS) ||
        (r = ct_vmm_mapping_at(ptr, &mapping)) != CUDA_SUCCESS)
        return r;
    *flags = is_device && mapping.device == location->id ? mapping.access : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

/* cuMemExportToShareableHandle. A new file descriptor of the memory, at shareableHandle (an int); the caller closes it. Other processes
 * import it, and so does Vulkan where the memory is Vulkan's. INVALID_VALUE: the handle was not made for that type, or was imported. */
CUresult CUDAAPI cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
                                              CUmemAllocationHandleType handleType, unsigned long long flags)
{
    CUresult r = enter_mappings(shareableHandle && !flags, "cuMemExportToShareableHandle");

    if (r == CUDA_SUCCESS && handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "no memory is made to be shared by type 0x%x", (unsigned)handleType);
    return r == CUDA_SUCCESS ? ct_vmm_export(handle, shareableHandle) : r;
}

/* cuMemImportFromShareableHandle. osHandle is the file descriptor itself, which stays the caller's. INVALID_VALUE: it is not of memory. */
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

/* cuMemGetAllocationGranularity. Bytes; minimum and recommended are the same. INVALID_VALUE, INVALID_DEVICE. */
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

/* cuMemGetAllocationPropertiesFromHandle. INVALID_VALUE: no such handle. */
CUresult CUDAAPI cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
    CUresult r = enter(prop != NULL, "cuMemGetAllocationPropertiesFromHandle");

    return r == CUDA_SUCCESS ? ct_vmm_properties(handle, prop) : r;
}

/* cuMemRetainAllocationHandle. The handle whose memory is mapped at addr, also if it was released; needs a cuMemRelease of its own.
 * INVALID_VALUE: nothing is mapped there. */
CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    CUresult r = enter_mappings(handle != NULL, "cuMemRetainAllocationHandle");

    return r == CUDA_SUCCESS ? ct_vmm_retain_at((uint64_t)(uintptr_t)addr, handle) : r;
}

/* cuMemGetHandleForAddressRange (Driver API: Memory Management). A dma-buf, as a new file descriptor in *handle, of `size` bytes at dptr,
 * both multiples of the host's page size; the memory lives as long as the dma-buf. INVALID_VALUE: no such type or flags, not whole pages, no
 * memory of a device, or not in one allocation; NOT_SUPPORTED: CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED is 0, the bytes are not the
 * first that the driver allocated at once (a dma-buf has no offset), or a mapping by PCIe's base address registers is asked for. */
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
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "dma-bufs that are mapped by PCIe's base address registers");
    r = ct_dma_buf_export(dptr, size, &fd);
    if (r == CUDA_SUCCESS)
        *(int *)handle = fd;
    return r;
}
