/* SPDX-License-Identifier: Apache-2.0 */
/* Queues: each is an in-order OpenCL command queue.
 *
 * Every command has an event of its own, which is kept with its point in the queue's list until it is complete. Commands are sent to the
 * device when they are recorded: on CPU runtimes an event and a flush for each cost less than a marker for several would save (Intel
 * 2026.2: 2.2 us per launch with both, 2.5 without; PoCL 6.0: 2.2 and 2.4), and nothing is left to be sent when the device becomes idle.
 *
 * The caller serializes recording; the lock is for threads that query the progress of a queue. Waits for the host, and for signals that
 * are not recorded yet, are user events which the timeline completes. */
#ifndef CT_CL_QUEUE_H
#define CT_CL_QUEUE_H
/* Parts: arguments.c, queue_life.c, record.c, timeline.c. */

#include "cl.h"

struct ct_cl_pending {
    cl_event event; /* holds a reference */
    uint64_t point;
};

/* A piece of the memory that holds argument blocks. */
struct ct_cl_arguments;

struct ct_queue {
    struct ct_backend_device *device;
    cl_command_queue handle;
    /* accessed by the recording thread only: the piece in use is the last one, the oldest is the first one */
    struct ct_cl_arguments *arguments, *last_arguments;
    struct ct_mutex lock;          /* guards what follows; rank CT_RANK_BACKEND */
    struct ct_cl_pending *pending; /* a ring buffer, oldest first, in order of points */
    size_t first, count, capacity; /* capacity is a power of two */
    uint64_t completed;            /* as of the last query */
    /* written under the lock; relaxed: a reader that depends on it recorded it, or synchronized with the thread that did */
    atomic_uint_fast64_t point;
};

/* One of the commands that are not known to be complete, counted from the oldest. The lock is held, or no thread records any more. */
static inline struct ct_cl_pending *ct_cl_pending_at(const struct ct_queue *queue, size_t i)
{
    return &queue->pending[(queue->first + i) & (queue->capacity - 1)];
}

CUresult ct_cl_queue_create(struct ct_backend_device *device, const struct ct_queue_desc *desc, struct ct_queue **out);
void ct_cl_queue_destroy(struct ct_queue *queue);
CUresult ct_cl_queue_wait_queue(struct ct_queue *queue, struct ct_queue *other, uint64_t point);
/* Later commands wait for `awaited`. */
CUresult ct_cl_queue_wait_event(struct ct_queue *queue, cl_event awaited);
CUresult ct_cl_queue_flush(struct ct_queue *queue);
CUresult ct_cl_queue_await_room(struct ct_queue *queue);
uint64_t ct_cl_queue_point(struct ct_queue *queue);
CUresult ct_cl_queue_completed(struct ct_queue *queue, uint64_t *out_point);
bool ct_cl_queue_working(struct ct_queue *queue, uint64_t *out_first, uint64_t *out_last);
CUresult ct_cl_queue_await(struct ct_queue *queue, uint64_t point, uint64_t timeout_ns, bool spin);

/* Every command is enqueued between these two. begin limits the commands in flight and fails if the device is lost; end takes the event
 * of what was enqueued (and its reference), assigns a point to the command and flushes it. `result` is the result of enqueueing. */
CUresult ct_cl_command_begin(struct ct_queue *queue);
CUresult ct_cl_command_end(struct ct_queue *queue, CUresult result, cl_event event);

/* arguments.c: allocates memory for an argument block of the next command; records that the last command uses it. */
CUresult ct_cl_arguments_allocate(struct ct_queue *queue, size_t size_bytes, void **out);
void ct_cl_arguments_mark_used(struct ct_queue *queue);
void ct_cl_arguments_destroy(struct ct_queue *queue);

/* record.c */
CUresult ct_cl_queue_copy(struct ct_queue *queue, struct ct_memory *dst, struct ct_memory *src, const struct ct_copy_region *regions,
                          unsigned n_regions);
CUresult ct_cl_queue_fill(struct ct_queue *queue, struct ct_memory *dst, uint64_t offset, uint64_t size_bytes, uint32_t value);
CUresult ct_cl_queue_launch(struct ct_queue *queue, const struct ct_launch *launch);
CUresult ct_cl_queue_timestamp(struct ct_queue *queue, struct ct_timestamp *timestamp);

/* timeline.c */
CUresult ct_cl_timeline_create(struct ct_backend_device *device, struct ct_timeline **out);
void ct_cl_timeline_destroy(struct ct_timeline *timeline);
CUresult ct_cl_timeline_signal(struct ct_timeline *timeline, uint64_t value);
CUresult ct_cl_timeline_await(struct ct_timeline *timeline, uint64_t value, uint64_t timeout_ns);
CUresult ct_cl_queue_signal(struct ct_queue *queue, struct ct_timeline *timeline, uint64_t value);
CUresult ct_cl_queue_wait(struct ct_queue *queue, struct ct_timeline *timeline, uint64_t value);

#endif
