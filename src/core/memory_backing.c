/* SPDX-License-Identifier: Apache-2.0 */
/* Backend memory at a CUDA address, by the device's address rule:
 *
 *   CHOSEN, CHOSEN_MASK, WINDOWS   host address space is reserved, then the memory is made for that address. NVIDIA's driver 580 spoils
 *                                  later allocations when it is asked for an address in use, so an address that failed stays reserved
 *                                  for good: it is never asked for again.
 *   SHARED                         the mapping's host pointer is the address
 *   OWN                            the driver's address is the CUDA address; host memory has two
 */
#include "memory_backing.h"

#include "log.h"
#include "memory.h"
#include "memory_budget.h"
#include "memory_share.h"
#include "process.h"
#include "reservation.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CT_CHANNEL "memory"
#define IMPORT_WAYS 2

static uint64_t page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool is_placed(const struct ct_context *context)
{
    return ct_address_is_placed(context->device->info.address_rule);
}

/* ---- device memory ---- */

static CUresult create_placed(struct ct_context *context, struct ct_memory_request *request, struct ct_backing *backing)
{
    CUresult r = ct_reserve(&context->device->info, request->size_bytes, request->align, &backing->reserved, &backing->reserved_bytes);

    if (r != CUDA_SUCCESS)
        return r;
    backing->address = request->want_address = (uint64_t)(uintptr_t)backing->reserved;
    return context->backend->memory_create(context->backend_device, request, &backing->memory);
}

static CUresult create_by_driver(struct ct_context *context, const struct ct_memory_request *request, struct ct_backing *backing)
{
    CUresult r = context->backend->memory_create(context->backend_device, request, &backing->memory);

    if (r != CUDA_SUCCESS)
        return r;
    backing->address = backing->memory->address.v;
    if ((backing->address & (request->align - 1)) == 0)
        return CUDA_SUCCESS;
    context->backend->memory_destroy(backing->memory);
    return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "memory came at 0x%llx, which is not aligned to %llu", (unsigned long long)backing->address,
                   (unsigned long long)request->align);
}

static CUresult create(struct ct_context *context, struct ct_memory_request *request, struct ct_backing *out)
{
    struct ct_backing backing = {0};
    CUresult r = is_placed(context) ? create_placed(context, request, &backing) : create_by_driver(context, request, &backing);

    if (r != CUDA_SUCCESS)
        return r;
    backing.host = backing.memory->host;
    *out = backing;
    return CUDA_SUCCESS;
}

CUresult ct_backing_create_device(struct ct_context *context, uint64_t size_bytes, uint64_t align, struct ct_backing *out)
{
    const struct ct_device_info *info = &context->device->info;
    struct ct_memory_request request = {.size_bytes = size_bytes, .align = align, .kind = CT_MEMORY_DEVICE};
    CUresult r;

    if (size_bytes > info->max_allocation_bytes)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes wanted, the device gives at most %llu at once", (unsigned long long)size_bytes,
                       (unsigned long long)info->max_allocation_bytes);
    r = ct_budget_take(context->device, size_bytes); /* first: a driver that is asked for too much may leave an address spoiled */
    if (r != CUDA_SUCCESS)
        return r;
    r = create(context, &request, out);
    if (r == CUDA_ERROR_OUT_OF_MEMORY && ct_budget_reclaim(context->device))
        r = create(context, &request, out);
    if (r == CUDA_SUCCESS)
        out->device_bytes = size_bytes;
    else
        ct_budget_give(context->device, size_bytes);
    return r;
}

/* ---- host memory ---- */

CUresult ct_backing_create_host(struct ct_context *context, uint64_t size_bytes, enum ct_memory_kind kind, struct ct_backing *out)
{
    struct ct_memory_request request = {.size_bytes = size_bytes, .align = page_bytes(), .kind = kind};
    CUresult r = ct_budget_take_host(size_bytes);

    if (r != CUDA_SUCCESS)
        return r;
    if ((r = create(context, &request, out)) == CUDA_SUCCESS)
        out->host_bytes = size_bytes;
    else
        ct_budget_give_host(size_bytes);
    return r;
}

static CUresult import_at(struct ct_context *context, struct ct_host_import *import, uint64_t want_address, struct ct_backing *backing)
{
    CUresult r;

    import->want_address = want_address;
    r = context->backend->memory_import_host(context->backend_device, import, &backing->memory);
    if (r == CUDA_SUCCESS)
        backing->address = want_address ? want_address : backing->memory->address.v;
    return r;
}

/* In the arena: where drivers take only addresses at multiples of 64 KiB, since the pages' own may be less aligned; elsewhere for pages
 * of which another registration has a part already. */
static CUresult import_in_arena(struct ct_context *context, struct ct_host_import *import, struct ct_backing *backing)
{
    CUresult r = ct_reserve(&context->device->info, import->size_bytes, 1, &backing->reserved, &backing->reserved_bytes);

    return r == CUDA_SUCCESS ? import_at(context, import, (uint64_t)(uintptr_t)backing->reserved, backing) : r;
}

