/* SPDX-License-Identifier: Apache-2.0 */
/* Reserved addresses, and what is mapped there (Driver API: Virtual Memory Management).
 *
 *   ──reserve──> RESERVED ──map──> MAPPED, no access ──set access──> ACCESSIBLE (read, or read and write)
 *   <───free────          <─unmap──      <────────── unmap, access NONE ──────
 *
 * The map of addresses knows a reservation as one range (CT_RANGE_VIRTUAL), so that copies may go over several mappings; what of it is
 * there is asked here. A device sees the reservation through a view, made when its memory is first mapped. Only the device that has the
 * memory may be given access. What is taken away is first let go by all work that was begun: unmapping waits for every context. */
#include "vmm.h"

#include "address_rule.h"
#include "device.h"
#include "log.h"
#include "memory.h"
#include "process.h"
#include "reservation.h"
#include "vmm_handle.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CT_CHANNEL "memory"

struct mapping {
    uint64_t start, size_bytes;
    struct ct_allocated *allocated; /* counts us */
    struct ct_vmm_view *view;       /* of its device; one of the reservation's */
    CUmemAccess_flags access;
};

struct view {
    struct view *next;
    struct ct_vmm_view view;
};

struct ct_reservation {
    uint64_t start, size_bytes;
    void *reserved; /* NULL: the addresses are a driver's, and go with the view */
    uint64_t reserved_bytes;
    bool refused; /* a driver did not give these addresses: they are never asked for again */
    struct view *views;
    struct mapping *mappings; /* by start; they do not overlap */
    size_t n, capacity;
};

/* ---- finding ---- */

static CUresult check_granularity(uint64_t address, uint64_t size_bytes)
{
    if (size_bytes == 0 || (address | size_bytes) % CT_VMM_GRANULARITY)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx + %llu are no multiples of the granularity", (unsigned long long)address,
                       (unsigned long long)size_bytes);
    return CUDA_SUCCESS;
}

static CUresult find_locked(uint64_t address, uint64_t size_bytes, struct ct_reservation **out)
{
    struct ct_range range;

    if (!ct_address_find_any(address, 1, &range) || range.kind != CT_RANGE_VIRTUAL ||
        size_bytes > range.size_bytes - (address - range.start))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx + %llu is not in one reservation", (unsigned long long)address,
                       (unsigned long long)size_bytes);
    *out = range.reservation;
    return CUDA_SUCCESS;
}

