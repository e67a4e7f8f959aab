/* SPDX-License-Identifier: Apache-2.0 */
/* Small allocations are suballocated from chunks of 2 MiB with a bitmap of 512-byte units, first fit in the first chunk with space. One
 * empty chunk is kept for the next small allocation; further empty chunks are freed. Managed memory has separate chunks of host memory.
 * Chunks are created and destroyed without the arena's lock, because the driver may be slow. */
#include "memory_arena.h"

#include "core/base/log.h"
#include "core/base/process.h"
#include "core/backing/memory_spares.h"

#include <assert.h>
#include <stdlib.h>

#define CT_CHANNEL "memory"
#define CHUNK_BYTES ((uint64_t)2 << 20)
#define CHUNK_UNITS (CHUNK_BYTES / CT_CHUNK_UNIT_BYTES)

struct ct_memory_chunk {
    struct ct_memory_chunk *next;
    enum ct_memory_kind kind; /* DEVICE or HOST */
    struct ct_backing backing;
    uint64_t id;
    uint64_t used_units;
    uint64_t used[CHUNK_UNITS / 64]; /* one bit per unit */
};

/* First unit at or after `unit` whose bit is `value`; CHUNK_UNITS if there is none. */
static uint64_t next_unit(const struct ct_memory_chunk *chunk, uint64_t unit, bool value)
{
    while (unit < CHUNK_UNITS) {
        uint64_t word = chunk->used[unit / 64];
        uint64_t wanted = (value ? word : ~word) >> (unit % 64);

        if (wanted)
            return unit + (uint64_t)__builtin_ctzll(wanted);
        unit = (unit / 64 + 1) * 64;
    }
    return CHUNK_UNITS;
}

static void mark_units(struct ct_memory_chunk *chunk, uint64_t first, uint64_t count, bool used)
{
    for (uint64_t unit = first; unit < first + count; unit++) {
        uint64_t bit = (uint64_t)1 << (unit % 64);

        assert(!!(chunk->used[unit / 64] & bit) != used);
        chunk->used[unit / 64] ^= bit;
    }
    chunk->used_units = used ? chunk->used_units + count : chunk->used_units - count;
}

/* First run of `count` free units that begins at a multiple of `align` bytes; CHUNK_UNITS if there is none. */
static uint64_t find_run(const struct ct_memory_chunk *chunk, uint64_t count, uint64_t align)
{
    uint64_t unit = 0;

    if (CHUNK_UNITS - chunk->used_units < count)
        return CHUNK_UNITS;
    while ((unit = next_unit(chunk, unit, false)) < CHUNK_UNITS) {
        uint64_t address = chunk->backing.address + unit * CT_CHUNK_UNIT_BYTES;
        uint64_t aligned = unit + ((-address) & (align - 1)) / CT_CHUNK_UNIT_BYTES;
        uint64_t end = next_unit(chunk, unit, true);

        if (aligned < end && end - aligned >= count)
            return aligned;
        unit = end;
    }
    return CHUNK_UNITS;
}

static CUresult chunk_create(struct ct_context *context, enum ct_memory_kind kind, struct ct_memory_chunk **out)
{
    struct ct_memory_chunk *chunk = calloc(1, sizeof *chunk);
    CUresult r;

    if (!chunk)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "chunk");
    chunk->kind = kind;
    chunk->id = ct_process_new_id();
    r = ct_spares_backing(context, kind, CHUNK_BYTES, CT_CHUNK_UNIT_BYTES, &chunk->backing);
    if (r != CUDA_SUCCESS) {
        free(chunk);
        return r;
    }
    *out = chunk;
    return CUDA_SUCCESS;
}

static void chunk_destroy(struct ct_context *context, struct ct_memory_chunk *chunk)
{
    if (!chunk)
        return;
    ct_backing_destroy(context, &chunk->backing);
    free(chunk);
}

static bool carve_locked(struct ct_memory_chunk *chunk, uint64_t size_bytes, uint64_t align, struct ct_allocation *allocation)
{
    uint64_t count = (size_bytes + CT_CHUNK_UNIT_BYTES - 1) / CT_CHUNK_UNIT_BYTES;
    uint64_t unit = find_run(chunk, count, align);

    if (unit == CHUNK_UNITS)
        return false;
    mark_units(chunk, unit, count, true);
    allocation->chunk = chunk;
    allocation->chunk_offset = unit * CT_CHUNK_UNIT_BYTES;
    allocation->chunk_bytes = count * CT_CHUNK_UNIT_BYTES;
    return true;
}

static bool carve_from_any(struct ct_memory_arena *arena, enum ct_memory_kind kind, uint64_t size_bytes, uint64_t align,
                           struct ct_allocation *allocation)
{
    bool found = false;

    ct_mutex_lock(&arena->lock);
    for (struct ct_memory_chunk *chunk = arena->chunks; chunk && !found; chunk = chunk->next)
        found = chunk->kind == kind && carve_locked(chunk, size_bytes, align, allocation);
    ct_mutex_unlock(&arena->lock);
    return found;
}

CUresult ct_chunk_carve(struct ct_memory_arena *arena, enum ct_memory_kind kind, uint64_t size_bytes, uint64_t align,
                        struct ct_allocation *allocation)
{
    struct ct_memory_chunk *chunk;
    CUresult r;

    if (carve_from_any(arena, kind, size_bytes, align, allocation))
        return CUDA_SUCCESS;
    r = chunk_create(arena->context, kind, &chunk);
    if (r != CUDA_SUCCESS)
        return r;
    ct_mutex_lock(&arena->lock);
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    carve_locked(chunk, size_bytes, align, allocation); /* always fits an empty chunk: at most half a chunk is requested */
    ct_mutex_unlock(&arena->lock);
    return CUDA_SUCCESS;
}

/* Removes an empty chunk of that kind other than the first empty one from the list, and returns it; NULL if there is none. */
static struct ct_memory_chunk *take_spare_chunk_locked(struct ct_memory_arena *arena, enum ct_memory_kind kind)
{
    bool kept = false;

    for (struct ct_memory_chunk **link = &arena->chunks; *link; link = &(*link)->next) {
        struct ct_memory_chunk *chunk = *link;

        if (chunk->kind != kind || chunk->used_units)
            continue;
        if (kept) {
            *link = chunk->next;
            return chunk;
        }
        kept = true;
    }
    return NULL;
}

void ct_chunk_give_back(struct ct_memory_arena *arena, const struct ct_allocation *allocation)
{
    struct ct_memory_chunk *spare;

    ct_mutex_lock(&arena->lock);
    mark_units(allocation->chunk, allocation->chunk_offset / CT_CHUNK_UNIT_BYTES, allocation->chunk_bytes / CT_CHUNK_UNIT_BYTES, false);
    spare = take_spare_chunk_locked(arena, allocation->chunk->kind);
    ct_mutex_unlock(&arena->lock);
    chunk_destroy(arena->context, spare);
}

const struct ct_backing *ct_chunk_backing(const struct ct_memory_chunk *chunk)
{
    return &chunk->backing;
}

uint64_t ct_chunk_id(const struct ct_memory_chunk *chunk)
{
    return chunk->id;
}

void ct_chunks_destroy_all(struct ct_memory_arena *arena)
{
    while (arena->chunks) {
        struct ct_memory_chunk *chunk = arena->chunks;

        arena->chunks = chunk->next;
        chunk_destroy(arena->context, chunk);
    }
}
