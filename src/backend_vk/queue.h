/* SPDX-License-Identifier: Apache-2.0 */
/* Queues and how their commands reach the device.
 *
 *   ct_queue            an in-order list of commands (a CUDA stream); its points are the values of a timeline semaphore
 *   batch               commands of one queue in one command buffer: one submission, which signals the point of its last command
 *   device queue        a VkQueue, which several ct_queues share. It executes submissions in order, and has a thread of its own
 *   timeline semaphore  a reference-counted VkSemaphore with the values that are recorded and promised for it
 *
 * The states of a batch are open (the last of queue->unsubmitted; it takes commands), closed, in flight (device_queue->in_flight), lingering,
 * and spare again. It lingers until the next batch of its device queue is complete: drivers that submit from a thread of their own
 * (Mesa 25.0.7, lavapipe) still access a submission's semaphores after they have signalled its end, and crashed when one had been destroyed.
 * The first batch of unsubmitted is submitted when
 *   - every value it waits for is promised: the host has signalled it, or a batch submitted earlier will. So a device queue never contains a
 *     wait whose signal may follow in the same device queue, and a wait for the host never blocks other queues of a device queue;
 *   - and it is closed, or a caller waits for it (flush_point), or fewer than CT_VK_IN_FLIGHT batches of the queue are in flight.
 * A batch with a point that was returned to a caller takes no more waits: they would delay that point, or, if the awaited signal
 * depends on that point, cause a deadlock.
 * Promised values change only under the lock, and the function that changes them submits the batches that become ready
 * (ct_vk_scheduler_pump_locked). The device queue's thread, which is active only while a queue collects commands, detects completions.
 *
 * One lock, scheduler->lock, guards everything here; a VkQueue is used only with the lock held. */
#ifndef CT_VK_QUEUE_H
#define CT_VK_QUEUE_H
/* Parts: batch.c, timeline_semaphore.c, record.c, recording.c, retire.c, scheduler.c, timeline.c, drivers/host_store_refresh.c. */

#include "replays.h"
#include "variants.h"
#include "vk.h"

#define CT_VK_MAX_PUSH_BYTES 4096               /* the maximum of target.push_constant_bytes: device_info.c */
#define CT_VK_IN_FLIGHT 2                       /* one runs, and the next is already submitted when it ends */
#define CT_VK_BATCH_COMMANDS 64                 /* at 2 us per dispatch (H200), 64 take far longer than their submission */
#define CT_VK_BATCH_BYTES (UINT64_C(256) << 20) /* of copies: some milliseconds over PCIe */
#define CT_VK_BATCH_WAITS 8
#define CT_VK_QUEUE_BATCHES 64 /* in flight or unsubmitted before recording waits for one to end */

struct ct_vk_timeline_semaphore {
    VkSemaphore handle;
    uint64_t recorded; /* the greatest value that the host or a recorded command signals */
    uint64_t promised; /* the greatest value that the host has signalled or a submitted batch will signal */
    unsigned references;
    bool external; /* another API or process signals it, too: every value counts as promised */
};

struct ct_vk_signal {
    struct ct_vk_timeline_semaphore *semaphore; /* a counted reference; NULL: none */
    uint64_t value;
};

struct ct_vk_batch {
    struct ct_vk_batch *next;
    VkCommandPool pool; /* for this command buffer alone: resetting a pool is the cheapest way to reuse it */
    VkCommandBuffer commands;
    struct ct_queue *queue;
    uint64_t last_point;
    uint64_t cost_bytes;
    uint64_t begin_ns; /* the device began it later: when it was submitted, or the batch before it was seen to run */
    unsigned n_commands, n_waits;
    bool closed, has_kernel;
    struct ct_vk_signal waits[CT_VK_BATCH_WAITS], signal;
    struct ct_vk_replays replays;
    struct ct_vk_variants variants;
};

struct ct_vk_batch_list {
    struct ct_vk_batch *first, *last;
};

struct ct_vk_device_queue {
    struct ct_vk_scheduler *scheduler;
    VkQueue handle;
    struct ct_vk_batch_list in_flight;                    /* batches of all its queues, in the order of submission */
    struct ct_vk_batch *lingering;                        /* the last batch that was completed; NULL: none */
    struct ct_vk_timeline_semaphore *lingering_semaphore; /* the one that `lingering` signals; a counted reference */
    unsigned n_gathering;                                 /* queues that collect commands until a batch in flight ends */
    uint64_t last_done_ns;                                /* when the thread last detected the end of a batch */
    pthread_t thread;
    bool has_thread;
    pthread_cond_t wake;
};

