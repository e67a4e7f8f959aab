/* SPDX-License-Identifier: Apache-2.0 */
/* What a memory pool consists of; for memory_pool*.c alone.
 *
 * Slabs are pieces of backend memory, blocks cover each slab without gaps:
 *
 *            alloc                  free in a stream
 *   FREE ────────────> USED ──────────────────────────────> PENDING
 *     ^                 │ ^ alloc that is ordered behind it  │ │
 *     │  cuMemFree      │ └──────────────────────────────────┘ │
 *     └─────────────────┴──────────────────────────────────────┘ the stream has come to the free, and that was noticed
 */
#ifndef CT_CORE_MEMORY_POOL_BLOCKS_H
#define CT_CORE_MEMORY_POOL_BLOCKS_H

#include "core/backing/memory_backing.h"
#include "memory_pool.h"
#include "core/ipc/memory_share.h"

#define CT_POOL_UNIT ((uint64_t)512) /* what the native driver aligns to */

enum ct_block_state { CT_BLOCK_FREE, CT_BLOCK_USED, CT_BLOCK_PENDING };

/* A stream in which memory was freed that is still pending. */
struct ct_pool_user {
    struct ct_pool_user *next;
    struct ct_stream *stream; /* retained */
    unsigned n_pending;
    uint64_t completed; /* point that was seen to be complete; see ct_pool_users_look */
    bool in_use;        /* while one looks: a use of the stream's context is held */
};

struct ct_pool_block {
    struct ct_pool_block *next; /* in the slab */
    struct ct_pool_slab *slab;
    uint64_t offset, size_bytes;
    uint64_t asked_bytes; /* of USED: what the allocation was to have, which is what counts as used */
    enum ct_block_state state;
    struct ct_pool_user *user; /* of PENDING: who freed it, and the point after which it is free */
    uint64_t point;
};

struct ct_pool_slab {
    struct ct_pool_slab *next;
    struct ct_memory_pool *pool; /* which owns us */
    struct ct_backing backing;
    uint64_t size_bytes;
    struct ct_pool_block *first;
    uint64_t share_id;   /* under which other processes get it, 0: not at all */
    uint64_t origin_id;  /* of an imported one: the same of its owner */
    uint64_t lead_bytes; /* of an imported one: where it begins in the backing; what lies before it stays free for ever */
};

enum ct_pool_reuse { CT_REUSE_EVENTS, CT_REUSE_OPPORTUNISTIC, CT_REUSE_INTERNAL, CT_REUSE_POLICIES };

/* What a pool is from its making on. */
struct ct_pool_kind {
    uint64_t max_bytes; /* 0: no limit */
    CUmemAllocationHandleType handle_types;
    bool imported;               /* nothing is allocated in it, but brought from `origin` */
    struct ct_share_name origin; /* the pool: of another process, or ours */
};

struct ct_memory_pool {
    struct ct_object object;
    struct ct_device *device; /* borrowed: outlives us */
    struct ct_pool_kind kind;
    struct ct_memory_pool *next;
    struct ct_pool_slab *slabs;
    bool doomed; /* no handle any more: goes with its last block in use */
    bool reuse[CT_REUSE_POLICIES];
    uint64_t id; /* for other processes; 0: it was never exported */
    uint64_t release_threshold;
    uint64_t reserved, reserved_high, used, used_high; /* bytes */
};

/* Pools of one device. The lock guards them all and what they consist of. */
struct ct_device_pools {
    struct ct_device *device;
    struct ct_mutex lock;
    struct ct_memory_pool *first; /* each with a reference */
    struct ct_memory_pool *current, *standard;
    struct ct_pool_user *users;
    atomic_bool unsettled; /* something may change when the host waits: blocks are pending, or more is reserved than should be */
};

/* Work that was waited for: what is freed in these streams is free. */
struct ct_pool_wait {
    struct ct_stream *stream; /* NULL: of nobody */
    uint64_t point;
};

