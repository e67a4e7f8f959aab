/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Stream Ordered Memory Allocator, and what Device Management says of a device's pools.
 * Every function: NOT_INITIALIZED; those that take a stream also what cuStreamSynchronize gives for it. Sizes are in bytes. Pools give
 * device memory; those on the host or of managed memory are NOT_SUPPORTED. */
#include "entry_points.h"

#include "core/device/context.h"
#include "core/base/log.h"
#include "core/command/command.h"
#include "core/base/process.h"
#include "core/device/device.h"
#include "core/vmm/vmm.h"

#define CT_CHANNEL "memory"

static CUresult allocate(struct ct_stream *stream, const struct ct_pool_allocation *allocation)
{
    return ct_stream_enqueue(stream, &(struct ct_command){.kind = CT_COMMAND_MEMORY_ALLOC, .memory_alloc = *allocation});
}

/* cuMemAllocFromPoolAsync. Memory of the pool that hStream may use from now on; others when they are ordered behind it. Aligned to 512
 * bytes, not cleared; 0 bytes are at 0. INVALID_VALUE: dptr is NULL, no such pool, one of another process; OUT_OF_MEMORY. */
CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
    struct ct_memory_pool *found = NULL;
    struct ct_stream *stream;
    uint64_t address;
    CUresult r = ct_stream_lookup(hStream, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = dptr ? ct_memory_pool_lookup(pool, &found) : ct_fail(CUDA_ERROR_INVALID_VALUE, "dptr is NULL");
    if (r == CUDA_SUCCESS)
        r = allocate(stream, &(struct ct_pool_allocation){found, bytesize, &address});
    ct_memory_pool_release(found);
    ct_stream_release(stream);
    if (r == CUDA_SUCCESS)
        *dptr = address;
    return r;
}

/* cuMemAllocAsync: cuMemAllocFromPoolAsync from the current pool of the stream's device. */
CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    struct ct_stream *stream;
    uint64_t address;
    CUresult r = ct_stream_lookup(hStream, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = dptr ? allocate(stream, &(struct ct_pool_allocation){NULL, bytesize, &address}) : ct_fail(CUDA_ERROR_INVALID_VALUE, "dptr is NULL");
    ct_stream_release(stream);
    if (r == CUDA_SUCCESS)
        *dptr = address;
    return r;
}

/* cuMemFreeAsync. The memory goes when hStream comes to this place; the pointer is unknown from now on. Memory of cuMemAlloc may be freed
 * in this way, too; 0 is taken and does nothing. INVALID_VALUE: not the start of an allocation of device memory; NOT_SUPPORTED: of managed
 * memory. */
CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(hStream, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_stream_enqueue(stream, &(struct ct_command){.kind = CT_COMMAND_MEMORY_FREE, .memory_free = dptr});
    ct_stream_release(stream);
    return r;
}

/* cuMemPoolTrimTo. Gives memory back that no allocation is in, as long as minBytesToKeep stay. INVALID_VALUE: no such pool. */
CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
    struct ct_memory_pool *found;
    CUresult r = ct_memory_pool_lookup(pool, &found);

    if (r != CUDA_SUCCESS)
        return r;
    ct_memory_pool_trim(found, minBytesToKeep);
    ct_memory_pool_release(found);
    return CUDA_SUCCESS;
}

/* cuMemPoolSetAttribute. The reuse policies (int), RELEASE_THRESHOLD (cuuint64_t, bytes), and the high marks, which can only be set to 0
 * and are what they mark from then on. INVALID_VALUE: no such pool, value is NULL, what cannot be set. */
CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    struct ct_memory_pool *found;
    CUresult r = ct_memory_pool_lookup(pool, &found);

    if (r != CUDA_SUCCESS)
        return r;
    r = value ? ct_memory_pool_set_attribute(found, attr, value) : ct_fail(CUDA_ERROR_INVALID_VALUE, "value is NULL");
    ct_memory_pool_release(found);
    return r;
}

/* cuMemPoolGetAttribute. Policies are int, the rest cuuint64_t in bytes. INVALID_VALUE: no such pool or attribute, value is NULL. */
CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    struct ct_memory_pool *found;
    CUresult r = ct_memory_pool_lookup(pool, &found);

    if (r != CUDA_SUCCESS)
        return r;
    r = value ? ct_memory_pool_get_attribute(found, attr, value) : ct_fail(CUDA_ERROR_INVALID_VALUE, "value is NULL");
    ct_memory_pool_release(found);
    return r;
}

