/* SPDX-License-Identifier: Apache-2.0 */
/* Page-locked host memory (Driver API: Memory Management). If the device cannot access it at the host pointer, it has a
 * second range in the address map, at its device pointer; if the device cannot access it at all, it has no second range. */
#include "host_memory.h"

#include "core/backing/host_aliases.h"
#include "core/backing/host_mappings.h"
#include "core/backing/memory_budget.h"
#include "core/base/log.h"
#include "memory_arena.h"
#include "core/base/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CT_CHANNEL "memory"
#define ALLOC_FLAGS (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define REGISTER_FLAGS                                                                                                                     \
    (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY)

/* Publishes `size_bytes` at offset `distance` in the allocation's backing. */
static CUresult publish(struct ct_context *context, struct ct_allocation *allocation, uint64_t distance, uint64_t size_bytes,
                        enum ct_range_kind kind, unsigned flags)
{
    struct ct_range range = ct_range_of_backing(context, &allocation->backing, distance, size_bytes, kind);

    range.start = (uint64_t)(uintptr_t)range.host;
    if (!context->device->info.maps_host)
        range.device_pointer = range.start; /* no second range; ct_host_memory_reach returns false */
    range.flags = flags;
    range.allocation = allocation;
    return ct_allocation_publish(context, &range);
}

CUresult ct_host_memory_alloc(struct ct_context *context, uint64_t size_bytes, unsigned flags, void **out)
{
    enum ct_memory_kind kind = flags & CU_MEMHOSTALLOC_WRITECOMBINED ? CT_MEMORY_HOST_WC : CT_MEMORY_HOST;
    struct ct_allocation *allocation;
    CUresult r;
    void *host;

    if (flags & ~(unsigned)ALLOC_FLAGS)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "flags 0x%x", flags);
    if (size_bytes == 0) { /* as the native driver does */
        *out = NULL;
        return CUDA_SUCCESS;
    }
    allocation = calloc(1, sizeof *allocation);
    if (!allocation)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "allocation");
    r = ct_backing_create_portable(context, size_bytes, kind, &allocation->backing);
    host = allocation->backing.host; /* once published, another thread may free it */
    if (r == CUDA_SUCCESS)
        r = publish(context, allocation, 0, size_bytes, CT_RANGE_HOST, flags);
    if (r != CUDA_SUCCESS) {
        ct_allocation_destroy(context, allocation);
        return r;
    }
    *out = host;
    return CUDA_SUCCESS;
}

CUresult ct_host_memory_free(struct ct_context *context, void *pointer)
{
    return pointer ? ct_allocation_remove(context, (uint64_t)(uintptr_t)pointer, CT_RANGE_HOST) : CUDA_SUCCESS;
}

/* The whole pages that contain [pointer, pointer + size_bytes). False if the sum overflows. */
static bool widen_to_pages(const void *pointer, uint64_t size_bytes, uint64_t *out_first, uint64_t *out_bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = (uint64_t)(uintptr_t)pointer, end;

    if (__builtin_add_overflow(start, size_bytes, &end) || __builtin_add_overflow(end, page - 1, &end))
        return false;
    *out_first = start & ~(page - 1);
    *out_bytes = (end & ~(page - 1)) - *out_first;
    return true;
}

/* msync with MS_ASYNC has no effect on the pages, but fails with ENOMEM if some of them are not mapped. */
static bool pages_exist(uint64_t first, uint64_t bytes)
{
    return msync((void *)(uintptr_t)first, bytes, MS_ASYNC) == 0 || errno != ENOMEM;
}

/* Does what a driver would do with pages that it locks. CPU devices lock no pages, and for those the manual requires that the pages be
 * populated, which saves kernels the page faults. Pages without write access are registered as read-only even without the flag if the
 * device uses the host's page tables; on other devices the flag is required. */
static CUresult take_pages_of_processor(const struct ct_device_info *info, const struct ct_host_import *import, unsigned *flags)
{
    const uint64_t first = (uint64_t)(uintptr_t)import->pages;
    const enum ct_pages found = ct_pages_populate(first, import->size_bytes);

    if (found == CT_PAGES_MISSING)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "not all pages at %p are mapped", import->pages);
    if (found == CT_PAGES_WRITABLE || ct_pages_are_writable(first, import->size_bytes))
        return CUDA_SUCCESS;
    if (!ct_pages_are_readable(first, import->size_bytes))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the pages at %p are not readable", import->pages);
    if (*flags & CU_MEMHOSTREGISTER_READ_ONLY)
        return CUDA_SUCCESS;
    if (!info->pageable_access)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the pages at %p are not writable, and the read-only flag is not set", import->pages);
    *flags |= CU_MEMHOSTREGISTER_READ_ONLY;
    return CUDA_SUCCESS;
}

static CUresult check_registration(const struct ct_context *context, const void *pointer, uint64_t size_bytes, unsigned flags)
{
    struct ct_range other;

    if (!pointer || size_bytes == 0 || flags & ~(unsigned)REGISTER_FLAGS)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "registration of %llu bytes at %p, flags 0x%x", (unsigned long long)size_bytes, pointer,
                       flags);
    if (size_bytes > ct_budget_host_limit())
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes exceed the physical memory that can be page-locked",
                       (unsigned long long)size_bytes);
    if ((flags & CU_MEMHOSTREGISTER_READ_ONLY) && !context->device->info.import_read_only)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "the device does not support read-only registration");
    if (ct_address_find_any((uint64_t)(uintptr_t)pointer, size_bytes, &other))
        return ct_fail(other.kind == CT_RANGE_REGISTERED ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED : CUDA_ERROR_INVALID_VALUE,
                       "%llu bytes at %p overlap the range at 0x%llx", (unsigned long long)size_bytes, pointer,
                       (unsigned long long)other.start);
    return CUDA_SUCCESS;
}

