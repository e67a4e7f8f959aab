/* SPDX-License-Identifier: Apache-2.0 */
/* Streams (Driver API: Stream Management; "Stream synchronization behavior").
 *
 * The legacy default stream and the blocking streams of its context wait for each other: what is recorded into the legacy stream
 * waits for all that was recorded into blocking streams before, and the other way round. Both are done when recording begins, by points: a
 * wait only ever names a point that is already recorded, so there is no cycle whatever the threads do.
 *
 * The context's list holds a reference of each stream; the handle table, events and the threads' own tables hold others. A doomed
 * stream leaves the list when its work is done ("reap"), which the next call that makes, destroys or waits for streams finds out. */
#include "stream.h"

#include "event.h"
#include "log.h"
#include "memory_pool.h"
#include "process.h"
#include "stream_ring.h"
#include "stream_worker.h"

#include <assert.h>
#include <stdlib.h>

#define CT_CHANNEL "stream"

/* ---- making and ending ---- */

static const struct ct_backend *backend_of(const struct ct_stream *stream)
{
    return stream->context->backend;
}

/* Failed or complete: in both cases it is over. */
static void await_all(struct ct_stream *stream)
{
    const struct ct_backend *backend = backend_of(stream);

    backend->queue_await(stream->queue, backend->queue_point(stream->queue), UINT64_MAX, false);
}

/* DOOMED (or tear-down) to FINISHED: everything but the struct goes. Nobody records any more. */
static void finish(struct ct_stream *stream)
{
    if (!stream->queue)
        return;
    await_all(stream);
    ct_stream_worker_destroy(stream->worker);
    ct_stream_ring_destroy(stream->ring);
    backend_of(stream)->queue_destroy(stream->queue);
    stream->worker = NULL;
    stream->ring = NULL;
    stream->queue = NULL;
}

/* The last reference: the caller has a use of the context, or the stream is finished. */
static void free_stream(struct ct_object *object)
{
    struct ct_stream *stream = (struct ct_stream *)object;
    struct ct_context *context = stream->context;

    finish(stream);
    ct_mutex_finish(&stream->lock);
    free(stream);
    ct_object_release(&context->object);
}

static void list_add(struct ct_stream *stream)
{
    struct ct_context *context = stream->context;

    ct_mutex_lock(&context->lock);
    stream->next_in_context = context->streams;
    context->streams = stream;
    stream->listed = true;
    ct_object_retain(&stream->object);
    ct_mutex_unlock(&context->lock);
}

/* The list's reference is now the caller's. */
static void unlink_locked(struct ct_stream *stream)
{
    struct ct_stream **link = &stream->context->streams;

    assert(ct_mutex_held(&stream->context->lock) && stream->listed);
    while (*link != stream)
        link = &(*link)->next_in_context;
    *link = stream->next_in_context;
    stream->listed = false;
}

static CUresult make(struct ct_context *context, unsigned flags, int priority, bool is_legacy, struct ct_stream **out)
{
    const struct ct_queue_desc desc = {.priority = priority};
    struct ct_stream *stream = calloc(1, sizeof *stream);
    CUresult r;

    if (!stream)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "stream");
    ct_object_init(&stream->object, CT_OBJECT_STREAM, free_stream);
    ct_mutex_init(&stream->lock, is_legacy ? CT_RANK_LEGACY_STREAM : CT_RANK_STREAM);
    stream->context = context;
    ct_object_retain(&context->object);
    stream->flags = flags;
    stream->priority = priority;
    stream->is_legacy = is_legacy;
    stream->id = ct_process_new_id();
    atomic_init(&stream->sync_policy, CU_SYNC_POLICY_AUTO);
    r = context->backend->queue_create(context->backend_device, &desc, &stream->queue);
    if (r == CUDA_SUCCESS)
        r = ct_stream_ring_create(context, stream->queue, &stream->ring);
    if (r != CUDA_SUCCESS) {
        ct_object_release(&stream->object);
        return r;
    }
    list_add(stream);
    *out = stream;
    return CUDA_SUCCESS;
}

int ct_stream_greatest_priority(const struct ct_device *device)
{
    return device->info.stream_priorities ? -1 : CT_STREAM_PRIORITY_LEAST;
}

