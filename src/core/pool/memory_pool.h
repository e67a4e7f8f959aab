/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools: device memory that is allocated and freed in the order of streams. */
#ifndef CT_CORE_MEMORY_POOL_H
#define CT_CORE_MEMORY_POOL_H
/* Parts: memory_pool_alloc.c, memory_pool_share.c. */

#include "core/stream/stream.h"

struct ct_memory_pool;
struct ct_device_pools;

/* With the device: its default pool, which is the current one until another is chosen. */
CUresult ct_device_pools_create(struct ct_device *device, struct ct_device_pools **out);
void ct_device_pools_destroy(struct ct_device_pools *pools); /* no memory of them is in use; takes NULL */

/* The pool behind a handle, retained. INVALID_VALUE: none; what ct_process_check gives. */
CUresult ct_memory_pool_lookup(CUmemoryPool handle, struct ct_memory_pool **out);
/* By what its memory can be shared; NONE also of a pool that was destroyed. */
CUmemAllocationHandleType ct_memory_pool_handle_types(CUmemoryPool handle);
void ct_memory_pool_release(struct ct_memory_pool *pool); /* takes NULL */
CUmemoryPool ct_memory_pool_default(struct ct_device *device);
CUmemoryPool ct_memory_pool_current(struct ct_device *device);
/* INVALID_VALUE: a pool of another device. */
CUresult ct_memory_pool_set_current(struct ct_device *device, struct ct_memory_pool *pool);

/* INVALID_VALUE: properties that make no sense; NOT_SUPPORTED: such as no device here has; OUT_OF_MEMORY. */
CUresult ct_memory_pool_create(const CUmemPoolProps *properties, CUmemoryPool *out);
/* The device of an ordinal as pools want it: INVALID_VALUE if there is none. */
CUresult ct_memory_pool_device(int ordinal, struct ct_device **out);
/* The handle is dead; memory in use stays. INVALID_VALUE: a default pool. */
CUresult ct_memory_pool_destroy(struct ct_memory_pool *pool);

/* `value` is an int or a cuuint64_t, as the attribute wants. INVALID_VALUE: no such attribute, or it cannot be set (to that). */
CUresult ct_memory_pool_set_attribute(struct ct_memory_pool *pool, CUmemPool_attribute attribute, const void *value);
CUresult ct_memory_pool_get_attribute(struct ct_memory_pool *pool, CUmemPool_attribute attribute, void *value);
/* INVALID_VALUE: a location that is no device, or an access that cannot be. */
CUresult ct_memory_pool_set_access(struct ct_memory_pool *pool, const CUmemAccessDesc *accesses, size_t count);
CUresult ct_memory_pool_get_access(struct ct_memory_pool *pool, const CUmemLocation *location, CUmemAccess_flags *out);
/* Gives unused memory back until no more than min_bytes are left, or what is left is in use. */
void ct_memory_pool_trim(struct ct_memory_pool *pool, uint64_t min_bytes);

struct ct_pool_allocation {
    struct ct_memory_pool *pool; /* NULL: the current pool of the stream's device */
    uint64_t size_bytes;
    uint64_t *out_address; /* written before the call returns */
};
/* Memory that `stream` may use from now on. INVALID_VALUE: the pool of another process; OUT_OF_MEMORY. */
CUresult ct_memory_pool_alloc(struct ct_stream *stream, const struct ct_pool_allocation *allocation);
/* Frees memory of a pool, or of cuMemAlloc, when the stream comes to it. INVALID_VALUE: no such allocation starts at `address`. */
CUresult ct_memory_pool_free_async(struct ct_stream *stream, uint64_t address);
/* Frees memory of a pool, or of cuMemAlloc, when the work of the current context, or that of the memory, is done. INVALID_VALUE: no such
 * allocation starts at `address`. */
CUresult ct_memory_pool_free(struct ct_context *context_or_null, uint64_t address);

/* A new file descriptor that stands for the pool in other processes. INVALID_VALUE: it was not made to be shared. */
CUresult ct_memory_pool_export(struct ct_memory_pool *pool, int *out_fd);
/* The pool behind such a descriptor, which stays the caller's; nothing is allocated in it. INVALID_VALUE: it is none of a pool. */
CUresult ct_memory_pool_import(int fd, CUmemoryPool *out);
/* What others need to know of memory of such a pool. INVALID_VALUE: `address` is not in one. */
CUresult ct_memory_pool_export_pointer(uint64_t address, CUmemPoolPtrExportData *out);
/* That memory in the imported pool; once more it is the same. INVALID_VALUE: of another pool; what opening it gives. */
CUresult ct_memory_pool_import_pointer(struct ct_memory_pool *pool, struct ct_context *context, const CUmemPoolPtrExportData *data,
                                       uint64_t *out_address);

/* A context goes, and its streams are finished: nothing hangs on them any more. */
void ct_memory_pools_forget(struct ct_context *context);

#endif
