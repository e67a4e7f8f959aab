/* SPDX-License-Identifier: Apache-2.0 */
/* Backend memory at a CUDA address, by the device's address rule:
 *
 *   CHOSEN, CHOSEN_MASK, WINDOWS   host address space is reserved, then the memory is created at that address. NVIDIA's driver 580 corrupts
 *                                  later allocations if an address in use is requested, so an address that failed stays reserved
 *                                  forever: it is never requested again.
 *   SHARED                         the mapping's host pointer is the address
 *   OWN                            the driver's address is the CUDA address; host memory has two addresses
 */
#include "memory_backing.h"

#include "host_aliases.h"
#include "core/base/log.h"
#include "memory_budget.h"
#include "core/ipc/memory_share.h"
#include "core/base/process.h"
#include "reservation.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define CT_CHANNEL "memory"
#define IMPORT_METHODS 2

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
    return context->backend->memory->create(context->backend_device, request, &backing->memory);
}

static CUresult create_by_driver(struct ct_context *context, const struct ct_memory_request *request, struct ct_backing *backing)
{
    CUresult r = context->backend->memory->create(context->backend_device, request, &backing->memory);

    if (r != CUDA_SUCCESS)
        return r;
    backing->address = backing->memory->address.v;
    if ((backing->address & (request->align - 1)) == 0)
        return CUDA_SUCCESS;
    context->backend->memory->destroy(backing->memory);
    return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "the driver allocated memory at 0x%llx, which is not aligned to %llu",
                   (unsigned long long)backing->address, (unsigned long long)request->align);
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
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes requested, one allocation of the device is at most %llu",
                       (unsigned long long)size_bytes, (unsigned long long)info->max_allocation_bytes);
    r = ct_budget_take(context->device, size_bytes); /* first: a failed allocation by a driver may make an address unusable */
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

CUresult ct_backing_create_portable(struct ct_context *context, uint64_t size_bytes, enum ct_memory_kind kind, struct ct_backing *out)
{
    CUresult r = ct_backing_create_host(context, size_bytes, kind, out);

    if (r == CUDA_SUCCESS)
        ct_host_aliases_make(context->device, NULL, out);
    return r;
}

static CUresult import_at(struct ct_context *context, struct ct_host_import *import, uint64_t want_address, struct ct_backing *backing)
{
    CUresult r;

    import->want_address = want_address;
    r = context->backend->memory->import_host(context->backend_device, import, &backing->memory);
    if (r == CUDA_SUCCESS)
        backing->address = want_address ? want_address : backing->memory->address.v;
    return r;
}

/* Imports at an address in the arena: for drivers that accept only multiples of 64 KiB, since the pages may be less aligned; for other
 * drivers if another registration already contains a part of the pages. */
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
    if (r != CUDA_SUCCESS)
        return r;
    ct_host_aliases_make(context->device, pages, &backing);
    *out = backing;
    return CUDA_SUCCESS;
}

/* ---- file descriptors ---- */

/* The size of the address range: memory that a driver exported is mapped as a whole, even if only a part of it is needed. */
static uint64_t extent_of(const struct ct_fd_import *import)
{
    uint64_t start = 0, end = 0;

    for (; import; import = import->next) {
        uint64_t whole = start + (import->pages ? import->size_bytes : import->total_bytes);

        end = whole > end ? whole : end;
        start += import->size_bytes;
    }
    return end;
}

/* Tries each method at a separate address: an address that failed stays reserved, and is never requested again. */
static CUresult import_placed(struct ct_context *context, struct ct_fd_import *import, struct ct_backing *out)
{
    CUresult r = CUDA_ERROR_NOT_SUPPORTED;

    for (import->method = 0; import->method < IMPORT_METHODS && r != CUDA_SUCCESS; import->method++) {
        struct ct_backing backing = {0};

        r = ct_reserve(&context->device->info, extent_of(import), 1, &backing.reserved, &backing.reserved_bytes);
        if (r != CUDA_SUCCESS)
            return r;
        backing.address = import->want_address = (uint64_t)(uintptr_t)backing.reserved;
        r = context->backend->sharing->import_fd(context->backend_device, import, &backing.memory);
        if (r == CUDA_SUCCESS)
            *out = backing;
    }
    return r;
}

CUresult ct_backing_import_fd(struct ct_context *context, const struct ct_fd_import *import, struct ct_backing *out)
{
    struct ct_fd_import one = *import;
    CUresult r;

    one.method = 0;
    one.want_address = 0;
    if (is_placed(context))
        r = import_placed(context, &one, out);
    else if ((r = context->backend->sharing->import_fd(context->backend_device, &one, &out->memory)) == CUDA_SUCCESS)
        out->address = out->memory->address.v;
    if (r == CUDA_SUCCESS)
        out->host = out->memory->host;
    return r;
}

/* ---- other processes ---- */

/* On CPU devices a descriptor is that of all the device's memory. Another process of the user can open it in /proc anyway, unless this one
 * is not dumpable (docs/notes/memory_file.md). */
static bool would_reveal_memory(const struct ct_memory_share *part)
{
    return part->pages && prctl(PR_GET_DUMPABLE) != 1;
}

