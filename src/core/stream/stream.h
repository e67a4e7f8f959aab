/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: in-order sequences of commands on a backend queue, with CUDA's rules for the legacy default stream. */
#ifndef CT_CORE_STREAM_H
#define CT_CORE_STREAM_H
/* Parts: stream_life.c, stream_lookup.c, stream_per_thread.c, stream_wait.c. */

#include "core/device/backend.h"
#include "core/device/context.h"
#include "core/device/running.h"
#include "stream_order.h"

/* The least stream priority. The greatest one is a number below 0 if the device's queues have several priorities. */
#define CT_STREAM_PRIORITY_LEAST 0
int ct_stream_greatest_priority(const struct ct_device *device);
/* Clamps a priority to the range. */
int ct_stream_clamp_priority(const struct ct_device *device, int priority);

struct ct_capture_part;
struct ct_stream_ring;
struct ct_stream_slots;
struct ct_stream_worker;

/*   LIVE ──cuStreamDestroy, or its thread ends──> DOOMED ──its work is complete──> FINISHED
 *     └────────────────────the context is destroyed──────────────────────────────────┘
 * LIVE and DOOMED streams are in their context's list and have a queue; a DOOMED stream has no handle and gets no new work.
 * A FINISHED stream is only a struct that is still referenced. */
struct ct_stream {
    struct ct_object object;
    struct ct_context *context; /* a reference: it keeps the struct alive, not the context's parts */
    struct ct_stream *next_in_context;
    struct ct_queue *queue; /* NULL once finished */
    unsigned flags;         /* CU_STREAM_* */
    int priority;
    bool is_legacy, is_per_thread;
    bool listed, is_destroyed;      /* in the context's list; guarded by context->lock */
    bool is_reaped;                 /* takes no more commands; guarded by lock */
    unsigned long long list_number; /* decreases along the list; guarded by context->lock */
    unsigned long long id;
    struct ct_mutex lock;            /* serializes recording; only calls that record into this stream take it (base/locks.h) */
    struct ct_running running;       /* the launches in `queue` */
    struct ct_stream_ring *ring;     /* host-visible memory for parameters and staging, recycled when its point is complete */
    struct ct_stream_slots *slots;   /* shared memory that is in device memory; NULL until it is first needed; guarded by lock */
    struct ct_stream_worker *worker; /* runs host functions; NULL until it is first needed */
    atomic_int sync_policy;          /* CUsynchronizationPolicy: how threads wait for the stream */
    uint64_t seen_legacy_point;      /* the legacy stream's point that this stream already waits for; guarded by lock */
    uint64_t seen_by_legacy;         /* this stream's point that the legacy stream already waits for; guarded by the latter's lock */
    struct ct_green_context *green;  /* retained; NULL: it belongs to none */
    _Atomic(struct ct_capture_part *) capture; /* core/graph/capture.h; NULL: it is not captured */
    struct ct_mutex order_lock;
    struct ct_stream_order order; /* other streams' work that this stream is known to follow; guarded by order_lock */
};

static inline const struct ct_backend *ct_stream_backend(const struct ct_stream *stream)
{
    return stream->context->backend;
}

/* Returns the stream of a handle, retained, with one use of its context, which need not be the current one. NULL and CU_STREAM_LEGACY are
 * the current context's legacy stream, CU_STREAM_PER_THREAD is the calling thread's stream in it. Errors: INVALID_HANDLE, and those of
 * ct_context_current and ct_context_enter. */
CUresult ct_stream_lookup(CUstream handle, struct ct_stream **out);
void ct_stream_release(struct ct_stream *stream); /* takes NULL */

/* Locks the stream for recording and orders it after the legacy stream (or the legacy stream after all blocking streams).
 * On success the caller records into stream->queue and then calls ct_stream_end. It holds no lock of rank CT_RANK_STREAM or above.
 * INVALID_HANDLE: another thread has destroyed the stream, which was idle. */
CUresult ct_stream_begin(struct ct_stream *stream);
void ct_stream_end(struct ct_stream *stream);