/* Index of the first mapping that ends behind `address`; n: none. */
static size_t first_behind(const struct ct_reservation *reservation, uint64_t address)
{
    size_t low = 0, high = reservation->n;

    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct mapping *mapping = &reservation->mappings[middle];

        if (mapping->start + mapping->size_bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The mappings that hold [address, address + size_bytes) without a gap. */
static CUresult find_mapped_locked(uint64_t address, uint64_t size_bytes, struct ct_reservation **out, size_t *out_first, size_t *out_count)
{
    uint64_t reached = address;
    size_t first, next;
    CUresult r = find_locked(address, size_bytes, out);

    if (r != CUDA_SUCCESS)
        return r;
    first = next = first_behind(*out, address);
    while (reached - address < size_bytes && next < (*out)->n && (*out)->mappings[next].start <= reached) {
        reached = (*out)->mappings[next].start + (*out)->mappings[next].size_bytes;
        next++;
    }
    if (reached - address < size_bytes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "nothing is mapped at 0x%llx", (unsigned long long)reached);
    *out_first = first;
    *out_count = next - first;
    return CUDA_SUCCESS;
}

/* The same, but they must be all of the range, and nothing else. */
static CUresult find_whole_locked(uint64_t address, uint64_t size_bytes, struct ct_reservation **out, size_t *out_first, size_t *out_count)
{
    const struct mapping *first, *last;
    CUresult r = find_mapped_locked(address, size_bytes, out, out_first, out_count);

    if (r != CUDA_SUCCESS)
        return r;
    first = &(*out)->mappings[*out_first];
    last = first + *out_count - 1;
    if (first->start != address || last->start + last->size_bytes != address + size_bytes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx + %llu is a part of a mapping", (unsigned long long)address,
                       (unsigned long long)size_bytes);
    return CUDA_SUCCESS;
}

/* ---- work under way ---- */

/* What a context has failed at is told to who asks it; here it only has to be over. */
static void wait_for_all_work(void)
{
    uint32_t cursor = 0;
    struct ct_object *object;

    while ((object = ct_object_next_or_null(CT_OBJECT_CONTEXT, &cursor))) {
        struct ct_context *context = (struct ct_context *)object;

        if (ct_context_use(context) == CUDA_SUCCESS) {
            (void)ct_context_synchronize(context);
            ct_context_release(context);
        }
        ct_object_release(object);
    }
}

/* ---- reservations ---- */

static void destroy_reservation(struct ct_reservation *reservation)
{
    if (!reservation)
        return;
    while (reservation->views) {
        struct view *view = reservation->views;
        const struct ct_vmm_way *way;

        reservation->views = view->next;
        if (view->view.device && ct_vmm_way_of(view->view.device, &way) == CUDA_SUCCESS)
            way->view_finish(&view->view);
        free(view);
    }
    if (!reservation->refused)
        ct_unreserve(reservation->reserved, reservation->reserved_bytes);
    free(reservation->mappings);
    free(reservation);
}

/* A view in the addresses that are reserved or, with `align`, in such as the driver chooses. */
static CUresult add_view(struct ct_reservation *reservation, struct ct_device *device, uint64_t align, struct ct_vmm_view **out)
{
    const struct ct_vmm_way *way;
    struct view *view = calloc(1, sizeof *view);
    CUresult r;

    if (!view)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "view of a reservation");
    r = ct_vmm_way_of(device, &way);
    if (r == CUDA_SUCCESS)
        r = align ? way->view_create_aligned(device, align, reservation->size_bytes, &view->view)
                  : way->view_create(device, reservation->start, reservation->reserved_bytes, &view->view);
    if (r != CUDA_SUCCESS) {
        free(view);
        return r;
    }
    view->next = reservation->views;
    reservation->views = view;
    *out = &view->view;
    return CUDA_SUCCESS;
}

static CUresult find_view_locked(struct ct_reservation *reservation, struct ct_device *device, struct ct_vmm_view **out)
{
    CUresult r;

    for (struct view *view = reservation->views; view; view = view->next) {
        if (view->view.device == device) {
            *out = &view->view;
            return CUDA_SUCCESS;
        }
    }
    if (reservation->refused || ct_vmm_driver_places(device))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s cannot have memory at 0x%llx", device->info.name,
                       (unsigned long long)reservation->start);
    r = add_view(reservation, device, 0, out);
    reservation->refused = r != CUDA_SUCCESS && ct_address_is_placed(device->info.address_rule);
    return r;
}

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
    if (hint && hint % align == 0)
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

CUresult ct_vmm_reserve(uint64_t size_bytes, uint64_t align, uint64_t hint, uint64_t *out_address)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), address;
    struct ct_device *device = ct_vmm_default_device();
    const struct ct_vmm_way *way;
    struct ct_reservation *reservation;
    CUresult r;

    if (size_bytes == 0 || (size_bytes | hint) & (page - 1) || align & (align - 1))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%llu bytes, aligned to %llu, at 0x%llx", (unsigned long long)size_bytes,
                       (unsigned long long)align, (unsigned long long)hint);
    if ((r = ct_vmm_way_of(device, &way)) != CUDA_SUCCESS)
        return r;
    if (!(reservation = calloc(1, sizeof *reservation)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "reservation");
    reservation->size_bytes = size_bytes;
    r = place(reservation, device, align > CT_VMM_GRANULARITY ? align : CT_VMM_GRANULARITY, hint);
    address = reservation->start; /* once published, another thread may free it */
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
    CUresult r = find_locked(address, size_bytes, &reservation);

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
        destroy_reservation(reservation); /* unmapping waited for all that worked there */
    return r;
}