struct ct_vk_scheduler {
    struct ct_backend_device *device; /* borrowed: it owns the scheduler */
    struct ct_mutex lock;             /* rank CT_RANK_BACKEND */
    struct ct_vk_device_queue device_queues[CT_VK_MAX_QUEUES];
    unsigned n_device_queues, next_device_queue;
    struct ct_queue *queues;
    struct ct_vk_batch *ready; /* free list of batches that are begun and empty */
    struct ct_vk_batch *used;  /* free list of batches that must be reset */
    unsigned n_spare, n_held;  /* batches in both lists; queues whose first batch waits for a value that is not promised yet */
    bool stop;
    struct ct_vk_host_store_refresh *refresh; /* NULL: the device does not need it */
};

struct ct_queue {
    struct ct_backend_device *device;
    struct ct_vk_scheduler *scheduler;
    struct ct_vk_device_queue *device_queue;
    struct ct_vk_timeline_semaphore *semaphore;
    struct ct_queue *next;
    struct ct_vk_batch_list unsubmitted;
    atomic_uint_fast64_t
        point; /* written under the lock; relaxed: a reader that depends on a value synchronizes with its writer otherwise */
    atomic_uint_fast64_t reported; /* the last point returned to a caller, which may wait for it; relaxed as `point` */
    uint64_t completed;            /* as last read */
    uint64_t flush_point;          /* a caller waits for the commands up to this point */
    unsigned n_in_flight, n_batches;
    unsigned max_commands; /* of a batch: fewer when its commands take long */
    bool held, gathering;  /* counted in scheduler->n_held and device_queue->n_gathering */
};

/* The last device queue of a family is for streams of high priority if there are at least four. */
static inline bool ct_vk_queue_is_urgent(unsigned index, unsigned count)
{
    return count >= 4 && index + 1 == count;
}

/* timeline_semaphore.c */
CUresult ct_vk_timeline_semaphore_create(struct ct_backend_device *device, struct ct_vk_timeline_semaphore **out); /* one reference */
CUresult ct_vk_timeline_semaphore_create_binary(struct ct_backend_device *device,
                                                struct ct_vk_timeline_semaphore **out); /* its values exist on the host only */
void ct_vk_timeline_semaphore_retain_locked(struct ct_vk_timeline_semaphore *semaphore);
void ct_vk_timeline_semaphore_release_locked(struct ct_backend_device *device, struct ct_vk_timeline_semaphore *semaphore); /* takes NULL */
CUresult ct_vk_timeline_semaphore_read(struct ct_backend_device *device, const struct ct_vk_timeline_semaphore *semaphore,
                                       uint64_t *out_value);
/* Blocks, and is called without the lock; the caller holds a reference. NOT_READY: the timeout has expired. */
CUresult ct_vk_timeline_semaphore_await(struct ct_backend_device *device, const struct ct_vk_timeline_semaphore *semaphore, uint64_t value,
                                        uint64_t timeout_ns);

/* batch.c */
/* The maximum number of commands in a batch: one if the time of each kernel is limited. */
unsigned ct_vk_batch_limit(void);
CUresult ct_vk_batch_take_locked(struct ct_queue *queue, struct ct_vk_batch **out);         /* begun and empty */
void ct_vk_batch_give_locked(struct ct_vk_scheduler *scheduler, struct ct_vk_batch *batch); /* complete, or never submitted */
void ct_vk_batch_prepare_locked(struct ct_vk_scheduler *scheduler); /* begins a batch in advance, while the device is busy */
void ct_vk_batch_free_spares(struct ct_vk_scheduler *scheduler);
void ct_vk_batch_append(struct ct_vk_batch_list *list, struct ct_vk_batch *batch);
struct ct_vk_batch *ct_vk_batch_remove_first(struct ct_vk_batch_list *list);

/* scheduler.c */
CUresult ct_vk_scheduler_create(struct ct_backend_device *device, struct ct_vk_scheduler **out);
void ct_vk_scheduler_destroy(struct ct_vk_scheduler *scheduler); /* takes NULL; all queues are destroyed before */
/* Submits the batches of this queue that are ready, then those of other queues that become ready by that. */
void ct_vk_scheduler_submit_locked(struct ct_queue *queue);
void ct_vk_scheduler_pump_locked(struct ct_vk_scheduler *scheduler);
/* For a queue that is being destroyed: removes it from the counts and recycles the batches that a lost device left. */
void ct_vk_scheduler_forget_locked(struct ct_queue *queue);

/* retire.c: removes complete batches from the device queue and recycles them. */
void ct_vk_scheduler_retire_locked(struct ct_vk_device_queue *device_queue);
/* Recycles the lingering batch. */
void ct_vk_device_queue_end_lingering_locked(struct ct_vk_device_queue *device_queue);
uint64_t ct_vk_now_ns(void);

/* queue.c: every command is recorded between these two calls. begin returns the batch to record into, after a barrier, and assigns the
 * command's point; end closes full batches and submits by the rules above. end returns `result`, the result of recording, or, after a
 * successful recording, whether the device is lost. */
