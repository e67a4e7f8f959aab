/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs without memory of their own: only their addresses are fixed. While such a slab is allocated, frames are mapped there: physical memory
 * that slabs of a pool take in turn. They stay mapped when the slab is freed, so nothing is mapped again as long as the same slabs follow each other. */
#ifndef CT_CORE_SLAB_MAPPING_H
#define CT_CORE_SLAB_MAPPING_H

#include "core/vmm/vmm_backing.h"
#include "memory_pool_blocks.h"

/* The lock of the device's pools guards what changes. */
struct ct_pool_frames {
    struct ct_pool_frames *next; /* in the pool */
    struct ct_vmm_memory memory;
    const struct ct_pool_slab *holder; /* the slab that is allocated, or NULL */
    const struct ct_pool_slab *last;   /* the slab that was freed last, or NULL */
    struct ct_pool_user *user;         /* of a pending free: the stream, and the point after which the frames are free; or NULL */
    uint64_t point;
    unsigned n_mapped; /* slabs in which they are mapped */
};

struct ct_slab_mapping {
    const struct ct_vmm_implementation *implementation;
    struct ct_vmm_view view;
    void *reserved;
    uint64_t reserved_bytes;
    struct ct_pool_frames *frames; /* that are mapped, or NULL */
};

/* Reserves addresses, which are written to *out_backing. NOT_SUPPORTED: the device cannot map memory there; OUT_OF_MEMORY. The device is open. */
CUresult ct_slab_mapping_create(struct ct_device *device, uint64_t size_bytes, struct ct_slab_mapping **out,
                                struct ct_backing *out_backing);
/* Nothing uses the slab any more. No lock is held. */
void ct_slab_mapping_destroy(struct ct_pool_slab *slab);

/* Maps frames in the slab for later work of the stream: those that are mapped, free ones, or new ones. `freed`: when the slab was freed before,
 * which the stream has been ordered behind. OUT_OF_MEMORY. No lock is held. */
CUresult ct_slab_mapping_hold(struct ct_pool_slab *slab, struct ct_stream *stream, const struct ct_pool_wait *freed);
/* The frames are free when the user's stream has reached the point, or at once if it is NULL. */
void ct_slab_mapping_free_locked(struct ct_pool_slab *slab, struct ct_pool_user *user, uint64_t point);

/* Frees what is pending and complete; and what is pending in the context's streams. */
void ct_pool_frames_reclaim_locked(struct ct_memory_pool *pool);
void ct_pool_frames_forget_locked(struct ct_memory_pool *pool, const struct ct_context *context);
/* Unmaps free frames and moves them to the garbage. */
void ct_pool_frames_trim_locked(struct ct_memory_pool *pool, struct ct_pool_garbage *garbage);
void ct_pool_frames_destroy(struct ct_pool_frames *list);

#endif