/* ---- mappings ---- */

static CUresult make_room(struct ct_reservation *reservation)
{
    size_t capacity = reservation->capacity ? reservation->capacity * 2 : 4;
    struct mapping *mappings;

    if (reservation->n < reservation->capacity)
        return CUDA_SUCCESS;
    if (!(mappings = realloc(reservation->mappings, capacity * sizeof *mappings)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "mappings of a reservation");
    reservation->mappings = mappings;
    reservation->capacity = capacity;
    return CUDA_SUCCESS;
}

static CUresult map_locked(uint64_t address, uint64_t size_bytes, CUmemGenericAllocationHandle handle)
{
    struct mapping mapping = {.start = address, .size_bytes = size_bytes, .access = CU_MEM_ACCESS_FLAGS_PROT_NONE};
    struct ct_reservation *reservation;
    size_t at;
    CUresult r;

    if ((r = ct_vmm_find_locked(handle, &mapping.allocated)) != CUDA_SUCCESS)
        return r;
    if (ct_vmm_is_tile_pool(&mapping.allocated->properties))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "memory of a tile pool has no addresses");
    if (size_bytes > mapping.allocated->memory.size_bytes) /* the code is that of NVIDIA's driver */
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%llu bytes of memory that has %llu", (unsigned long long)size_bytes,
                       (unsigned long long)mapping.allocated->memory.size_bytes);
    if ((r = find_locked(address, size_bytes, &reservation)) != CUDA_SUCCESS)
        return r;
    at = first_behind(reservation, address);
    if (at < reservation->n && reservation->mappings[at].start - address < size_bytes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "something is mapped at 0x%llx", (unsigned long long)reservation->mappings[at].start);
    if (at < reservation->n && reservation->mappings[at].start < address)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "something is mapped at 0x%llx", (unsigned long long)address);
    if ((r = make_room(reservation)) != CUDA_SUCCESS ||
        (r = find_view_locked(reservation, mapping.allocated->memory.device, &mapping.view)) != CUDA_SUCCESS)
        return r;
    memmove(&reservation->mappings[at + 1], &reservation->mappings[at], (reservation->n - at) * sizeof mapping);
    reservation->mappings[at] = mapping;
    reservation->n++;
    mapping.allocated->mappings++;
    return CUDA_SUCCESS;
}

CUresult ct_vmm_map(uint64_t address, uint64_t size_bytes, CUmemGenericAllocationHandle handle)
{
    CUresult r;

    if (size_bytes % CT_VMM_GRANULARITY) /* the code is that of NVIDIA's driver */
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "mapping %llu bytes", (unsigned long long)size_bytes);
    if ((r = check_granularity(address, size_bytes)) != CUDA_SUCCESS)
        return r;
    ct_mutex_lock(&ct_vmm_lock);
    r = map_locked(address, size_bytes, handle);
    ct_mutex_unlock(&ct_vmm_lock);
    return r;
}

/* Mappings of one view at a time get the access that they are to have. They keep what they had if the device refuses. */
static CUresult change_run_locked(const struct ct_reservation *reservation, struct mapping *mappings, size_t count,
                                  CUmemAccess_flags access)
{
    struct ct_vmm_change *changes = calloc(count, sizeof *changes);
    CUresult r;

    if (!changes)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "list of %zu mappings", count);
    for (size_t i = 0; i < count; i++)
        changes[i] = (struct ct_vmm_change){.offset = mappings[i].start - reservation->start,
                                            .size_bytes = mappings[i].size_bytes,
                                            .memory = &mappings[i].allocated->memory,
                                            .was = mappings[i].access,
                                            .now = access};
    r = mappings->allocated->way->change(mappings->view, changes, (unsigned)count);
    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++)
        mappings[i].access = access;
    free(changes);
    return r;
}