CUresult ct_vk_command_begin_locked(struct ct_queue *queue, struct ct_vk_batch **out);
CUresult ct_vk_command_end_locked(struct ct_queue *queue, CUresult result);
/* The barrier between two commands, for a command of several parts that must run one after the other. */
void ct_vk_record_barrier(const struct ct_backend_device *device, VkCommandBuffer commands);

CUresult ct_vk_queue_create(struct ct_backend_device *device, const struct ct_queue_desc *desc, struct ct_queue **out);
void ct_vk_queue_destroy(struct ct_queue *queue);
CUresult ct_vk_queue_signal(struct ct_queue *queue, struct ct_timeline *timeline, uint64_t value);
CUresult ct_vk_queue_wait(struct ct_queue *queue, struct ct_timeline *timeline, uint64_t value);
CUresult ct_vk_queue_signal_timeline_semaphore(struct ct_queue *queue, struct ct_vk_timeline_semaphore *semaphore,
                                               const uint64_t *value); /* NULL: the next value */
CUresult ct_vk_queue_wait_timeline_semaphore(struct ct_queue *queue, struct ct_vk_timeline_semaphore *semaphore, uint64_t value);
CUresult ct_vk_queue_wait_queue(struct ct_queue *queue, struct ct_queue *other, uint64_t point);
CUresult ct_vk_queue_flush(struct ct_queue *queue);
CUresult ct_vk_queue_await_room(struct ct_queue *queue);
uint64_t ct_vk_queue_point(struct ct_queue *queue);
CUresult ct_vk_queue_completed(struct ct_queue *queue, uint64_t *out_point);
bool ct_vk_queue_working(struct ct_queue *queue, uint64_t *out_first, uint64_t *out_last);
CUresult ct_vk_queue_await(struct ct_queue *queue, uint64_t point, uint64_t timeout_ns, bool spin);

/* record.c */
CUresult ct_vk_queue_copy(struct ct_queue *queue, struct ct_memory *dst, struct ct_memory *src, const struct ct_copy_region *regions,
                          unsigned n_regions);
CUresult ct_vk_queue_fill(struct ct_queue *queue, struct ct_memory *dst, uint64_t offset, uint64_t size_bytes, uint32_t value);
CUresult ct_vk_kernel_prepare(const struct ct_launch *launch, struct ct_kernel_variant **out);
CUresult ct_vk_queue_launch(struct ct_queue *queue, const struct ct_launch *launch);
CUresult ct_vk_queue_timestamp(struct ct_queue *queue, struct ct_timestamp *timestamp);
/* What the commands of a recording have bound; zeros: nothing. */
struct ct_vk_bound {
    struct ct_vk_pipeline pipeline;
    unsigned char push[CT_VK_MAX_PUSH_BYTES];
};
/* Records a launch that has a variant into a command buffer of a recording. */
CUresult ct_vk_record_launch(struct ct_backend_device *device, VkCommandBuffer commands, const struct ct_launch *launch,
                             struct ct_vk_bound *bound);

/* recording.c */
CUresult ct_vk_recording_create(struct ct_backend_device *device, struct ct_recording **out);
CUresult ct_vk_recording_launch(struct ct_recording *recording, const struct ct_launch *launch);
void ct_vk_recording_barrier(struct ct_recording *recording);
CUresult ct_vk_recording_finish(struct ct_recording *recording);
CUresult ct_vk_queue_replay(struct ct_queue *queue, struct ct_recording *const *recordings, unsigned count);

/* sparse.c: the value of device->binding_semaphore that a submission has to wait for; 0: no binding is pending. */
uint64_t ct_vk_sparse_pending(struct ct_backend_device *device);

/* drivers/host_store_refresh.c: used if physical->needs_host_store_refresh */
struct ct_vk_host_store_refresh;
CUresult ct_vk_host_store_refresh_create(struct ct_vk_scheduler *scheduler, struct ct_vk_host_store_refresh **out);
void ct_vk_host_store_refresh_destroy(struct ct_vk_host_store_refresh *refresh);     /* all queues are destroyed before; takes NULL */
void ct_vk_host_store_refresh_note_locked(struct ct_vk_host_store_refresh *refresh); /* a kernel was submitted; takes NULL */

/* timeline.c */
struct ct_timeline {
    struct ct_backend_device *device;
    struct ct_vk_timeline_semaphore *semaphore;
};
CUresult ct_vk_timeline_create(struct ct_backend_device *device, struct ct_timeline **out);
void ct_vk_timeline_destroy(struct ct_timeline *timeline);
CUresult ct_vk_timeline_signal(struct ct_timeline *timeline, uint64_t value);
CUresult ct_vk_timeline_await(struct ct_timeline *timeline, uint64_t value, uint64_t timeout_ns);

#endif
