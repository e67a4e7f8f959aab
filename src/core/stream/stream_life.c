/* SPDX-License-Identifier: Apache-2.0 */
/* Making and ending streams (Driver API: Stream Management).
 *
 * The context's list holds a reference of each stream; the handle table, events and the threads' own tables hold others. A doomed
 * stream leaves the list when its work is done ("reap"), which the next call that makes, destroys or waits for streams finds out. */
#include "stream.h"

#include "core/base/log.h"
#include "core/base/process.h"
#include "stream_record.h"
#include "stream_ring.h"
#include "stream_worker.h"

#include <assert.h>
#include <stdlib.h>

#define CT_CHANNEL "stream"

/* Failed or complete: in both cases it is over. */
static void await_all(struct ct_stream *stream)
{
    const struct ct_backend *backend = ct_stream_backend(stream);

    backend->queues->await(stream->queue, ct_stream_point(stream), UINT64_MAX, false);
}

/* DOOMED (or tear-down) to FINISHED: everything but the struct goes. Nobody records any more. */
static void finish(struct ct_stream *stream)
{
    if (!stream->queue)
        return;
    await_all(stream);
    ct_stream_worker_destroy(stream->worker);
    ct_stream_ring_destroy(stream->ring);
    ct_stream_backend(stream)->queues->destroy(stream->queue);
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
    r = context->backend->queues->create(context->backend_device, &desc, &stream->queue);
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

/* What cuCtxWaitEvent made the others wait for. */
static CUresult join_gate(struct ct_stream *stream)
{
    struct ct_context *context = stream->context;
    struct ct_stream *gate;

    ct_mutex_lock(&context->lock);
    gate = context->gate;
    ct_mutex_unlock(&context->lock);
    return gate ? ct_stream_wait_for(stream, gate, ct_stream_point(gate)) : CUDA_SUCCESS;
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
    r = join_gate(stream);
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
    r = join_gate(stream);
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

void ct_streams_await_all(struct ct_context *context)
{
    for (struct ct_stream *stream = context->streams; stream; stream = stream->next_in_context) /* the list stands still */
        await_all(stream);
}

void ct_streams_destroy_all(struct ct_context *context)
{
    struct ct_stream *stream;

    context->gate = NULL; /* it goes with the others */
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