CUresult ct_backing_import(struct ct_context *context, const struct ct_host_import *pages, struct ct_backing *out)
{
    const struct ct_device_info *info = &context->device->info;
    struct ct_backing backing = {.host = pages->pages};
    struct ct_host_import import = *pages;
    CUresult r;

    if (!info->can_import_host)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "the device cannot use host memory that it did not allocate");
    if (!is_placed(context))
        r = import_at(context, &import, 0, &backing);
    else if (!info->import_at_pointer || (r = import_at(context, &import, (uint64_t)(uintptr_t)import.pages, &backing)) != CUDA_SUCCESS)
        r = import_in_arena(context, &import, &backing);
    if (r == CUDA_SUCCESS)
        *out = backing;
    return r;
}

/* ---- file descriptors ---- */

/* Tries each way, at an address of its own: one that failed stays reserved, and is never asked for again. What a driver exported comes
 * to an address whole, however little of it is wanted. */
static CUresult import_placed(struct ct_context *context, struct ct_fd_import *import, struct ct_backing *out)
{
    CUresult r = CUDA_ERROR_NOT_SUPPORTED;

    for (import->way = 0; import->way < IMPORT_WAYS && r != CUDA_SUCCESS; import->way++) {
        struct ct_backing backing = {0};

        r = ct_reserve(&context->device->info, import->pages ? import->size_bytes : import->total_bytes, 1, &backing.reserved,
                       &backing.reserved_bytes);
        if (r != CUDA_SUCCESS)
            return r;
        backing.address = import->want_address = (uint64_t)(uintptr_t)backing.reserved;
        r = context->backend->memory_import_fd(context->backend_device, import, &backing.memory);
        if (r == CUDA_SUCCESS)
            *out = backing;
    }
    return r;
}

CUresult ct_backing_import_fd(struct ct_context *context, const struct ct_fd_import *import, struct ct_backing *out)
{
    struct ct_fd_import one = *import;
    CUresult r;

    one.way = 0;
    one.want_address = 0;
    if (is_placed(context))
        r = import_placed(context, &one, out);
    else if ((r = context->backend->memory_import_fd(context->backend_device, &one, &out->memory)) == CUDA_SUCCESS)
        out->address = out->memory->address.v;
    if (r == CUDA_SUCCESS)
        out->host = out->memory->host;
    return r;
}

/* ---- other processes ---- */

CUresult ct_backing_share(struct ct_device *device, const struct ct_backing *backing, uint64_t *share_id, struct ct_share_name *out)
{
    struct ct_memory_share share;
    uint64_t id = ct_process_new_id();
    CUresult r;

    if (*share_id)
        return ct_share_name_make(CT_SHARE_MEMORY, *share_id, out);
    if (!device->info.memory_fd)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s shares no memory with other processes", device->info.name);
    if ((r = device->backend->memory_export(backing->memory, &share)) != CUDA_SUCCESS ||
        (r = ct_share_publish(id, &share, device->info.uuid)) != CUDA_SUCCESS)
        return r;
    *share_id = id;
    return ct_share_name_make(CT_SHARE_MEMORY, id, out);
}

/* Pages are memory for every device that imports host memory; what a driver exported is so for itself, and the same device. */
static CUresult check_device(const struct ct_device_info *info, const struct ct_memory_share *share, const uint8_t uuid[16])
{
    if (share->pages ? info->can_import_host && info->memory_fd : info->memory_fd && !memcmp(info->uuid, uuid, sizeof info->uuid))
        return CUDA_SUCCESS;
    return ct_fail(CUDA_ERROR_MAP_FAILED, "memory of another device cannot be mapped on %s", info->name);
}

CUresult ct_backing_open(struct ct_context *context, const struct ct_share_name *name, struct ct_backing *out, uint64_t *out_lead,
                         uint64_t *out_bytes)
{
    struct ct_fd_import import = {0};
    struct ct_memory_share share;
    uint8_t uuid[16];
    CUresult r = ct_share_fetch(name, &share, uuid);

    if (r != CUDA_SUCCESS)
        return r;
    import.fd = share.fd;
    import.pages = share.pages;
    import.pages_offset = share.offset;
    import.types = share.types;
    import.total_bytes = share.total_bytes;
    import.size_bytes = share.size_bytes + (share.pages ? 0 : share.offset);
    r = check_device(&context->device->info, &share, uuid);
    if (r == CUDA_SUCCESS)
        r = ct_backing_import_fd(context, &import, out);
    close(share.fd);
    if (r != CUDA_SUCCESS)
        return r;
    *out_lead = share.pages ? 0 : share.offset;
    *out_bytes = share.size_bytes;
    return CUDA_SUCCESS;
}

void ct_backing_destroy(struct ct_context *context, struct ct_backing *backing)
{
    if (backing->memory)
        context->backend->memory_destroy(backing->memory);
    ct_unreserve(backing->reserved, backing->reserved_bytes); /* pages of host memory lie in it */
    ct_budget_give(context->device, backing->device_bytes);
    ct_budget_give_host(backing->host_bytes);
    *backing = (struct ct_backing){0};
}
