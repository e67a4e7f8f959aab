/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools: memory that is allocated and freed in the order of streams, of a device, of the host, or managed memory. */
#ifndef CT_CORE_MEMORY_POOL_H
#define CT_CORE_MEMORY_POOL_H
/* Parts: memory_pool_access.c, memory_pool_alloc.c, memory_pool_places.c, memory_pool_share.c. */

#include "core/stream/stream.h"

struct ct_memory_pool;
struct ct_device_pools;

/* Created with the device: its default pool, which is the current one until another is set. */
CUresult ct_device_pools_create(struct ct_device *device, struct ct_device_pools **out);
void ct_device_pools_destroy(struct ct_device_pools *pools); /* no memory of the pools is in use; NULL is a no-op */

/* Returns the pool of a handle, retained. INVALID_VALUE: the handle is not that of a pool; errors of ct_process_check. */
CUresult ct_memory_pool_lookup(CUmemoryPool handle, struct ct_memory_pool **out);
/* The handle types by which the pool can be shared; NONE also for a pool that was destroyed. */
CUmemAllocationHandleType ct_memory_pool_handle_types(CUmemoryPool handle);
void ct_memory_pool_release(struct ct_memory_pool *pool); /* NULL is a no-op */
CUmemoryPool ct_memory_pool_default(struct ct_device *device);
CUmemoryPool ct_memory_pool_current(struct ct_device *device);
struct ct_device *ct_memory_pool_device_of(const struct ct_memory_pool *pool);
/* INVALID_VALUE: the pool belongs to another device, is on the host, or imported. */
CUresult ct_memory_pool_set_current(struct ct_device *device, struct ct_memory_pool *pool);
/* The same for a location and a type of memory. INVALID_VALUE: there is no such location or type, or the pool is elsewhere; NOT_SUPPORTED: NUMA nodes,
 * and memory of the host if the device lacks unified addressing. */
CUresult ct_memory_pool_default_at(const CUmemLocation *location, CUmemAllocationType type, CUmemoryPool *out);
CUresult ct_memory_pool_current_at(const CUmemLocation *location, CUmemAllocationType type, CUmemoryPool *out);
CUresult ct_memory_pool_set_current_at(const CUmemLocation *location, CUmemAllocationType type, struct ct_memory_pool *pool);
/* Whether a graph may allocate memory instead of a stream that is captured. The results are those of NVIDIA's driver. NOT_SUPPORTED: of the host;
 * INVALID_VALUE: managed memory without a device. */
CUresult ct_memory_pool_check_captured(const struct ct_memory_pool *pool);
/* Whether the device was given access to the pool; false also for a pool that was destroyed. */
bool ct_memory_pool_is_accessible(CUmemoryPool handle, const struct ct_device *device);

/* INVALID_VALUE: invalid properties; NOT_SUPPORTED: properties that no device supports; OUT_OF_MEMORY. */
CUresult ct_memory_pool_create(const CUmemPoolProps *properties, CUmemoryPool *out);
/* Looks up a device for functions of pools, which return INVALID_VALUE if it does not exist. */
CUresult ct_memory_pool_device(int ordinal, struct ct_device **out);
/* Invalidates the handle; memory in use stays. INVALID_VALUE: a default pool. */
CUresult ct_memory_pool_destroy(struct ct_memory_pool *pool);

/* `value` is an int or a cuuint64_t, depending on the attribute. INVALID_VALUE: the attribute does not exist, or cannot be set to the
 * value. */
CUresult ct_memory_pool_set_attribute(struct ct_memory_pool *pool, CUmemPool_attribute attribute, const void *value);
CUresult ct_memory_pool_get_attribute(struct ct_memory_pool *pool, CUmemPool_attribute attribute, void *value);
/* INVALID_VALUE: a location that is not a device, or an access that is not possible. A pool of the host gives access to devices, too. */
CUresult ct_memory_pool_set_access(struct ct_memory_pool *pool, const CUmemAccessDesc *accesses, size_t count);
CUresult ct_memory_pool_get_access(struct ct_memory_pool *pool, const CUmemLocation *location, CUmemAccess_flags *out);
/* Releases unused memory until at most min_bytes are left, or all that is left is in use. */
void ct_memory_pool_trim(struct ct_memory_pool *pool, uint64_t min_bytes);

struct ct_pool_allocation {
    struct ct_memory_pool *pool; /* NULL: the current pool of the stream's device */
    uint64_t size_bytes;
    uint64_t *out_address; /* written before the call returns */
};
/* Allocates memory that later work of `stream` may use. INVALID_VALUE: an imported pool; OUT_OF_MEMORY. */
CUresult ct_memory_pool_alloc(struct ct_stream *stream, const struct ct_pool_allocation *allocation);
/* Frees memory of a pool, or of cuMemAlloc, after all earlier work of the stream. INVALID_VALUE: no such allocation starts at `address`. */
CUresult ct_memory_pool_free_async(struct ct_stream *stream, uint64_t address);
/* Frees memory of a pool, or of cuMemAlloc, after the work of the current context, or of the memory's context. INVALID_VALUE: no such
 * allocation starts at `address`. */
CUresult ct_memory_pool_free(struct ct_context *context_or_null, uint64_t address);

/* Returns a new file descriptor that identifies the pool in other processes. INVALID_VALUE: the pool was not created to be shared. */
CUresult ct_memory_pool_export(struct ct_memory_pool *pool, int *out_fd);
/* Returns the pool of such a descriptor, which the caller continues to own; nothing can be allocated in it. INVALID_VALUE: the
 * descriptor is not that of a pool. */
CUresult ct_memory_pool_import(int fd, CUmemoryPool *out);
/* Returns the data with which other processes import memory of such a pool. INVALID_VALUE: `address` is not in one. */
CUresult ct_memory_pool_export_pointer(uint64_t address, CUmemPoolPtrExportData *out);
/* Maps that memory in the imported pool; importing it again returns the same address. INVALID_VALUE: it belongs to another pool; errors
 * of opening it. */
CUresult ct_memory_pool_import_pointer(struct ct_memory_pool *pool, struct ct_context *context, const CUmemPoolPtrExportData *data,
                                       uint64_t *out_address);

/* Called when a context is destroyed and its streams are finished: no block is pending in them any more. */
void ct_memory_pools_forget(struct ct_context *context);

#endif
