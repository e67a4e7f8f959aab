/* SPDX-License-Identifier: Apache-2.0 */
/* What events record: points of streams, waits for them, and the time between two (Driver API: Event Management).
 *
 * A record is a stream and a point of its queue, and the place of a timestamp that is written there. If an event is recorded again in
 * another stream while its last record is under way, the old record moves to an event of its own without a handle ("leftover"), since the
 * two streams could write in any order. Events of several processes have numbered records besides (shared_event.c): whichever process
 * recorded last is the one that others wait for. */
#include "event_record.h"

#include "core/base/log.h"
#include "stream_record.h"

#include <assert.h>
#include <stdlib.h>

#define CT_CHANNEL "event"

/* What an event recorded last; `stream` is retained. */
struct record {
    struct ct_stream *stream; /* NULL: nothing */
    uint64_t point;
};

/* An event without a handle, ready to take over a record. */
static CUresult make_leftover(struct ct_event *event, struct ct_event **out)
{
    CUresult r = ct_event_make(event->context, event->flags, out);

    if (r == CUDA_SUCCESS)
        (*out)->doomed = true;
    return r;
}

static void swap_timestamps(struct ct_event *a, struct ct_event *b)
{
    struct ct_timestamp *timestamp = a->timestamp;

    a->timestamp = b->timestamp;
    b->timestamp = timestamp;
}

/* Records with the stream locked. The old record's reference to its stream goes to *out_old; with `leftover` also its timestamp. */
static CUresult record_locked(struct ct_event *event, struct ct_stream *stream, struct ct_event *leftover, struct record *out_old)
{
    CUresult r = CUDA_SUCCESS;

    assert(ct_mutex_held(&stream->lock));
    r = ct_stream_backend(stream)->queues->await_room(stream->queue); /* not with the event locked, which other streams' calls need */
    if (r != CUDA_SUCCESS)
        return r;
    ct_mutex_lock(&event->lock);
    if (leftover)
        swap_timestamps(event, leftover);
    if (event->timestamp)
        r = ct_stream_record_timestamp_locked(stream, event->timestamp);
    if (r == CUDA_SUCCESS) {
        *out_old = (struct record){event->stream, event->point};
        ct_object_retain(&stream->object);
        event->stream = stream;
        event->point = ct_stream_point(stream);
    } else if (leftover) {
        swap_timestamps(event, leftover);
    }
    ct_mutex_unlock(&event->lock);
    return r;
}

/* A timed event whose record in another stream is under way needs a new place for its time. */
static bool needs_leftover(struct ct_event *event, const struct ct_stream *stream)
{
    bool needed;

    ct_mutex_lock(&event->lock);
    needed = event->timestamp && event->stream && event->stream != stream && !ct_event_is_complete_locked(event);
    ct_mutex_unlock(&event->lock);
    return needed;
}

/* ---- records that other processes know of ---- */

struct shared_record {
    struct ct_shared_event *event; /* retained */
    uint32_t number;
};

static void finish_shared(void *user, CUresult status)
{
    struct shared_record *record = user;

    (void)status; /* work that failed is over, too */
    ct_shared_event_finish(record->event, record->number);
    ct_shared_event_release(record->event);
    free(record);
}

static void await_shared(void *user, CUresult status)
{
    struct shared_record *record = user;

    (void)status; /* the wait ends in any case */
    ct_shared_event_await(record->event, record->number);
    ct_shared_event_release(record->event);
    free(record);
}

/* Has `function` called with the record by the stream's worker. */
static CUresult pass_on(CUresult (*run)(struct ct_stream *stream, ct_host_function function, void *user), struct ct_stream *stream,
                        ct_host_function function, struct ct_event *event, uint32_t number)
{
    struct shared_record *record = malloc(sizeof *record);
    CUresult r;

    if (!record)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "record of an event of several processes");
    *record = (struct shared_record){ct_shared_event_retain(event->shared), number};
    r = run(stream, function, record);
    if (r != CUDA_SUCCESS) {
        ct_shared_event_release(event->shared);
        free(record);
    }
    return r;
}

/* Tells the other processes of a record that was just made in `stream`. */
static CUresult share_record(struct ct_event *event, struct ct_stream *stream)
{
    uint32_t number = ct_shared_event_begin(event->shared);
    CUresult r;

    ct_mutex_lock(&event->lock);
    event->shared_number = number;
    ct_mutex_unlock(&event->lock);
    r = pass_on(ct_stream_run_on_host, stream, finish_shared, event, number);
    if (r != CUDA_SUCCESS)
        ct_shared_event_finish(event->shared, number); /* nobody is to wait for ever */
    return r;
}

/* Whether another process recorded the event last, and what. */
static bool is_foreign(struct ct_event *event, uint32_t *out_number)
{
    bool foreign;

    if (!event->shared)
        return false;
    *out_number = ct_shared_event_last(event->shared);
    ct_mutex_lock(&event->lock);
    foreign = *out_number != event->shared_number;
    ct_mutex_unlock(&event->lock);
    return foreign;
}