int ct_stream_clamp_priority(const struct ct_device *device, int priority)
{
    const int greatest = ct_stream_greatest_priority(device);

    if (priority < greatest)
        return greatest;
    return priority > CT_STREAM_PRIORITY_LEAST ? CT_STREAM_PRIORITY_LEAST : priority;
}

static bool is_complete(struct ct_stream *stream, uint64_t point)
{
    uint64_t completed;

    /* nothing runs any more in a queue that failed */
    return backend_of(stream)->queue_completed(stream->queue, &completed) != CUDA_SUCCESS || completed >= point;
}

/* A doomed stream of the context whose work is done, out of the list; NULL: none. */
static struct ct_stream *take_reapable_or_null(struct ct_context *context)
{
    struct ct_stream *stream;

    ct_mutex_lock(&context->lock);
    for (stream = context->streams; stream; stream = stream->next_in_context)
        if (stream->doomed && is_complete(stream, backend_of(stream)->queue_point(stream->queue)))
            break;
    if (stream)
        unlink_locked(stream);
    ct_mutex_unlock(&context->lock);
    return stream;
}

void ct_streams_reap(struct ct_context *context)
{
    struct ct_stream *stream;

    while ((stream = take_reapable_or_null(context)) != NULL)
        ct_object_release(&stream->object);
}

void ct_stream_doom(struct ct_stream *stream)
{
    ct_mutex_lock(&stream->context->lock);
    stream->doomed = true;
    ct_mutex_unlock(&stream->context->lock);
    ct_streams_reap(stream->context);
}

CUresult ct_stream_create(struct ct_context *context, unsigned flags, int priority, struct ct_stream **out)
{
    struct ct_stream *stream;
    CUresult r;

    if (flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "stream flags 0x%x", flags);
    ct_streams_reap(context);
    r = make(context, flags, ct_stream_clamp_priority(context->device, priority), false, &stream);
    if (r != CUDA_SUCCESS)
        return r;
    r = ct_streams_join_gate(stream);
    if (r == CUDA_SUCCESS)
        r = ct_object_publish(&stream->object);
    if (r == CUDA_SUCCESS)
        *out = stream;
    else
        ct_stream_doom(stream);
    ct_object_release(&stream->object); /* the list and the table have theirs */
    return r;
}

CUresult ct_stream_create_own(struct ct_context *context, struct ct_stream **out)
{
    struct ct_stream *stream;
    CUresult r = make(context, CU_STREAM_DEFAULT, 0, false, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    stream->is_per_thread = true;
    r = ct_streams_join_gate(stream);
    if (r == CUDA_SUCCESS) {
        *out = stream;
    } else {
        ct_stream_doom(stream);
        ct_object_release(&stream->object);
    }
    return r;
}

CUresult ct_stream_create_inner(struct ct_context *context, struct ct_stream **out)
{
    return make(context, CU_STREAM_NON_BLOCKING, 0, false, out);
}

CUresult ct_stream_create_legacy(struct ct_context *context, struct ct_stream **out)
{
    CUresult r = make(context, CU_STREAM_DEFAULT, 0, true, out);

    if (r == CUDA_SUCCESS)
        ct_object_release(&(*out)->object);
    return r;
}

CUresult ct_stream_destroy(struct ct_stream *stream)
{
    CUresult r = ct_object_unpublish(&stream->object);

    if (r == CUDA_SUCCESS)
        ct_stream_doom(stream);
    return r;
}

void ct_streams_destroy_all(struct ct_context *context)
{
    struct ct_stream *stream;

    for (stream = context->streams; stream; stream = stream->next_in_context) /* nobody uses the context: the list stands still */
        await_all(stream);
    ct_events_destroy_all(context);
    context->gate = NULL; /* it goes with the others */
    ct_memory_pools_forget(context); /* before the queues go, which pools ask how far they have come */
    for (;;) {
        ct_mutex_lock(&context->lock);
        stream = context->streams;
        if (stream)
            unlink_locked(stream);
        ct_mutex_unlock(&context->lock);
        if (!stream)
            return;
        if (stream->object.handle && !stream->doomed)
            ct_object_unpublish(&stream->object);
        finish(stream); /* whoever still refers to it finds a struct without a queue */
        ct_object_release(&stream->object);
    }
}

/* ---- look-up ---- */

static CUresult default_stream(struct ct_context *context, CUstream handle, struct ct_stream **out)
{
    struct ct_stream *stream = context->legacy_stream;
    CUresult r = CUDA_SUCCESS;

    if (handle == CU_STREAM_PER_THREAD)
        r = ct_stream_own_of_thread(context, &stream);
    if (r != CUDA_SUCCESS)
        return r;
    ct_object_retain(&stream->object);
    *out = stream;
    return CUDA_SUCCESS;
}

/* With a use of the stream's own context, which need not be the current one. */
static CUresult find(CUstream handle, struct ct_stream **out)
{
    struct ct_stream *stream = (struct ct_stream *)ct_object_find_or_null(CT_OBJECT_STREAM, handle);
    CUresult r;

    if (!stream)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "%p is no stream", (void *)handle);
    r = ct_context_enter(stream->context);
    if (r == CUDA_SUCCESS)
        *out = stream;
    else
        ct_object_release(&stream->object);
    return r;
}

