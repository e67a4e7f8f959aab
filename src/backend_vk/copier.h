/* SPDX-License-Identifier: Apache-2.0 */
/* Copies beside the queues, by an OpenCL runtime that drives the same device and takes its memory.
 *   copier.c        whether there is to be one, from when on, and until when
 *   copy_runtime.c  finds it and makes its context
 *   copy_beside.c   what it knows of memory, and its copies
 *
 *   NEVER <──────────────────────────────┬───────────────────────────┐
 *                                        │ it failed, or the         │ device memory ran out
 *   WAITING ──enough was copied──> STARTING ──process ends──> READY ──┘
 * One that was named is made at once, by the first copy, and is not given up. */
#ifndef CT_VK_COPIER_H
#define CT_VK_COPIER_H

#include "core/locks.h"

#include <stdint.h>

struct ct_backend_device;
struct ct_vk_copy_runtime; /* copy_runtime.h */
struct ct_vk_memory;

enum ct_vk_copier_state {
    CT_VK_COPIER_NEVER, /* from now on */
    CT_VK_COPIER_WAITING,
    CT_VK_COPIER_STARTING, /* by a thread */
    CT_VK_COPIER_READY,
};

/* Part of a device. */
struct ct_vk_copier {
    const char *library;    /* NULL: none. Until `lock`: settled when the device is opened */
    bool automatic;         /* it is used where that pays, and may be given up; else it was named */
    uint64_t wait_bytes;    /* to be copied before it is made */
    uint64_t context_bytes; /* of device memory, which it takes; 0: not known */
    struct ct_mutex lock;   /* rank CT_RANK_BACKEND; guards the rest, and what is known of memory */
    enum ct_vk_copier_state state;
    uint64_t copied_bytes; /* while it waits */
    unsigned accepted;     /* copies that are to be made by it */
    struct ct_vk_copy_part *known;
    struct ct_vk_copy_runtime *runtime; /* READY */
    bool has_thread;
    pthread_cond_t thread_ended;
};

/* What of a piece of memory only copy_beside.c looks at, under the copier's lock. */
struct ct_vk_copy_part {
    uint64_t copied_bytes; /* to and from it, by copies that the runtime could make */
    bool tried;
    void *object;                         /* what the runtime has of it; NULL: nothing */
    struct ct_vk_copy_part *next, **link; /* in the list of those with an object */
};

#ifdef CT_WITH_OPENCL
void ct_vk_copier_init(struct ct_backend_device *device);
void ct_vk_copier_finish(struct ct_backend_device *device); /* no memory is left that it knows of */
/* Whether CUTTLE_COPY_RUNTIME names one. */
bool ct_vk_copier_is_named(void);
/* Whether the runtime is there, now that these bytes are to be copied. Never waits, but for one that was named. */
bool ct_vk_copier_is_ready_locked(struct ct_backend_device *device, uint64_t bytes);
/* Gives it up, and the device memory that it takes. False: it has none, or is in use. */
bool ct_vk_copier_reclaim(struct ct_backend_device *device);
/* The runtime gives up what it has of memory that no copy uses any more; of all memory. */
void ct_vk_copy_beside_forget(struct ct_vk_memory *memory);
void ct_vk_copy_beside_forget_all_locked(struct ct_backend_device *device);
#else /* without OpenCL's headers */
static inline void ct_vk_copier_init(struct ct_backend_device *device)
{
    (void)device;
}
static inline void ct_vk_copier_finish(struct ct_backend_device *device)
{
    (void)device;
}
static inline bool ct_vk_copier_is_named(void)
{
    return false;
}
static inline void ct_vk_copy_beside_forget(struct ct_vk_memory *memory)
{
    (void)memory;
}
#endif

#endif