CUresult ct_event_record(struct ct_event *event, struct ct_stream *stream)
{
    struct ct_event *leftover = NULL;
    struct record old = {NULL, 0};
    CUresult r;

    if (event->context != stream->context)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "event %p and stream %llu are of two contexts", event->object.handle, stream->id);
    if (needs_leftover(event, stream) && (r = make_leftover(event, &leftover)) != CUDA_SUCCESS)
        return r;
    r = ct_stream_begin(stream);
    if (r == CUDA_SUCCESS) {
        r = record_locked(event, stream, leftover, &old);
        ct_stream_end(stream);
    }
    if (leftover && r == CUDA_SUCCESS) {
        leftover->stream = old.stream;
        leftover->point = old.point;
        old.stream = NULL;
        ct_event_keep(leftover);
    }
    if (leftover)
        ct_object_release(&leftover->object);
    if (old.stream)
        ct_object_release(&old.stream->object);
    if (r == CUDA_SUCCESS && event->shared)
        r = share_record(event, stream);
    return ct_context_check(event->context, r);
}

static struct record last_record(struct ct_event *event)
{
    struct record record;

    ct_mutex_lock(&event->lock);
    record = (struct record){event->stream, event->point};
    if (record.stream)
        ct_object_retain(&record.stream->object);
    ct_mutex_unlock(&event->lock);
    return record;
}

static void drop_record(const struct record *record)
{
    if (record->stream)
        ct_object_release(&record->stream->object);
}

CUresult ct_event_query(struct ct_event *event)
{
    struct record record;
    uint64_t completed = 0;
    uint32_t number;
    CUresult r;

    if (is_foreign(event, &number)) {
        r = ct_shared_event_is_done(event->shared, number) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
        return ct_context_check(event->context, r);
    }
    record = last_record(event);
    if (!record.stream)
        return CUDA_SUCCESS;
    r = event->context->backend->queues->completed(record.stream->queue, &completed);
    r = ct_context_check(event->context, r);
    drop_record(&record);
    if (r != CUDA_SUCCESS)
        return r;
    return completed >= record.point ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; /* an ordinary answer: nothing to log */
}

CUresult ct_event_synchronize(struct ct_event *event)
{
    struct record record;
    CUresult r = CUDA_SUCCESS;
    uint32_t number;

    if (is_foreign(event, &number)) {
        ct_shared_event_await(event->shared, number);
        return ct_context_check(event->context, CUDA_SUCCESS);
    }
    record = last_record(event);
    if (!record.stream)
        return CUDA_SUCCESS;
    if (event->flags & CU_EVENT_BLOCKING_SYNC)
        r = ct_context_check(event->context, event->context->backend->queues->await(record.stream->queue, record.point, UINT64_MAX, false));
    else
        r = ct_stream_await(record.stream, record.point);
    if (r == CUDA_SUCCESS)
        ct_stream_observe_wait(record.stream, record.point);
    drop_record(&record);
    return r;
}

CUresult ct_event_wait(struct ct_event *event, struct ct_stream *stream)
{
    struct record record;
    CUresult r = CUDA_SUCCESS;
    uint32_t number;

    if (is_foreign(event, &number))
        return pass_on(ct_stream_wait_on_host, stream, await_shared, event, number);
    record = last_record(event);
    if (record.stream)
        r = ct_stream_wait_for(stream, record.stream, record.point);
    drop_record(&record);
    return r;
}

/* The time of a complete record. */
static CUresult time_of(struct ct_event *event, double *out_ns)
{
    CUresult r;

    ct_mutex_lock(&event->lock);
    if (!event->stream)
        r = ct_fail(CUDA_ERROR_INVALID_HANDLE, "event %p was never recorded", event->object.handle);
    else if (!ct_event_is_complete_locked(event))
        r = CUDA_ERROR_NOT_READY;
    else
        r = event->context->backend->timestamps->read(event->timestamp, out_ns);
    ct_mutex_unlock(&event->lock);
    return r;
}

CUresult ct_event_elapsed(struct ct_event *start, struct ct_event *end, float *out_ms)
{
    double start_ns, end_ns;
    CUresult r, r_end;

    if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "events without timing (CU_EVENT_DISABLE_TIMING)");
    if (start->context != end->context)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "events of two contexts");
    r = time_of(start, &start_ns);
    r_end = time_of(end, &end_ns);
    if (r == CUDA_ERROR_NOT_READY && r_end != CUDA_SUCCESS) /* a handle that is wrong comes before work that is not done */
        r = r_end;
    r = r == CUDA_SUCCESS ? r_end : r;
    if (r == CUDA_SUCCESS)
        *out_ms = (float)((end_ns - start_ns) / 1e6);
    return r;
}
