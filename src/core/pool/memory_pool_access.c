/* SPDX-License-Identifier: Apache-2.0 */
/* Access to memory pools. A device always has access to its own pools, and never to those of another device; the host has access to its own only.
 * Devices are given access to pools of the host and of managed memory, and the host to the latter, as in NVIDIA's driver. Here that decides only what
 * queries return: kernels and the host can access the memory in any case, of managed memory natively, too. */
#include "memory_pool_blocks.h"

#include "core/base/log.h"
#include "core/device/device.h"

#define CT_CHANNEL "memory"

static uint64_t bit_of(const struct ct_device *device)
{
    return device->ordinal < 64 ? (uint64_t)1 << device->ordinal : 0;
}

/* ---- setting ---- */

/* The result codes are those of NVIDIA's driver. */
static CUresult check_own(const struct ct_memory_pool *pool, const struct ct_device *device, CUmemAccess_flags flags)
{
    if (device == pool->device && flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
        return ct_fail(CUDA_ERROR_INVALID_DEVICE, "the access of a device to its own memory pool cannot be revoked");
    if (flags != (device == pool->device ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "access %d of device %d to a memory pool of device %d is not supported", (int)flags,
                       device->ordinal, pool->device->ordinal);
    return CUDA_SUCCESS;
}

/* device_or_null: NULL is the host; likewise in is_accessible. */
static void set_accessible(struct ct_memory_pool *pool, const struct ct_device *device_or_null, bool accessible)
{
    const uint64_t bit = device_or_null ? bit_of(device_or_null) : 0;

    ct_mutex_lock(&pool->device->pools->lock);
    if (device_or_null)
        pool->accessible = accessible ? pool->accessible | bit : pool->accessible & ~bit;
    else
        pool->accessible_to_host = accessible;
    ct_mutex_unlock(&pool->device->pools->lock);
}

static CUresult set_for_device(struct ct_memory_pool *pool, const CUmemAccessDesc *access)
{
    struct ct_device *device;
    CUresult r = ct_device_lookup(access->location.id, &device);

    if (r != CUDA_SUCCESS)
        return r;
    if (pool->kind.place == CT_POOL_DEVICE)
        return check_own(pool, device, access->flags);
    if (!bit_of(device))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "access of device %d to pools of host memory is not supported", device->ordinal);
    set_accessible(pool, device, access->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE);
    return CUDA_SUCCESS;
}

static bool is_host_place(const CUmemLocation *location)
{
    return location->type == CU_MEM_LOCATION_TYPE_HOST || location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

/* The host cannot lose the access to its own memory, or get any to a device's. */
static bool may_set_for_host(const struct ct_memory_pool *pool, CUmemAccess_flags flags)
{
    return ct_pool_place_is_managed(pool->kind.place) || (pool->kind.place == CT_POOL_HOST && flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

static CUresult set_access(struct ct_memory_pool *pool, const CUmemAccessDesc *access)
{
    const bool is_whole = access->flags != CU_MEM_ACCESS_FLAGS_PROT_READ;

    if (access->location.type == CU_MEM_LOCATION_TYPE_DEVICE && is_whole)
        return set_for_device(pool, access);
    if (!is_host_place(&access->location) || !is_whole || !may_set_for_host(pool, access->flags))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "access %d from location type %d to a memory pool is not supported", (int)access->flags,
                       (int)access->location.type);
    set_accessible(pool, NULL, access->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE);
    return CUDA_SUCCESS;
}

CUresult ct_memory_pool_set_access(struct ct_memory_pool *pool, const CUmemAccessDesc *accesses, size_t count)
{
    CUresult r = CUDA_SUCCESS;

    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = set_access(pool, &accesses[i]);
    return r;
}

/* ---- queries ---- */

static bool is_accessible(const struct ct_memory_pool *pool, const struct ct_device *device_or_null)
{
    bool accessible;

    if (pool->kind.place == CT_POOL_DEVICE)
        return device_or_null == pool->device;
    if (pool->kind.place == CT_POOL_HOST && !device_or_null)
        return true;
    ct_mutex_lock(&pool->device->pools->lock);
    accessible = device_or_null ? pool->accessible & bit_of(device_or_null) : pool->accessible_to_host;
    ct_mutex_unlock(&pool->device->pools->lock);
    return accessible;
}

bool ct_memory_pool_is_accessible(CUmemoryPool handle, const struct ct_device *device)
{
    struct ct_memory_pool *pool = (struct ct_memory_pool *)ct_object_find_or_null(CT_OBJECT_MEMORY_POOL, handle);
    const bool accessible = pool && is_accessible(pool, device);

    ct_memory_pool_release(pool);
    return accessible;
}

CUresult ct_memory_pool_get_access(struct ct_memory_pool *pool, const CUmemLocation *location, CUmemAccess_flags *out)
{
    struct ct_device *device_or_null = NULL; /* NULL: the host */
    CUresult r = CUDA_SUCCESS;

    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE)
        r = ct_memory_pool_device(location->id, &device_or_null);
    else if (!is_host_place(location))
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "location type %d has no access to memory pools", (int)location->type);
    if (r == CUDA_SUCCESS)
        *out = is_accessible(pool, device_or_null) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return r;
}
