/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: in-order lists of work on a backend queue, with CUDA's rules of the legacy default stream. */
#ifndef CT_CORE_STREAM_H
#define CT_CORE_STREAM_H
/* Parts: stream_life.c, stream_lookup.c, stream_own.c, stream_wait.c. */

#include "core/device/backend.h"
#include "core/device/context.h"
#include "stream_order.h"

/* Priorities of streams: from the greatest, a number below 0 where the device's queues have several, to this one. */
#define CT_STREAM_PRIORITY_LEAST 0
int ct_stream_greatest_priority(const struct ct_device *device);
/* A priority beyond the range is taken for the nearest in it. */
int ct_stream_clamp_priority(const struct ct_device *device, int priority);

struct ct_stream_ring;
struct ct_stream_worker;

/*   LIVE ──cuStreamDestroy, its thread ends──> DOOMED ──its work is done──> FINISHED
 *     └────────────────the context is taken down─────────────────────────────┘
 * LIVE and DOOMED streams stand in their context's list and have a queue; a DOOMED one has no handle and gets no new work.
 * A FINISHED one is only a struct that somebody still refers to. */
struct ct_stream {
    struct ct_object object;
    struct ct_context *context; /* a reference: keeps the struct, not the context's parts */
    struct ct_stream *next_in_context;
    struct ct_queue *queue; /* NULL once finished */
    unsigned flags;         /* CU_STREAM_* */
    int priority;
    bool is_legacy, is_per_thread;
    bool listed, doomed;            /* in the context's list; guarded by context->lock */
    unsigned long long list_number; /* falls along the list; guarded by context->lock */
    unsigned long long id;
    struct ct_mutex lock;            /* recording; only calls that record into this stream take it (base/locks.h) */
    struct ct_stream_ring *ring;     /* host-visible memory for parameters and staging, recycled by points */
    struct ct_stream_worker *worker; /* runs host functions; NULL until first needed */
    atomic_int sync_policy;          /* CUsynchronizationPolicy: how threads wait for it */
    uint64_t seen_legacy_point;      /* legacy work this stream already waits for; guarded by lock */
    uint64_t seen_by_legacy;         /* our work that the legacy stream already waits for; guarded by the legacy stream's lock */
    struct ct_mutex order_lock;
    struct ct_stream_order order;    /* of other streams' work before ours; guarded by order_lock */
};

static inline const struct ct_backend *ct_stream_backend(const struct ct_stream *stream)
{
    return stream->context->backend;
}

/* The stream behind a handle, retained, with one use of its context, which need not be the current one. Of the current context are NULL
 * and CU_STREAM_LEGACY: the legacy stream; CU_STREAM_PER_THREAD: the calling thread's. INVALID_HANDLE, and what ct_context_current and
 * ct_context_enter give. */
CUresult ct_stream_lookup(CUstream handle, struct ct_stream **out);
void ct_stream_release(struct ct_stream *stream); /* takes NULL */

/* Locks the stream for recording and orders it with the legacy stream (or the legacy stream with all blocking ones).
 * On success the caller records into stream->queue and ends with ct_stream_end. The caller holds no lock from CT_RANK_STREAM on. */
CUresult ct_stream_begin(struct ct_stream *stream);
void ct_stream_end(struct ct_stream *stream);

/* `size_bytes` of host-visible, device-readable memory for what is recorded next; recycled when the work recorded until the next
 * ct_stream_end is complete. Call between begin and end. May wait for older work when the ring is full.
 * *out_memory and *out_offset name the place for copies, *out_address (CUDA address) for kernels. */
CUresult ct_stream_scratch(struct ct_stream *stream, uint64_t size_bytes, uint64_t align, void **out_host, uint64_t *out_address,
                           struct ct_memory **out_memory, uint64_t *out_offset);

/* Whether `point` of the stream's queue is complete, or never will be since the queue failed. Nothing is waited for. */
bool ct_stream_is_complete(struct ct_stream *stream, uint64_t point);
/* Between begin and end: whether all that was recorded is complete, so that the host may touch memory itself. */
bool ct_stream_is_idle_locked(struct ct_stream *stream);

/* ---- waits: stream_wait.c ---- */

/* Waits for what was recorded until now. The sticky error, if the work failed. */
CUresult ct_stream_synchronize(struct ct_stream *stream);
/* Waits for what work that is recorded now would wait for: the host does such work itself afterwards. In a blocking stream that is also
 * what the legacy stream has. */
CUresult ct_stream_settle(struct ct_stream *stream);
/* CUDA_SUCCESS: all is complete; NOT_READY. */
CUresult ct_stream_query(struct ct_stream *stream);
/* Waits until `point` of the stream's queue is complete; no lock is held. */
CUresult ct_stream_await(struct ct_stream *stream, uint64_t point);
/* Tells all devices that the host has waited so far (ct_device_hooks). No lock is held. */
void ct_stream_observe_wait(struct ct_stream *stream, uint64_t point);

/* Orders what is recorded next behind `point` of another stream, which may be of another device. */
CUresult ct_stream_wait_for(struct ct_stream *stream, struct ct_stream *other, uint64_t point);
/* Between begin and end: whether what is recorded now runs behind `point` of `other`, by waits for events or the legacy stream's rules. */
bool ct_stream_follows_locked(struct ct_stream *stream, const struct ct_stream *other, uint64_t point);

/* Runs `function` on a thread of the stream's own when what was recorded before is complete; what is recorded later waits for it.
 * `status` tells whether that work failed. The caller holds no lock. */
typedef void (*ct_host_function)(void *user, CUresult status);
CUresult ct_stream_run_on_host(struct ct_stream *stream, ct_host_function function, void *user);
/* The same, but it is called without waiting for what was recorded before: for waits on the host that what is recorded later depends on. */
CUresult ct_stream_wait_on_host(struct ct_stream *stream, ct_host_function function, void *user);
/* As ct_stream_run_on_host, between begin and end. */
CUresult ct_stream_run_on_host_locked(struct ct_stream *stream, ct_host_function function, void *user);

/* ---- making and ending: stream_life.c ---- */

/* One for the application, with a handle. */
CUresult ct_stream_create(struct ct_context *context, unsigned flags, int priority, struct ct_stream **out);
/* Takes the handle away; the stream goes when its work is done. INVALID_HANDLE: another thread was faster. */
CUresult ct_stream_destroy(struct ct_stream *stream);

/* The calling thread's stream in a context of which it has a use; not retained: the thread keeps it. */
CUresult ct_stream_own_of_thread(struct ct_context *context, struct ct_stream **out);
/* One for a thread, without a handle; the reference is the caller's. */
CUresult ct_stream_create_own(struct ct_context *context, struct ct_stream **out);
/* It gets no new work, and goes when what it has is done. */
void ct_stream_doom(struct ct_stream *stream);

/* One that no application sees, which neither waits for the legacy stream nor lets it wait; the reference is the caller's. To be doomed. */
CUresult ct_stream_create_inner(struct ct_context *context, struct ct_stream **out);

/* Context set-up and tear-down. The legacy stream: flags 0, is_legacy. Before the streams are destroyed, what hangs on them goes: events,
 * blocks of memory pools. */
CUresult ct_stream_create_legacy(struct ct_context *context, struct ct_stream **out);
void ct_streams_await_all(struct ct_context *context); /* nobody uses the context any more */
void ct_streams_destroy_all(struct ct_context *context);
/* Lets doomed streams go whose work is done. The caller holds no lock. */
void ct_streams_reap(struct ct_context *context);

#endif