static CUresult change_locked(const struct ct_reservation *reservation, struct mapping *mappings, size_t count, CUmemAccess_flags access)
{
    CUresult r = CUDA_SUCCESS;

    for (size_t first = 0, next; first < count && r == CUDA_SUCCESS; first = next) {
        for (next = first + 1; next < count && mappings[next].view == mappings[first].view;)
            next++;
        r = change_run_locked(reservation, mappings + first, next - first, access);
    }
    return r;
}

static CUresult unmap_locked(uint64_t address, uint64_t size_bytes)
{
    struct ct_reservation *reservation;
    struct mapping *mappings;
    size_t first, count;
    CUresult r = find_whole_locked(address, size_bytes, &reservation, &first, &count);

    if (r != CUDA_SUCCESS)
        return r;
    mappings = &reservation->mappings[first];
    if ((r = change_locked(reservation, mappings, count, CU_MEM_ACCESS_FLAGS_PROT_NONE)) != CUDA_SUCCESS)
        return r;
    for (size_t i = 0; i < count; i++) {
        mappings[i].allocated->mappings--;
        ct_vmm_drop_if_unused_locked(mappings[i].allocated);
    }
    memmove(mappings, mappings + count, (reservation->n - first - count) * sizeof *mappings);
    reservation->n -= count;
    return CUDA_SUCCESS;
}

CUresult ct_vmm_unmap(uint64_t address, uint64_t size_bytes)
{
    CUresult r = check_granularity(address, size_bytes);

    if (r != CUDA_SUCCESS)
        return r;
    wait_for_all_work();
    ct_mutex_lock(&ct_vmm_lock);
    r = unmap_locked(address, size_bytes);
    ct_mutex_unlock(&ct_vmm_lock);
    return r;
}

/* ---- access ---- */

static CUresult check_desc(const CUmemAccessDesc *desc)
{
    struct ct_device *device;

    if (desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
        desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "access flags 0x%x", (unsigned)desc->flags);
    switch ((int)desc->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: /* the code is that of NVIDIA's driver, though the manual has INVALID_DEVICE, too */
        return ct_device_lookup(desc->location.id, &device) == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "access of the host to mapped memory");
    }
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "memory location type %d", (int)desc->location.type);
}

static CUresult set_access_locked(uint64_t address, uint64_t size_bytes, const CUmemAccessDesc *desc)
{
    struct ct_reservation *reservation;
    size_t first, count;
    CUresult r = find_whole_locked(address, size_bytes, &reservation, &first, &count);

    for (size_t i = first; r == CUDA_SUCCESS && i < first + count; i++)
        if (reservation->mappings[i].view->device->ordinal != desc->location.id)
            r = ct_fail(CUDA_ERROR_INVALID_DEVICE, "device %d cannot have memory of device %d", desc->location.id,
                        reservation->mappings[i].view->device->ordinal);
    return r == CUDA_SUCCESS ? change_locked(reservation, &reservation->mappings[first], count, desc->flags) : r;
}

CUresult ct_vmm_set_access(uint64_t address, uint64_t size_bytes, const CUmemAccessDesc *descs, size_t count)
{
    bool takes_away = false;
    CUresult r = check_granularity(address, size_bytes);

    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++) {
        takes_away = takes_away || descs[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        r = check_desc(&descs[i]);
    }
    if (r != CUDA_SUCCESS)
        return r;
    if (takes_away)
        wait_for_all_work();
    ct_mutex_lock(&ct_vmm_lock);
    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = set_access_locked(address, size_bytes, &descs[i]);
    ct_mutex_unlock(&ct_vmm_lock);
    return r;
}

/* ---- questions ---- */

