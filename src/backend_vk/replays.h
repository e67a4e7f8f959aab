/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings as batches hold them: references, and how long they take. */
#ifndef CT_VK_REPLAYS_H
#define CT_VK_REPLAYS_H

#include "recorded_params.h"
#include "variants.h"

struct ct_vk_bound;

struct ct_recording {
    struct ct_backend_device *device;
    VkCommandPool pool; /* of the command buffer alone: recordings are made and freed by several threads */
    VkCommandBuffer commands;
    atomic_uint references;
    struct ct_vk_bound *bound; /* while it is being recorded */
    struct ct_vk_recorded_params params;
    struct ct_vk_variants variants;
    uint64_t time_ns; /* CT_VK_REPLAYS_NS: unknown, or longer. Guarded by the scheduler's lock */
};
void ct_vk_recording_destroy(struct ct_recording *recording); /* releases a reference; takes NULL */

/* Drivers abort a submission after 2 s or more, so a batch takes several recordings only if this is known to be enough for all. */
#define CT_VK_REPLAYS_NS UINT64_C(500000000)

/* Recordings that a batch replays, until it is complete. */
struct ct_vk_replays {
    struct ct_recording **list; /* references */
    unsigned count, capacity;
    uint64_t time_ns; /* that they take, at most */
};

CUresult ct_vk_replays_add(struct ct_vk_replays *replays, struct ct_recording *recording);
/* A batch with the recordings is complete, and took this time at most: its end may be noticed late. Recordings that ran together share the time,
 * which may be wrong for each, but not for all of them. */
void ct_vk_replays_measure(const struct ct_vk_replays *replays, uint64_t time_ns);
void ct_vk_replays_end(struct ct_vk_replays *replays);

#endif