CUresult ct_stream_lookup(CUstream handle, struct ct_stream **out)
{
    struct ct_context *context;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD)
        return find(handle, out);
    r = ct_context_current(&context);
    if (r != CUDA_SUCCESS)
        return r;
    r = default_stream(context, handle, out);
    if (r != CUDA_SUCCESS)
        ct_context_release(context);
    return r;
}

void ct_stream_release(struct ct_stream *stream)
{
    struct ct_context *context;

    if (!stream)
        return;
    context = stream->context;
    ct_object_release(&stream->object);
    ct_context_release(context);
}

/* ---- recording ---- */

/* Orders what `stream` records next behind all that `other` has recorded. *seen is the point that it is known to wait for. */
static CUresult join(struct ct_stream *stream, struct ct_stream *other, uint64_t *seen)
{
    uint64_t point = backend_of(stream)->queue_point(other->queue);
    CUresult r = CUDA_SUCCESS;

    if (point <= *seen)
        return CUDA_SUCCESS;
    if (!is_complete(other, point))
        r = backend_of(stream)->queue_wait_queue(stream->queue, other->queue, point);
    if (r == CUDA_SUCCESS)
        *seen = point;
    return r;
}

static CUresult begin_legacy(struct ct_stream *legacy)
{
    struct ct_context *context = legacy->context;
    CUresult r = CUDA_SUCCESS;

    ct_mutex_lock(&context->lock);
    ct_mutex_lock(&legacy->lock);
    for (struct ct_stream *stream = context->streams; stream && r == CUDA_SUCCESS; stream = stream->next_in_context)
        if (stream != legacy && !(stream->flags & CU_STREAM_NON_BLOCKING))
            r = join(legacy, stream, &stream->seen_by_legacy);
    ct_mutex_unlock(&context->lock);
    return r;
}

static CUresult begin_other(struct ct_stream *stream)
{
    ct_mutex_lock(&stream->lock);
    if (stream->flags & CU_STREAM_NON_BLOCKING)
        return CUDA_SUCCESS;
    return join(stream, stream->context->legacy_stream, &stream->seen_legacy_point);
}

CUresult ct_stream_begin(struct ct_stream *stream)
{
    CUresult r = stream->is_legacy ? begin_legacy(stream) : begin_other(stream);

    if (r != CUDA_SUCCESS) {
        ct_mutex_unlock(&stream->lock);
        r = ct_context_check(stream->context, r);
    }
    return r;
}

void ct_stream_end(struct ct_stream *stream)
{
    ct_stream_ring_commit(stream->ring);
    ct_mutex_unlock(&stream->lock);
}

CUresult ct_stream_scratch(struct ct_stream *stream, uint64_t size_bytes, uint64_t align, void **out_host, uint64_t *out_address,
                           struct ct_memory **out_memory, uint64_t *out_offset)
{
    struct ct_ring_piece piece;
    CUresult r;

