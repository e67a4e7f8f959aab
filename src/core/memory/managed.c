/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory (Driver API: Memory Management, Unified Addressing).
 *
 * It is mapped, coherent host memory at the same address for host and device, so each always sees the other's writes and nothing has to be
 * migrated: attaching and prefetching validate their arguments and are otherwise no-ops, and advice is stored so that it can be queried.
 * CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS states a further guarantee (atomics of the device are atomic with respect to the host's);
 * if it is 0, prefetching to that device is an error according to the manual. */
#include "managed.h"

#include "advice.h"
#include "core/base/config.h"
#include "core/device/device.h"
#include "core/base/log.h"
#include "core/base/process.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CT_CHANNEL "memory"
#define HOST_BIT 0

bool ct_managed_is_supported(const struct ct_device *device)
{
    return ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
}

static bool is_concurrent(const struct ct_device *device)
{
    return ct_device_limit(device, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
}

/* Every device can access managed memory in place, so a call that would migrate it is a no-op. The error that the manual specifies for
 * devices without concurrent access is therefore returned in strict mode only: programs that were only tested on devices with concurrent
 * access do not expect it, and stop. */
static CUresult check_concurrent(const struct ct_device *device)
{
    static atomic_bool is_logged; /* relaxed: it orders nothing; it only keeps a second thread from logging too */

    if (is_concurrent(device))
        return CUDA_SUCCESS;
    if (ct_config()->strict)
        return ct_fail(CUDA_ERROR_INVALID_DEVICE, "device %d and the host cannot access managed memory concurrently", device->ordinal);
    if (!atomic_exchange_explicit(&is_logged, true, memory_order_relaxed))
        ct_log(CT_LOG_INFO,
               "device %d and the host cannot access managed memory concurrently: prefetching, discarding and advice are no-ops",
               device->ordinal);
    return CUDA_SUCCESS;
}

CUresult ct_managed_check_flags(unsigned flags)
{
    if (flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST)
        return CUDA_SUCCESS;
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "managed memory with flags 0x%x", flags);
}

CUresult ct_managed_alloc(struct ct_context *context, uint64_t size_bytes, uint64_t *out_address)
{
    uint64_t address;
    CUresult r;

    if (!ct_managed_is_supported(context->device))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "managed memory needs the same addresses on host and device");
    r = ct_memory_alloc(context, size_bytes, (uint64_t)sysconf(_SC_PAGESIZE), CT_RANGE_MANAGED, &address);
    if (r != CUDA_SUCCESS)
        return r;
    ct_advice_forget(address, size_bytes);
    *out_address = address;
    return CUDA_SUCCESS;
}

bool ct_managed_holds(uint64_t address)
{
    struct ct_range range;

    return ct_address_find_any(address, 1, &range) && range.kind == CT_RANGE_MANAGED;
}

CUresult ct_managed_free(struct ct_context *context, uint64_t address)
{
    struct ct_range range;

    if (ct_address_find(address, 0, &range) == CUDA_SUCCESS && range.start == address)
        ct_advice_forget(address, range.size_bytes);
    return ct_memory_free(context, address, CT_RANGE_MANAGED);
}

/* ---- ranges ---- */

/* The managed memory that contains the range. INVALID_VALUE if there is none. */
static CUresult find_managed(uint64_t address, uint64_t size_bytes, struct ct_range *out)
{
    struct ct_range range;
    CUresult r = size_bytes ? ct_address_find(address, size_bytes, &range) : ct_fail(CUDA_ERROR_INVALID_VALUE, "a range of 0 bytes");

    if (r != CUDA_SUCCESS)
        return r;
    if (!ct_range_is_managed(&range))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not in managed memory", (unsigned long long)address);
    *out = range;
    return CUDA_SUCCESS;
}

