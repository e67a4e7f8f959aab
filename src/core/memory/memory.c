/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory and managed memory of a context.
 *
 * Allocations of less than 1 MiB are suballocated from chunks (memory_chunks.c). Larger ones have backend memory of their own, new or
 * reused (memory_spares.h).
 *
 * Memory is published last and unpublished first: an allocation is added to the address map when it is ready. A free removes it from the
 * map, then waits for the calls that use it (address_uses.h) and for the context's work (as the native driver does), and only then can the
 * memory be reused. Its addresses stay reserved until then. */
#include "memory_arena.h"

#include "core/backing/address_uses.h"
#include "core/backing/shadows.h"
#include "core/base/log.h"
#include "core/backing/memory_spares.h"
#include "core/backing/opened_backing.h"
#include "core/base/process.h"
#include "core/stream/stream.h"
#include "core/stream/context_streams.h"

#include <stdlib.h>
#include <unistd.h>

#define CT_CHANNEL "memory"
#define SMALL_BYTES ((uint64_t)1 << 20)

/* Whether the memory can be reused: memory that another process has imported could still be written to by that process. */
static bool can_be_kept(const struct ct_allocation *allocation)
{
    return allocation->is_plain && !allocation->share_id && !allocation->has_dma_buf;
}

void ct_allocation_destroy(struct ct_context *context, struct ct_allocation *allocation)
{
    if (!allocation)
        return;
    ct_share_retract(allocation->share_id); /* first, so that no process can import memory that is being freed */
    if (allocation->chunk)
        ct_chunk_give_back(context->arena, allocation);
    ct_opened_backing_release(context, allocation->opened);
    if (!can_be_kept(allocation) || !ct_spares_put(context->device->spares, &allocation->backing))
        ct_backing_destroy(context, &allocation->backing);
    free(allocation);
}

static void list_add(struct ct_memory_arena *arena, struct ct_allocation *allocation)
{
    ct_mutex_lock(&arena->lock);
    allocation->next = arena->allocations;
    allocation->link = &arena->allocations;
    if (allocation->next)
        allocation->next->link = &allocation->next;
    arena->allocations = allocation;
    ct_mutex_unlock(&arena->lock);
}

static void list_remove(struct ct_memory_arena *arena, struct ct_allocation *allocation)
{
    ct_mutex_lock(&arena->lock);
    *allocation->link = allocation->next;
    if (allocation->next)
        allocation->next->link = allocation->link;
    ct_mutex_unlock(&arena->lock);
}

CUresult ct_allocation_publish(struct ct_context *context, const struct ct_range *range)
{
    struct ct_allocation *allocation = range->allocation;
    struct ct_range alias = *range, removed;
    CUresult r;

    allocation->start = range->start;
    allocation->kind = range->kind;
    allocation->alias = range->device_pointer != range->start ? range->device_pointer : 0;
    alias.start = range->device_pointer;
    list_add(context->arena, allocation); /* before the insertion into the map, after which another thread may free it */
    r = allocation->alias ? ct_address_insert(&alias) : CUDA_SUCCESS;
    if (r == CUDA_SUCCESS) {
        uint64_t alias_start = allocation->alias;

        r = ct_address_insert(range);
        if (r != CUDA_SUCCESS && alias_start)
            ct_address_remove(alias_start, range->kind, &removed);
    }
    if (r != CUDA_SUCCESS)
        list_remove(context->arena, allocation);
    return r;
}

/* Removes the range of `kind` that starts at `start`, and the second range of its allocation, from the map. Calls that found them before
 * have recorded their commands on return (address_uses.h). */
static CUresult unmap(uint64_t start, enum ct_range_kind kind, struct ct_range *out)
{
    struct ct_range alias;
    CUresult r = ct_address_remove(start, kind, out);

    if (r != CUDA_SUCCESS)
        return r;
    if (out->allocation && out->allocation->alias && ct_address_remove(out->allocation->alias, kind, &alias) == CUDA_SUCCESS)
        ct_address_uses_await(alias.start, alias.size_bytes);
    ct_address_uses_await(start, out->size_bytes);
    return CUDA_SUCCESS;
}