    assert(ct_mutex_held(&stream->lock));
    r = ct_stream_ring_take(stream->ring, size_bytes, align, &piece);
    if (r != CUDA_SUCCESS)
        return r;
    *out_host = piece.host;
    *out_address = piece.address;
    *out_memory = piece.memory;
    *out_offset = piece.offset;
    return CUDA_SUCCESS;
}

bool ct_stream_is_idle_locked(struct ct_stream *stream)
{
    assert(ct_mutex_held(&stream->lock));
    return is_complete(stream, backend_of(stream)->queue_point(stream->queue));
}

/* ---- waiting ---- */

/* The stream's own policy, else the context's. A CPU device needs the cores that a spinning thread would take. */
static bool may_spin(struct ct_stream *stream)
{
    unsigned scheduling = stream->context->flags & CU_CTX_SCHED_MASK;
    int policy = atomic_load_explicit(&stream->sync_policy, memory_order_relaxed); /* a hint: nothing hangs on it */

    if (stream->context->device->info.kind == CT_DEVICE_CPU)
        return false;
    if (policy != CU_SYNC_POLICY_AUTO)
        return policy == CU_SYNC_POLICY_SPIN;
    return scheduling == CU_CTX_SCHED_AUTO || scheduling == CU_CTX_SCHED_SPIN;
}

CUresult ct_stream_await(struct ct_stream *stream, uint64_t point)
{
    CUresult r = backend_of(stream)->queue_await(stream->queue, point, UINT64_MAX, may_spin(stream));

    return ct_context_check(stream->context, r);
}

/* The point behind which work recorded now would run. */
static CUresult next_point(struct ct_stream *stream, uint64_t *out)
{
    CUresult r = ct_stream_begin(stream);

    if (r != CUDA_SUCCESS)
        return r;
    *out = backend_of(stream)->queue_point(stream->queue);
    ct_stream_end(stream);
    return CUDA_SUCCESS;
}

/* The point of all that the stream's work means: for the legacy stream that of the blocking streams, too. */
static CUresult last_point(struct ct_stream *stream, uint64_t *out)
{
    if (stream->is_legacy)
        return next_point(stream, out);
    *out = backend_of(stream)->queue_point(stream->queue);
    return CUDA_SUCCESS;
}

static CUresult await_and_tell(struct ct_stream *stream, uint64_t point)
{
    CUresult r = ct_stream_await(stream, point);

    if (r == CUDA_SUCCESS)
        ct_memory_pools_observe(stream, point);
    return r;
}

CUresult ct_stream_synchronize(struct ct_stream *stream)
{
    uint64_t point;
    CUresult r = last_point(stream, &point);

    return r == CUDA_SUCCESS ? await_and_tell(stream, point) : r;
}

CUresult ct_stream_settle(struct ct_stream *stream)
{
    uint64_t point;
    CUresult r = next_point(stream, &point);

    return r == CUDA_SUCCESS ? await_and_tell(stream, point) : r;
}

CUresult ct_stream_query(struct ct_stream *stream)
{
    uint64_t point, completed;
    CUresult r = last_point(stream, &point);

    if (r != CUDA_SUCCESS)
        return r;
    r = backend_of(stream)->queue_completed(stream->queue, &completed);
    r = ct_context_check(stream->context, r);
    if (r != CUDA_SUCCESS)
        return r;
    return completed >= point ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; /* an ordinary answer: nothing to log */
}

/* ---- host functions, and waits that a backend's queues cannot do ---- */

/* Called with the stream locked. */
static CUresult worker_of_locked(struct ct_stream *stream, struct ct_stream_worker **out)
{
    CUresult r = CUDA_SUCCESS;

    if (!stream->worker)
        r = ct_stream_worker_create(stream->context, &stream->worker);
    if (r == CUDA_SUCCESS)
        *out = stream->worker;
    return r;
}

static CUresult record_on_worker_locked(struct ct_stream *stream, enum ct_worker_order order, ct_host_function function, void *user)
{
    struct ct_stream_worker *worker;
    CUresult r = worker_of_locked(stream, &worker);

    return r == CUDA_SUCCESS ? ct_stream_worker_record(worker, stream->queue, order, function, user) : r;
}

