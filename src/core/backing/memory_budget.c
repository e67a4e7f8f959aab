/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of allocated memory: one per device, and one of the process for page-locked memory. */
#include "memory_budget.h"

#include "core/base/log.h"
#include "core/base/process.h"

#include <unistd.h>

#define CT_CHANNEL "memory"

/* Concurrent allocations together never exceed the limit. Relaxed: the counter orders no other memory accesses. */
static bool take(atomic_ullong *taken, uint64_t size_bytes, uint64_t limit)
{
    unsigned long long before = atomic_load_explicit(taken, memory_order_relaxed);

    do {
        if (before > limit || size_bytes > limit - before)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(taken, &before, before + size_bytes, memory_order_relaxed, memory_order_relaxed));
    return true;
}

/* The free memory without the spares. */
static CUresult query(struct ct_device *device, uint64_t *out_free, uint64_t *out_total)
{
    uint64_t given = atomic_load_explicit(&device->given_bytes, memory_order_relaxed), left;
    CUresult r = device->backend->memory->info(device->opened, out_free, out_total);

    if (r != CUDA_SUCCESS)
        return r;
    left = given < *out_total ? *out_total - given : 0;
    if (left < *out_free)
        *out_free = left;
    return CUDA_SUCCESS;
}

CUresult ct_budget_info(struct ct_device *device, uint64_t *out_free, uint64_t *out_total)
{
    uint64_t spare_bytes = atomic_load_explicit(&device->spare_bytes, memory_order_relaxed);
    CUresult r = query(device, out_free, out_total);

    if (r == CUDA_SUCCESS)
        *out_free = spare_bytes < *out_total - *out_free ? *out_free + spare_bytes : *out_total;
    return r;
}

/* A caller that holds a lock can reclaim only the spares, since trimming pools releases streams. */
bool ct_budget_reclaim(struct ct_device *device)
{
    bool any = ct_mutex_none_held() && device->hooks.trim_pools(device);

    return device->hooks.trim_spares(device) || any;
}

CUresult ct_budget_take(struct ct_device *device, uint64_t size_bytes)
{
    uint64_t free_bytes, total_bytes;
    CUresult r;

    do {
        if ((r = query(device, &free_bytes, &total_bytes)) != CUDA_SUCCESS)
            return r;
        if (size_bytes <= free_bytes && take(&device->given_bytes, size_bytes, total_bytes))
            return CUDA_SUCCESS;
    } while (ct_budget_reclaim(device));
    return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes requested, %llu of %llu are free", (unsigned long long)size_bytes,
                   (unsigned long long)free_bytes, (unsigned long long)total_bytes);
}

void ct_budget_give(struct ct_device *device, uint64_t size_bytes)
{
    atomic_fetch_sub_explicit(&device->given_bytes, size_bytes, memory_order_relaxed);
}

uint64_t ct_budget_host_limit(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

CUresult ct_budget_take_host(uint64_t size_bytes)
{
    if (!take(&ct_process.host_bytes, size_bytes, ct_budget_host_limit()))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes of host memory exceed the limit", (unsigned long long)size_bytes);
    return CUDA_SUCCESS;
}

void ct_budget_give_host(uint64_t size_bytes)
{
    atomic_fetch_sub_explicit(&ct_process.host_bytes, size_bytes, memory_order_relaxed);
}
