/* SPDX-License-Identifier: Apache-2.0 */
/* The arena of a context: all of its allocations, the chunks that small ones are suballocated from, and staging buffers. */
#ifndef CT_CORE_MEMORY_ARENA_H
#define CT_CORE_MEMORY_ARENA_H
/* Parts: memory_chunks.c, memory_staging.c. */

#include "core/base/locks.h"
#include "memory.h"
#include "core/backing/memory_backing.h"
#include "core/ipc/memory_share.h"

struct ct_memory_chunk;

struct ct_memory_arena {
    struct ct_context *context; /* borrowed: it owns the arena */
    struct ct_mutex lock;       /* guards everything below */
    struct ct_memory_chunk *chunks;
    struct ct_allocation *allocations;
    struct ct_staging *stagings; /* free ones */
    unsigned n_stagings;
};

/* An allocation or registration: one entry in the arena's list, with one or two ranges in the address map. */
struct ct_allocation {
    struct ct_allocation *next, **link; /* in the arena's list; link points to the pointer to this entry */
    struct ct_backing backing;          /* memory of its own; zero if it is suballocated from a chunk */
    struct ct_memory_chunk *chunk;      /* or NULL */
    struct ct_opened_backing *opened;   /* memory of another process, which it is a part of, or NULL; the backing is then zero */
    uint64_t chunk_offset, chunk_bytes;
    uint64_t start; /* of the range in the map */
    uint64_t alias; /* start of the second range (the device pointer), or 0 */
    enum ct_range_kind kind;
    bool is_plain;     /* its own memory is device memory from ct_spares_backing and may be reused */
    bool has_dma_buf;  /* it was exported; guarded by the arena's lock */
    uint64_t share_id; /* for import by other processes, 0 if not shared (memory_share.h); guarded by the arena's lock */
};

/* Adds the allocation to the context's list and its ranges to the address map; both are unchanged on failure. The caller sets
 * range->allocation. If start and device_pointer differ, `range` describes both ranges. */
CUresult ct_allocation_publish(struct ct_context *context, const struct ct_range *range);
/* Describes a range of a backing that begins at `offset`; it has a new id, and no allocation yet. */
struct ct_range ct_range_of_backing(struct ct_context *context, const struct ct_backing *backing, uint64_t offset, uint64_t size_bytes,
                                    enum ct_range_kind kind);
/* Unpublishes the allocation that starts at `start`, waits for the work of its context, and frees it. INVALID_VALUE. Its context may differ
 * from `context`, which the caller has in use; `context` is NULL if none is current. */
CUresult ct_allocation_remove(struct ct_context *context, uint64_t start, enum ct_range_kind kind);
void ct_allocation_destroy(struct ct_context *context, struct ct_allocation *allocation);

/* The data that another process needs to import an allocation of kind DEVICE: the name of its memory, and its offset and size in it. */
struct ct_allocation_share {
    struct ct_share_name name;
    uint64_t offset, size_bytes;
    uint64_t memory_id; /* the same for allocations in the same memory */
};
/* INVALID_VALUE: nothing of that kind is at `address`. NOT_SUPPORTED: it cannot be shared. */
CUresult ct_allocation_share(uint64_t address, struct ct_allocation_share *out);
/* Exports `size_bytes` from `address` on as a dma-buf: whole pages, the last of which may extend beyond the end of the allocation. */
CUresult ct_allocation_export_dma_buf(uint64_t address, uint64_t size_bytes, int *out_fd);

/* ---- small allocations (memory_chunks.c) ---- */

/* Suballocates from a chunk of memory of `kind`, DEVICE or HOST, at most half a chunk. OUT_OF_MEMORY. */
#define CT_CHUNK_UNIT_BYTES ((uint64_t)512) /* the native driver's alignment */
CUresult ct_chunk_carve(struct ct_memory_arena *arena, enum ct_memory_kind kind, uint64_t size_bytes, uint64_t align,
                        struct ct_allocation *allocation);
void ct_chunk_give_back(struct ct_memory_arena *arena, const struct ct_allocation *allocation);
const struct ct_backing *ct_chunk_backing(const struct ct_memory_chunk *chunk);
uint64_t ct_chunk_id(const struct ct_memory_chunk *chunk); /* unique in the process */
void ct_chunks_destroy_all(struct ct_memory_arena *arena); /* no suballocation may be in use */

/* ---- staging (memory_staging.c) ---- */

/* A staging buffer for read-backs: host memory that one caller uses exclusively. It has at least CT_STAGING_BYTES. */
#define CT_STAGING_BYTES ((uint64_t)1 << 20)
struct ct_staging {
    struct ct_staging *next;
    struct ct_backing backing;
};
CUresult ct_staging_acquire(struct ct_context *context, struct ct_staging **out);
void ct_staging_release(struct ct_context *context, struct ct_staging *staging); /* no work may use it; a no-op for NULL */

void ct_stagings_destroy_all(struct ct_memory_arena *arena);

#endif
