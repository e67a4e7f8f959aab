/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Stream Ordered Memory Allocator, and the functions of Device Management for a device's pools.
 * Every function: NOT_INITIALIZED; functions with a stream also the errors of cuStreamSynchronize for it. Sizes are in bytes. Pools
 * provide device memory, memory of the host, or managed memory. */
#include "entry_points.h"

#include "core/device/context.h"
#include "core/base/log.h"
#include "core/command/command.h"
#include "core/graph/capture_calls.h"
#include "core/base/process.h"
#include "core/device/device.h"
#include "core/vmm/vmm.h"

#define CT_CHANNEL "memory"

static CUresult allocate(struct ct_stream *stream, const struct ct_pool_allocation *allocation)
{
    const struct ct_device *device = allocation->pool ? ct_memory_pool_device_of(allocation->pool) : stream->context->device;
    CUresult r;

    if (ct_stream_is_captured(stream) && allocation->pool && (r = ct_memory_pool_check_captured(allocation->pool)) != CUDA_SUCCESS)
        return r;
    if (ct_stream_is_captured(stream))
        return ct_capture_alloc(stream, device, allocation->size_bytes, allocation->out_address);
    if ((r = ct_capture_check_unsafe("cuMemAllocAsync")) != CUDA_SUCCESS)
        return r;
    return ct_stream_enqueue(stream, &(struct ct_command){.kind = CT_COMMAND_MEMORY_ALLOC, .memory_alloc = *allocation});
}

/* cuMemAllocFromPoolAsync. Allocates memory of the pool that later work in hStream may use; other streams must be ordered after it. The
 * memory is aligned to 512 bytes and not cleared; 0 bytes give address 0. In a captured stream the graph allocates memory of its own.
 * INVALID_VALUE: dptr is NULL, the pool does not exist, or it is
 * imported; OUT_OF_MEMORY. */
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

/* cuMemAllocAsync. As cuMemAllocFromPoolAsync with the current pool of the stream's device. */
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

/* cuMemFreeAsync. The memory is freed after all earlier work of hStream; the pointer is invalid at once. The function also frees memory
 * of cuMemAlloc; a dptr of 0 is a no-op. INVALID_VALUE: dptr is not the start of an allocation of device memory; NOT_SUPPORTED: managed
 * memory. */
CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(hStream, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (ct_stream_is_captured(stream))
        r = ct_capture_free(stream, dptr);
    else if ((r = ct_capture_check_unsafe("cuMemFreeAsync")) == CUDA_SUCCESS)
        r = ct_stream_enqueue(stream, &(struct ct_command){.kind = CT_COMMAND_MEMORY_FREE, .memory_free = dptr});
    ct_stream_release(stream);
    return r;
}

/* cuMemPoolTrimTo. Releases unused memory as long as at least minBytesToKeep remain. INVALID_VALUE: the pool does not exist. */
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

/* cuMemPoolSetAttribute. Sets a reuse policy (int), RELEASE_THRESHOLD (cuuint64_t, bytes), or a high watermark, which can only be reset
 * to its current value by setting 0. INVALID_VALUE: the pool does not exist, value is NULL, or the attribute cannot be set. */
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

/* cuMemPoolGetAttribute. Policies are int, the others cuuint64_t in bytes. INVALID_VALUE: the pool or the attribute does not exist, or
 * value is NULL. */
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

/* cuMemPoolSetAccess. A device can always access its own pools, and never those of another device; all can access managed memory. INVALID_VALUE:
 * the pool does not exist, map is NULL, or another access; INVALID_DEVICE: the device does not exist, or PROT_NONE for the pool's own device;
 * NOT_SUPPORTED: read-only access, access of the host to memory of a device, and removing the host's access to its own memory. */
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

/* cuMemPoolGetAccess. The host has no access to memory of a device. INVALID_VALUE: the pool or the location does not exist, or a null pointer. */
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

/* cuMemPoolCreate. Creates a pool on a device or on the host, or one of managed memory, which has no maxSize; a maxSize of 0 means all of its
 * memory. INVALID_VALUE: a null pointer, invalid properties, or the device does not exist; NOT_SUPPORTED: properties that no device supports;
 * NOT_PERMITTED: in a host function of a stream; OUT_OF_MEMORY: also if maxSize exceeds the device's memory. */
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