/* Checks that Linux can lock the pages at all. Returns INVALID_VALUE if not, as NVIDIA's driver does. */
static CUresult check_lockable(const struct ct_host_import *import)
{
    if (import->io_memory || ct_pages_can_be_locked((uint64_t)(uintptr_t)import->pages, import->size_bytes))
        return CUDA_SUCCESS;
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "Linux cannot lock the pages at %p", import->pages);
}

/* Drivers do not report why they reject pages. If Linux cannot lock the pages, that is the reason; RADV rejects all file mappings. */
static CUresult refusal(CUresult r, const struct ct_host_import *import)
{
    if (r != CUDA_ERROR_UNKNOWN && r != CUDA_ERROR_MAP_FAILED)
        return r;
    r = check_lockable(import);
    return r == CUDA_SUCCESS ? ct_fail(CUDA_ERROR_NOT_PERMITTED, "the driver refuses the pages at %p", import->pages) : r;
}

CUresult ct_host_memory_register(struct ct_context *context, void *pointer, uint64_t size_bytes, unsigned flags)
{
    struct ct_host_import import = {.io_memory = flags & CU_MEMHOSTREGISTER_IOMEMORY};
    struct ct_allocation *allocation;
    uint64_t first;
    CUresult r = check_registration(context, pointer, size_bytes, flags);

    if (r != CUDA_SUCCESS)
        return r;
    if (!widen_to_pages(pointer, size_bytes, &first, &import.size_bytes) || !pages_exist(first, import.size_bytes))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%llu bytes at %p are not all mapped", (unsigned long long)size_bytes, pointer);
    import.pages = (void *)(uintptr_t)first;
    if (context->device->info.import_failures_are_sticky && (r = check_lockable(&import)) != CUDA_SUCCESS)
        return r;
    if (context->device->info.kind == CT_DEVICE_CPU &&
        (r = take_pages_of_processor(&context->device->info, &import, &flags)) != CUDA_SUCCESS)
        return r;
    allocation = calloc(1, sizeof *allocation);
    if (!allocation)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "registration");
    r = refusal(ct_backing_import(context, &import, &allocation->backing), &import);
    if (r == CUDA_SUCCESS)
        r = publish(context, allocation, (uint64_t)(uintptr_t)pointer - first, size_bytes, CT_RANGE_REGISTERED, flags);
    if (r != CUDA_SUCCESS)
        ct_allocation_destroy(context, allocation);
    return r;
}

static CUresult check_registered(const void *pointer)
{
    struct ct_range range;

    if (ct_address_find_any((uint64_t)(uintptr_t)pointer, 1, &range))
        return CUDA_SUCCESS;
    return ct_fail(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "%p is not registered", pointer);
}

CUresult ct_host_memory_unregister(struct ct_context *context, void *pointer)
{
    CUresult r = check_registered(pointer);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_allocation_remove(context, (uint64_t)(uintptr_t)pointer, CT_RANGE_REGISTERED);
    if (r == CUDA_ERROR_INVALID_VALUE && check_registered(pointer) != CUDA_SUCCESS) /* another thread has unregistered it */
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    return r;
}

CUresult ct_host_memory_find(const void *pointer, struct ct_range *out)
{
    struct ct_range range;

    if (!pointer || !ct_address_find_any((uint64_t)(uintptr_t)pointer, 1, &range) ||
        (range.kind != CT_RANGE_HOST && range.kind != CT_RANGE_REGISTERED) || (uint64_t)(uintptr_t)range.host != range.start)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%p is not in page-locked memory", pointer);
    *out = range;
    return CUDA_SUCCESS;
}

bool ct_host_memory_reach(const struct ct_device *device, const struct ct_range *range, uint64_t *out)
{
    uint64_t first;

    if (!device->info.maps_host)
        return false;
    if (range->device == device->ordinal)
        *out = range->device_pointer;
    else if (device->info.pageable_access) /* the device uses the host's page tables, so no mapping is needed */
        *out = (uint64_t)(uintptr_t)range->host;
    else if (ct_host_aliases_find(device, range->memory, &first))
        *out = first + range->memory_offset;
    else
        return false;
    return true;
}

CUresult ct_host_memory_device_pointer(const struct ct_context *context, const void *pointer, CUdeviceptr *out)
{
    struct ct_range range;
    CUresult r = ct_host_memory_find(pointer, &range);
    uint64_t start;

    if (r != CUDA_SUCCESS)
        return r;
    if (!context->device->info.maps_host)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "device %d cannot map page-locked memory", context->device->ordinal);
    if (!ct_host_memory_reach(context->device, &range, &start))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "page-locked memory of device %d is not accessible to device %d", range.device,
                       context->device->ordinal);
    *out = start + (uint64_t)((const char *)pointer - (const char *)range.host);
    return CUDA_SUCCESS;
}

unsigned ct_host_memory_flags(const struct ct_range *range)
{
    return (range->flags & ALLOC_FLAGS) | (ct_process.devices[range->device].info.maps_host ? CU_MEMHOSTALLOC_DEVICEMAP : 0);
}
