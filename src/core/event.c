/* SPDX-License-Identifier: Apache-2.0 */
/* Events (Driver API: Event Management).
 *
 * A record is a stream and a point of its queue, and the place of a timestamp that is written there. That place must stay as long as
 * work will write it, so events are kept like streams: the context's list holds a reference of each, a destroyed one leaves the list
 * when its record is complete. If an event is recorded again in another stream while its last record is under way, the old
 * record moves to an event of its own without a handle ("leftover"), since the two streams could write in any order. */
#include "event.h"

#include "log.h"
#include "memory_pool.h"
#include "process.h"

#include <assert.h>
#include <stdlib.h>

#define CT_CHANNEL "event"
#define EVENT_FLAGS (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

/*   IDLE ──record──> RECORDED (stream set) ──record──> RECORDED (the new place)
 * A record is complete when its stream's queue is at its point. */
struct ct_event {
    struct ct_object object;
    struct ct_context *context; /* a reference: keeps the struct */
    struct ct_event *next_in_context;
    unsigned flags;                 /* CU_EVENT_* */
    bool doomed;                    /* no handle any more; guarded by context->lock */
    struct ct_mutex lock;           /* guards what follows */
    struct ct_timestamp *timestamp; /* NULL with CU_EVENT_DISABLE_TIMING */
    struct ct_stream *stream;       /* retained; of our context; NULL: never recorded */
    uint64_t point;
    struct ct_shared_event *shared; /* with CU_EVENT_INTERPROCESS; fixed */
    uint32_t shared_number;         /* of our record among those of all processes; 0: none */
};

/* What an event recorded last; `stream` is retained. */
struct record {
    struct ct_stream *stream; /* NULL: nothing */
    uint64_t point;
};

static void free_event(struct ct_object *object)
{
    struct ct_event *event = (struct ct_event *)object;
    struct ct_context *context = event->context;

    if (event->timestamp)
        context->backend->timestamp_destroy(event->timestamp);
    if (event->stream)
        ct_object_release(&event->stream->object);
    ct_shared_event_release(event->shared);
    ct_mutex_finish(&event->lock);
    free(event);
    ct_object_release(&context->object);
}

static CUresult make(struct ct_context *context, unsigned flags, struct ct_event **out)
{
    struct ct_event *event = calloc(1, sizeof *event);
    CUresult r = CUDA_SUCCESS;

    if (!event)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "event");
    ct_object_init(&event->object, CT_OBJECT_EVENT, free_event);
    ct_mutex_init(&event->lock, CT_RANK_EVENT);
    event->context = context;
    ct_object_retain(&context->object);
    event->flags = flags;
    if (!(flags & CU_EVENT_DISABLE_TIMING))
        r = context->backend->timestamp_create(context->backend_device, &event->timestamp);
    if (r == CUDA_SUCCESS)
        *out = event;
    else
        ct_object_release(&event->object);
    return r;
}

static void list_add(struct ct_event *event)
{
    struct ct_context *context = event->context;

    ct_mutex_lock(&context->lock);
    event->next_in_context = context->events;
    context->events = event;
    ct_object_retain(&event->object);
    ct_mutex_unlock(&context->lock);
}

static bool is_complete(struct ct_stream *stream, uint64_t point)
{
    uint64_t completed;

    /* nothing runs any more in a queue that failed */
    return !stream || stream->context->backend->queue_completed(stream->queue, &completed) != CUDA_SUCCESS || completed >= point;
}

static bool is_reapable(struct ct_event *event)
{
    bool complete;

    if (!event->doomed)
        return false;
    ct_mutex_lock(&event->lock);
    complete = is_complete(event->stream, event->point);
    ct_mutex_unlock(&event->lock);
    return complete;
}

/* Takes the doomed events whose records are complete out of the list, and lets them go. */
static void reap(struct ct_context *context)
{
    struct ct_event *done = NULL, **link = &context->events;

    ct_mutex_lock(&context->lock);
    while (*link) {
        struct ct_event *event = *link;

        if (!is_reapable(event)) {
            link = &event->next_in_context;
            continue;
        }
        *link = event->next_in_context;
        event->next_in_context = done;
        done = event;
    }
    ct_mutex_unlock(&context->lock);
    while (done) {
        struct ct_event *event = done;

        done = event->next_in_context;
        ct_object_release(&event->object);
    }
}

static void doom(struct ct_event *event)
{
    ct_mutex_lock(&event->context->lock);
    event->doomed = true;
    ct_mutex_unlock(&event->context->lock);
    reap(event->context);
}

