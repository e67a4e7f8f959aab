/* SPDX-License-Identifier: Apache-2.0 */
/* Page-locked host memory: allocated by Cuttle, or allocated by the application and registered. */
#ifndef CT_CORE_HOST_MEMORY_H
#define CT_CORE_HOST_MEMORY_H

#include "memory.h"

/* flags: CU_MEMHOSTALLOC_*. A size of 0 yields NULL. INVALID_VALUE: unknown flags; OUT_OF_MEMORY. */
CUresult ct_host_memory_alloc(struct ct_context *context, uint64_t size_bytes, unsigned flags, void **out);
/* Waits for the work of the allocation's context. A no-op for NULL. INVALID_VALUE: not the start of such an allocation. */
CUresult ct_host_memory_free(struct ct_context *context, void *pointer);

/* flags: CU_MEMHOSTREGISTER_*. INVALID_VALUE: the size is 0, the pages are not mapped or cannot be locked, or CUDA allocated the memory;
 * HOST_MEMORY_ALREADY_REGISTERED: a part of it is registered; NOT_SUPPORTED: the device does not support registration, or not that of I/O
 * memory or read-only memory; NOT_PERMITTED: the driver rejects pages that Linux can lock. */
CUresult ct_host_memory_register(struct ct_context *context, void *pointer, uint64_t size_bytes, unsigned flags);
/* Waits for the work of the registration's context. HOST_MEMORY_NOT_REGISTERED; INVALID_VALUE: not the start of a registration. */
CUresult ct_host_memory_unregister(struct ct_context *context, void *pointer);

/* Finds the range of page-locked memory that contains a host pointer. INVALID_VALUE if there is none. */
CUresult ct_host_memory_find(const void *pointer, struct ct_range *out);
/* The device address of the first byte of a range of page-locked or managed memory. False if the device cannot access it. */
bool ct_host_memory_reach(const struct ct_device *device, const struct ct_range *range, uint64_t *out);
/* The device address, in the context, of the byte at `pointer`. INVALID_VALUE: it is not in page-locked memory, or the device cannot map
 * such memory (an allocation with DEVICEMAP succeeds even so). NOT_SUPPORTED: it belongs to another device, and this one cannot
 * access it. */
CUresult ct_host_memory_device_pointer(const struct ct_context *context, const void *pointer, CUdeviceptr *out);

/* CU_MEMHOSTALLOC_* of a range of page-locked memory: the flags it was created with, plus DEVICEMAP if its device maps such memory. */
unsigned ct_host_memory_flags(const struct ct_range *range);

#endif
