/* SPDX-License-Identifier: Apache-2.0 */
/* Queues and how their commands reach the device.
 *
 *   ct_queue   an in-order list of commands (a CUDA stream); its points are the values of a timeline semaphore, its line
 *   batch      commands of one queue in one command buffer: one submission, which signals the point of its last command
 *   lane       a VkQueue; several queues share it. It runs what is submitted to it in order, and has a thread of its own
 *   line       a timeline semaphore with what we know of it
 *
 * A batch is   open (last of queue->unsubmitted, takes commands)  ->  closed  ->  in flight (lane->in_flight)  ->  lingering  ->  spare again.
 * It lingers until the next batch of its lane is complete: drivers that submit by a thread of their own (Mesa 25.0.7, lavapipe) still look
 * at a submission's timelines after they have signalled its end, and crashed where one was destroyed meanwhile.
 * The first batch of unsubmitted goes to the device when
 *   - every value it waits for is promised: the host has signalled it, or a batch submitted earlier will. So a lane never holds a wait
 *     whose signal may come behind it in the same lane, and a wait for the host never blocks the other queues of a lane;
 *   - and it is closed, or somebody waits for it (flush_point), or fewer than CT_VK_IN_FLIGHT batches of the queue are in flight.
 * A batch that has a point which somebody was told takes no more waits: that point would come later than it may, or never, where what
 * the new wait stands for hangs on it.
 * Promises change under the lock only, and who changes them submits what they set free (ct_vk_scheduler_pump_locked). Completions
 * are seen by the lane's thread, which runs only while some queue of the lane gathers commands.
 *
 * One lock, scheduler->lock, guards everything here; the VkQueues are used by its holder only. */
#ifndef CT_VK_QUEUE_H
#define CT_VK_QUEUE_H
/* Parts: batch.c, line.c, record.c, retire.c, scheduler.c, timeline.c, drivers/pulse.c. */

#include "vk.h"

#define CT_VK_IN_FLIGHT 2                      /* one runs, the next is there when it ends */
#define CT_VK_BATCH_COMMANDS 64                /* at 2 us a dispatch (H200) a batch of 64 costs far more than its submission */
#define CT_VK_BATCH_BYTES (UINT64_C(256) << 20) /* of copies: some milliseconds over PCIe */
#define CT_VK_BATCH_WAITS 8
#define CT_VK_QUEUE_BATCHES 64 /* in flight or gathered before recording waits for room */

struct ct_vk_line {
    VkSemaphore semaphore;
    uint64_t recorded; /* greatest value that was signalled or will be */
    uint64_t promised; /* greatest value signalled by the host or by what is submitted */
    unsigned references;
    bool external; /* signalled by others, too: a wait for it is taken for promised */
};

struct ct_vk_signal {
    struct ct_vk_line *line; /* holds a reference; NULL: none */
    uint64_t value;
};

struct ct_vk_batch {
    struct ct_vk_batch *next;
    VkCommandPool pool; /* of this command buffer alone: resetting a pool is the cheap way to reuse */
    VkCommandBuffer commands;
    struct ct_queue *queue;
    uint64_t last_point;
    uint64_t cost_bytes;
    uint64_t submitted_ns;
    unsigned n_commands, n_waits;
    bool closed, has_kernel;
    struct ct_vk_signal waits[CT_VK_BATCH_WAITS], signal;
};

struct ct_vk_batch_list {
    struct ct_vk_batch *first, *last;
};

struct ct_vk_lane {
    struct ct_vk_scheduler *scheduler;
    VkQueue handle;
    struct ct_vk_batch_list in_flight; /* of all its queues, in the order of submission */
    struct ct_vk_batch *lingering;     /* the last one that left it; NULL: none */
    struct ct_vk_line *lingering_line; /* on which that one's point was; holds a reference */
    unsigned n_gathering;              /* queues with commands that wait for a batch in flight to end */
    uint64_t last_done_ns;             /* when the thread last saw a batch end */
    pthread_t thread;
    bool has_thread;
    pthread_cond_t wake;
};