/* Exports all parts of the memory. */
static CUresult export(struct ct_device *device, struct ct_memory *memory, struct ct_shared_memory *out)
{
    struct ct_shared_memory shared = {0};
    struct ct_memory_share first;
    CUresult r = device->backend->sharing->export(memory, 0, &first);

    if (r != CUDA_SUCCESS)
        return r;
    if (would_reveal_memory(&first)) {
        close(first.fd);
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "this process is not dumpable, so memory of %s is not shared", device->info.name);
    }
    shared.parts = calloc(first.n_parts, sizeof *shared.parts);
    if (!shared.parts) {
        close(first.fd);
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no host memory to share memory with other processes");
    }
    memcpy(shared.uuid, device->info.uuid, sizeof shared.uuid);
    shared.parts[shared.n_parts++] = first;
    while (shared.n_parts < first.n_parts && r == CUDA_SUCCESS)
        if ((r = device->backend->sharing->export(memory, shared.n_parts, &shared.parts[shared.n_parts])) == CUDA_SUCCESS)
            shared.n_parts++;
    if (r == CUDA_SUCCESS)
        *out = shared;
    else
        ct_shared_memory_finish(&shared);
    return r;
}

CUresult ct_backing_share(struct ct_device *device, const struct ct_backing *backing, uint64_t *share_id, struct ct_share_name *out)
{
    struct ct_shared_memory shared;
    uint64_t id = ct_process_new_id();
    CUresult r;

    if (*share_id)
        return ct_share_name_make(CT_SHARE_MEMORY, *share_id, out);
    if (!device->info.memory_fd)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s cannot share memory with other processes", device->info.name);
    if ((r = export(device, backing->memory, &shared)) != CUDA_SUCCESS || (r = ct_share_publish(id, &shared)) != CUDA_SUCCESS)
        return r;
    *share_id = id;
    return ct_share_name_make(CT_SHARE_MEMORY, id, out);
}

/* Pages can be imported by every device that imports host memory; memory that a driver exported, only by the same driver and device. */
static CUresult check_device(const struct ct_device_info *info, const struct ct_shared_memory *shared)
{
    bool same = !memcmp(info->uuid, shared->uuid, sizeof info->uuid);

    if (info->memory_fd && (shared->parts[0].pages ? info->can_import_host : same))
        return CUDA_SUCCESS;
    return ct_fail(CUDA_ERROR_MAP_FAILED, "memory of another device cannot be mapped on %s", info->name);
}

/* Converts the parts to the backend's list, in the caller's array. Only memory of a single part may start at an offset in its descriptor,
 * and only the last part may be shorter than what the driver maps: requesting an address twice corrupts others (see above). */
static CUresult list_imports(const struct ct_shared_memory *shared, struct ct_fd_import *imports, uint64_t *out_bytes)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < shared->n_parts; i++) {
        const struct ct_memory_share *part = &shared->parts[i];
        uint64_t lead = part->pages ? 0 : part->offset, size_bytes;
        bool last = i + 1 == shared->n_parts;

        if (__builtin_add_overflow(part->size_bytes, lead, &size_bytes) || __builtin_add_overflow(bytes, size_bytes, &bytes) ||
            (shared->n_parts > 1 && (part->pages || lead)) || (!last && part->total_bytes > part->size_bytes))
            return ct_fail(CUDA_ERROR_INVALID_HANDLE, "the parts of another process's memory are not contiguous");
        imports[i] = (struct ct_fd_import){
            .fd = part->fd,
            .pages = part->pages,
            .pages_offset = part->offset,
            .types = part->types,
            .total_bytes = part->total_bytes,
            .size_bytes = size_bytes,
            .next = last ? NULL : &imports[i + 1],
        };
    }
    *out_bytes = bytes;
    return CUDA_SUCCESS;
}

static CUresult open_shared(struct ct_context *context, const struct ct_shared_memory *shared, struct ct_backing *out, uint64_t *out_bytes)
{
    struct ct_fd_import *imports = calloc(shared->n_parts, sizeof *imports);
    CUresult r =
        imports ? check_device(&context->device->info, shared) : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no host memory to open shared memory");

    if (r == CUDA_SUCCESS)
        r = list_imports(shared, imports, out_bytes);
    if (r == CUDA_SUCCESS)
        r = ct_backing_import_fd(context, imports, out);
    if (r == CUDA_ERROR_NOT_SUPPORTED) /* NVIDIA's driver's result for its own exports if the host is out of memory */
        r = ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "the driver cannot import memory of another process");
    free(imports);
    return r;
}

CUresult ct_backing_open(struct ct_context *context, const struct ct_share_name *name, struct ct_backing *out, uint64_t *out_lead,
                         uint64_t *out_bytes)
{
    struct ct_shared_memory shared;
    uint64_t lead, bytes;
    CUresult r = ct_share_fetch(name, &shared);

    if (r != CUDA_SUCCESS)
        return r;
    lead = shared.parts[0].pages ? 0 : shared.parts[0].offset;
    r = open_shared(context, &shared, out, &bytes);
    ct_shared_memory_finish(&shared);
    if (r != CUDA_SUCCESS)
        return r;
    *out_lead = lead;
    *out_bytes = bytes - lead;
    return CUDA_SUCCESS;
}

void ct_backing_destroy(struct ct_context *context, struct ct_backing *backing)
{
    ct_host_aliases_drop(backing);
    if (backing->memory)
        context->backend->memory->destroy(backing->memory);
    ct_unreserve(backing->reserved, backing->reserved_bytes); /* only now: pages of host memory are mapped in it */
    ct_budget_give(context->device, backing->device_bytes);
    ct_budget_give_host(backing->host_bytes);
    *backing = (struct ct_backing){0};
}