/* Host memory and managed memory are accessible in all contexts, whichever created them. Device memory is accessible to kernels of its own
 * context; other contexts can only copy it. */
static bool is_for_all_contexts(enum ct_range_kind kind)
{
    return kind == CT_RANGE_HOST || kind == CT_RANGE_REGISTERED || kind == CT_RANGE_MANAGED;
}

static CUresult remove_from(struct ct_context *context, uint64_t start, enum ct_range_kind kind)
{
    struct ct_range range;
    CUresult r = unmap(start, kind, &range); /* succeeds in only one of two concurrent calls */

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_context_synchronize(context); /* an error is returned, but the memory is freed even so */
    if (is_for_all_contexts(kind))
        ct_contexts_synchronize_except(context);
    else
        ct_contexts_synchronize_cross_context(context);
    list_remove(context->arena, range.allocation);
    ct_allocation_destroy(context, range.allocation);
    return r;
}

CUresult ct_allocation_remove(struct ct_context *context, uint64_t start, enum ct_range_kind kind)
{
    struct ct_context *owner;
    struct ct_range range;
    CUresult r;

    r = ct_address_find(start, 0, &range);
    if (r != CUDA_SUCCESS)
        return r;
    if (range.kind != kind || range.start != start || ct_range_is_second_address(&range))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "no allocation of that kind starts at 0x%llx", (unsigned long long)start);
    if (range.context == context) /* not looked up, since it may be in destruction */
        return remove_from(context, start, kind);
    r = ct_context_lookup(range.owner, &owner);
    if (r != CUDA_SUCCESS)
        return r;
    r = remove_from(owner, start, kind);
    ct_context_release(owner);
    return r;
}

/* The range of kind DEVICE at `address` in `owner`. While the arena's lock is held its allocation remains valid, since a free removes it
 * from the map first and then from the arena. */
static CUresult find_device_locked(struct ct_context *owner, uint64_t address, struct ct_range *out)
{
    CUresult r = ct_address_find(address, 0, out);

    if (r != CUDA_SUCCESS || out->context != owner || out->kind != CT_RANGE_DEVICE)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is being freed by another thread", (unsigned long long)address);
    return CUDA_SUCCESS;
}

static const struct ct_backing *backing_of(const struct ct_allocation *allocation)
{
    return allocation->chunk ? ct_chunk_backing(allocation->chunk) : &allocation->backing;
}

static CUresult share_locked(struct ct_context *owner, uint64_t address, struct ct_allocation_share *out)
{
    struct ct_range range;
    CUresult r = find_device_locked(owner, address, &range);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_backing_share(owner->device, backing_of(range.allocation), &range.allocation->share_id, &out->name);
    out->offset = range.memory_offset;
    out->size_bytes = range.size_bytes;
    out->memory_id = range.allocation->chunk ? ct_chunk_id(range.allocation->chunk) : range.allocation->share_id;
    return r;
}

/* The context of the cuMemAlloc allocation at `address`, which must not be imported. The caller releases it. */
static CUresult find_owner(uint64_t address, struct ct_context **out)
{
    struct ct_range range;
    CUresult r = ct_address_find(address, 0, &range);

    if (r != CUDA_SUCCESS || range.kind != CT_RANGE_DEVICE || range.imported)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not in memory that cuMemAlloc allocated", (unsigned long long)address);
    return ct_context_lookup(range.owner, out);
}

CUresult ct_allocation_share(uint64_t address, struct ct_allocation_share *out)
{
    struct ct_context *owner;
    CUresult r = find_owner(address, &owner);

    if (r != CUDA_SUCCESS)
        return r;
    ct_shadow_forget(address); /* other processes may write to it */
    ct_mutex_lock(&owner->arena->lock);
    r = share_locked(owner, address, out);
    ct_mutex_unlock(&owner->arena->lock);
    ct_context_release(owner);
    return r;
}

