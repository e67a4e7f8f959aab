/* SPDX-License-Identifier: Apache-2.0 */
/* The limit of allocated memory. Drivers of CPU devices allocate memory of any size and find pages for it when it is touched, so
 * nothing fails until the process is killed; CUDA's allocators fail when they are called. So allocated memory is counted here. */
#ifndef CT_CORE_MEMORY_BUDGET_H
#define CT_CORE_MEMORY_BUDGET_H

#include "core/device/context.h"

/* Counts bytes of an open device's memory as allocated. OUT_OF_MEMORY: that many are not free. */
CUresult ct_budget_take(struct ct_device *device, uint64_t size_bytes);
void ct_budget_give(struct ct_device *device, uint64_t size_bytes);
/* Returns unused memory to the driver: spares, and free memory of pools; if there is none, the backend's caches. False: there was
 * nothing to return. */
bool ct_budget_reclaim(struct ct_device *device);
/* An open device's total memory, and its free memory: neither allocated here nor, as far as its driver reports, by other processes. */
CUresult ct_budget_info(struct ct_device *device, uint64_t *out_free, uint64_t *out_total);

/* The limit of page-locked host memory: the machine's physical memory. */
uint64_t ct_budget_host_limit(void);
/* As ct_budget_take and ct_budget_give, for page-locked host memory. */
CUresult ct_budget_take_host(uint64_t size_bytes);
void ct_budget_give_host(uint64_t size_bytes);

#endif
