/* SPDX-License-Identifier: Apache-2.0 */
/* Records of events, waits for them, and the time between two (Driver API: Event Management).
 *
 * A record is a stream, a point of its queue, and a timestamp that is written at that point. If a timed event is recorded in another
 * stream while its last record is pending, the old record moves to a new event without a handle (the "detached" event), since the two
 * streams could write the timestamp in either order. Events shared by several processes also have numbered records (shared_event.c):
 * waits are for the last record of any process. */
#include "event_record.h"

#include "core/base/log.h"
#include "host_gate.h"
#include "stream_record.h"

#include <assert.h>
#include <stdlib.h>

#define CT_CHANNEL "event"

/* The last record of an event; `stream` is retained. */
struct record {
    struct ct_stream *stream; /* NULL: no record */
    uint64_t point;
};

/* Creates an event without a handle that can take over a record. */
static CUresult make_detached(struct ct_event *event, struct ct_event **out)
{
    CUresult r = ct_event_make(event->context, event->flags, out);

    if (r == CUDA_SUCCESS)
        (*out)->is_destroyed = true;
    return r;
}

static void swap_timestamps(struct ct_event *a, struct ct_event *b)
{
    struct ct_timestamp *timestamp = a->timestamp;

    a->timestamp = b->timestamp;
    b->timestamp = timestamp;
}

/* Records with the stream locked. *out_old takes over the old record's reference to its stream, and `detached` takes its timestamp. */
static CUresult record_locked(struct ct_event *event, struct ct_stream *stream, struct ct_event *detached, struct record *out_old)
{
    CUresult r = CUDA_SUCCESS;

    assert(ct_mutex_held(&stream->lock));
    r = ct_stream_backend(stream)->queues->await_room(stream->queue); /* before the event is locked: calls on other streams lock it, too */
    if (r != CUDA_SUCCESS)
        return r;
    ct_mutex_lock(&event->lock);
    if (detached)
        swap_timestamps(event, detached);
    if (event->timestamp)
        r = ct_stream_record_timestamp_locked(stream, event->timestamp);
    if (r == CUDA_SUCCESS) {
        *out_old = (struct record){event->stream, event->point};
        ct_object_retain(&stream->object);
        event->stream = stream;
        event->point = ct_stream_point(stream);
    } else if (detached) {
        swap_timestamps(event, detached);
    }
    ct_mutex_unlock(&event->lock);
    return r;
}

/* Whether the event is timed and has a pending record in another stream, so that it needs a new timestamp. */
static bool needs_detached(struct ct_event *event, const struct ct_stream *stream)
{
    bool needed;

    ct_mutex_lock(&event->lock);
    needed = event->timestamp && event->stream && event->stream != stream && !ct_event_is_complete_locked(event);
    ct_mutex_unlock(&event->lock);
    return needed;
}

/* ---- records of events that are shared with other processes ---- */

struct shared_record {
    struct ct_shared_event *event; /* retained */
    uint32_t number;
};

static void finish_shared(void *user, CUresult status)
{
    struct shared_record *record = user;

    (void)status; /* failed work counts as complete */
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

/* Makes the stream's worker call `function` with the record. `run` is ct_stream_run_on_host or ct_stream_wait_on_host. */
static CUresult run_with_record(CUresult (*run)(struct ct_stream *stream, ct_host_function function, void *user), struct ct_stream *stream,
                                ct_host_function function, struct ct_event *event, uint32_t number)
{
    struct shared_record *record = malloc(sizeof *record);
    CUresult r;

    if (!record)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "record of an interprocess event");
    *record = (struct shared_record){ct_shared_event_retain(event->shared), number};
    r = run(stream, function, record);
    if (r != CUDA_SUCCESS) {
        ct_shared_event_release(event->shared);
        free(record);
    }
    return r;
}

/* Announces a record that was just made in `stream` to the other processes. */
static CUresult share_record(struct ct_event *event, struct ct_stream *stream)
{
    uint32_t number = ct_shared_event_begin(event->shared);
    CUresult r;

    ct_mutex_lock(&event->lock);
    event->shared_number = number;
    ct_mutex_unlock(&event->lock);
    r = run_with_record(ct_stream_run_on_host, stream, finish_shared, event, number);
    if (r != CUDA_SUCCESS)
        ct_shared_event_finish(event->shared, number); /* otherwise other processes would wait forever */
    return r;
}

/* Whether another process made the event's last record, and the number of that record. */
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
    struct ct_event *detached = NULL;
    struct record old = {NULL, 0};
    CUresult r;

    if (event->context != stream->context)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "event %p and stream %llu belong to different contexts", event->object.handle,
                       stream->id);
    if (needs_detached(event, stream) && (r = make_detached(event, &detached)) != CUDA_SUCCESS)
        return r;
    r = ct_stream_begin(stream);
    if (r == CUDA_SUCCESS) {
        r = record_locked(event, stream, detached, &old);
        ct_stream_end(stream);
    }
    if (detached && r == CUDA_SUCCESS) {
        detached->stream = old.stream;
        detached->point = old.point;
        old.stream = NULL;
        ct_event_link(detached);
    }
    if (detached)
        ct_object_release(&detached->object);
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
    ct_host_gates_open(record.stream, record.point);
    r = event->context->backend->queues->completed(record.stream->queue, &completed);
    r = ct_context_check(event->context, r);
    drop_record(&record);
    if (r != CUDA_SUCCESS)
        return r;
    return completed >= record.point ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; /* NOT_READY is no failure and is not logged */
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
        return run_with_record(ct_stream_wait_on_host, stream, await_shared, event, number);
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
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "an event was created with CU_EVENT_DISABLE_TIMING");
    if (start->context != end->context)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "the events belong to different contexts");
    r = time_of(start, &start_ns);
    r_end = time_of(end, &end_ns);
    if (r == CUDA_ERROR_NOT_READY && r_end != CUDA_SUCCESS) /* an invalid handle takes precedence over pending work */
        r = r_end;
    r = r == CUDA_SUCCESS ? r_end : r;
    if (r == CUDA_SUCCESS)
        *out_ms = (float)((end_ns - start_ns) / 1e6);
    return r;
}