/* What is taken out under the lock and let go without it. */
struct ct_pool_litter {
    struct ct_pool_slab *slabs;
    struct ct_pool_user *users;
    struct ct_memory_pool *pools;
};

/* How blocks are found: FREE ones, those that `stream` is ordered behind, or with `any` those of its context that it would have to wait
 * for. */
struct ct_pool_request {
    uint64_t size_bytes; /* of the allocation; blocks are whole units */
    struct ct_stream *stream; /* locked, but for `any`; NULL: FREE blocks only */
    bool any;
};
#define CT_POOL_WAITS 16u /* so many waits at most for one allocation */

/* A USED block in one of the pool's slabs, or NULL. `spare` becomes it. With `any`, what to wait for goes to `waits`, streams retained. */
struct ct_pool_block *ct_pool_take_locked(struct ct_memory_pool *pool, const struct ct_pool_request *request, struct ct_pool_block *spare,
                                          struct ct_pool_wait *waits);
/* USED to FREE, or to PENDING if `user` is not NULL. */
void ct_pool_give_locked(struct ct_pool_block *block, struct ct_pool_user *user, uint64_t point);

/* In the list of its device, with a handle. */
CUresult ct_memory_pool_make(struct ct_device_pools *pools, const struct ct_pool_kind *kind, struct ct_memory_pool **out);
/* Memory of its own, in no pool yet. OUT_OF_MEMORY. No lock is held. */
CUresult ct_pool_slab_create(struct ct_memory_pool *pool, uint64_t size_bytes, struct ct_pool_slab **out);
/* The same of a slab of another process. What ct_backing_open gives. */
CUresult ct_pool_slab_import(struct ct_memory_pool *pool, const struct ct_share_name *name, struct ct_pool_slab **out);
/* Bytes of the block of an allocation. */
static inline uint64_t ct_pool_block_bytes(uint64_t size_bytes)
{
    return (size_bytes + CT_POOL_UNIT - 1) & ~(CT_POOL_UNIT - 1);
}
/* A USED block at this very place of a slab, for so many bytes, which takes the spares; NULL: it is not all free. */
struct ct_pool_block *ct_pool_take_at_locked(struct ct_pool_slab *slab, uint64_t offset, uint64_t asked_bytes,
                                             struct ct_pool_block *spares[2]);
/* The address of a block, which the map knows from now on, with an owner for what the application does in other contexts. */
CUresult ct_pool_block_publish(struct ct_pool_block *block, struct ct_context *owner, uint64_t size_bytes, uint64_t *out_address);
/* A USED block becomes free: when `stream` comes to `point`, or at once for NULL. */
void ct_pool_block_give(struct ct_pool_block *block, struct ct_stream *stream_or_null, uint64_t point);
/* What is free now becomes so: all that is complete where the pool reuses opportunistically, else what `wait` covers. */
void ct_pools_settle_locked(struct ct_device_pools *pools, const struct ct_pool_wait *wait, struct ct_pool_litter *litter);
/* Takes slabs without a block in use out of the pool, while at least min_bytes stay. */
void ct_pool_shrink_locked(struct ct_memory_pool *pool, uint64_t min_bytes, struct ct_pool_litter *litter);
/* Takes doomed pools out that have no memory any more. */
void ct_pools_reap_locked(struct ct_device_pools *pools, struct ct_pool_litter *litter);
/* The entry of a stream, made if need be; NULL: out of memory. */
struct ct_pool_user *ct_pools_user_locked(struct ct_device_pools *pools, struct ct_stream *stream);
/* Nothing of the context's streams is pending any more; they are finished, or will be with their last reference. */
void ct_pools_forget_locked(struct ct_device_pools *pools, struct ct_context *context, struct ct_pool_litter *litter);
/* No lock is held. */
void ct_pool_litter_drop(struct ct_device_pools *pools, struct ct_pool_litter *litter);

#endif
