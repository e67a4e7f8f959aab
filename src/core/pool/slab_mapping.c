/* SPDX-License-Identifier: Apache-2.0 */
#include "slab_mapping.h"

#include "core/backing/reservation.h"
#include "core/base/log.h"
#include "core/device/device.h"
#include "core/vmm/vmm.h"

#include <stdlib.h>

#define CT_CHANNEL "memory"

/* ---- addresses ---- */

/* Addresses that a driver has refused stay reserved. */
static CUresult place(struct ct_device *device, uint64_t size_bytes, struct ct_slab_mapping *out)
{
    CUresult r = ct_reserve(&device->info, size_bytes, CT_VMM_GRANULARITY, &out->reserved, &out->reserved_bytes);

    if (r != CUDA_SUCCESS)
        return r;
    return out->implementation->view_create(device, (uint64_t)(uintptr_t)out->reserved, out->reserved_bytes, &out->view);
}

CUresult ct_slab_mapping_create(struct ct_device *device, uint64_t size_bytes, struct ct_slab_mapping **out, struct ct_backing *out_backing)
{
    struct ct_slab_mapping *mapping;
    CUresult r;

    if (device->info.virtual_memory == CT_VIRTUAL_NONE || !device->info.virtual_aliases || ct_vmm_driver_places(device))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!(mapping = calloc(1, sizeof *mapping)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a slab of a memory pool");
    if ((r = ct_vmm_implementation_of(device, &mapping->implementation)) != CUDA_SUCCESS ||
        (r = place(device, size_bytes, mapping)) != CUDA_SUCCESS) {
        free(mapping);
        return r;
    }
    *out_backing =
        (struct ct_backing){.memory = mapping->view.memory, .address = (uint64_t)(uintptr_t)mapping->reserved, .host = mapping->view.pages};
    *out = mapping;
    return CUDA_SUCCESS;
}

/* Frames stay mapped when other frames are mapped over them. */
static CUresult change(struct ct_pool_slab *slab, const struct ct_pool_frames *frames, CUmemAccess_flags was, CUmemAccess_flags now)
{
    const struct ct_vmm_change change = {.size_bytes = slab->size_bytes, .memory = &frames->memory, .was = was, .now = now};

    return slab->mapping->implementation->change(&slab->mapping->view, &change, 1);
}

static void unmap_locked(struct ct_pool_slab *slab)
{
    (void)change(slab, slab->mapping->frames, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    slab->mapping->frames->n_mapped--;
    slab->mapping->frames = NULL;
}

/* ---- frames ---- */

static void detach(struct ct_pool_frames *frames)
{
    if (frames->user)
        frames->user->n_pending--;
    frames->user = NULL;
}

/* Where frames were mapped before, their work is complete. */
static bool is_unused(const struct ct_pool_frames *frames)
{
    return !frames->n_mapped && !frames->holder;
}

static void remove_locked(struct ct_memory_pool *pool, struct ct_pool_frames *frames)
{
    struct ct_pool_frames **link = &pool->frames;

    while (*link != frames)
        link = &(*link)->next;
    *link = frames->next;
    frames->next = NULL;
    pool->reserved -= frames->memory.size_bytes;
    detach(frames);
}

static void add_locked(struct ct_memory_pool *pool, struct ct_pool_frames *frames)
{
    frames->next = pool->frames;
    pool->frames = frames;
    pool->reserved += frames->memory.size_bytes;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
}

void ct_pool_frames_destroy(struct ct_pool_frames *list)
{
    const struct ct_vmm_implementation *implementation;

    while (list) {
        struct ct_pool_frames *next = list->next;

        (void)ct_vmm_implementation_of(list->memory.device, &implementation); /* there is one, since there are frames */
        ct_vmm_memory_give(implementation, &list->memory);
        free(list);
        list = next;
    }
}

static CUresult create_frames(struct ct_pool_slab *slab, struct ct_pool_frames **out)
{
    struct ct_pool_frames *frames = calloc(1, sizeof *frames);
    CUresult r;

    if (!frames)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a mapping of a memory pool");
    r = ct_vmm_memory_take(slab->pool->device, slab->mapping->implementation, slab->size_bytes, &frames->memory);
    if (r != CUDA_SUCCESS) {
        free(frames);
        return r;
    }
    frames->holder = slab;
    *out = frames;
    return CUDA_SUCCESS;
}

/* ---- turns ---- */

static bool is_available(const struct ct_pool_frames *frames, const struct ct_pool_slab *slab, const struct ct_stream *stream)
{
    return !frames->holder && (!frames->user || frames->user->stream == stream || frames->last == slab);
}

/* Frames of more than twice the size are left for larger slabs. */
static bool suits(const struct ct_pool_frames *frames, const struct ct_pool_slab *slab)
{
    return frames->memory.size_bytes >= slab->size_bytes && frames->memory.size_bytes / 2 <= slab->size_bytes;
}

/* The frames that are mapped, or else the smallest that are available; NULL: there are none. The slab holds them. */
static struct ct_pool_frames *take_locked(struct ct_pool_slab *slab, const struct ct_stream *stream)
{
    struct ct_pool_frames *found = slab->mapping->frames;

    if (!found || !is_available(found, slab, stream)) {
        found = NULL;
        for (struct ct_pool_frames *frames = slab->pool->frames; frames; frames = frames->next)
            if (suits(frames, slab) && is_available(frames, slab, stream) &&
                (!found || frames->memory.size_bytes < found->memory.size_bytes))
                found = frames;
    }
    if (found)
        found->holder = slab;
    return found;
}

/* Work of a context that was destroyed is complete. */
static void await(const struct ct_pool_wait *freed)
{
    if (!freed->stream || ct_context_use(freed->stream->context) != CUDA_SUCCESS)
        return;
    (void)ct_stream_await(freed->stream, freed->point); /* no work runs in a stream that failed */
    ct_context_release(freed->stream->context);
}

/* Maps frames that the slab holds, in the place of others. *unused: frames that are mapped nowhere any more. */
static CUresult map_locked(struct ct_pool_slab *slab, struct ct_pool_frames *frames, struct ct_pool_frames **unused)
{
    struct ct_pool_frames *before = slab->mapping->frames;
    CUresult r = change(slab, frames, CU_MEM_ACCESS_FLAGS_PROT_NONE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

    if (r == CUDA_SUCCESS) {
        slab->mapping->frames = frames;
        frames->n_mapped++;
        if (before)
            before->n_mapped--;
    } else {
        before = frames;
        frames->holder = NULL;
    }
    if (before && is_unused(before)) {
        remove_locked(slab->pool, before);
        *unused = before;
    }
    return r;
}

static CUresult map(struct ct_pool_slab *slab, struct ct_pool_frames *frames, bool are_new)
{
    struct ct_mutex *lock = &slab->pool->device->pools->lock;
    struct ct_pool_frames *unused = NULL;
    CUresult r;

    ct_mutex_lock(lock);
    if (are_new)
        add_locked(slab->pool, frames);
    r = map_locked(slab, frames, &unused);
    ct_mutex_unlock(lock);
    ct_pool_frames_destroy(unused);
    return r;
}

CUresult ct_slab_mapping_hold(struct ct_pool_slab *slab, struct ct_stream *stream, const struct ct_pool_wait *freed)
{
    struct ct_mutex *lock = &slab->pool->device->pools->lock;
    struct ct_pool_frames *frames;
    bool are_new, are_mapped;
    CUresult r = CUDA_SUCCESS;

    ct_mutex_lock(lock);
    frames = take_locked(slab, stream);
    are_new = !frames;
    are_mapped = frames && frames == slab->mapping->frames;
    ct_mutex_unlock(lock);
    if (are_mapped)
        return CUDA_SUCCESS;
    if (are_new && (r = create_frames(slab, &frames)) != CUDA_SUCCESS)
        return r;
    await(freed); /* no work may use addresses that are mapped anew */
    return map(slab, frames, are_new);
}

void ct_slab_mapping_free_locked(struct ct_pool_slab *slab, struct ct_pool_user *user, uint64_t point)
{
    struct ct_pool_frames *frames = slab->mapping->frames;

    detach(frames);
    frames->holder = NULL;
    frames->last = slab;
    frames->user = user;
    frames->point = point;
    if (user)
        user->n_pending++;
}

void ct_slab_mapping_destroy(struct ct_pool_slab *slab)
{
    struct ct_mutex *lock = &slab->pool->device->pools->lock;
    struct ct_pool_frames *frames, *unused = NULL;

    ct_mutex_lock(lock);
    for (frames = slab->pool->frames; frames; frames = frames->next)
        frames->last = frames->last == slab ? NULL : frames->last;
    if ((frames = slab->mapping->frames) != NULL) {
        if (frames->holder == slab)
            frames->holder = NULL;
        unmap_locked(slab);
        if (is_unused(frames)) {
            remove_locked(slab->pool, frames);
            unused = frames;
        }
    }
    ct_mutex_unlock(lock);
    ct_pool_frames_destroy(unused);
    slab->mapping->implementation->view_finish(&slab->mapping->view);
    ct_unreserve(slab->mapping->reserved, slab->mapping->reserved_bytes);
    free(slab->mapping);
}

/* ---- all frames of a pool ---- */

void ct_pool_frames_reclaim_locked(struct ct_memory_pool *pool)
{
    for (struct ct_pool_frames *frames = pool->frames; frames; frames = frames->next)
        if (frames->user && frames->point <= frames->user->completed)
            detach(frames);
}

void ct_pool_frames_forget_locked(struct ct_memory_pool *pool, const struct ct_context *context)
{
    for (struct ct_pool_frames *frames = pool->frames; frames; frames = frames->next)
        if (frames->user && frames->user->stream->context == context)
            detach(frames);
}

void ct_pool_frames_trim_locked(struct ct_memory_pool *pool, struct ct_pool_garbage *garbage)
{
    struct ct_pool_frames *next;

    for (struct ct_pool_frames *frames = pool->frames; frames; frames = next) {
        next = frames->next;
        if (frames->holder || frames->user)
            continue;
        for (struct ct_pool_slab *slab = pool->slabs; slab; slab = slab->next)
            if (slab->mapping && slab->mapping->frames == frames)
                unmap_locked(slab);
        if (frames->n_mapped) /* in a slab that is being destroyed */
            continue;
        remove_locked(pool, frames);
        frames->next = garbage->frames;
        garbage->frames = frames;
    }
}