/* cuMemPoolSetAccess. A device reads and writes its own pools, and those of no other. INVALID_VALUE: no such pool, map is NULL, anything
 * else; INVALID_DEVICE: no such device, or none for the pool's own; NOT_SUPPORTED: reading alone, and what is no device. */
CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    struct ct_memory_pool *found;
    CUresult r = ct_memory_pool_lookup(pool, &found);

    if (r != CUDA_SUCCESS)
        return r;
    r = map || count == 0 ? ct_memory_pool_set_access(found, map, count) : ct_fail(CUDA_ERROR_INVALID_VALUE, "map is NULL");
    ct_memory_pool_release(found);
    return r;
}

/* cuMemPoolGetAccess. The host has none. INVALID_VALUE: no such pool, a NULL pointer, a location that there is not. */
CUresult CUDAAPI cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location)
{
    struct ct_memory_pool *found;
    CUresult r = ct_memory_pool_lookup(memPool, &found);

    if (r != CUDA_SUCCESS)
        return r;
    if (flags && location)
        r = ct_memory_pool_get_access(found, location, flags);
    else
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "flags %p, location %p", (void *)flags, (void *)location);
    ct_memory_pool_release(found);
    return r;
}

/* cuMemPoolCreate. A pool on a device; maxSize 0 stands for all of its memory. INVALID_VALUE: a NULL pointer, properties that make no
 * sense, no such device; NOT_SUPPORTED: such as no device here has; NOT_PERMITTED: in a host function of a stream; OUT_OF_MEMORY: also a
 * maxSize beyond what the device has. */
CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    struct ct_context *context;
    CUresult r = ct_context_failed_or_null(&context);

    if (r != CUDA_SUCCESS)
        return r;
    ct_context_release(context);
    if (!pool || !poolProps)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pool %p, poolProps %p", (void *)pool, (const void *)poolProps);
    return ct_memory_pool_create(poolProps, pool);
}

/* cuMemPoolDestroy. Allocations stay; the rest goes with the last of them. If it was a device's current pool, the default one is again.
 * INVALID_VALUE: no such pool, a default pool. */
CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool)
{
    struct ct_memory_pool *found;
    CUresult r = ct_memory_pool_lookup(pool, &found);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_memory_pool_destroy(found);
    ct_memory_pool_release(found);
    return r;
}

/* ---- of a device ---- */

/* cuDeviceGetDefaultMemPool. INVALID_VALUE: pool_out is NULL; INVALID_DEVICE. */
CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
    struct ct_device *device;
    CUresult r = ct_device_lookup(dev, &device);

    if (r != CUDA_SUCCESS)
        return r;
    if (!pool_out)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pool_out is NULL");
    *pool_out = ct_memory_pool_default(device);
    return CUDA_SUCCESS;
}

/* cuDeviceGetMemPool. The pool that cuMemAllocAsync takes memory from. INVALID_VALUE: pool is NULL, no such device. */
CUresult CUDAAPI cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    struct ct_device *device;
    CUresult r = ct_memory_pool_device(dev, &device);

    if (r != CUDA_SUCCESS)
        return r;
    if (!pool)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pool is NULL");
    *pool = ct_memory_pool_current(device);
    return CUDA_SUCCESS;
}

/* cuDeviceSetMemPool. INVALID_VALUE: no such pool, or one of another device; no such device. */
CUresult CUDAAPI cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
    struct ct_memory_pool *found;
    struct ct_device *device;
    CUresult r = ct_memory_pool_device(dev, &device);

    if (r == CUDA_SUCCESS)
        r = ct_memory_pool_lookup(pool, &found);
    if (r != CUDA_SUCCESS)
        return r;
    r = ct_memory_pool_set_current(device, found);
    ct_memory_pool_release(found);
    return r;
}

/* ---- other processes ---- */

/* cuMemPoolExportToShareableHandle. A new file descriptor of the pool, at handle_out (an int); the caller closes it. INVALID_VALUE: no such
 * pool, not made for that type, imported, handle_out is NULL, nonzero flags; OUT_OF_MEMORY: no file descriptor is left. */
CUresult CUDAAPI cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool, CUmemAllocationHandleType handleType,
                                                  unsigned long long flags)
{
    struct ct_memory_pool *found;
    CUresult r = ct_memory_pool_lookup(pool, &found);

    if (r != CUDA_SUCCESS)
        return r;
    if (!handle_out || flags)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "handle_out %p, flags 0x%llx", handle_out, flags);
    if (r == CUDA_SUCCESS && handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "no pool is made to be shared by type 0x%x", (unsigned)handleType);
    if (r == CUDA_SUCCESS)
        r = ct_memory_pool_export(found, handle_out);
    ct_memory_pool_release(found);
    return r;
}