static CUresult export_dma_buf_locked(struct ct_context *owner, uint64_t address, uint64_t size_bytes, int *out_fd)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct ct_range range;
    CUresult r = find_device_locked(owner, address, &range);

    if (r != CUDA_SUCCESS)
        return r;
    if (size_bytes > ((range.start + range.size_bytes + page - 1) & ~(page - 1)) - address)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%llu bytes at 0x%llx are not in one allocation", (unsigned long long)size_bytes,
                       (unsigned long long)address);
    if (!owner->device->info.exports_dma_bufs)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not support the export of dma-bufs", owner->device->info.name);
    r = owner->backend->sharing->export_dma_buf(range.memory, range.memory_offset + (address - range.start), size_bytes, out_fd);
    range.allocation->has_dma_buf |= r == CUDA_SUCCESS;
    return r;
}

CUresult ct_allocation_export_dma_buf(uint64_t address, uint64_t size_bytes, int *out_fd)
{
    struct ct_context *owner;
    CUresult r = find_owner(address, &owner);

    if (r != CUDA_SUCCESS)
        return r;
    ct_shadow_forget(address); /* other devices may write to it */
    ct_mutex_lock(&owner->arena->lock);
    r = export_dma_buf_locked(owner, address, size_bytes, out_fd);
    ct_mutex_unlock(&owner->arena->lock);
    ct_context_release(owner);
    return r;
}

static CUresult allocate(struct ct_context *context, enum ct_memory_kind kind, uint64_t size_bytes, uint64_t align,
                         struct ct_allocation *allocation)
{
    CUresult r;

    if (size_bytes < SMALL_BYTES && align <= SMALL_BYTES / 2)
        return ct_chunk_carve(context->arena, kind, size_bytes, align, allocation);
    r = ct_spares_backing(context, kind, size_bytes, align, &allocation->backing);
    allocation->is_plain = r == CUDA_SUCCESS && kind == CT_MEMORY_DEVICE;
    return r;
}

struct ct_range ct_range_of_backing(struct ct_context *context, const struct ct_backing *backing, uint64_t offset, uint64_t size_bytes,
                                    enum ct_range_kind kind)
{
    return (struct ct_range){
        .start = backing->address + offset,
        .size_bytes = size_bytes,
        .kind = kind,
        .synchronous = kind == CT_RANGE_MANAGED, /* the default of NVIDIA's driver */
        .context = context,
        .owner = context->object.handle,
        .device = context->device->ordinal,
        .memory = backing->memory,
        .memory_offset = offset,
        .host = backing->host ? (char *)backing->host + offset : NULL,
        .device_pointer = backing->address + offset,
        .id = ct_process_new_id(),
    };
}

static struct ct_range range_of(struct ct_context *context, struct ct_allocation *allocation, uint64_t size_bytes, enum ct_range_kind kind)
{
    const uint64_t offset = allocation->chunk_offset; /* 0 without a chunk */
    struct ct_range range = ct_range_of_backing(context, backing_of(allocation), offset, size_bytes, kind);

    range.allocation = allocation;
    return range;
}

CUresult ct_memory_alloc(struct ct_context *context, uint64_t size_bytes, uint64_t align, enum ct_range_kind kind, uint64_t *out_address)
{
    struct ct_allocation *allocation;
    struct ct_range range;
    CUresult r;

    if (size_bytes == 0)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "allocation of 0 bytes");
    allocation = calloc(1, sizeof *allocation);
    if (!allocation)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "allocation");
    r = allocate(context, kind == CT_RANGE_MANAGED ? CT_MEMORY_HOST : CT_MEMORY_DEVICE, size_bytes,
                 align > CT_CHUNK_UNIT_BYTES ? align : CT_CHUNK_UNIT_BYTES, allocation);
    if (r != CUDA_SUCCESS)
        goto fail;
    range = range_of(context, allocation, size_bytes, kind);
    r = ct_allocation_publish(context, &range);
    if (r != CUDA_SUCCESS)
        goto fail;
    ct_log(CT_LOG_DEBUG, "allocated %llu bytes at 0x%llx", (unsigned long long)size_bytes, (unsigned long long)range.start);
    *out_address = range.start;
    return CUDA_SUCCESS;
