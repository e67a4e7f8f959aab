/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of cuMemAlloc in other processes (Driver API: Memory Management).
 *
 * A handle identifies the memory that contains the allocation, and the offset in it: small allocations are parts of a chunk. Opening
 * maps the whole memory at an address of this process, once for all handles of it that a context has open (opened_backing.h), and adds only the
 * allocation to the map of addresses. A list counts how often each handle is open; its entries may belong to contexts that were destroyed, so the
 * map of addresses is authoritative.
 *
 * Whoever opens a handle first adds an entry that is being opened, and then asks the other process, which may take seconds, without the lock:
 * only calls with the same handle wait for that. */
#include "ipc_memory.h"

#include "core/backing/opened_backing.h"
#include "core/base/log.h"
#include "core/memory/memory_arena.h"
#include "core/base/process.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "ipc"

_Static_assert(sizeof(struct ct_allocation_share) <= CU_IPC_HANDLE_SIZE, "a share fits into a handle");

struct opened {
    struct opened *next;
    struct ct_allocation_share share;
    bool is_ready; /* false: it is being opened, and only the thread that does so uses the members below */
    CUcontext owner;
    CUdevice device;
    uint64_t address;
    unsigned long long id; /* of its range in the map */
    unsigned count;
};

static struct {
    struct ct_mutex lock;
    pthread_cond_t changed; /* an entry has become ready, or was removed because its memory could not be opened */
    struct opened *first;
} openings = {.lock = CT_MUTEX_INITIALIZER(CT_RANK_IPC_MEMORY), .changed = PTHREAD_COND_INITIALIZER};

CUresult ct_ipc_memory_share(uint64_t address, CUipcMemHandle *out)
{
    struct ct_allocation_share share;
    CUresult r;

    memset(&share, 0, sizeof share);
    if ((r = ct_allocation_share(address, &share)) != CUDA_SUCCESS)
        return r;
    memset(out, 0, sizeof *out);
    memcpy(out, &share, sizeof share);
    return CUDA_SUCCESS;
}

/* ---- the list ---- */

static bool is_open(const struct opened *opened)
{
    struct ct_range range;

    return ct_address_find(opened->address, 0, &range) == CUDA_SUCCESS && range.kind == CT_RANGE_IPC && range.id == opened->id;
}

/* Removes entries whose memory was freed with its context. */
static void tidy_locked(void)
{
    struct opened **link = &openings.first;

    while (*link) {
        struct opened *opened = *link;

        if (!opened->is_ready || is_open(opened)) {
            link = &opened->next;
            continue;
        }
        *link = opened->next;
        free(opened);
    }
}

/* Searches in all contexts of the device. Entries have their device from the beginning. */
static struct opened *find_locked(const struct ct_device *device, const struct ct_allocation_share *share)
{
    for (struct opened *opened = openings.first; opened; opened = opened->next)
        if (opened->device == device->ordinal && !memcmp(&opened->share, share, sizeof *share))
            return opened;
    return NULL;
}

/* ---- opening ---- */

static CUresult publish(struct ct_context *context, struct ct_allocation *allocation, struct opened *opened)
{
    const uint64_t offset = allocation->opened->lead_bytes + opened->share.offset;
    struct ct_range range = ct_range_of_backing(context, &allocation->opened->backing, offset, opened->share.size_bytes, CT_RANGE_IPC);

    range.allocation = allocation;
    opened->owner = range.owner;
    opened->address = range.start;
    opened->id = range.id;
    return ct_allocation_publish(context, &range);
}

/* The manual lists MAP_FAILED as the only error for existing memory that cannot be opened. */
static CUresult refusal(CUresult r)
{
    if (r != CUDA_ERROR_OUT_OF_MEMORY && r != CUDA_ERROR_OPERATING_SYSTEM)
        return r;
    return ct_fail(CUDA_ERROR_MAP_FAILED, "memory of another process cannot be mapped");
}

