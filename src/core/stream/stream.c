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
#include "core/base/log.h"
#include "core/pool/memory_pool.h"
#include "core/base/process.h"
#include "stream_record.h"
#include "stream_ring.h"
#include "stream_worker.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

#define CT_CHANNEL "stream"
#define JOINED_AT_ONCE 16 /* streams whose work the legacy stream is ordered behind at a time */

/* ---- making and ending ---- */

/* Failed or complete: in both cases it is over. */
static void await_all(struct ct_stream *stream)
{
    const struct ct_backend *backend = ct_stream_backend(stream);

    backend->queue_await(stream->queue, ct_stream_point(stream), UINT64_MAX, false);
}

/* DOOMED (or tear-down) to FINISHED: everything but the struct goes. Nobody records any more. */
static void finish(struct ct_stream *stream)
{
    if (!stream->queue)
        return;
    await_all(stream);
    ct_stream_worker_destroy(stream->worker);
    ct_stream_ring_destroy(stream->ring);
    ct_stream_backend(stream)->queue_destroy(stream->queue);
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
    ct_mutex_finish(&stream->order_lock);
    free(stream);
    ct_object_release(&context->object);
}

static void list_add(struct ct_stream *stream)
{
    struct ct_context *context = stream->context;

    ct_mutex_lock(&context->lock);
    stream->next_in_context = context->streams;
    stream->list_number = context->streams ? context->streams->list_number + 1 : 1;
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
    ct_mutex_init(&stream->lock, CT_RANK_STREAM);
    ct_mutex_init(&stream->order_lock, CT_RANK_STREAM_ORDER);
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

bool ct_stream_is_complete(struct ct_stream *stream, uint64_t point)
{
    uint64_t completed;

    /* nothing runs any more in a queue that failed */
    return ct_stream_backend(stream)->queue_completed(stream->queue, &completed) != CUDA_SUCCESS || completed >= point;
}

/* A doomed stream of the context whose work is done, out of the list; NULL: none. */
static struct ct_stream *take_reapable_or_null(struct ct_context *context)
{
    struct ct_stream *stream;

    ct_mutex_lock(&context->lock);
    for (stream = context->streams; stream; stream = stream->next_in_context)
        if (stream->doomed && ct_stream_is_complete(stream, ct_stream_point(stream)))
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
    context->gate = NULL;            /* it goes with the others */
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
    uint64_t point = ct_stream_point(other);
    CUresult r = CUDA_SUCCESS;

    if (point <= *seen)
        return CUDA_SUCCESS;
    if (!ct_stream_is_complete(other, point))
        r = ct_stream_record_wait_locked(stream, other, point);
    if (r == CUDA_SUCCESS)
        *seen = point;
    return r;
}

/* The legacy stream, which is locked, has to wait for what this one has recorded. */
static bool is_ahead_of_legacy(const struct ct_stream *legacy, struct ct_stream *stream)
{
    return stream != legacy && !(stream->flags & CU_STREAM_NON_BLOCKING) &&
           ct_stream_point(stream) > stream->seen_by_legacy;
}

/* Retains the next streams that the legacy stream has to wait for. The context's list is in falling order of list numbers: those below
 * *below, which becomes the number of the last one. */
static unsigned take_ahead(struct ct_stream *legacy, unsigned long long *below, struct ct_stream *out[JOINED_AT_ONCE])
{
    struct ct_context *context = legacy->context;
    unsigned n = 0;

    ct_mutex_lock(&context->lock);
    for (struct ct_stream *stream = context->streams; stream && n < JOINED_AT_ONCE; stream = stream->next_in_context)
        if (stream->list_number < *below && is_ahead_of_legacy(legacy, stream)) {
            ct_object_retain(&stream->object);
            *below = stream->list_number;
            out[n++] = stream;
        }
    ct_mutex_unlock(&context->lock);
    return n;
}

/* The context's lock is not held while the waits are recorded, since recording may wait for room. */
static CUresult begin_legacy(struct ct_stream *legacy)
{
    struct ct_stream *ahead[JOINED_AT_ONCE];
    unsigned long long below = ULLONG_MAX;
    CUresult r = CUDA_SUCCESS;
    unsigned n;

    ct_mutex_lock(&legacy->lock);
    while (r == CUDA_SUCCESS && (n = take_ahead(legacy, &below, ahead)) > 0)
        for (unsigned i = 0; i < n; i++) {
            r = r == CUDA_SUCCESS ? join(legacy, ahead[i], &ahead[i]->seen_by_legacy) : r;
            ct_object_release(&ahead[i]->object);
        }
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
    return ct_stream_is_complete(stream, ct_stream_point(stream));
}
