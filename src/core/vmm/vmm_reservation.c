/* SPDX-License-Identifier: Apache-2.0 */
/* Reservations of addresses (Driver API: Virtual Memory Management).
 *
 * The map of addresses contains a reservation as one range (CT_RANGE_VIRTUAL), so that copies may span several mappings; this file finds
 * the mappings in it. A device accesses the reservation through a view, which is created when memory of the device is first mapped, or,
 * where the driver chooses addresses, with the reservation. */
#include "vmm_reservation.h"

#include "core/backing/device_open.h"
#include "core/backing/address_rule.h"
#include "core/device/device.h"
#include "core/base/log.h"
#include "core/memory/memory.h"
#include "core/base/process.h"
#include "core/backing/reservation.h"

#include <stdlib.h>

#define CT_CHANNEL "memory"

struct ct_reservation_view {
    struct ct_reservation_view *next;
    struct ct_vmm_view view;
};

/* ---- finding ---- */

CUresult ct_vmm_find_reservation_locked(uint64_t address, uint64_t size_bytes, struct ct_reservation **out)
{
    struct ct_range range;

    if (!ct_address_find_any(address, 1, &range) || range.kind != CT_RANGE_VIRTUAL ||
        size_bytes > range.size_bytes - (address - range.start))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx + %llu is not in one reservation", (unsigned long long)address,
                       (unsigned long long)size_bytes);
    *out = range.reservation;
    return CUDA_SUCCESS;
}

