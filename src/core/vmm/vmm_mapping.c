/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings in reservations, and the access of devices to them (Driver API: Virtual Memory Management).
 *
 *   ──reserve──> RESERVED ──map──> MAPPED, no access ──set access──> ACCESSIBLE (read, or read and write)
 *   <───free────          <─unmap──      <────────── unmap, access NONE ──────
 *
 * Only the device of the memory can get access. A mapping that is to be unmapped, or to lose access, is first marked as closing, so that
 * copies do not find it any more; then the thread waits for the calls that found it before (address_uses.h) and for the work of every
 * context, which may use the mapping. */
#include "vmm_reservation.h"

#include "core/backing/address_uses.h"
#include "core/backing/shadows.h"
#include "core/device/context.h"
#include "core/device/device.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "core/stream/context_streams.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "memory"

static CUresult check_granularity(uint64_t address, uint64_t size_bytes)
{
    if (size_bytes == 0 || (address | size_bytes) % CT_VMM_GRANULARITY)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx + %llu are not multiples of the granularity", (unsigned long long)address,
                       (unsigned long long)size_bytes);
    return CUDA_SUCCESS;
}

/* ---- mappings ---- */

static CUresult make_room(struct ct_reservation *reservation)
{
    size_t capacity = reservation->capacity ? reservation->capacity * 2 : 4;
    struct ct_vmm_mapping *mappings;

    if (reservation->n < reservation->capacity)
        return CUDA_SUCCESS;
    if (!(mappings = realloc(reservation->mappings, capacity * sizeof *mappings)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the mappings of a reservation");
    reservation->mappings = mappings;
    reservation->capacity = capacity;
    return CUDA_SUCCESS;
}

/* The result codes are those of NVIDIA's driver, which also checks sizes before addresses. */
static CUresult check_part(const struct ct_allocated *allocated, uint64_t size_bytes, uint64_t offset)
{
    if (size_bytes % CT_VMM_GRANULARITY)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "a mapping of %llu bytes is not supported", (unsigned long long)size_bytes);
    if (offset)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "mapping memory at the offset %llu is not supported", (unsigned long long)offset);
    if (size_bytes > allocated->memory.size_bytes)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "a mapping of %llu bytes exceeds the memory's %llu", (unsigned long long)size_bytes,
                       (unsigned long long)allocated->memory.size_bytes);
    return CUDA_SUCCESS;
}

static CUresult map_locked(uint64_t address, uint64_t size_bytes, uint64_t offset, CUmemGenericAllocationHandle handle)
{
    struct ct_vmm_mapping mapping = {.start = address, .size_bytes = size_bytes, .access = CU_MEM_ACCESS_FLAGS_PROT_NONE};
    struct ct_reservation *reservation;
    size_t at;
    CUresult r;

    if ((r = ct_vmm_find_locked(handle, &mapping.allocated)) != CUDA_SUCCESS)
        return r;
    if (ct_vmm_is_tile_pool(&mapping.allocated->properties))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "memory of a tile pool cannot be mapped at addresses");
    if ((r = check_part(mapping.allocated, size_bytes, offset)) != CUDA_SUCCESS ||
        (r = check_granularity(address, size_bytes)) != CUDA_SUCCESS)
        return r;
    if ((r = ct_vmm_find_reservation_locked(address, size_bytes, &reservation)) != CUDA_SUCCESS)
        return r;
    at = ct_vmm_first_ending_after_locked(reservation, address);
    if (at < reservation->n && reservation->mappings[at].start - address < size_bytes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "memory is already mapped at 0x%llx", (unsigned long long)reservation->mappings[at].start);
    if (at < reservation->n && reservation->mappings[at].start < address)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "memory is already mapped at 0x%llx", (unsigned long long)address);
    if ((r = make_room(reservation)) != CUDA_SUCCESS ||
        (r = ct_vmm_find_view_locked(reservation, mapping.allocated->memory.device, &mapping.view)) != CUDA_SUCCESS)
        return r;
    memmove(&reservation->mappings[at + 1], &reservation->mappings[at], (reservation->n - at) * sizeof mapping);
    reservation->mappings[at] = mapping;
    reservation->n++;
    mapping.allocated->mappings++;
    return CUDA_SUCCESS;
}