/* Whether all pages of the range are mapped: msync fails with ENOMEM if some are not. */
static bool is_mapped(uint64_t address, uint64_t size_bytes)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = address & ~(page - 1);

    if (size_bytes > UINT64_MAX - page - address)
        return false;
    return msync((void *)(uintptr_t)first, address + size_bytes - first, MS_ASYNC) == 0 || errno != ENOMEM;
}

static bool is_pageable(uint64_t address, uint64_t size_bytes)
{
    struct ct_range range;

    return address && size_bytes && size_bytes <= UINT64_MAX - address && !ct_address_find_any(address, size_bytes, &range) &&
           is_mapped(address, size_bytes);
}

static bool all_devices_have(CUdevice_attribute attribute)
{
    for (unsigned i = 0; i < ct_process.n_devices; i++)
        if (!ct_device_limit(&ct_process.devices[i], attribute))
            return false;
    return true;
}

/* Accepts managed memory, and pageable memory if all devices can access it. */
static CUresult check_range(uint64_t address, uint64_t size_bytes, bool *out_managed)
{
    struct ct_range range;

    *out_managed = !all_devices_have(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) || !is_pageable(address, size_bytes);
    return *out_managed ? find_managed(address, size_bytes, &range) : CUDA_SUCCESS;
}

/* ---- locations ---- */

static bool is_numa_node(int id)
{
    char name[64];

    snprintf(name, sizeof name, "/sys/devices/system/node/node%d", id);
    return id == 0 || (id > 0 && access(name, F_OK) == 0);
}

static CUresult check_device(int ordinal, bool managed)
{
    struct ct_device *device;
    CUresult r = ct_device_lookup(ordinal, &device);

    if (r != CUDA_SUCCESS)
        return r;
    if (managed)
        return check_concurrent(device);
    if (!ct_device_limit(device, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS))
        return ct_fail(CUDA_ERROR_INVALID_DEVICE, "device %d does not access pageable memory", ordinal);
    return CUDA_SUCCESS;
}

/* Checks that the location exists, whether or not it is usable. */
static CUresult check_location(CUmemLocation location)
{
    struct ct_device *device;

    switch ((int)location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return ct_device_lookup(location.id, &device);
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return is_numa_node(location.id) ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_INVALID_VALUE, "the host has no NUMA node %d", location.id);
    }
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "unknown location type %d", (int)location.type);
}

/* Checks a location and normalizes it to the form that queries report: the host without an id, a NUMA node of the host with its id. */
static CUresult settle_location(CUmemLocation location, bool managed, CUmemLocation *out)
{
    CUresult r = check_location(location);
    unsigned node = 0;

    *out = location;
    if (r != CUDA_SUCCESS)
        return r;
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        return check_device(location.id, managed);
    if (location.type == CU_MEM_LOCATION_TYPE_HOST)
        out->id = 0;
    if (location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT) {
        getcpu(NULL, &node); /* on failure `node` remains 0, the only node that always exists */
        *out = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = (int)node};
    }
    return CUDA_SUCCESS;
}

CUmemLocation ct_managed_location(CUdevice device)
{
    if (device == CU_DEVICE_CPU)
        return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST};
    return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}

/* ---- attaching, prefetching, discarding ---- */

static CUresult check_attached(const struct ct_stream *stream, uint64_t address, uint64_t size_bytes)
{
    struct ct_range range;

    if (!ct_address_find_any(address, 1, &range)) {
        if (stream->context->device->info.pageable_access && is_pageable(address, size_bytes))
            return CUDA_SUCCESS;
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not in memory that can be attached", (unsigned long long)address);
    }
    if (!ct_range_is_managed(&range) || ct_range_is_of_pool(&range))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not in managed memory, or in that of a pool", (unsigned long long)address);
    if (range.kind == CT_RANGE_MANAGED && ((size_bytes && size_bytes != range.size_bytes) || address != range.start))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%llu bytes at 0x%llx are only a part of the managed memory at 0x%llx",
                       (unsigned long long)size_bytes, (unsigned long long)address, (unsigned long long)range.start);
    return size_bytes ? ct_address_find(address, size_bytes, &range) : CUDA_SUCCESS; /* part of a module's variables */
}