size_t ct_vmm_first_ending_after_locked(const struct ct_reservation *reservation, uint64_t address)
{
    size_t low = 0, high = reservation->n;

    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct ct_vmm_mapping *mapping = &reservation->mappings[middle];

        if (mapping->start + mapping->size_bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

CUresult ct_vmm_find_mapped_locked(uint64_t address, uint64_t size_bytes, struct ct_vmm_run *out)
{
    struct ct_reservation *reservation;
    uint64_t reached = address;
    size_t first, next;
    CUresult r = ct_vmm_find_reservation_locked(address, size_bytes, &reservation);

    if (r != CUDA_SUCCESS)
        return r;
    first = next = ct_vmm_first_ending_after_locked(reservation, address);
    while (reached - address < size_bytes && next < reservation->n && reservation->mappings[next].start <= reached) {
        reached = reservation->mappings[next].start + reservation->mappings[next].size_bytes;
        next++;
    }
    if (reached - address < size_bytes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "nothing is mapped at 0x%llx", (unsigned long long)reached);
    *out = (struct ct_vmm_run){reservation, &reservation->mappings[first], next - first};
    return CUDA_SUCCESS;
}

CUresult ct_vmm_find_whole_locked(uint64_t address, uint64_t size_bytes, struct ct_vmm_run *out)
{
    const struct ct_vmm_mapping *last;
    struct ct_vmm_run run;
    CUresult r = ct_vmm_find_mapped_locked(address, size_bytes, &run);

    if (r != CUDA_SUCCESS)
        return r;
    last = run.mappings + run.count - 1;
    if (run.mappings->start != address || last->start + last->size_bytes != address + size_bytes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx + %llu contains only a part of a mapping", (unsigned long long)address,
                       (unsigned long long)size_bytes);
    *out = run;
    return CUDA_SUCCESS;
}

/* ---- views ---- */

/* Creates a view at the reserved addresses or, with `align`, at addresses that the driver chooses. */
static CUresult add_view(struct ct_reservation *reservation, struct ct_device *device, uint64_t align, struct ct_vmm_view **out)
{
    const struct ct_vmm_implementation *implementation;
    struct ct_reservation_view *view = calloc(1, sizeof *view);
    CUresult r;

    if (!view)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a view of a reservation");
    r = ct_vmm_implementation_of(device, &implementation);
    if (r == CUDA_SUCCESS)
        r = align ? implementation->view_create_aligned(device, align, reservation->size_bytes, &view->view)
                  : implementation->view_create(device, reservation->start, reservation->reserved_bytes, &view->view);
    if (r != CUDA_SUCCESS) {
        free(view);
        return r;
    }
    view->next = reservation->views;
    reservation->views = view;
    *out = &view->view;
    return CUDA_SUCCESS;
}

CUresult ct_vmm_find_view_locked(struct ct_reservation *reservation, struct ct_device *device, struct ct_vmm_view **out)
{
    CUresult r;

    for (struct ct_reservation_view *view = reservation->views; view; view = view->next) {
        if (view->view.device == device) {
            *out = &view->view;
            return CUDA_SUCCESS;
        }
    }
    if (reservation->refused || ct_vmm_driver_places(device))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s cannot map memory at 0x%llx", device->info.name,
                       (unsigned long long)reservation->start);
    r = add_view(reservation, device, 0, out);
    /* Without host memory this was the driver's first chance to refuse the addresses. */
    reservation->refused = r != CUDA_SUCCESS && r != CUDA_ERROR_OUT_OF_MEMORY && ct_address_is_placed(device->info.address_rule);
    return r;
}

/* ---- reservations ---- */

/* Finds addresses for `reservation`, whose size is set. */
static CUresult place(struct ct_reservation *reservation, struct ct_device *device, uint64_t align, uint64_t hint)
{
    struct ct_vmm_view *view;
    CUresult r;

    if (ct_vmm_driver_places(device)) {
        if ((r = ct_device_open(device)) != CUDA_SUCCESS || (r = add_view(reservation, device, align, &view)) != CUDA_SUCCESS)
            return r;
        reservation->start = ct_rule_address(&device->info.target, (ct_devaddr){view->memory->address.v + view->offset});
        return CUDA_SUCCESS;
    }
    r = CUDA_ERROR_OUT_OF_MEMORY;
    if (hint)
        r = ct_reserve_at(&device->info, hint, reservation->size_bytes, &reservation->reserved, &reservation->reserved_bytes);
    if (r != CUDA_SUCCESS)
        r = ct_reserve(&device->info, reservation->size_bytes, align, &reservation->reserved, &reservation->reserved_bytes);
    reservation->start = (uint64_t)(uintptr_t)reservation->reserved;
    return r;
}

static CUresult publish(struct ct_reservation *reservation, const struct ct_device *device)
{
    const struct ct_range range = {
        .start = reservation->start,
        .size_bytes = reservation->size_bytes,
        .kind = CT_RANGE_VIRTUAL,
        .device = device->ordinal,
        .device_pointer = reservation->start,
        .id = ct_process_new_id(),
        .reservation = reservation,
    };

    return ct_address_insert(&range);
}

static void destroy_reservation(struct ct_reservation *reservation)
{
    if (!reservation)
        return;
    while (reservation->views) {
        struct ct_reservation_view *view = reservation->views;
        const struct ct_vmm_implementation *implementation;

        reservation->views = view->next;
        if (view->view.device && ct_vmm_implementation_of(view->view.device, &implementation) == CUDA_SUCCESS)
            implementation->view_finish(&view->view);
        free(view);
    }
    if (!reservation->refused)
        ct_unreserve(reservation->reserved, reservation->reserved_bytes);
    free(reservation->mappings);
    free(reservation);
}

CUresult ct_vmm_reserve(uint64_t size_bytes, uint64_t align, uint64_t hint, uint64_t *out_address)
{
    struct ct_device *device = ct_vmm_default_device();
    const struct ct_vmm_implementation *implementation;
    struct ct_reservation *reservation;
    uint64_t address;
    CUresult r;

    if (align < CT_VMM_GRANULARITY && !(align & (align - 1)))
        align = CT_VMM_GRANULARITY;
    /* as NVIDIA's driver validates them */
    if (size_bytes == 0 || size_bytes % CT_VMM_GRANULARITY || align & (align - 1) || hint & (align - 1))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "invalid reservation of %llu bytes, aligned to %llu, at 0x%llx",
                       (unsigned long long)size_bytes, (unsigned long long)align, (unsigned long long)hint);
    if ((r = ct_vmm_implementation_of(device, &implementation)) != CUDA_SUCCESS)
        return r;
    if (!(reservation = calloc(1, sizeof *reservation)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a reservation");
    reservation->size_bytes = size_bytes;
    r = place(reservation, device, align, hint);
    address = reservation->start; /* once the reservation is published, another thread may free it */
    if (r == CUDA_SUCCESS)
        r = publish(reservation, device);
    if (r != CUDA_SUCCESS) {
        destroy_reservation(reservation);
        return r;
    }
    *out_address = address;
    return CUDA_SUCCESS;
}

static CUresult unreserve_locked(uint64_t address, uint64_t size_bytes, struct ct_reservation **out)
{
    struct ct_reservation *reservation;
    struct ct_range range;
    CUresult r = ct_vmm_find_reservation_locked(address, size_bytes, &reservation);

    if (r != CUDA_SUCCESS)
        return r;
    if (reservation->start != address || reservation->size_bytes != size_bytes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the reservation is 0x%llx + %llu", (unsigned long long)reservation->start,
                       (unsigned long long)reservation->size_bytes);
    if (reservation->n)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "memory is still mapped at 0x%llx", (unsigned long long)reservation->mappings->start);
    r = ct_address_remove(address, CT_RANGE_VIRTUAL, &range);
    if (r == CUDA_SUCCESS)
        *out = reservation;
    return r;
}

CUresult ct_vmm_unreserve(uint64_t address, uint64_t size_bytes)
{
    struct ct_reservation *reservation;
    CUresult r;

    ct_mutex_lock(&ct_vmm_lock);
    r = unreserve_locked(address, size_bytes, &reservation);
    ct_mutex_unlock(&ct_vmm_lock);
    if (r == CUDA_SUCCESS)
        destroy_reservation(reservation); /* unmapping has waited for all work in the range */
    return r;
}
