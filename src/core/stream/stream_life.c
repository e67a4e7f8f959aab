/* SPDX-License-Identifier: Apache-2.0 */
/* Creation and destruction of streams (Driver API: Stream Management).
 *
 * The context's list holds a reference to each stream; the handle table, events and the threads' tables hold others. A destroyed stream is
 * removed from the list ("reaped") by the first call after its work is complete that creates, destroys or waits for streams. */
#include "stream.h"

#include "core/base/log.h"
#include "core/base/process.h"
#include "core/device/green_context.h"
#include "stream_record.h"
#include "stream_ring.h"
#include "stream_slots.h"
#include "stream_worker.h"

#include <assert.h>
#include <stdlib.h>

#define CT_CHANNEL "stream"

/* Waits until all work is complete or has failed. */
static void await_all(struct ct_stream *stream)
{
    const struct ct_backend *backend = ct_stream_backend(stream);

    backend->queues->await(stream->queue, ct_stream_point(stream), UINT64_MAX, false);
}

/* From DOOMED (or LIVE, when the context is destroyed) to FINISHED: frees everything but the struct. No thread records any more. */
static void finish(struct ct_stream *stream)
{
    if (!stream->queue)
        return;
    await_all(stream);
    ct_running_remove(&stream->running);
    ct_stream_worker_destroy(stream->worker);
    ct_stream_ring_destroy(stream->ring);
    ct_stream_slots_destroy(stream->slots);
    ct_stream_backend(stream)->queues->destroy(stream->queue);
    stream->worker = NULL;
    stream->ring = NULL;
    stream->slots = NULL;
    stream->queue = NULL;
}

/* Drops the last reference. The caller has a use of the context, or the stream is finished. */
static void free_stream(struct ct_object *object)
{
    struct ct_stream *stream = (struct ct_stream *)object;
    struct ct_context *context = stream->context;

    finish(stream);
    ct_mutex_finish(&stream->lock);
    ct_mutex_finish(&stream->order_lock);
    ct_green_release(stream->green);
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

/* The caller takes over the list's reference. */
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
    r = context->backend->queues->create(context->backend_device, &desc, &stream->queue);
    if (r == CUDA_SUCCESS)
        r = ct_stream_ring_create(context, stream->queue, &stream->ring);
    if (r != CUDA_SUCCESS) {
        ct_object_release(&stream->object);
        return r;
    }
    ct_running_add(&stream->running, context->device, stream->queue);
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

/* A destroyed stream whose work is complete, retained, or NULL. */
static struct ct_stream *find_reapable_or_null(struct ct_context *context)
{
    struct ct_stream *stream;

    ct_mutex_lock(&context->lock);
    for (stream = context->streams; stream; stream = stream->next_in_context)
        if (stream->is_destroyed && ct_stream_is_complete(stream, ct_stream_point(stream)))
            break;
    if (stream)
        ct_object_retain(&stream->object);
    ct_mutex_unlock(&context->lock);
    return stream;
}

/* Removes a stream from the context's list, unless another thread has done so, or has recorded into it meanwhile. From
 * then on a thread that found the stream before it was destroyed cannot record into it, since a wait for the context's work would miss the
 * command. */
static bool reap(struct ct_stream *stream)
{
    bool is_reaped;

    ct_mutex_lock(&stream->lock);
    ct_mutex_lock(&stream->context->lock);
    is_reaped = stream->listed && ct_stream_is_complete(stream, ct_stream_point(stream));
    if (is_reaped)
        unlink_locked(stream);
    stream->is_reaped |= is_reaped;
    ct_mutex_unlock(&stream->context->lock);
    ct_mutex_unlock(&stream->lock);
    return is_reaped;
}

void ct_streams_reap(struct ct_context *context)
{
    struct ct_stream *stream;

    while ((stream = find_reapable_or_null(context)) != NULL) {
        if (reap(stream))
            ct_object_release(&stream->object); /* the list's reference */
        ct_object_release(&stream->object);
    }
}

void ct_stream_mark_destroyed(struct ct_stream *stream)
{
    ct_mutex_lock(&stream->context->lock);
    stream->is_destroyed = true;
    ct_mutex_unlock(&stream->context->lock);
    ct_streams_reap(stream->context);
}

/* A new stream waits for the events for which cuCtxWaitEvent made the existing ones wait. */
static CUresult join_barrier(struct ct_stream *stream)
{
    struct ct_context *context = stream->context;
    struct ct_stream *barrier;

    ct_mutex_lock(&context->lock);
    barrier = context->barrier;
    ct_mutex_unlock(&context->lock);
    return barrier ? ct_stream_wait_for(stream, barrier, ct_stream_point(barrier)) : CUDA_SUCCESS;
}

CUresult ct_stream_create(struct ct_context *context, unsigned flags, int priority, struct ct_green_context *green, struct ct_stream **out)
{
    struct ct_stream *stream;
    CUresult r;

    if (flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "stream flags 0x%x", flags);
    ct_streams_reap(context);
    r = make(context, flags, ct_stream_clamp_priority(context->device, priority), false, &stream);
    if (r != CUDA_SUCCESS)
        return r;
    if (green)
        ct_object_retain(&green->object);
    stream->green = green;
    r = join_barrier(stream);
    if (r == CUDA_SUCCESS)
        r = ct_object_publish(&stream->object);
    if (r == CUDA_SUCCESS)
        *out = stream;
    else
        ct_stream_mark_destroyed(stream);
    ct_object_release(&stream->object); /* the list and the handle table have their own references */
    return r;
}

CUresult ct_stream_create_per_thread(struct ct_context *context, struct ct_stream **out)
{
    struct ct_stream *stream;
    CUresult r = make(context, CU_STREAM_DEFAULT, 0, false, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    stream->is_per_thread = true;
    r = join_barrier(stream);
    if (r == CUDA_SUCCESS) {
        *out = stream;
    } else {
        ct_stream_mark_destroyed(stream);
        ct_object_release(&stream->object);
    }
    return r;
}

CUresult ct_stream_create_internal(struct ct_context *context, struct ct_stream **out)
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
        ct_stream_mark_destroyed(stream);
    return r;
}

void ct_streams_await_all(struct ct_context *context)
{
    for (struct ct_stream *stream = context->streams; stream; stream = stream->next_in_context) /* the list no longer changes */
        await_all(stream);
}

void ct_streams_destroy_all(struct ct_context *context)
{
    struct ct_stream *stream;

    context->barrier = NULL; /* it is in the list, too */
    for (;;) {
        ct_mutex_lock(&context->lock);
        stream = context->streams;
        if (stream)
            unlink_locked(stream);
        ct_mutex_unlock(&context->lock);
        if (!stream)
            return;
        if (stream->object.handle && !stream->is_destroyed)
            ct_object_unpublish(&stream->object);
        finish(stream); /* remaining references are to a struct without a queue */
        ct_object_release(&stream->object);
    }
}
