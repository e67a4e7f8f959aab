/* SPDX-License-Identifier: Apache-2.0 */
/* What a context's arena holds: every allocation of the context, the chunks that small ones are carved from, staging buffers. */
#ifndef CT_CORE_MEMORY_ARENA_H
#define CT_CORE_MEMORY_ARENA_H
/* Parts: memory_chunks.c, memory_staging.c. */

#include "core/base/locks.h"
#include "memory.h"
#include "core/backing/memory_backing.h"
#include "core/ipc/memory_share.h"

struct ct_memory_chunk;

struct ct_memory_arena {
    struct ct_context *context; /* borrowed: it owns us */
    struct ct_mutex lock;       /* guards everything below */
    struct ct_memory_chunk *chunks;
    struct ct_allocation *allocations;
    struct ct_staging *stagings; /* free ones */
    unsigned n_stagings;
};

/* An allocation or registration: one in the arena's list, with one or two ranges in the map. */
struct ct_allocation {
    struct ct_allocation *next, **link; /* in the arena's list; link points at what points at us */
    struct ct_backing backing;          /* memory of its own; zero if it is a piece of a chunk */
    struct ct_memory_chunk *chunk;      /* or NULL */
    uint64_t chunk_offset, chunk_bytes;
    uint64_t start; /* of the range in the map */
    uint64_t alias; /* start of the second range (the device pointer), or 0 */
    enum ct_range_kind kind;
    bool is_plain;     /* its own memory came from ct_spares_backing, for a device: the next allocation may have it */
    bool has_dma_buf;  /* somebody else may have it; guarded by the arena's lock */
    uint64_t share_id; /* under which other processes get it, 0: not at all (memory_share.h); guarded by the arena's lock */
};

/* Adds the allocation to the context's list and its ranges to the map; nothing happened on failure. `range` has its allocation set
 * and, where start and device_pointer differ, stands for both ranges. */
CUresult ct_allocation_publish(struct ct_context *context, const struct ct_range *range);
/* What a range is that lies in a backing, `offset` bytes from its begin; it has an id of its own, and no allocation yet. */
struct ct_range ct_range_of_backing(struct ct_context *context, const struct ct_backing *backing, uint64_t offset, uint64_t size_bytes,
                                    enum ct_range_kind kind);
/* Takes the ranges that start at `start` out of the map, waits for the work of their context, then frees everything. INVALID_VALUE.
 * Their context may be another than `context`, which the caller uses, or which is NULL: none is current. */
CUresult ct_allocation_remove(struct ct_context *context, uint64_t start, enum ct_range_kind kind);
void ct_allocation_destroy(struct ct_context *context, struct ct_allocation *allocation);

/* What another process has to know to get an allocation of kind DEVICE: the name of the memory that it is in, and where. */
struct ct_allocation_share {
    struct ct_share_name name;
    uint64_t offset, size_bytes;
};
/* INVALID_VALUE: nothing of that kind is at `address`. NOT_SUPPORTED: it cannot be had by others. */
CUresult ct_allocation_share(uint64_t address, struct ct_allocation_share *out);
/* The same as a dma-buf, of `size_bytes` from there on: whole pages, the last of which may be one that the allocation begins. */
CUresult ct_allocation_export_dma_buf(uint64_t address, uint64_t size_bytes, int *out_fd);

/* ---- small allocations (memory_chunks.c) ---- */

/* A piece of a chunk of memory of `kind`, DEVICE or HOST, of at most half a chunk. OUT_OF_MEMORY. */
#define CT_CHUNK_UNIT_BYTES ((uint64_t)512) /* what the native driver aligns to */
CUresult ct_chunk_carve(struct ct_memory_arena *arena, enum ct_memory_kind kind, uint64_t size_bytes, uint64_t align,
                        struct ct_allocation *allocation);
void ct_chunk_give_back(struct ct_memory_arena *arena, const struct ct_allocation *allocation);
const struct ct_backing *ct_chunk_backing(const struct ct_memory_chunk *chunk);
void ct_chunks_destroy_all(struct ct_memory_arena *arena); /* nothing of them is in use */

/* ---- staging (memory_staging.c) ---- */

/* Read-back staging: a piece of host memory for one caller alone. At least CT_STAGING_BYTES. */
#define CT_STAGING_BYTES ((uint64_t)1 << 20)
struct ct_staging {
    struct ct_staging *next;
    struct ct_backing backing;
};
CUresult ct_staging_acquire(struct ct_context *context, struct ct_staging **out);
void ct_staging_release(struct ct_context *context, struct ct_staging *staging); /* no work uses it; takes NULL */

void ct_stagings_destroy_all(struct ct_memory_arena *arena);

#endif