struct ct_vk_scheduler {
    struct ct_backend_device *device; /* borrowed: owns us */
    struct ct_mutex lock;             /* rank CT_RANK_BACKEND */
    struct ct_vk_lane lanes[CT_VK_MAX_QUEUES];
    unsigned n_lanes, next_lane;
    struct ct_queue *queues;
    struct ct_vk_batch *ready; /* begun, empty */
    struct ct_vk_batch *used;  /* to be reset */
    unsigned n_spare, n_held;  /* batches in both lists; queues whose first batch waits for a promise */
    bool stop;
    struct ct_vk_pulse *pulse; /* NULL: the device needs none */
};

struct ct_queue {
    struct ct_backend_device *device;
    struct ct_vk_scheduler *scheduler;
    struct ct_vk_lane *lane;
    struct ct_vk_line *line;
    struct ct_queue *next;
    struct ct_vk_batch_list unsubmitted;
    atomic_uint_fast64_t point; /* written under the lock; relaxed: a reader that matters recorded it or was told by who did */
    atomic_uint_fast64_t told;  /* the last point that anybody was told, who may wait for it; relaxed as `point` */
    uint64_t completed;         /* as last read */
    uint64_t flush_point;       /* somebody waits for what is recorded up to here */
    unsigned n_in_flight, n_batches;
    unsigned max_commands; /* of a batch: fewer when its commands are long */
    bool held, gathering;  /* counted in scheduler->n_held and lane->n_gathering */
};

/* The last lane of a family is for streams of high priority, where there are enough. */
static inline bool ct_vk_queue_is_urgent(unsigned index, unsigned count)
{
    return count >= 4 && index + 1 == count;
}

/* line.c */
CUresult ct_vk_line_create(struct ct_backend_device *device, struct ct_vk_line **out); /* one reference */
CUresult ct_vk_line_create_binary(struct ct_backend_device *device, struct ct_vk_line **out); /* its values mean nothing to the device */
void ct_vk_line_retain_locked(struct ct_vk_line *line);
void ct_vk_line_release_locked(struct ct_backend_device *device, struct ct_vk_line *line); /* takes NULL */
CUresult ct_vk_line_read(struct ct_backend_device *device, const struct ct_vk_line *line, uint64_t *out_value);
/* Blocks without the lock: the caller holds a reference. NOT_READY: the time is over. */
CUresult ct_vk_line_await(struct ct_backend_device *device, const struct ct_vk_line *line, uint64_t value, uint64_t timeout_ns);

/* batch.c */
CUresult ct_vk_batch_take_locked(struct ct_queue *queue, struct ct_vk_batch **out);         /* begun and empty */
void ct_vk_batch_give_locked(struct ct_vk_scheduler *scheduler, struct ct_vk_batch *batch); /* complete, or never submitted */
void ct_vk_batch_prepare_locked(struct ct_vk_scheduler *scheduler); /* has one ready; costs time that the device has work in */
void ct_vk_batch_free_spares(struct ct_vk_scheduler *scheduler);
void ct_vk_batch_append(struct ct_vk_batch_list *list, struct ct_vk_batch *batch);
struct ct_vk_batch *ct_vk_batch_remove_first(struct ct_vk_batch_list *list);

/* scheduler.c */
CUresult ct_vk_scheduler_create(struct ct_backend_device *device, struct ct_vk_scheduler **out);
void ct_vk_scheduler_destroy(struct ct_vk_scheduler *scheduler); /* takes NULL; no queue is left */
/* Submits what may go now: of this queue, then of those that it sets free. */
void ct_vk_scheduler_submit_locked(struct ct_queue *queue);
void ct_vk_scheduler_pump_locked(struct ct_vk_scheduler *scheduler);
/* The queue leaves: uncounts it and gives back what was never submitted (a lost device). */
void ct_vk_scheduler_forget_locked(struct ct_queue *queue);

