/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory: one pointer for host and device. It is host memory that the device accesses in place; nothing migrates. */
#ifndef CT_CORE_MANAGED_H
#define CT_CORE_MANAGED_H

#include "memory.h"
#include "core/stream/stream.h"

/* True if the device has unified addresses. */
bool ct_managed_is_supported(const struct ct_device *device);
/* Checks the flags of an allocation: CU_MEM_ATTACH_GLOBAL or _HOST, which have the same effect here. INVALID_VALUE. */
CUresult ct_managed_check_flags(unsigned flags);
/* The allocation is page-aligned. INVALID_VALUE; NOT_SUPPORTED; OUT_OF_MEMORY. */
CUresult ct_managed_alloc(struct ct_context *context, uint64_t size_bytes, uint64_t *out_address);
/* Whether the address is in memory that ct_managed_alloc allocated. */
bool ct_managed_holds(uint64_t address);
/* Frees memory that ct_managed_alloc allocated. INVALID_VALUE. */
CUresult ct_managed_free(struct ct_context *context, uint64_t address);

/* Validates the arguments of cuStreamAttachMemAsync; otherwise a no-op. INVALID_VALUE, also for memory of a pool. */
CUresult ct_managed_attach(struct ct_stream *stream, uint64_t address, uint64_t size_bytes, unsigned flags);

/* Ranges of managed memory, or of pageable memory if the devices can access it. */
struct ct_managed_ranges {
    const CUdeviceptr *addresses;
    const size_t *sizes;
    size_t count;
    const CUmemLocation *locations; /* of prefetches: location k applies from range location_indices[k] on */
    const size_t *location_indices; /* the first is 0, and they ascend strictly */
    size_t n_locations;
};
/* Records the location of the last prefetch of each range; nothing migrates. INVALID_VALUE; INVALID_DEVICE: a location, or the stream's
 * device, has no concurrent managed access. */
CUresult ct_managed_prefetch(struct ct_stream *stream, const struct ct_managed_ranges *ranges);
/* Validates the arguments of cuMemDiscardBatchAsync; otherwise a no-op. INVALID_VALUE; INVALID_DEVICE. */
CUresult ct_managed_discard(struct ct_stream *stream, const struct ct_managed_ranges *ranges);
/* The location for the device argument of the old forms of prefetch and advice: CU_DEVICE_CPU or a device. */
CUmemLocation ct_managed_location(CUdevice device);

/* INVALID_VALUE; INVALID_DEVICE; NOT_SUPPORTED: memory of a pool. */
CUresult ct_managed_advise(uint64_t address, uint64_t size_bytes, CUmem_advise advice, CUmemLocation location);
/* INVALID_VALUE: unknown attribute, wrong size, or not managed memory. */
CUresult ct_managed_attribute(uint64_t address, uint64_t size_bytes, CUmem_range_attribute attribute, void *data, size_t data_bytes);

#endif