CUresult ct_managed_attach(struct ct_stream *stream, uint64_t address, uint64_t size_bytes, unsigned flags)
{
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "attaching with flags 0x%x", flags);
    if (flags == CU_MEM_ATTACH_SINGLE && stream->is_legacy)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "memory cannot be attached exclusively to the default stream");
    return check_attached(stream, address, size_bytes);
}

static CUresult check_ranges(const struct ct_stream *stream, const struct ct_managed_ranges *ranges)
{
    CUresult r = CUDA_SUCCESS;
    bool managed;

    if (ranges->count == 0 || !ranges->addresses || !ranges->sizes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%zu ranges", ranges->count);
    for (size_t i = 0; i < ranges->count && r == CUDA_SUCCESS; i++)
        r = check_range(ranges->addresses[i], ranges->sizes[i], &managed);
    return r == CUDA_SUCCESS ? check_concurrent(stream->context->device) : r;
}

CUresult ct_managed_discard(struct ct_stream *stream, const struct ct_managed_ranges *ranges)
{
    return check_ranges(stream, ranges);
}

static CUresult check_locations(const struct ct_managed_ranges *ranges)
{
    CUresult r = CUDA_SUCCESS;

    if (ranges->n_locations == 0 || ranges->n_locations > ranges->count || !ranges->locations || !ranges->location_indices)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%zu locations of %zu ranges", ranges->n_locations, ranges->count);
    for (size_t k = 0; k < ranges->n_locations && r == CUDA_SUCCESS; k++) {
        const size_t at = ranges->location_indices[k];

        if (at >= ranges->count || (k == 0 ? at != 0 : at <= ranges->location_indices[k - 1]))
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "location %zu has the invalid range index %zu (%zu ranges)", k, at, ranges->count);
        r = check_location(ranges->locations[k]);
    }
    return r;
}

static void note_prefetch(struct ct_advice *advice, const void *location)
{
    advice->prefetched = *(const CUmemLocation *)location;
}

static CUresult prefetch_one(uint64_t address, uint64_t size_bytes, CUmemLocation location)
{
    CUmemLocation settled;
    bool managed;
    CUresult r = check_range(address, size_bytes, &managed);

    if (r == CUDA_SUCCESS)
        r = settle_location(location, managed, &settled);
    return r == CUDA_SUCCESS && managed ? ct_advice_apply(address, size_bytes, note_prefetch, &settled) : r;
}

/* This check comes before all others. */
static CUresult check_no_range_is_nothing(const struct ct_managed_ranges *ranges)
{
    for (size_t i = 0; ranges->addresses && ranges->sizes && i < ranges->count; i++)
        if (!ranges->addresses[i] || !ranges->sizes[i])
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "%zu bytes at 0x%llx", ranges->sizes[i], (unsigned long long)ranges->addresses[i]);
    return CUDA_SUCCESS;
}

CUresult ct_managed_prefetch(struct ct_stream *stream, const struct ct_managed_ranges *ranges)
{
    CUresult r = check_no_range_is_nothing(ranges);
    size_t k = 0;

    if (r == CUDA_SUCCESS)
        r = check_locations(ranges);
    if (r == CUDA_SUCCESS)
        r = check_ranges(stream, ranges);
    for (size_t i = 0; i < ranges->count && r == CUDA_SUCCESS; i++) {
        if (k + 1 < ranges->n_locations && ranges->location_indices[k + 1] == i)
            k++;
        r = prefetch_one(ranges->addresses[i], ranges->sizes[i], ranges->locations[k]);
    }
    return r;
}

/* ---- advice ---- */

struct advising {
    CUmem_advise advice;
    CUmemLocation location;
};

static uint64_t accessor_bit(CUmemLocation location)
{
    return (uint64_t)1 << (location.type == CU_MEM_LOCATION_TYPE_DEVICE ? 1 + location.id : HOST_BIT);
}

