/* SPDX-License-Identifier: Apache-2.0 */
/* A short list, the oldest first. The lock is never held during a driver's call. */
#include "memory_spares.h"

#include "core/base/config.h"
#include "core/base/log.h"
#include "memory_budget.h"
#include "reservation.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "memory"
#define KEPT_BYTES ((uint64_t)256 << 20)
#define KEPT_BYTES_CPU ((uint64_t)64 << 20)
#define KEPT_SHARE 32 /* at most 1/KEPT_SHARE of the device's memory */
#define KEPT_COUNT 32
#define ROUND_BYTES ((uint64_t)64 << 10)
#define LEAST_ALIGN ((uint64_t)64 << 10) /* of addresses that a driver chooses */

/* Either a backing or physical memory. */
struct spare {
    uint64_t size_bytes;
    struct ct_backing backing;
    const struct ct_vmm_implementation *implementation; /* for physical memory; NULL: the spare is the backing */
    struct ct_vmm_memory physical;
};

struct ct_spares {
    struct ct_device *device; /* borrowed: owns this list */
    struct ct_mutex lock;     /* rank CT_RANK_SPARES; guards the rest */
    unsigned n;
    uint64_t limit_bytes; /* of device->spare_bytes */
    struct spare kept[KEPT_COUNT];
};

/* CPU devices allocate memory at once, but Linux takes longer to create pages at the first access than a copy takes to fill them; their
 * spares are host memory, so the limit is as low as that of malloc. */
static uint64_t limit_of(const struct ct_device_info *info)
{
    const uint64_t share = info->memory_bytes / KEPT_SHARE, most = info->kind == CT_DEVICE_CPU ? KEPT_BYTES_CPU : KEPT_BYTES;

    if (ct_config()->spare_mib >= 0)
        return (uint64_t)ct_config()->spare_mib << 20;
    return share < most ? share : most;
}

static bool trim(struct ct_device *device)
{
    return ct_spares_trim(device->spares);
}

CUresult ct_spares_create(struct ct_device *device, struct ct_spares **out)
{
    struct ct_spares *spares = calloc(1, sizeof *spares);

    if (!spares)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no host memory for the list of spare memory");
    spares->device = device;
    spares->limit_bytes = limit_of(&device->info);
    ct_mutex_init(&spares->lock, CT_RANK_SPARES);
    device->hooks.trim_spares = trim;
    *out = spares;
    return CUDA_SUCCESS;
}

void ct_spares_destroy(struct ct_spares *spares)
{
    if (!spares)
        return;
    ct_spares_trim(spares);
    ct_mutex_finish(&spares->lock);
    free(spares);
}

static uint64_t room_locked(const struct ct_spares *spares)
{
    return spares->limit_bytes - atomic_load_explicit(&spares->device->spare_bytes, memory_order_relaxed);
}

static struct spare remove_locked(struct ct_spares *spares, unsigned index)
{
    const struct spare spare = spares->kept[index];

    spares->n--;
    atomic_fetch_sub_explicit(&spares->device->spare_bytes, spare.size_bytes, memory_order_relaxed); /* the lock orders it */
    memmove(&spares->kept[index], &spares->kept[index + 1], (spares->n - index) * sizeof spare);
    return spare;
}

/* Takes the newest spare of a size and kind; `align` is the alignment of its address. */
static bool take(struct ct_spares *spares, bool physical, uint64_t size_bytes, uint64_t align, struct spare *out)
{
    bool found = false;

    ct_mutex_lock(&spares->lock);
    for (unsigned i = spares->n; i-- > 0 && !found;) {
        const struct spare *spare = &spares->kept[i];

        found = spare->size_bytes == size_bytes && (spare->implementation != NULL) == physical && spare->backing.address % align == 0;
        if (found)
            *out = remove_locked(spares, i);
    }
    ct_mutex_unlock(&spares->lock);
    return found;
}

static void give_back(struct ct_spares *spares, struct spare *spare)
{
    if (spare->implementation) {
        spare->implementation->memory_finish(&spare->physical);
        ct_budget_give(spares->device, spare->size_bytes);
        return;
    }
    spares->device->backend->memory->destroy(spare->backing.memory);
    ct_budget_give(spares->device, spare->backing.device_bytes);
    ct_unreserve(spare->backing.reserved, spare->backing.reserved_bytes);
}

/* Removes the oldest spare. False: there is none, or there is room for `wanted` more bytes. */
static bool take_oldest(struct ct_spares *spares, uint64_t wanted, struct spare *out)
{
    bool found;

    ct_mutex_lock(&spares->lock);
    found = spares->n && (spares->n == KEPT_COUNT || wanted > room_locked(spares));
    if (found)
        *out = remove_locked(spares, 0);
    ct_mutex_unlock(&spares->lock);
    return found;
}

static bool put(struct ct_spares *spares, const struct spare *spare)
{
    struct spare oldest;
    bool fits;

    if (spare->size_bytes > spares->limit_bytes)
        return false;
    while (take_oldest(spares, spare->size_bytes, &oldest))
        give_back(spares, &oldest);
    ct_mutex_lock(&spares->lock);
    fits = spares->n < KEPT_COUNT && spare->size_bytes <= room_locked(spares); /* another thread may have taken the room */
    if (fits) {
        spares->kept[spares->n++] = *spare;
        atomic_fetch_add_explicit(&spares->device->spare_bytes, spare->size_bytes, memory_order_relaxed);
    }
    ct_mutex_unlock(&spares->lock);
    return fits;
}

bool ct_spares_put(struct ct_spares *spares, const struct ct_backing *backing)
{
    return put(spares, &(struct spare){.size_bytes = backing->memory->size_bytes, .backing = *backing});
}

bool ct_spares_take_physical(struct ct_spares *spares, uint64_t size_bytes, struct ct_vmm_memory *out)
{
    struct spare spare;

    if (!take(spares, true, size_bytes, 1, &spare))
        return false;
    *out = spare.physical;
    return true;
}

bool ct_spares_put_physical(struct ct_spares *spares, const struct ct_vmm_implementation *implementation,
                            const struct ct_vmm_memory *memory)
{
    return put(spares, &(struct spare){.size_bytes = memory->size_bytes, .implementation = implementation, .physical = *memory});
}

bool ct_spares_trim(struct ct_spares *spares)
{
    struct spare oldest;
    bool any = false;

    while (take_oldest(spares, UINT64_MAX, &oldest)) {
        give_back(spares, &oldest);
        any = true;
    }
    return any;
}

/* Rounding makes equal sizes more frequent. */
static uint64_t round_up(uint64_t size_bytes)
{
    return size_bytes > UINT64_MAX - ROUND_BYTES ? size_bytes : (size_bytes + ROUND_BYTES - 1) & ~(ROUND_BYTES - 1);
}

CUresult ct_spares_backing(struct ct_context *context, enum ct_memory_kind kind, uint64_t size_bytes, uint64_t align,
                           struct ct_backing *out)
{
    uint64_t bytes = round_up(size_bytes);
    struct spare spare;

    if (kind != CT_MEMORY_DEVICE)
        return ct_backing_create_portable(context, size_bytes, kind, out);
    if (bytes > context->device->info.max_allocation_bytes)
        bytes = size_bytes;
    align = align > LEAST_ALIGN ? align : LEAST_ALIGN;
    if (take(context->device->spares, false, bytes, align, &spare)) {
        *out = spare.backing;
        return CUDA_SUCCESS;
    }
    return ct_backing_create_device(context, bytes, align, out);
}