/* cuMemPoolImportFromShareableHandle. `handle` is the file descriptor itself, which stays the caller's. Nothing can be allocated in such a
 * pool, and no device has it as its current one. INVALID_VALUE: the descriptor is of no pool, pool_out is NULL, nonzero flags;
 * OUT_OF_MEMORY. */
CUresult CUDAAPI cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle, CUmemAllocationHandleType handleType,
                                                    unsigned long long flags)
{
    intptr_t fd = (intptr_t)handle;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (!pool_out || flags || fd < 0 || fd > INT32_MAX)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pool_out %p, file descriptor %lld, flags 0x%llx", (void *)pool_out, (long long)fd, flags);
    r = ct_vmm_check_handle_type(handleType);
    return r == CUDA_SUCCESS ? ct_memory_pool_import((int)fd, pool_out) : r;
}

/* cuMemPoolExportPointer. What another process needs to import memory of a pool that was exported. INVALID_VALUE: ptr is not the
 * beginning of such, shareData_out is NULL; OUT_OF_MEMORY: also of file descriptors, or of threads to hand it out. */
CUresult CUDAAPI cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    return shareData_out ? ct_memory_pool_export_pointer(ptr, shareData_out) : ct_fail(CUDA_ERROR_INVALID_VALUE, "shareData_out is NULL");
}

/* cuMemPoolImportPointer. The memory in this process, until it is freed here, once, before its owner frees it; imported again it is the same
 * pointer. INVALID_VALUE: the pool is not imported or not that of the pointer, a NULL pointer; INVALID_HANDLE: the owner has ended, or freed
 * the memory; INVALID_CONTEXT; OPERATING_SYSTEM: the owner does not answer; OUT_OF_MEMORY: also of addresses and file descriptors. */
CUresult CUDAAPI cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData)
{
    struct ct_memory_pool *found = NULL;
    struct ct_context *context;
    uint64_t address;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    if (ptr_out && shareData)
        r = ct_memory_pool_lookup(pool, &found);
    else
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "ptr_out %p, shareData %p", (void *)ptr_out, (void *)shareData);
    if (r == CUDA_SUCCESS)
        r = ct_memory_pool_import_pointer(found, context, shareData, &address);
    ct_memory_pool_release(found);
    ct_context_release(context);
    if (r == CUDA_SUCCESS)
        *ptr_out = address;
    return r;
}

/* ---- the same by location ---- */

/* Pools exist for pinned memory of devices. */
static CUresult check_kind(const CUmemLocation *location, CUmemAllocationType type)
{
    struct ct_device *device;
    bool managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (!location || (!managed && type != CU_MEM_ALLOCATION_TYPE_PINNED))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "location %p, allocations of type %d", (const void *)location, (int)type);
    switch (location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return managed ? ct_fail(CUDA_ERROR_NOT_SUPPORTED, "pools of managed memory") : ct_memory_pool_device(location->id, &device);
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "memory pools on the host");
    default:
        break;
    }
    if (managed && location->type == CU_MEM_LOCATION_TYPE_INVALID) /* which is CU_MEM_LOCATION_TYPE_NONE, too */
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "pools of managed memory");
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "a memory pool at location %d", (int)location->type);
}

/* cuMemGetDefaultMemPool. INVALID_VALUE: a NULL pointer, no such location, device or type; NOT_SUPPORTED. */
CUresult CUDAAPI cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type)
{
    CUresult r = check_kind(location, type);

    return r == CUDA_SUCCESS ? cuDeviceGetDefaultMemPool(pool_out, location->id) : r;
}

/* cuMemGetMemPool. As cuMemGetDefaultMemPool, the current pool. */
CUresult CUDAAPI cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    CUresult r = check_kind(location, type);

    return r == CUDA_SUCCESS ? cuDeviceGetMemPool(pool, location->id) : r;
}

/* cuMemSetMemPool. INVALID_VALUE: no such pool, location, device or type, or the pool is not there; NOT_SUPPORTED. */
CUresult CUDAAPI cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    CUresult r = check_kind(location, type);

    return r == CUDA_SUCCESS ? cuDeviceSetMemPool(location->id, pool) : r;
}
