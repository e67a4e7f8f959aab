/* SPDX-License-Identifier: Apache-2.0 */
/* Page-locked host memory: allocated by us, or the application's own, registered. */
#ifndef CT_CORE_HOST_MEMORY_H
#define CT_CORE_HOST_MEMORY_H

#include "memory.h"

/* flags: CU_MEMHOSTALLOC_*. Size 0 gives NULL. INVALID_VALUE: no such flags; OUT_OF_MEMORY. */
CUresult ct_host_memory_alloc(struct ct_context *context, uint64_t size_bytes, unsigned flags, void **out);
/* INVALID_VALUE: not the start of such an allocation. Waits for the work of its context. Takes NULL. */
CUresult ct_host_memory_free(struct ct_context *context, void *pointer);

/* flags: CU_MEMHOSTREGISTER_*. INVALID_VALUE: size 0, pages that are not there or cannot be locked; memory that CUDA allocated;
 * HOST_MEMORY_ALREADY_REGISTERED: a byte of it is; NOT_SUPPORTED: the device cannot, or not I/O memory, or not read-only memory;
 * NOT_PERMITTED: its driver refuses pages that Linux would lock. */
CUresult ct_host_memory_register(struct ct_context *context, void *pointer, uint64_t size_bytes, unsigned flags);
/* HOST_MEMORY_NOT_REGISTERED; INVALID_VALUE: not the start of a registration. Waits for the work of its context. */
CUresult ct_host_memory_unregister(struct ct_context *context, void *pointer);

/* The range of page-locked memory that holds a host pointer. INVALID_VALUE. */
CUresult ct_host_memory_find(const void *pointer, struct ct_range *out);
/* Where kernels of the device find the first byte of a range of page-locked or managed memory. False: they do not reach it. */
bool ct_host_memory_reach(const struct ct_device *device, const struct ct_range *range, uint64_t *out);
/* Where kernels of the context find the byte at `pointer`. INVALID_VALUE: not in page-locked memory, or the device maps none: whoever asked
 * for memory with DEVICEMAP hears of that only here. NOT_SUPPORTED: in that of another device, and this one does not reach it. */
CUresult ct_host_memory_device_pointer(const struct ct_context *context, const void *pointer, CUdeviceptr *out);

/* CU_MEMHOSTALLOC_* of a range of page-locked memory: what it was made with; where its device maps such memory all of it is mapped. */
unsigned ct_host_memory_flags(const struct ct_range *range);

#endif
