/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory there is to give out. Drivers of CPU devices make memory of any size and find pages for it when it is touched, so
 * nothing fails until the process is killed; CUDA's allocators fail when they are called. So what was given out is counted here. */
#ifndef CT_CORE_MEMORY_BUDGET_H
#define CT_CORE_MEMORY_BUDGET_H

#include "core/device/context.h"

/* Counts bytes of an open device's memory as given out. OUT_OF_MEMORY: that many are not free. */
CUresult ct_budget_take(struct ct_device *device, uint64_t size_bytes);
void ct_budget_give(struct ct_device *device, uint64_t size_bytes);
/* Gives back to the driver what nobody uses: spares, and what pools keep; when there is none, what the backend has only to be faster.
 * False: there was nothing. */
bool ct_budget_reclaim(struct ct_device *device);
/* What an open device has in all, and what of it is free: neither given out here, nor, as far as its driver tells, taken by others. */
CUresult ct_budget_info(struct ct_device *device, uint64_t *out_free, uint64_t *out_total);

/* The same for page-locked memory of the host, of which there is no more than the machine has pages. */
CUresult ct_budget_take_host(uint64_t size_bytes);
void ct_budget_give_host(uint64_t size_bytes);

#endif
