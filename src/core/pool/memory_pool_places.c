/* SPDX-License-Identifier: Apache-2.0 */
/* The places at which memory pools are, which have a default and a current pool each. Those of the host and those of managed memory without a
 * device are the first device's: host memory of one device is that of all. What is accepted is what NVIDIA's driver accepts, except that there are
 * no pools on NUMA nodes. */
#include "memory_pool_blocks.h"

#include "core/base/log.h"
#include "core/base/process.h"
#include "core/device/device.h"

#define CT_CHANNEL "memory"

/* ---- places ---- */

/* NVIDIA's driver returns INVALID_VALUE for a device that does not exist in the functions of pools. */
CUresult ct_memory_pool_device(int ordinal, struct ct_device **out)
{
    CUresult r = ct_device_lookup(ordinal, out);

    return r == CUDA_ERROR_INVALID_DEVICE ? CUDA_ERROR_INVALID_VALUE : r;
}

/* Finds the place for a location and a type of memory, regardless of whether the device has such pools. */
static CUresult find_place(const CUmemLocation *location, bool managed, enum ct_pool_place *out)
{
    switch (location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        *out = managed ? CT_POOL_MANAGED_DEVICE : CT_POOL_DEVICE;
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST:
        *out = managed ? CT_POOL_MANAGED_HOST : CT_POOL_HOST;
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "memory pools on NUMA nodes of the host are not supported");
    default:
        *out = CT_POOL_MANAGED;
        if (managed && location->type == CU_MEM_LOCATION_TYPE_INVALID) /* which has the same value as CU_MEM_LOCATION_TYPE_NONE */
            return CUDA_SUCCESS;
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "memory pools cannot be at location type %d", (int)location->type);
    }
}

CUresult ct_pool_site_find(const CUmemLocation *location, CUmemAllocationType type, struct ct_pool_site *out)
{
    const bool managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (!location || (!managed && type != CU_MEM_ALLOCATION_TYPE_PINNED))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "invalid location %p or allocation type %d", (const void *)location, (int)type);
    r = find_place(location, managed, &out->place);
    if (r == CUDA_SUCCESS)
        r = ct_memory_pool_device(location->type == CU_MEM_LOCATION_TYPE_DEVICE ? location->id : 0, &out->device);
    if (r == CUDA_SUCCESS && !out->device->pools->at[out->place].standard)
        r = ct_fail(CUDA_ERROR_NOT_SUPPORTED, "memory pools of the host and of managed memory need a device with unified addressing");
    return r;
}

bool ct_pool_place_exists(const struct ct_device *device, enum ct_pool_place place)
{
    switch (place) {
    case CT_POOL_HOST:
        return device->ordinal == 0 && ct_device_limit(device, CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED);
    case CT_POOL_MANAGED_HOST:
    case CT_POOL_MANAGED:
        return device->ordinal == 0 && ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
    case CT_POOL_MANAGED_DEVICE:
        return ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
    case CT_POOL_DEVICE:
    case CT_POOL_PLACES:
        break;
    }
    return true;
}

CUresult ct_memory_pool_check_captured(const struct ct_memory_pool *pool)
{
    switch (pool->kind.place) {
    case CT_POOL_HOST:
    case CT_POOL_MANAGED_HOST:
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "a graph cannot allocate memory of the host");
    case CT_POOL_MANAGED:
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a graph cannot allocate managed memory without a device");
    default:
        return CUDA_SUCCESS;
    }
}

/* ---- default and current pools ---- */

struct ct_device *ct_memory_pool_device_of(const struct ct_memory_pool *pool)
{
    return pool->device;
}

CUmemoryPool ct_memory_pool_default(struct ct_device *device)
{
    return device->pools->at[CT_POOL_DEVICE].standard->object.handle;
}

static CUmemoryPool current_at(struct ct_device_pools *pools, enum ct_pool_place place)
{
    CUmemoryPool handle;

    ct_mutex_lock(&pools->lock);
    handle = pools->at[place].current->object.handle;
    ct_mutex_unlock(&pools->lock);
    return handle;
}

CUmemoryPool ct_memory_pool_current(struct ct_device *device)
{
    return current_at(device->pools, CT_POOL_DEVICE);
}

CUresult ct_memory_pool_default_at(const CUmemLocation *location, CUmemAllocationType type, CUmemoryPool *out)
{
    struct ct_pool_site site;
    CUresult r = ct_pool_site_find(location, type, &site);

    if (r == CUDA_SUCCESS)
        *out = site.device->pools->at[site.place].standard->object.handle;
    return r;
}

CUresult ct_memory_pool_current_at(const CUmemLocation *location, CUmemAllocationType type, CUmemoryPool *out)
{
    struct ct_pool_site site;
    CUresult r = ct_pool_site_find(location, type, &site);

    if (r == CUDA_SUCCESS)
        *out = current_at(site.device->pools, site.place);
    return r;
}

static CUresult set_current(struct ct_memory_pool *pool, const struct ct_pool_site *site)
{
    struct ct_device_pools *pools = pool->device->pools;
    bool destroyed;

    if (pool->device != site->device || pool->kind.place != site->place || pool->kind.imported)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a pool of another device or place, or an imported one, cannot be the current pool");
    ct_mutex_lock(&pools->lock);
    destroyed = pool->destroyed;
    if (!destroyed)
        pools->at[site->place].current = pool;
    ct_mutex_unlock(&pools->lock);
    return destroyed ? ct_fail(CUDA_ERROR_INVALID_VALUE, "the pool was destroyed") : CUDA_SUCCESS;
}

/* A pool of managed memory at the device becomes the current one of those, as in NVIDIA's driver. */
CUresult ct_memory_pool_set_current(struct ct_device *device, struct ct_memory_pool *pool)
{
    const bool managed = pool->kind.place == CT_POOL_MANAGED_DEVICE;

    return set_current(pool, &(struct ct_pool_site){device, managed ? CT_POOL_MANAGED_DEVICE : CT_POOL_DEVICE});
}

CUresult ct_memory_pool_set_current_at(const CUmemLocation *location, CUmemAllocationType type, struct ct_memory_pool *pool)
{
    struct ct_pool_site site;
    CUresult r = ct_pool_site_find(location, type, &site);

    return r == CUDA_SUCCESS ? set_current(pool, &site) : r;
}

bool ct_memory_pool_is_default(const struct ct_memory_pool *pool)
{
    return pool == pool->device->pools->at[pool->kind.place].standard;
}

void ct_pools_replace_current_locked(struct ct_device_pools *pools, const struct ct_memory_pool *pool)
{
    struct ct_pool_choice *at = &pools->at[pool->kind.place];

    if (at->current == pool)
        at->current = at->standard;
}