CUresult ct_vmm_retain_at(uint64_t address, CUmemGenericAllocationHandle *out)
{
    struct ct_reservation *reservation;
    size_t first, count;
    CUresult r;

    ct_mutex_lock(&ct_vmm_lock);
    r = find_mapped_locked(address, 1, &reservation, &first, &count);
    if (r == CUDA_SUCCESS) {
        reservation->mappings[first].allocated->handles++;
        *out = ct_vmm_handle_of(reservation->mappings[first].allocated);
    }
    ct_mutex_unlock(&ct_vmm_lock);
    return r;
}

CUresult ct_vmm_mapping_at(uint64_t address, struct ct_vmm_mapping_info *out)
{
    struct ct_reservation *reservation;
    size_t first, count;
    CUresult r;

    ct_mutex_lock(&ct_vmm_lock);
    r = find_mapped_locked(address, 1, &reservation, &first, &count);
    if (r == CUDA_SUCCESS) {
        const struct mapping *mapping = &reservation->mappings[first];

        *out = (struct ct_vmm_mapping_info){.start = mapping->start,
                                            .size_bytes = mapping->size_bytes,
                                            .device = mapping->view->device->ordinal,
                                            .access = mapping->access,
                                            .handle_types = mapping->allocated->properties.requestedHandleTypes,
                                            .block_id = mapping->allocated->id};
    }
    ct_mutex_unlock(&ct_vmm_lock);
    return r;
}

static CUresult export_dma_buf_locked(uint64_t address, uint64_t size_bytes, int *out_fd)
{
    struct ct_reservation *reservation;
    const struct mapping *mapping;
    size_t first, count;
    CUresult r = find_mapped_locked(address, size_bytes, &reservation, &first, &count);

    if (r != CUDA_SUCCESS)
        return r;
    mapping = &reservation->mappings[first];
    if (count > 1 || mapping->start != address)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "a dma-buf of several mappings, or of a part that is not the first of one");
    if (!mapping->view->device->info.exports_dma_bufs || !mapping->allocated->way->memory_export_dma_buf)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s exports no dma-bufs", mapping->view->device->info.name);
    return mapping->allocated->way->memory_export_dma_buf(&mapping->allocated->memory, out_fd);
}

CUresult ct_vmm_export_dma_buf(uint64_t address, uint64_t size_bytes, int *out_fd)
{
    CUresult r;

    ct_mutex_lock(&ct_vmm_lock);
    r = export_dma_buf_locked(address, size_bytes, out_fd);
    ct_mutex_unlock(&ct_vmm_lock);
    return r;
}

static CUresult spot_at_locked(uint64_t address, uint64_t size_bytes, struct ct_vmm_spot *out)
{
    struct ct_vmm_spot spot = {.read_only = false};
    struct ct_reservation *reservation;
    const struct ct_vmm_view *view;
    size_t first, count;
    CUresult r = find_mapped_locked(address, size_bytes, &reservation, &first, &count);

    if (r != CUDA_SUCCESS)
        return r;
    view = reservation->mappings[first].view;
    for (size_t i = first; i < first + count; i++) {
        const struct mapping *mapping = &reservation->mappings[i];

        if (mapping->access == CU_MEM_ACCESS_FLAGS_PROT_NONE || mapping->view != view)
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "device %d has no access to what is mapped at 0x%llx", view->device->ordinal,
                           (unsigned long long)mapping->start);
        spot.read_only = spot.read_only || mapping->access == CU_MEM_ACCESS_FLAGS_PROT_READ;
    }
    spot.memory = view->memory;
    spot.offset = view->offset + (address - reservation->start);
    spot.host = view->pages ? view->pages + (address - reservation->start) : NULL;
    spot.owner = view->device->primary->object.handle;
    *out = spot;
    return CUDA_SUCCESS;
}

CUresult ct_vmm_spot_at(uint64_t address, uint64_t size_bytes, struct ct_vmm_spot *out)
{
    CUresult r;

    ct_mutex_lock(&ct_vmm_lock);
    r = spot_at_locked(address, size_bytes ? size_bytes : 1, out);
    ct_mutex_unlock(&ct_vmm_lock);
    return r;
}