/* retire.c: takes back the batches that are complete. */
void ct_vk_scheduler_retire_locked(struct ct_vk_lane *lane);
/* The batch that lingers is given back. */
void ct_vk_lane_end_lingering_locked(struct ct_vk_lane *lane);
uint64_t ct_vk_now_ns(void);

/* queue.c: every command is recorded between these two. begin gives the batch to record into, behind a barrier, and the command its
 * point; end closes full batches and submits by the rules above. `result` is what recording came to; returned, or the device's loss. */
CUresult ct_vk_command_begin_locked(struct ct_queue *queue, struct ct_vk_batch **out);
CUresult ct_vk_command_end_locked(struct ct_queue *queue, CUresult result);

CUresult ct_vk_queue_create(struct ct_backend_device *device, const struct ct_queue_desc *desc, struct ct_queue **out);
void ct_vk_queue_destroy(struct ct_queue *queue);
CUresult ct_vk_queue_signal(struct ct_queue *queue, struct ct_timeline *timeline, uint64_t value);
CUresult ct_vk_queue_wait(struct ct_queue *queue, struct ct_timeline *timeline, uint64_t value);
CUresult ct_vk_queue_signal_line(struct ct_queue *queue, struct ct_vk_line *line, const uint64_t *value); /* NULL: the next */
CUresult ct_vk_queue_wait_line(struct ct_queue *queue, struct ct_vk_line *line, uint64_t value);
CUresult ct_vk_queue_wait_queue(struct ct_queue *queue, struct ct_queue *other, uint64_t point);
CUresult ct_vk_queue_flush(struct ct_queue *queue);
CUresult ct_vk_queue_await_room(struct ct_queue *queue);
uint64_t ct_vk_queue_point(struct ct_queue *queue);
CUresult ct_vk_queue_completed(struct ct_queue *queue, uint64_t *out_point);
CUresult ct_vk_queue_await(struct ct_queue *queue, uint64_t point, uint64_t timeout_ns, bool spin);

/* record.c */
CUresult ct_vk_queue_copy(struct ct_queue *queue, struct ct_memory *dst, struct ct_memory *src, const struct ct_copy_region *regions,
                          unsigned n_regions);
CUresult ct_vk_queue_fill(struct ct_queue *queue, struct ct_memory *dst, uint64_t offset, uint64_t size_bytes, uint32_t value);
CUresult ct_vk_kernel_prepare(const struct ct_launch *launch, const struct ct_kernel_variant **out);
CUresult ct_vk_queue_launch(struct ct_queue *queue, const struct ct_launch *launch);
CUresult ct_vk_queue_timestamp(struct ct_queue *queue, struct ct_timestamp *timestamp);

/* sparse.c: the value of device->binding_line that work has to wait for; 0: no binding is under way. */
uint64_t ct_vk_sparse_pending(struct ct_backend_device *device);

/* pulse.c: where physical->needs_pulse */
struct ct_vk_pulse;
CUresult ct_vk_pulse_create(struct ct_vk_scheduler *scheduler, struct ct_vk_pulse **out);
void ct_vk_pulse_destroy(struct ct_vk_pulse *pulse);     /* the queues are gone; takes NULL */
void ct_vk_pulse_note_locked(struct ct_vk_pulse *pulse); /* a kernel was submitted; takes NULL */

/* timeline.c */
struct ct_timeline {
    struct ct_backend_device *device;
    struct ct_vk_line *line;
};
CUresult ct_vk_timeline_create(struct ct_backend_device *device, struct ct_timeline **out);
void ct_vk_timeline_destroy(struct ct_timeline *timeline);
CUresult ct_vk_timeline_signal(struct ct_timeline *timeline, uint64_t value);
CUresult ct_vk_timeline_await(struct ct_timeline *timeline, uint64_t value, uint64_t timeout_ns);

#endif