fail:
    ct_allocation_destroy(context, allocation);
    return r;
}

CUresult ct_memory_free(struct ct_context *context, uint64_t address, enum ct_range_kind kind)
{
    return ct_allocation_remove(context, address, kind);
}

/* A free that is ordered in a stream, whose context may differ from that of the memory. */
struct late_free {
    struct ct_context *context; /* of the memory */
    bool in_use;                /* a reference is held: it is not the stream's context, which outlives the stream's work */
    struct ct_allocation *allocation;
};

static void free_late(void *user, CUresult status)
{
    struct late_free *late = user;

    (void)status; /* freed regardless of errors */
    ct_allocation_destroy(late->context, late->allocation);
    if (late->in_use)
        ct_context_release(late->context);
    free(late);
}

static CUresult record_late_free(struct ct_stream *stream, uint64_t address, struct late_free *late)
{
    struct ct_range range;
    CUresult r = unmap(address, CT_RANGE_DEVICE, &range);

    if (r != CUDA_SUCCESS)
        return r;
    list_remove(late->context->arena, range.allocation);
    late->allocation = range.allocation;
    r = ct_stream_run_on_host(stream, free_late, late);
    if (r == CUDA_SUCCESS)
        return r;
    ct_context_synchronize(late->context);
    ct_allocation_destroy(late->context, late->allocation);
    return r;
}

CUresult ct_memory_free_async(struct ct_stream *stream, uint64_t address)
{
    struct ct_context *context;
    struct late_free *late;
    struct ct_range range;
    CUresult r = ct_address_find(address, 0, &range);

    if (r != CUDA_SUCCESS || (r = ct_context_lookup(range.owner, &context)) != CUDA_SUCCESS)
        return r;
    late = calloc(1, sizeof *late);
    if (late) {
        *late = (struct late_free){.context = context, .in_use = context != stream->context};
        r = record_late_free(stream, address, late);
    } else {
        r = ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "a stream-ordered free");
    }
    if (r != CUDA_SUCCESS)
        free(late);
    if (r != CUDA_SUCCESS || context == stream->context)
        ct_context_release(context);
    return r;
}

CUresult ct_memory_arena_create(struct ct_context *context, struct ct_memory_arena **out)
{
    struct ct_memory_arena *arena = calloc(1, sizeof *arena);

    if (!arena)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "arena");
    arena->context = context;
    ct_mutex_init(&arena->lock, CT_RANK_ARENA);
    *out = arena;
    return CUDA_SUCCESS;
}

static void unmap_all(const struct ct_memory_arena *arena)
{
    struct ct_range range;

    for (const struct ct_allocation *allocation = arena->allocations; allocation; allocation = allocation->next)
        unmap(allocation->start, allocation->kind, &range);
}

static void destroy_allocations(struct ct_memory_arena *arena)
{
    while (arena->allocations) {
        struct ct_allocation *allocation = arena->allocations;

        list_remove(arena, allocation);
        ct_share_retract(allocation->share_id);
        ct_opened_backing_release(arena->context, allocation->opened);
        ct_backing_destroy(arena->context, &allocation->backing); /* a no-op for suballocations, which are freed with their chunks */
        free(allocation);
    }
}

void ct_memory_arena_destroy(struct ct_memory_arena *arena)
{
    if (!arena)
        return;
    unmap_all(arena);
    ct_contexts_synchronize_cross_context(arena->context); /* the context itself is idle */
    destroy_allocations(arena);
    ct_chunks_destroy_all(arena);
    ct_stagings_destroy_all(arena);
    ct_spares_trim(arena->context->device->spares); /* this also trims memory that other contexts of the device freed */
    ct_mutex_finish(&arena->lock);
    free(arena);
}