CUresult ct_stream_run_on_host_locked(struct ct_stream *stream, ct_host_function function, void *user)
{
    assert(ct_mutex_held(&stream->lock));
    return record_on_worker_locked(stream, CT_WORKER_AFTER_QUEUE, function, user);
}

static CUresult record_on_worker(struct ct_stream *stream, enum ct_worker_order order, ct_host_function function, void *user)
{
    CUresult r = ct_stream_begin(stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = record_on_worker_locked(stream, order, function, user);
    ct_stream_end(stream);
    /* Once recorded it runs and `user` is its own, whatever else has failed by now: the next call tells of that. */
    return r == CUDA_SUCCESS ? r : ct_context_check(stream->context, r);
}

CUresult ct_stream_run_on_host(struct ct_stream *stream, ct_host_function function, void *user)
{
    return record_on_worker(stream, CT_WORKER_AFTER_QUEUE, function, user);
}

CUresult ct_stream_wait_on_host(struct ct_stream *stream, ct_host_function function, void *user)
{
    return record_on_worker(stream, CT_WORKER_AT_ONCE, function, user);
}

/* A wait for a stream of another device: done by the worker, with a use of the other context. */
struct foreign_wait {
    struct ct_stream *stream; /* as ct_stream_release takes it */
    uint64_t point;
};

static void await_foreign(void *user, CUresult status)
{
    struct foreign_wait *wait = user;

    (void)status; /* the wait ends in any case */
    ct_stream_await(wait->stream, wait->point);
    ct_stream_release(wait->stream);
    free(wait);
}

static CUresult wait_for_foreign(struct ct_stream *stream, struct ct_stream *other, uint64_t point)
{
    struct foreign_wait *wait = malloc(sizeof *wait);
    CUresult r;

    if (!wait)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "wait for another device");
    r = ct_context_use(other->context);
    if (r != CUDA_SUCCESS) {
        free(wait);
        return r;
    }
    ct_object_retain(&other->object);
    *wait = (struct foreign_wait){other, point};
    r = record_on_worker(stream, CT_WORKER_AT_ONCE, await_foreign, wait);
    if (r != CUDA_SUCCESS) {
        ct_stream_release(other);
        free(wait);
    }
    return r;
}

static struct ct_stream_order copy_order(struct ct_stream *stream)
{
    struct ct_stream_order order;

    ct_mutex_lock(&stream->lock);
    order = stream->order;
    ct_mutex_unlock(&stream->lock);
    return order;
}

/* `known` is a copy of what the other stream follows. */
static void note_order_locked(struct ct_stream *stream, struct ct_stream *other, uint64_t point, const struct ct_stream_order *known)
{
    uint64_t since = backend_of(stream)->queue_point(stream->queue);

    ct_stream_order_inherit(&stream->order, known, point, since);
    ct_stream_order_add(&stream->order, &(struct ct_order_entry){other->id, point, since});
}

CUresult ct_stream_wait_for(struct ct_stream *stream, struct ct_stream *other, uint64_t point)
{
    struct ct_stream_order known;
    CUresult r;

    if (stream->context->backend_device != other->context->backend_device)
        return wait_for_foreign(stream, other, point);
    known = copy_order(other); /* before begin: streams are locked one at a time */
    r = ct_stream_begin(stream);
    if (r != CUDA_SUCCESS)
        return r;
    if (stream != other && !is_complete(other, point))
        r = backend_of(stream)->queue_wait_queue(stream->queue, other->queue, point);
    if (r == CUDA_SUCCESS && stream != other)
        note_order_locked(stream, other, point, &known);
    ct_stream_end(stream);
    return ct_context_check(stream->context, r);
}

bool ct_stream_follows_locked(const struct ct_stream *stream, const struct ct_stream *other, uint64_t point)
{
    assert(ct_mutex_held(&stream->lock));
    if (stream == other)
        return true;
    if (stream->context == other->context && other->is_legacy && stream->seen_legacy_point >= point)
        return true;
    if (stream->context == other->context && stream->is_legacy && other->seen_by_legacy >= point)
        return true;
    return ct_stream_order_has(&stream->order, other->id, point);
}