CUresult ct_vmm_map(uint64_t address, uint64_t size_bytes, uint64_t offset, CUmemGenericAllocationHandle handle)
{
    CUresult r;

    ct_mutex_lock(&ct_vmm_lock);
    r = map_locked(address, size_bytes, offset, handle);
    ct_mutex_unlock(&ct_vmm_lock);
    return r;
}

/* Changes the access of mappings of one view. They keep their previous access if the device fails. */
static CUresult change_in_view_locked(const struct ct_vmm_run *run, CUmemAccess_flags access)
{
    struct ct_vmm_change *changes = calloc(run->count, sizeof *changes);
    CUresult r;

    if (!changes)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a list of %zu mappings", run->count);
    for (size_t i = 0; i < run->count; i++)
        changes[i] = (struct ct_vmm_change){.offset = run->mappings[i].start - run->reservation->start,
                                            .size_bytes = run->mappings[i].size_bytes,
                                            .memory = &run->mappings[i].allocated->memory,
                                            .was = run->mappings[i].access,
                                            .now = access};
    r = run->mappings->allocated->implementation->change(run->mappings->view, changes, (unsigned)run->count);
    for (size_t i = 0; i < run->count && r == CUDA_SUCCESS; i++)
        run->mappings[i].access = access;
    free(changes);
    return r;
}

/* Changes one view after the other. */
static CUresult change_locked(const struct ct_vmm_run *run, CUmemAccess_flags access)
{
    const struct ct_vmm_mapping *end = run->mappings + run->count;
    struct ct_vmm_run part = {run->reservation, run->mappings, 0};
    CUresult r = CUDA_SUCCESS;

    for (; part.mappings < end && r == CUDA_SUCCESS; part.mappings += part.count) {
        for (part.count = 1; part.mappings + part.count < end && part.mappings[part.count].view == part.mappings->view;)
            part.count++;
        r = change_in_view_locked(&part, access);
    }
    return r;
}

#define NO_MAPPING (-1) /* less than every CUmemAccess_flags */

static CUresult check_open(const struct ct_vmm_run *run, const void *closer)
{
    for (size_t i = 0; i < run->count; i++)
        if (run->mappings[i].closer && run->mappings[i].closer != closer)
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "another thread unmaps 0x%llx or changes its access",
                           (unsigned long long)run->mappings[i].start);
    return CUDA_SUCCESS;
}

/* Marks as closing the mappings whose access exceeds `kept`. The mappings must cover exactly the range. */
static CUresult close_locked(uint64_t address, uint64_t size_bytes, int kept, const void *closer, bool *out_any)
{
    struct ct_vmm_run run;
    CUresult r = ct_vmm_find_whole_locked(address, size_bytes, &run);

    *out_any = false;
    if (r != CUDA_SUCCESS || (r = check_open(&run, NULL)) != CUDA_SUCCESS)
        return r;
    for (size_t i = 0; i < run.count; i++)
        if ((int)run.mappings[i].access > kept) {
            run.mappings[i].closer = closer;
            *out_any = true;
        }
    return CUDA_SUCCESS;
}

/* The mappings that the call has closed, as far as they still exist, remain with the access that they have. */
static void reopen_locked(uint64_t address, uint64_t size_bytes, const void *closer)
{
    struct ct_reservation *reservation;

    if (ct_vmm_find_reservation_locked(address, size_bytes, &reservation) != CUDA_SUCCESS)
        return;
    for (size_t i = ct_vmm_first_ending_after_locked(reservation, address); i < reservation->n; i++)
        if (reservation->mappings[i].closer == closer)
            reservation->mappings[i].closer = NULL;
}

/* Closes mappings and waits for their users. */
static CUresult close_and_await(uint64_t address, uint64_t size_bytes, int kept, const void *closer)
{
    bool any;
    CUresult r;

    ct_mutex_lock(&ct_vmm_lock);
    r = close_locked(address, size_bytes, kept, closer, &any);
    ct_mutex_unlock(&ct_vmm_lock);
    if (r == CUDA_SUCCESS && any) {
        ct_address_uses_await(address, size_bytes);
        ct_contexts_synchronize_except(NULL);
    }
    return r;
}

