/* SPDX-License-Identifier: Apache-2.0 */
/* All streams of a context at once: synchronization, and events of a whole context (Driver API: Context Management).
 *
 * An event records one point of one stream. To record a whole context, a temporary stream waits for all others, and the event records a
 * point of that stream. When a context waits for an event, each of its streams waits, and so does its barrier: an internal stream without
 * work of its own, for which streams that are created later wait. */
#include "context_streams.h"

#include "core/backing/shadows.h"
#include "core/base/log.h"
#include "event.h"
#include "stream_record.h"

#include <limits.h>
#include <stdlib.h>

#define CT_CHANNEL "stream"
#define BATCH 32 /* number of streams taken per locking of the context */

struct stream_point {
    struct ct_stream *stream; /* retained */
    uint64_t point;
};

struct snapshot {
    struct stream_point *points;
    size_t count;
};

/* Takes a list of the streams of the context, or of a green context in it, with their last points. */
static CUresult snapshot_take(struct ct_context *context, const struct ct_green_context *green_or_null, struct snapshot *out)
{
    struct stream_point *points;
    size_t count = 0;

    ct_mutex_lock(&context->lock);
    for (struct ct_stream *stream = context->streams; stream; stream = stream->next_in_context)
        count++;
    points = calloc(count ? count : 1, sizeof *points);
    count = 0;
    for (struct ct_stream *stream = context->streams; stream && points; stream = stream->next_in_context) {
        if (green_or_null && stream->green != green_or_null)
            continue;
        points[count++] = (struct stream_point){stream, ct_stream_point(stream)};
        ct_object_retain(&stream->object);
    }
    ct_mutex_unlock(&context->lock);
    if (!points)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "list of streams");
    *out = (struct snapshot){points, count};
    return CUDA_SUCCESS;
}

static void snapshot_drop(struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->count; i++)
        ct_object_release(&snapshot->points[i].stream->object);
    free(snapshot->points);
}

/* Retains the next streams of the list, which is in descending order: numbers below *below, which becomes the number of the last one. */
static size_t take_batch(struct ct_context *context, unsigned long long *below, struct ct_stream *out[BATCH])
{
    size_t n = 0;

    ct_mutex_lock(&context->lock);
    for (struct ct_stream *stream = context->streams; stream && n < BATCH; stream = stream->next_in_context) {
        if (stream->list_number >= *below)
            continue;
        ct_object_retain(&stream->object);
        out[n++] = stream;
        *below = stream->list_number;
    }
    ct_mutex_unlock(&context->lock);
    return n;
}

/* The point is read with the stream locked, so that a command which another thread is recording counts: what this thread made unreachable
 * before (a module) may be freed after the wait, if those who record look at it with the stream locked. */
static CUresult await_recorded(struct ct_stream *stream)
{
    uint64_t point;
    CUresult r;

    ct_mutex_lock(&stream->lock);
    point = ct_stream_point(stream);
    ct_mutex_unlock(&stream->lock);
    r = ct_stream_await(stream, point);
    if (r == CUDA_SUCCESS)
        ct_stream_observe_wait(stream, point);
    return r;
}

/* Allocates no memory, since a free has to synchronize even if the host has no memory left. */
CUresult ct_streams_synchronize(struct ct_context *context)
{
    unsigned long long below = ULLONG_MAX;
    struct ct_stream *streams[BATCH];
    CUresult r, first = CUDA_SUCCESS;
    size_t n;

    while ((n = take_batch(context, &below, streams)) > 0)
        for (size_t i = 0; i < n; i++) {
            r = await_recorded(streams[i]);
            first = first == CUDA_SUCCESS ? r : first;
            ct_object_release(&streams[i]->object);
        }
    ct_streams_reap(context);
    return first;
}

CUresult ct_context_synchronize(struct ct_context *context)
{
    struct ct_shadow *removed = ct_shadows_take_removed(context);
    CUresult r = ct_streams_synchronize(context);

    ct_shadows_free(context, removed);
    return ct_context_check(context, r);
}

