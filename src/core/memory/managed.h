/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory: one pointer for host and device. It is host memory that the device works in where it is; nothing migrates. */
#ifndef CT_CORE_MANAGED_H
#define CT_CORE_MANAGED_H

#include "memory.h"
#include "core/stream/stream.h"

/* Where addresses are unified. */
bool ct_managed_is_supported(const struct ct_device *device);
/* Of an allocation: CU_MEM_ATTACH_GLOBAL or _HOST; who has the memory makes no difference here. INVALID_VALUE. */
CUresult ct_managed_check_flags(unsigned flags);
/* At a page of its own. INVALID_VALUE; NOT_SUPPORTED; OUT_OF_MEMORY. */
CUresult ct_managed_alloc(struct ct_context *context, uint64_t size_bytes, uint64_t *out_address);
/* Whether the address is in memory that ct_managed_alloc gave. */
bool ct_managed_holds(uint64_t address);
/* Takes back what ct_managed_alloc gave. INVALID_VALUE. */
CUresult ct_managed_free(struct ct_context *context, uint64_t address);

/* All checks of cuStreamAttachMemAsync; nothing else needs to be done. INVALID_VALUE. */
CUresult ct_managed_attach(struct ct_stream *stream, uint64_t address, uint64_t size_bytes, unsigned flags);

/* Ranges of managed memory, or of pageable memory where devices reach that. */
struct ct_managed_ranges {
    const CUdeviceptr *addresses;
    const size_t *sizes;
    size_t count;
    const CUmemLocation *locations; /* of prefetches: location k from the range of that index on */
    const size_t *location_indices; /* the first is 0, each is greater than the one before */
    size_t n_locations;
};
/* Notes where ranges are wanted; they stay where they are. Nothing happened on failure. INVALID_VALUE; INVALID_DEVICE: a location, or the
 * stream's device, has no concurrent managed access. */
CUresult ct_managed_prefetch(struct ct_stream *stream, const struct ct_managed_ranges *ranges);
/* Checks what cuMemDiscardBatchAsync is given; the bytes stay what they are. INVALID_VALUE; INVALID_DEVICE. */
CUresult ct_managed_discard(struct ct_stream *stream, const struct ct_managed_ranges *ranges);
/* The place that the old forms of prefetch and advice name by a number: CU_DEVICE_CPU or a device. */
CUmemLocation ct_managed_location(CUdevice device);

/* INVALID_VALUE; INVALID_DEVICE. */
CUresult ct_managed_advise(uint64_t address, uint64_t size_bytes, CUmem_advise advice, CUmemLocation location);
/* INVALID_VALUE: no such attribute, not of that size, not managed memory. */
CUresult ct_managed_attribute(uint64_t address, uint64_t size_bytes, CUmem_range_attribute attribute, void *data, size_t data_bytes);

#endif
