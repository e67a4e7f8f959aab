/* SPDX-License-Identifier: Apache-2.0 */
/* The slabs and blocks of a memory pool; private to memory_pool*.c.
 *
 * Slabs are allocations of backend memory; blocks cover each slab without gaps:
 *
 *            alloc                  free in a stream
 *   FREE ────────────> USED ──────────────────────────────> PENDING
 *     ^                 │ ^ alloc that is ordered after it   │ │
 *     │  cuMemFree      │ └──────────────────────────────────┘ │
 *     └─────────────────┴──────────────────────────────────────┘ the stream has passed the free, and the pool has observed it
 */
#ifndef CT_CORE_MEMORY_POOL_BLOCKS_H
#define CT_CORE_MEMORY_POOL_BLOCKS_H

#include "core/backing/memory_backing.h"
#include "memory_pool.h"
#include "core/ipc/memory_share.h"

#define CT_POOL_UNIT ((uint64_t)512) /* the alignment of the native driver */

enum ct_block_state { CT_BLOCK_FREE, CT_BLOCK_USED, CT_BLOCK_PENDING };

/* A stream in which memory was freed whose free is still pending. */
struct ct_pool_user {
    struct ct_pool_user *next;
    struct ct_stream *stream; /* retained */
    unsigned n_pending;
    uint64_t completed; /* the last point that was observed to be complete; see read_progress */
    bool in_use;        /* while the progress is read: a reference to the stream's context is held */
};

struct ct_pool_block {
    struct ct_pool_block *next; /* in the slab */
    struct ct_pool_slab *slab;
    struct ct_kept_block *kept; /* of memory that graphs allocate and free; NULL: other memory */
    uint64_t offset, size_bytes;
    uint64_t requested_bytes; /* of USED: the size of the allocation, which is what the statistics count */
    enum ct_block_state state;
    struct ct_pool_user *user; /* of PENDING: the stream that freed it, and the point after which it is free */
    uint64_t point;
};

/* A USED block whose address is kept while its memory is freed and allocated again (kept_block.h). The lock of the device's pools guards the members
 * that change. */
struct ct_kept_block {
    struct ct_pool_block *block;
    unsigned references;
    bool is_allocated;
    struct ct_stream *freed_in; /* retained: the stream that freed it last, or NULL; and the point after which it is free */
    uint64_t freed_at;
};

struct ct_pool_slab {
    struct ct_pool_slab *next;
    struct ct_memory_pool *pool;      /* the owner */
    struct ct_backing backing;        /* of an imported slab: a copy of opened->backing */
    struct ct_opened_backing *opened; /* memory of another process, or NULL */
    struct ct_slab_mapping *mapping;  /* NULL: it has memory of its own (slab_mapping.h) */
    uint64_t size_bytes;
    struct ct_pool_block *first;
    uint64_t share_id;   /* the id under which other processes import it, 0: not shared */
    uint64_t origin_id;  /* of an imported slab: the same id in its owner */
    uint64_t lead_bytes; /* of an imported slab: its offset in the backing; the bytes before it are never allocated */
};

enum ct_pool_reuse { CT_REUSE_EVENTS, CT_REUSE_OPPORTUNISTIC, CT_REUSE_INTERNAL, CT_REUSE_POLICIES };

/* What a pool has: memory of its device; page-locked memory of the host; or managed memory, which is host memory, too, with the location that
 * was given for it: a device, the host or none. Host memory has one address for host and device. */
enum ct_pool_place { CT_POOL_DEVICE, CT_POOL_HOST, CT_POOL_MANAGED_DEVICE, CT_POOL_MANAGED_HOST, CT_POOL_MANAGED, CT_POOL_PLACES };

static inline bool ct_pool_place_is_managed(enum ct_pool_place place)
{
    return place == CT_POOL_MANAGED_DEVICE || place == CT_POOL_MANAGED_HOST || place == CT_POOL_MANAGED;
}

/* A place, and the device in whose list the pools of the place are. */
struct ct_pool_site {
    struct ct_device *device;
    enum ct_pool_place place;
};

/* The properties of a pool that are fixed at its creation. */
struct ct_pool_kind {
    uint64_t max_bytes; /* 0: no limit */
    CUmemAllocationHandleType handle_types;
    enum ct_pool_place place;
    bool imported;               /* nothing can be allocated in it; its memory is imported from `origin` */
    struct ct_share_name origin; /* the identity of the pool: in another process, or in this one */
};

struct ct_memory_pool {
    struct ct_object object;
    struct ct_device *device; /* borrowed: it outlives the pool */
    struct ct_pool_kind kind;
    struct ct_memory_pool *next;
    struct ct_pool_slab *slabs;
    struct ct_pool_frames *frames; /* of slabs with mappings */
    bool destroyed;                /* has no handle any more: it is freed with its last block in use */
    bool reuse[CT_REUSE_POLICIES];
    uint64_t accessible;     /* not of device memory: the devices that were given access, a bit for each ordinal below 64 */
    bool accessible_to_host; /* likewise */
    uint64_t id;             /* the id for other processes; 0: it was never exported */
    uint64_t release_threshold;
    uint64_t reserved, reserved_high, used, used_high; /* bytes */
};

/* The default and the current pool of a place; NULL: the device has none. */
struct ct_pool_choice {
    struct ct_memory_pool *standard, *current;
};

/* The pools of one device. The lock guards them, their slabs and their blocks. */
struct ct_device_pools {
    struct ct_device *device;
    struct ct_mutex lock;
    struct ct_memory_pool *first; /* the list owns a reference to each */
    struct ct_pool_choice at[CT_POOL_PLACES];
    struct ct_memory_pool *graphs; /* the memory of graphs; it has no handle */
    struct ct_pool_user *users;
    atomic_bool needs_reclaim; /* a wait of the host may free memory: blocks are pending, or a pool exceeds its threshold */
};