/* cuMemPoolDestroy. Allocations stay valid; the pool is freed with the last of them. If it was a device's current pool, the default pool
 * becomes current. INVALID_VALUE: the pool does not exist, or is a default pool. */
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

/* ---- pools of a device ---- */

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

/* cuDeviceGetMemPool. Returns the pool from which cuMemAllocAsync allocates. INVALID_VALUE: pool is NULL, or the device does not exist. */
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

/* cuDeviceSetMemPool. A pool of managed memory of the device becomes the current one of those. INVALID_VALUE: the pool or the device does not
 * exist, or the pool belongs to another device. */
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

/* ---- sharing between processes ---- */

/* cuMemPoolExportToShareableHandle. Stores a new file descriptor of the pool in handle_out (an int); the caller closes it.
 * INVALID_VALUE: the pool does not exist, was not created for that type, or is imported; handle_out is NULL; nonzero flags;
 * OUT_OF_MEMORY: no file descriptor is left. */
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
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "pools cannot be shared by handles of type 0x%x", (unsigned)handleType);
    if (r == CUDA_SUCCESS)
        r = ct_memory_pool_export(found, handle_out);
    ct_memory_pool_release(found);
    return r;
}

/* cuMemPoolImportFromShareableHandle. `handle` is the file descriptor itself, which the caller continues to own. Nothing can be
 * allocated in an imported pool, and it cannot be a device's current pool. INVALID_VALUE: the descriptor is not that of a pool, pool_out
 * is NULL, or nonzero flags; OUT_OF_MEMORY. */
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

/* cuMemPoolExportPointer. Returns the data with which another process can import memory of an exported pool. INVALID_VALUE: ptr is not
 * the start of such memory, or shareData_out is NULL; OUT_OF_MEMORY: also if no file descriptor or no thread for sending it is left. */
CUresult CUDAAPI cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    return shareData_out ? ct_memory_pool_export_pointer(ptr, shareData_out) : ct_fail(CUDA_ERROR_INVALID_VALUE, "shareData_out is NULL");
}

/* cuMemPoolImportPointer. Maps the memory in this process until it is freed here, once, which must happen before its owner frees it;
 * importing it again returns the same pointer. INVALID_VALUE: the pool is not imported or is not the pointer's pool, or a null pointer;
 * INVALID_HANDLE: the owner has ended, or has freed the memory; INVALID_CONTEXT; OPERATING_SYSTEM: the owner does not respond;
 * OUT_OF_MEMORY: also if no addresses or file descriptors are left. */
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

/* ---- pools of a location ---- */

/* An invalid location or type is reported before a null pointer. */
static CUresult get_pool(CUmemoryPool *out, const CUmemLocation *location, CUmemAllocationType type,
                         CUresult (*get)(const CUmemLocation *, CUmemAllocationType, CUmemoryPool *))
{
    CUmemoryPool pool;
    CUresult r = get(location, type, &pool);

    if (r != CUDA_SUCCESS)
        return r;
    if (!out)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the place for the pool is NULL");
    *out = pool;
    return CUDA_SUCCESS;
}

/* cuMemGetDefaultMemPool. INVALID_VALUE: a null pointer, or the location, device or type does not exist; NOT_SUPPORTED. */
CUresult CUDAAPI cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type)
{
    return get_pool(pool_out, location, type, ct_memory_pool_default_at);
}

/* cuMemGetMemPool. As cuMemGetDefaultMemPool, for the current pool. */
CUresult CUDAAPI cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    return get_pool(pool, location, type, ct_memory_pool_current_at);
}

/* cuMemSetMemPool. INVALID_VALUE: the pool, location, device or type does not exist, or the pool is at another location; NOT_SUPPORTED. */
CUresult CUDAAPI cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    struct ct_memory_pool *found;
    CUresult r = ct_memory_pool_lookup(pool, &found);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_memory_pool_set_current_at(location, type, found);
    ct_memory_pool_release(found);
    return r;
}