/* Whether `point` of the stream's queue is complete, or never will be because the queue failed. Does not wait. */
bool ct_stream_is_complete(struct ct_stream *stream, uint64_t point);
/* Between begin and end: whether all recorded work is complete, so that the host itself may access the memory. */
bool ct_stream_is_idle_locked(struct ct_stream *stream);

/* ---- waits: stream_wait.c ---- */

/* Waits for all work recorded so far. Returns the sticky error if the work failed. */
CUresult ct_stream_synchronize(struct ct_stream *stream);
/* Waits for all work that a command recorded now would wait for, because the host is about to execute that command itself. For a blocking
 * stream this includes the work of the legacy stream. */
CUresult ct_stream_drain(struct ct_stream *stream);
/* CUDA_SUCCESS if all work is complete, else NOT_READY. */
CUresult ct_stream_query(struct ct_stream *stream);
/* Waits until `point` of the stream's queue is complete. The caller holds no lock. */
CUresult ct_stream_await(struct ct_stream *stream, uint64_t point);
/* Notifies all devices that the host has waited for `point` (ct_device_hooks). The caller holds no lock. */
void ct_stream_observe_wait(struct ct_stream *stream, uint64_t point);

/* Makes the commands recorded next wait for `point` of another stream, which may belong to another device. */
CUresult ct_stream_wait_for(struct ct_stream *stream, struct ct_stream *other, uint64_t point);
/* Between begin and end: whether a command recorded now runs after `point` of `other`, due to event waits or the legacy stream's rules. */
bool ct_stream_follows_locked(struct ct_stream *stream, const struct ct_stream *other, uint64_t point);

/* Calls `function` on the stream's worker thread when the work recorded before is complete; the work recorded later waits for it.
 * `status` is the result of the earlier work. The caller holds no lock. */
typedef void (*ct_host_function)(void *user, CUresult status);
CUresult ct_stream_run_on_host(struct ct_stream *stream, ct_host_function function, void *user);
/* The same, but the call does not wait for the work recorded before: for waits of the host on which later work depends. */
CUresult ct_stream_wait_on_host(struct ct_stream *stream, ct_host_function function, void *user);
/* Like ct_stream_run_on_host, but called between begin and end. */
CUresult ct_stream_run_on_host_locked(struct ct_stream *stream, ct_host_function function, void *user);

/* ---- creation and destruction: stream_life.c ---- */

/* Creates a stream for the application, with a handle, in a green context or not. */
CUresult ct_stream_create(struct ct_context *context, unsigned flags, int priority, struct ct_green_context *green_or_null,
                          struct ct_stream **out);
/* Invalidates the handle; the stream is freed when its work is complete. INVALID_HANDLE: another thread has already destroyed it. */
CUresult ct_stream_destroy(struct ct_stream *stream);

/* The calling thread's stream in a context of which the caller has a use. It is not retained: the thread holds a reference. */
CUresult ct_stream_of_thread(struct ct_context *context, struct ct_stream **out);
/* Creates a per-thread default stream, without a handle. The caller owns the reference. */
CUresult ct_stream_create_per_thread(struct ct_context *context, struct ct_stream **out);
/* Marks the stream as destroyed: it gets no new work and is freed when its work is complete. */
void ct_stream_mark_destroyed(struct ct_stream *stream);

/* Creates a stream that is invisible to the application; it and the legacy stream do not wait for each other. The caller owns the
 * reference, and calls ct_stream_mark_destroyed in the end. */
CUresult ct_stream_create_internal(struct ct_context *context, struct ct_stream **out);

/* Creation and destruction of a context. The legacy stream has flags 0 and is_legacy. Objects that refer to streams (events, blocks of
 * memory pools) are destroyed before the streams. */
CUresult ct_stream_create_legacy(struct ct_context *context, struct ct_stream **out);
void ct_streams_await_all(struct ct_context *context); /* the context has no users any more */
void ct_streams_destroy_all(struct ct_context *context);
/* Frees the destroyed streams whose work is complete. The caller holds no lock. */
void ct_streams_reap(struct ct_context *context);

#endif