static void take_advice(struct ct_advice *advice, const void *user)
{
    const struct advising *given = user;

    switch (given->advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
        advice->read_mostly = given->advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
        break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        advice->preferred = given->location;
        break;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        advice->preferred = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_INVALID};
        break;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
        advice->accessed_by |= accessor_bit(given->location);
        break;
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        advice->accessed_by &= ~accessor_bit(given->location);
        break;
    }
}

/* Some advice takes no location, and some does not accept a single NUMA node of the host. */
static CUresult check_advice(struct advising *given, bool managed)
{
    switch ((int)given->advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        if (given->location.type != CU_MEM_LOCATION_TYPE_DEVICE && given->location.type != CU_MEM_LOCATION_TYPE_HOST)
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "location type %d is not valid for accessed-by advice", (int)given->location.type);
        break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        break;
    default:
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "unknown advice %d", (int)given->advice);
    }
    return settle_location(given->location, managed, &given->location);
}

CUresult ct_managed_advise(uint64_t address, uint64_t size_bytes, CUmem_advise advice, CUmemLocation location)
{
    struct advising given = {advice, location};
    struct ct_range range;
    bool managed;
    CUresult r = check_range(address, size_bytes, &managed);

    if (r == CUDA_SUCCESS && managed && ct_address_find_any(address, 1, &range) && ct_range_is_of_pool(&range))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "memory of a pool takes no advice"); /* as in NVIDIA's driver */
    if (r == CUDA_SUCCESS)
        r = check_advice(&given, managed);
    return r == CUDA_SUCCESS && managed ? ct_advice_apply(address, size_bytes, take_advice, &given) : r;
}

/* ---- attributes ---- */

/* The location as a device ordinal, CU_DEVICE_CPU or CU_DEVICE_INVALID. */
static int number_of(CUmemLocation location)
{
    switch ((int)location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return location.id;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return CU_DEVICE_CPU;
    }
    return CU_DEVICE_INVALID;
}

/* The id of the location, or CU_DEVICE_INVALID. */
static int id_of(CUmemLocation location)
{
    return location.type == CU_MEM_LOCATION_TYPE_INVALID ? CU_DEVICE_INVALID : location.id;
}

static void list_accessors(uint64_t accessed_by, int *out, size_t count)
{
    size_t n = 0;

    for (int device = 0; device < 63 && n < count; device++)
        if (accessed_by >> (1 + device) & 1)
            out[n++] = device;
    if (n < count && (accessed_by >> HOST_BIT & 1))
        out[n++] = CU_DEVICE_CPU;
    while (n < count)
        out[n++] = CU_DEVICE_INVALID;
}

static CUresult get(const struct ct_advice *advice, CUmem_range_attribute attribute, int *out, size_t count)
{
    switch ((int)attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
        *out = advice->read_mostly;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
        *out = number_of(advice->preferred);
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
        list_accessors(advice->accessed_by, out, count);
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
        *out = number_of(advice->prefetched);
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
        *out = (int)advice->preferred.type;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
        *out = id_of(advice->preferred);
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
        *out = (int)advice->prefetched.type;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
        *out = id_of(advice->prefetched);
        return CUDA_SUCCESS;
    }
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "unknown range attribute %d", (int)attribute);
}

CUresult ct_managed_attribute(uint64_t address, uint64_t size_bytes, CUmem_range_attribute attribute, void *data, size_t data_bytes)
{
    const size_t count = data_bytes / sizeof(int);
    struct ct_advice advice;
    struct ct_range range;
    CUresult r;

    if (!data || count == 0 || data_bytes % sizeof(int) || (attribute != CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY && count != 1))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%zu bytes is not a valid size for range attribute %d", data_bytes, (int)attribute);
    r = find_managed(address, size_bytes, &range);
    if (r != CUDA_SUCCESS)
        return r;
    advice = ct_advice_common(address, size_bytes);
    return get(&advice, attribute, data, count);
}