/* Takes the reference to `shared`, which may be NULL. */
static CUresult make_published(struct ct_context *context, unsigned flags, struct ct_shared_event *shared, CUevent *out)
{
    struct ct_event *event;
    CUresult r = make(context, flags, &event);

    if (r != CUDA_SUCCESS) {
        ct_shared_event_release(shared);
        return r;
    }
    event->shared = shared;
    list_add(event);
    r = ct_object_publish(&event->object);
    if (r == CUDA_SUCCESS)
        *out = event->object.handle;
    else
        doom(event);
    ct_object_release(&event->object); /* the list and the table have theirs */
    return r;
}

CUresult ct_event_create(struct ct_context *context, unsigned flags, CUevent *out)
{
    struct ct_shared_event *shared = NULL;
    CUresult r;

    if (flags & ~(unsigned)EVENT_FLAGS || (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING)))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "event flags 0x%x", flags);
    if (flags & CU_EVENT_INTERPROCESS && (r = ct_shared_event_create(&shared)) != CUDA_SUCCESS)
        return r;
    return make_published(context, flags, shared, out);
}

CUresult ct_event_share(struct ct_event *event, struct ct_ipc_name *out)
{
    if (!event->shared)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "event %p was created without CU_EVENT_INTERPROCESS", event->object.handle);
    return ct_shared_event_name(event->shared, out);
}

CUresult ct_event_open(struct ct_context *context, const struct ct_ipc_name *name, CUevent *out)
{
    struct ct_shared_event *shared;
    CUresult r = ct_shared_event_open(name, &shared);

    if (r == CUDA_SUCCESS)
        r = make_published(context, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS, shared, out);
    if (r == CUDA_ERROR_OUT_OF_MEMORY) /* the manual knows of no other reason that an event which is there cannot be had */
        r = ct_fail(CUDA_ERROR_MAP_FAILED, "event of another process");
    return r;
}

CUresult ct_event_lookup(CUevent handle, struct ct_event **out)
{
    struct ct_event *event;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    event = (struct ct_event *)ct_object_find_or_null(CT_OBJECT_EVENT, handle);
    if (!event)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "%p is no event", (void *)handle);
    r = ct_context_enter(event->context);
    if (r == CUDA_SUCCESS)
        *out = event;
    else
        ct_object_release(&event->object);
    return r;
}

void ct_event_release(struct ct_event *event)
{
    struct ct_context *context;

    if (!event)
        return;
    context = event->context;
    ct_object_release(&event->object);
    ct_context_release(context);
}

bool ct_event_is_timed(const struct ct_event *event)
{
    return !(event->flags & CU_EVENT_DISABLE_TIMING);
}

CUresult ct_event_destroy(struct ct_event *event)
{
    CUresult r = ct_object_unpublish(&event->object);

    if (r == CUDA_SUCCESS)
        doom(event);
    return r;
}

void ct_events_destroy_all(struct ct_context *context)
{
    while (context->events) { /* nobody uses the context: no lock */
        struct ct_event *event = context->events;

        context->events = event->next_in_context;
        if (!event->doomed)
            ct_object_unpublish(&event->object);
        if (event->timestamp)
            context->backend->timestamp_destroy(event->timestamp);
        event->timestamp = NULL;
        ct_object_release(&event->object);
    }
}

/* ---- records ---- */

/* An event without a handle, ready to take over a record. */
static CUresult make_leftover(struct ct_event *event, struct ct_event **out)
{
    CUresult r = make(event->context, event->flags, out);

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
    const struct ct_backend *backend = stream->context->backend;
    CUresult r = CUDA_SUCCESS;

    assert(ct_mutex_held(&stream->lock));
    ct_mutex_lock(&event->lock);
    if (leftover)
        swap_timestamps(event, leftover);
    if (event->timestamp)
        r = backend->queue_timestamp(stream->queue, event->timestamp);
    if (r == CUDA_SUCCESS) {
        *out_old = (struct record){event->stream, event->point};
        ct_object_retain(&stream->object);
        event->stream = stream;
        event->point = backend->queue_point(stream->queue);
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
    needed = event->timestamp && event->stream && event->stream != stream && !is_complete(event->stream, event->point);
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
        list_add(leftover);
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
    r = event->context->backend->queue_completed(record.stream->queue, &completed);
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
        r = ct_context_check(event->context, event->context->backend->queue_await(record.stream->queue, record.point, UINT64_MAX, false));
    else
        r = ct_stream_await(record.stream, record.point);
    if (r == CUDA_SUCCESS)
        ct_memory_pools_observe(record.stream, record.point);
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
    else if (!is_complete(event->stream, event->point))
        r = CUDA_ERROR_NOT_READY;
    else
        r = event->context->backend->timestamp_read(event->timestamp, out_ns);
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
