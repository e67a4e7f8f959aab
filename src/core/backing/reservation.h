/* SPDX-License-Identifier: Apache-2.0 */
/* Host address space for memory at CUDA addresses: reserved without access, so that nothing else is mapped there. */
#ifndef CT_CORE_RESERVATION_H
#define CT_CORE_RESERVATION_H

#include "core/device/backend.h"

/* CUDA's alignment of large allocations, which every driver supports. */
#define CT_RESERVATION_ALIGN ((uint64_t)2 << 20)

/* `size_bytes`, rounded up to CT_RESERVATION_ALIGN, at a multiple of `align` (a power of two, at least that) within the arenas of a device,
 * or anywhere if it has none. OUT_OF_MEMORY. */
CUresult ct_reserve(const struct ct_device_info *info, uint64_t size_bytes, uint64_t align, void **out, uint64_t *out_bytes);
/* The same at `address`, a multiple of CT_RESERVATION_ALIGN. OUT_OF_MEMORY: it is not free, or outside of the arenas. */
CUresult ct_reserve_at(const struct ct_device_info *info, uint64_t address, uint64_t size_bytes, void **out, uint64_t *out_bytes);
/* Whether the range is within the arenas of the device. */
bool ct_arenas_hold(const struct ct_device_info *info, uint64_t address, uint64_t size_bytes);
void ct_unreserve(void *start, uint64_t reserved_bytes); /* accepts NULL */

#endif