static CUresult unmap_locked(uint64_t address, uint64_t size_bytes)
{
    struct ct_reservation *reservation;
    struct ct_vmm_run run;
    CUresult r = ct_vmm_find_whole_locked(address, size_bytes, &run);

    if (r != CUDA_SUCCESS || (r = change_locked(&run, CU_MEM_ACCESS_FLAGS_PROT_NONE)) != CUDA_SUCCESS)
        return r;
    for (size_t i = 0; i < run.count; i++) {
        run.mappings[i].allocated->mappings--;
        ct_vmm_drop_if_unused_locked(run.mappings[i].allocated);
    }
    reservation = run.reservation;
    reservation->n -= run.count;
    memmove(run.mappings, run.mappings + run.count, (size_t)(reservation->mappings + reservation->n - run.mappings) * sizeof *run.mappings);
    return CUDA_SUCCESS;
}

CUresult ct_vmm_unmap(uint64_t address, uint64_t size_bytes)
{
    CUresult r = check_granularity(address, size_bytes);

    if (r != CUDA_SUCCESS || (r = close_and_await(address, size_bytes, NO_MAPPING, &r)) != CUDA_SUCCESS)
        return r;
    ct_mutex_lock(&ct_vmm_lock);
    r = unmap_locked(address, size_bytes);
    if (r == CUDA_SUCCESS)
        ct_shadows_unmapped(address, size_bytes);
    else
        reopen_locked(address, size_bytes, &r);
    ct_mutex_unlock(&ct_vmm_lock);
    return r;
}

/* ---- access ---- */

static CUresult check_desc(const CUmemAccessDesc *desc)
{
    struct ct_device *device;

    if (desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
        desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "access flags 0x%x do not exist", (unsigned)desc->flags);
    switch ((int)desc->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: /* the result code is that of NVIDIA's driver, though the manual also lists INVALID_DEVICE */
        return ct_device_lookup(desc->location.id, &device) == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "access of the host to mapped memory is not supported");
    }
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "memory location type %d does not exist", (int)desc->location.type);
}

static CUresult set_access_locked(uint64_t address, uint64_t size_bytes, const CUmemAccessDesc *desc, const void *closer)
{
    struct ct_vmm_run run;
    CUresult r = ct_vmm_find_whole_locked(address, size_bytes, &run);

    if (r != CUDA_SUCCESS || (r = check_open(&run, closer)) != CUDA_SUCCESS)
        return r;
    for (size_t i = 0; i < run.count; i++)
        if (run.mappings[i].view->device->ordinal != desc->location.id)
            return ct_fail(CUDA_ERROR_INVALID_DEVICE, "device %d cannot access memory of device %d", desc->location.id,
                           run.mappings[i].view->device->ordinal);
    return change_locked(&run, desc->flags);
}

CUresult ct_vmm_set_access(uint64_t address, uint64_t size_bytes, const CUmemAccessDesc *descs, size_t count)
{
    int kept = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    struct ct_vmm_run run;
    CUresult r = check_granularity(address, size_bytes);

    if (r != CUDA_SUCCESS)
        return r;
    ct_mutex_lock(&ct_vmm_lock);
    r = ct_vmm_find_whole_locked(address, size_bytes, &run);
    ct_mutex_unlock(&ct_vmm_lock);
    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++) { /* all of them are validated before the first takes effect */
        r = check_desc(&descs[i]);
        kept = (int)descs[i].flags < kept ? (int)descs[i].flags : kept;
    }
    if (r != CUDA_SUCCESS || (r = close_and_await(address, size_bytes, kept, &r)) != CUDA_SUCCESS)
        return r;
    ct_mutex_lock(&ct_vmm_lock);
    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = set_access_locked(address, size_bytes, &descs[i], &r);
    reopen_locked(address, size_bytes, &r);
    ct_mutex_unlock(&ct_vmm_lock);
    return r;
}
