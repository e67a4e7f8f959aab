/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that a device has not completed, by name: so that a report of a fault or of a timeout can say which kernels were running. Each
 * queue that launches kernels has a list of its own. */
#ifndef CT_CORE_RUNNING_H
#define CT_CORE_RUNNING_H

#include "backend.h"

struct ct_device;
struct ct_running_kernel;

struct ct_running {
    struct ct_running *next, **link; /* in device->running; guarded by device->running_lock, as is all of this */
    struct ct_device *device;
    struct ct_queue *queue;
    struct ct_running_kernel *kernels;        /* a ring buffer, oldest first, that may also contain complete ones */
    size_t first, count, capacity;            /* capacity is a power of two, or 0 */
    bool is_recording;                        /* the last kernel is being recorded: its last point is not known */
    uint64_t watched_point, watched_since_ns; /* for long_kernels.c: the device has worked at this point since then */
    bool is_mentioned;                        /* likewise: the log has mentioned it */
};

/* Adds and removes the list of a queue. Removal takes a list that was never added, if it is zeroed. The queue exists in between. */
void ct_running_add(struct ct_running *running, struct ct_device *device, struct ct_queue *queue);
void ct_running_remove(struct ct_running *running);
/* Called before and after a launch is recorded, since the kernel may run, and fail, before recording returns. The name is copied, since the
 * kernel may be destroyed once it is complete. end: with the result of recording, which it returns. The caller serializes recording. */
void ct_running_begin(struct ct_running *running, const char *name);
CUresult ct_running_end(struct ct_running *running, CUresult result);

/* Writes the names of the kernels at which the device works now, at most a few, as a text: "kernel a", or "one of the kernels a, b". If it
 * works at none (it may be about to begin), those that are not complete are named. */
void ct_running_describe(struct ct_device *device, char *out, size_t size);
/* Whether any kernel of the device is not complete. */
bool ct_running_any(struct ct_device *device);
/* Whether the device works at a kernel of this list; *out_point identifies it. The caller holds device->running_lock. */
bool ct_running_now_locked(const struct ct_running *running, uint64_t *out_point);

#endif