static CUresult open_backing(struct ct_context *context, struct ct_allocation *allocation, struct opened *opened)
{
    const struct ct_allocation_share *share = &opened->share;
    uint64_t end;
    CUresult r = ct_opened_backing_get(context, &share->name, share->memory_id, &allocation->opened);

    if (r != CUDA_SUCCESS)
        return r;
    if (!share->size_bytes || __builtin_add_overflow(share->offset, share->size_bytes, &end) || end > allocation->opened->size_bytes)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "the range of the handle exceeds its memory");
    return publish(context, allocation, opened);
}

/* The entry that is being opened, or NULL. */
static struct opened *add_locked(const struct ct_device *device, const struct ct_allocation_share *share)
{
    struct opened *opened = calloc(1, sizeof *opened);

    if (!opened)
        return NULL;
    *opened = (struct opened){.next = openings.first, .share = *share, .device = device->ordinal, .count = 1};
    openings.first = opened;
    return opened;
}

static void remove_locked(struct opened *opened)
{
    struct opened **link = &openings.first;

    while (*link != opened)
        link = &(*link)->next;
    *link = opened->next;
    free(opened);
}

/* Opens the memory of a new entry, without the lock. */
static CUresult open_new(struct ct_context *context, struct opened *opened, uint64_t *out_address)
{
    struct ct_allocation *allocation = calloc(1, sizeof *allocation);
    CUresult r =
        allocation ? open_backing(context, allocation, opened) : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for an imported allocation");

    if (r != CUDA_SUCCESS)
        ct_allocation_destroy(context, allocation);
    ct_mutex_lock(&openings.lock);
    if (r == CUDA_SUCCESS) {
        opened->is_ready = true;
        *out_address = opened->address;
    } else {
        remove_locked(opened);
    }
    pthread_cond_broadcast(&openings.changed);
    ct_mutex_unlock(&openings.lock);
    return refusal(r);
}

/* The handle is open already. */
static CUresult count_locked(const struct ct_context *context, struct opened *opened, uint64_t *out_address)
{
    if (opened->owner != context->object.handle)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "the handle is open in another context of the device");
    opened->count++;
    *out_address = opened->address;
    return CUDA_SUCCESS;
}

CUresult ct_ipc_memory_open(struct ct_context *context, const CUipcMemHandle *handle, uint64_t *out_address)
{
    struct ct_allocation_share share;
    struct opened *opened, *new = NULL;
    CUresult r;

    memcpy(&share, handle, sizeof share);
    if ((r = ct_share_name_check(CT_SHARE_MEMORY, &share.name)) != CUDA_SUCCESS)
        return r;
    if (ct_share_name_is_own(&share.name))
        return ct_fail(CUDA_ERROR_INVALID_CONTEXT, "the handle was created by this process");
    ct_mutex_lock(&openings.lock);
    tidy_locked();
    while ((opened = find_locked(context->device, &share)) && !opened->is_ready) {
        ct_mutex_wait(&openings.lock, &openings.changed);
        tidy_locked();
    }
    if (opened)
        r = count_locked(context, opened, out_address);
    else if (!(new = add_locked(context->device, &share)))
        r = ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for an imported allocation");
    ct_mutex_unlock(&openings.lock);
    return new ? open_new(context, new, out_address) : r;
}

/* ---- closing ---- */

/* *out_last: whether this was the last reference; the entry is then removed from the list. */
static CUresult close_locked(uint64_t address, bool *out_last)
{
    struct opened **link = &openings.first, *opened;

    tidy_locked();
    while (*link && !((*link)->is_ready && (*link)->address == address))
        link = &(*link)->next;
    opened = *link;
    if (!opened)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "no handle is open at 0x%llx", (unsigned long long)address);
    *out_last = --opened->count == 0;
    if (*out_last) {
        *link = opened->next;
        free(opened);
    }
    return CUDA_SUCCESS;
}

CUresult ct_ipc_memory_close(struct ct_context *context, uint64_t address)
{
    bool last = false;
    CUresult r;

    ct_mutex_lock(&openings.lock);
    r = close_locked(address, &last);
    ct_mutex_unlock(&openings.lock);
    return r == CUDA_SUCCESS && last ? ct_allocation_remove(context, address, CT_RANGE_IPC) : r;
}