static void synchronize_others(const struct ct_context *except, bool cross_context_only)
{
    uint32_t cursor = 0;
    struct ct_object *object;

    while ((object = ct_object_next_or_null(CT_OBJECT_CONTEXT, &cursor))) {
        struct ct_context *context = (struct ct_context *)object;

        if (context != except && (!cross_context_only || atomic_load(&context->has_cross_context_work)) &&
            ct_context_use(context) == CUDA_SUCCESS) {
            (void)ct_context_synchronize(context);
            ct_context_release(context);
        }
        ct_object_release(object);
    }
}

void ct_contexts_synchronize_except(const struct ct_context *context_or_null)
{
    synchronize_others(context_or_null, false);
}

void ct_contexts_synchronize_cross_context(const struct ct_context *except)
{
    if (ct_contexts_have_cross_context_work())
        synchronize_others(except, true);
}

/* Records the event in `stream`, after all points of the snapshot. */
static CUresult record_after(const struct snapshot *all, struct ct_stream *stream, struct ct_event *event)
{
    CUresult r = CUDA_SUCCESS;

    for (size_t i = 0; i < all->count && r == CUDA_SUCCESS; i++)
        r = ct_stream_wait_for(stream, all->points[i].stream, all->points[i].point);
    return r == CUDA_SUCCESS ? ct_event_record(event, stream) : r;
}

CUresult ct_streams_record_green(struct ct_context *context, const struct ct_green_context *green_or_null, struct ct_event *event)
{
    struct ct_stream *stream;
    struct snapshot all;
    CUresult r = snapshot_take(context, green_or_null, &all);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_stream_create_internal(context, &stream);
    if (r == CUDA_SUCCESS) {
        r = record_after(&all, stream, event);
        ct_stream_mark_destroyed(stream);
        ct_object_release(&stream->object);
    }
    snapshot_drop(&all);
    return r;
}

CUresult ct_streams_record(struct ct_context *context, struct ct_event *event)
{
    return ct_streams_record_green(context, NULL, event);
}

CUresult ct_streams_wait_green(struct ct_context *context, const struct ct_green_context *green, struct ct_event *event)
{
    struct snapshot all;
    CUresult r = snapshot_take(context, green, &all);

    if (r != CUDA_SUCCESS)
        return r;
    for (size_t i = 0; i < all.count && r == CUDA_SUCCESS; i++)
        r = ct_event_wait(event, all.points[i].stream);
    snapshot_drop(&all);
    return r;
}

CUresult ct_streams_of_green(struct ct_context *context, const struct ct_green_context *green, void (*call)(struct ct_stream *stream))
{
    struct snapshot all;
    CUresult r = snapshot_take(context, green, &all);

    if (r != CUDA_SUCCESS)
        return r;
    for (size_t i = 0; i < all.count; i++)
        call(all.points[i].stream);
    snapshot_drop(&all);
    return r;
}

/* The context's barrier, which is created if there is none. It is borrowed: it is destroyed with the context. */
static CUresult barrier_of(struct ct_context *context, struct ct_stream **out)
{
    struct ct_stream *barrier, *other;
    CUresult r;

    ct_mutex_lock(&context->lock);
    barrier = context->barrier;
    ct_mutex_unlock(&context->lock);
    if (!barrier) {
        r = ct_stream_create_internal(context, &barrier);
        if (r != CUDA_SUCCESS)
            return r;
        ct_mutex_lock(&context->lock);
        other = context->barrier;
        if (!other)
            context->barrier = barrier;
        ct_mutex_unlock(&context->lock);
        if (other)
            ct_stream_mark_destroyed(barrier);
        ct_object_release(&barrier->object); /* the list has one */
        barrier = other ? other : barrier;
    }
    *out = barrier;
    return CUDA_SUCCESS;
}

CUresult ct_streams_wait(struct ct_context *context, struct ct_event *event)
{
    struct ct_stream *barrier;
    struct snapshot all;
    CUresult r = barrier_of(context, &barrier);

    if (r == CUDA_SUCCESS)
        r = ct_event_wait(event, barrier);
    if (r == CUDA_SUCCESS) /* after the barrier has its wait: listed streams wait below, and those created later wait for the barrier */
        r = snapshot_take(context, NULL, &all);
    if (r != CUDA_SUCCESS)
        return r;
    for (size_t i = 0; i < all.count && r == CUDA_SUCCESS; i++)
        r = ct_stream_wait_for(all.points[i].stream, barrier, ct_stream_point(barrier));
    snapshot_drop(&all);
    return r;
}