/* Work that was waited for: memory that was freed in the stream up to the point is free. */
struct ct_pool_wait {
    struct ct_stream *stream; /* NULL: none */
    uint64_t point;
};

/* Objects that are removed under the lock and freed without it. */
struct ct_pool_garbage {
    struct ct_pool_slab *slabs;
    struct ct_pool_user *users;
    struct ct_memory_pool *pools;
    struct ct_pool_frames *frames;
};

/* The blocks that a search accepts: FREE blocks, those whose free `stream` is ordered after, and with `any` those of its context for
 * which it would have to wait. */
struct ct_pool_request {
    uint64_t size_bytes;      /* of the allocation; blocks are whole units */
    struct ct_stream *stream; /* locked, except with `any`; NULL: FREE blocks only */
    bool any;
};
#define CT_POOL_WAITS 16u /* the largest number of waits for one allocation */

/* Returns a USED block in one of the pool's slabs, or NULL. The block is `spare`. With `any`, stores in `waits` what to wait for, with
 * retained streams. */
struct ct_pool_block *ct_pool_take_locked(struct ct_memory_pool *pool, const struct ct_pool_request *request, struct ct_pool_block *spare,
                                          struct ct_pool_wait *waits);
/* Changes a block from USED to FREE, or to PENDING if `user` is not NULL. */
void ct_pool_free_locked(struct ct_pool_block *block, struct ct_pool_user *user, uint64_t point);

/* memory_pool_places.c: the site for a location and a type of memory. INVALID_VALUE; NOT_SUPPORTED. */
CUresult ct_pool_site_find(const CUmemLocation *location, CUmemAllocationType type, struct ct_pool_site *out);
/* Whether a device has pools at a place. */
bool ct_pool_place_exists(const struct ct_device *device, enum ct_pool_place place);
bool ct_memory_pool_is_default(const struct ct_memory_pool *pool);
/* If this pool, which is destroyed, is the current one of its place, the default pool becomes that. */
void ct_pools_replace_current_locked(struct ct_device_pools *pools, const struct ct_memory_pool *pool);

/* Creates a pool in the list of its device, with a handle if `publish`. */
CUresult ct_memory_pool_make(struct ct_device_pools *pools, const struct ct_pool_kind *kind, bool publish, struct ct_memory_pool **out);
/* Allocates a slab that is in no pool yet. OUT_OF_MEMORY. No lock is held. */
CUresult ct_pool_slab_create(struct ct_memory_pool *pool, uint64_t size_bytes, struct ct_pool_slab **out);
/* A slab with a mapping (slab_mapping.h). Errors of ct_slab_mapping_create. */
CUresult ct_pool_slab_create_mapped(struct ct_memory_pool *pool, uint64_t size_bytes, struct ct_pool_slab **out);
/* The same for a slab of another process. Errors of ct_opened_backing_get. */
CUresult ct_pool_slab_import(struct ct_memory_pool *pool, const struct ct_share_name *name, struct ct_pool_slab **out);
/* The size of the block of an allocation. */
static inline uint64_t ct_pool_block_bytes(uint64_t size_bytes)
{
    return (size_bytes + CT_POOL_UNIT - 1) & ~(CT_POOL_UNIT - 1);
}
/* Returns a USED block of this size at exactly this offset of a slab, and uses the spares; NULL: the range is not entirely free. */
struct ct_pool_block *ct_pool_take_at_locked(struct ct_pool_slab *slab, uint64_t offset, uint64_t requested_bytes,
                                             struct ct_pool_block *spares[2]);
/* Takes a FREE block, if necessary of a new slab. OUT_OF_MEMORY. No lock is held. */
CUresult ct_pool_block_take(struct ct_memory_pool *pool, uint64_t size_bytes, struct ct_pool_block **out);
/* Takes a block in a slab of its own, with a mapping. Errors of ct_slab_mapping_create. No lock is held. */
CUresult ct_pool_block_take_mapped(struct ct_memory_pool *pool, uint64_t size_bytes, struct ct_pool_block **out);
/* Adds a block to the map of addresses, with an owner for accesses in other contexts, and returns its address. */
CUresult ct_pool_block_publish(struct ct_pool_block *block, struct ct_context *owner, uint64_t size_bytes, uint64_t *out_address);
/* Frees a USED block: when `stream` has reached `point`, or at once if it is NULL. */
void ct_pool_block_free(struct ct_pool_block *block, struct ct_stream *stream_or_null, uint64_t point);
/* Reclaims pending blocks: all whose work is complete if the pool reuses opportunistically, otherwise those that `wait` covers. */
void ct_pools_reclaim_locked(struct ct_device_pools *pools, const struct ct_pool_wait *wait, struct ct_pool_garbage *garbage);
/* Removes slabs without a block in use from the pool, as long as at least min_bytes remain. */
void ct_pool_shrink_locked(struct ct_memory_pool *pool, uint64_t min_bytes, struct ct_pool_garbage *garbage);
/* Removes destroyed pools that have no memory any more. */
void ct_pools_reap_locked(struct ct_device_pools *pools, struct ct_pool_garbage *garbage);
/* Returns the entry of a stream, which is created if needed; NULL: out of memory. */
struct ct_pool_user *ct_pools_user_locked(struct ct_device_pools *pools, struct ct_stream *stream);
/* Frees all blocks that are pending in the context's streams, which are finished, or will be with their last reference. */
void ct_pools_forget_locked(struct ct_device_pools *pools, struct ct_context *context, struct ct_pool_garbage *garbage);
/* No lock is held. */
void ct_pool_garbage_free(struct ct_device_pools *pools, struct ct_pool_garbage *garbage);

#endif
