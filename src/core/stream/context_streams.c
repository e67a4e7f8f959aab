/* SPDX-License-Identifier: Apache-2.0 */
/* All streams of a context at once: waiting for them, and events of a whole context (Driver API: Context Management).
 *
 * An event records one point of one stream. For a whole context that is a point of a stream made for it, which waits for all others.
 * What waits for an event in the name of a context is each of its streams and its gate, a stream that is only ever waited for: streams
 * that are made later find there what they have to wait for. */
#include "context_streams.h"

#include "core/base/log.h"
#include "event.h"
#include "stream_record.h"

#include <limits.h>
#include <stdlib.h>

#define CT_CHANNEL "stream"
#define SOME 32 /* streams that are waited for at once */

struct place {
    struct ct_stream *stream; /* retained */
    uint64_t point;
};

struct snapshot {
    struct place *places;
    size_t count;
};

/* All streams of the context with their last points. */
static CUresult snapshot_take(struct ct_context *context, struct snapshot *out)
{
    struct place *places;
    size_t count = 0;

    ct_mutex_lock(&context->lock);
    for (struct ct_stream *stream = context->streams; stream; stream = stream->next_in_context)
        count++;
    places = calloc(count ? count : 1, sizeof *places);
    count = 0;
    for (struct ct_stream *stream = context->streams; stream && places; stream = stream->next_in_context) {
        places[count++] = (struct place){stream, ct_stream_point(stream)};
        ct_object_retain(&stream->object);
    }
    ct_mutex_unlock(&context->lock);
    if (!places)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "list of streams");
    *out = (struct snapshot){places, count};
    return CUDA_SUCCESS;
}

static void snapshot_drop(struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->count; i++)
        ct_object_release(&snapshot->places[i].stream->object);
    free(snapshot->places);
}

/* The next streams of the list, which is in falling order: those numbered below *below, which becomes the number of the last one taken. */
static size_t take_some(struct ct_context *context, unsigned long long *below, struct place places[SOME])
{
    size_t n = 0;

    ct_mutex_lock(&context->lock);
    for (struct ct_stream *stream = context->streams; stream && n < SOME; stream = stream->next_in_context) {
        if (stream->list_number >= *below)
            continue;
        places[n++] = (struct place){stream, ct_stream_point(stream)};
        ct_object_retain(&stream->object);
        *below = stream->list_number;
    }
    ct_mutex_unlock(&context->lock);
    return n;
}

/* Takes no memory: what is freed next has to be waited for also if there is none left. */
CUresult ct_streams_synchronize(struct ct_context *context)
{
    unsigned long long below = ULLONG_MAX;
    struct place places[SOME];
    CUresult r, first = CUDA_SUCCESS;
    size_t n;

    while ((n = take_some(context, &below, places)) > 0)
        for (size_t i = 0; i < n; i++) {
            r = ct_stream_await(places[i].stream, places[i].point);
            first = first == CUDA_SUCCESS ? r : first;
            if (r == CUDA_SUCCESS)
                ct_stream_observe_wait(places[i].stream, places[i].point);
            ct_object_release(&places[i].stream->object);
        }
    ct_streams_reap(context);
    return first;
}

CUresult ct_context_synchronize(struct ct_context *context)
{
    return ct_context_check(context, ct_streams_synchronize(context));
}

static void synchronize_others(const struct ct_context *but, bool reaching)
{
    uint32_t cursor = 0;
    struct ct_object *object;

    while ((object = ct_object_next_or_null(CT_OBJECT_CONTEXT, &cursor))) {
        struct ct_context *context = (struct ct_context *)object;

        if (context != but && (!reaching || atomic_load(&context->reaches_out)) && ct_context_use(context) == CUDA_SUCCESS) {
            (void)ct_context_synchronize(context);
            ct_context_release(context);
        }
        ct_object_release(object);
    }
}

void ct_contexts_synchronize_but(const struct ct_context *context_or_null)
{
    synchronize_others(context_or_null, false);
}

void ct_contexts_synchronize_reaching(const struct ct_context *but)
{
    if (ct_contexts_reach_out())
        synchronize_others(but, true);
}

/* Records the event in `stream`, behind all that the snapshot names. */
static CUresult record_behind(const struct snapshot *all, struct ct_stream *stream, struct ct_event *event)
{
    CUresult r = CUDA_SUCCESS;

    for (size_t i = 0; i < all->count && r == CUDA_SUCCESS; i++)
        r = ct_stream_wait_for(stream, all->places[i].stream, all->places[i].point);
    return r == CUDA_SUCCESS ? ct_event_record(event, stream) : r;
}

CUresult ct_streams_record(struct ct_context *context, struct ct_event *event)
{
    struct ct_stream *stream;
    struct snapshot all;
    CUresult r = snapshot_take(context, &all);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_stream_create_inner(context, &stream);
    if (r == CUDA_SUCCESS) {
        r = record_behind(&all, stream, event);
        ct_stream_doom(stream);
        ct_object_release(&stream->object);
    }
    snapshot_drop(&all);
    return r;
}

/* The context's gate, made if there is none; borrowed: it goes with the context. */
static CUresult gate_of(struct ct_context *context, struct ct_stream **out)
{
    struct ct_stream *gate, *other;
    CUresult r;

    ct_mutex_lock(&context->lock);
    gate = context->gate;
    ct_mutex_unlock(&context->lock);
    if (!gate) {
        r = ct_stream_create_inner(context, &gate);
        if (r != CUDA_SUCCESS)
            return r;
        ct_mutex_lock(&context->lock);
        other = context->gate;
        if (!other)
            context->gate = gate;
        ct_mutex_unlock(&context->lock);
        if (other)
            ct_stream_doom(gate);
        ct_object_release(&gate->object); /* the list has one */
        gate = other ? other : gate;
    }
    *out = gate;
    return CUDA_SUCCESS;
}

CUresult ct_streams_wait(struct ct_context *context, struct ct_event *event)
{
    struct ct_stream *gate;
    struct snapshot all;
    CUresult r = gate_of(context, &gate);

    if (r == CUDA_SUCCESS)
        r = ct_event_wait(event, gate);
    if (r == CUDA_SUCCESS) /* after the gate has its wait: who is in the list by now waits here, who comes later finds the gate */
        r = snapshot_take(context, &all);
    if (r != CUDA_SUCCESS)
        return r;
    for (size_t i = 0; i < all.count && r == CUDA_SUCCESS; i++)
        r = ct_stream_wait_for(all.places[i].stream, gate, ct_stream_point(gate));
    snapshot_drop(&all);
    return r;
}
