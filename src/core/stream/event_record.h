/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of events, private to event.c and event_record.c. */
#ifndef CT_CORE_EVENT_RECORD_H
#define CT_CORE_EVENT_RECORD_H

#include "event.h"

/*   IDLE ──record──> RECORDED (stream is set) ──record──> RECORDED (the new stream and point)
 * A record is complete when its stream's queue has reached its point. */
struct ct_event {
    struct ct_object object;
    struct ct_context *context; /* a reference: it keeps the struct alive */
    struct ct_event *next_in_context;
    unsigned flags;                 /* CU_EVENT_* */
    bool is_destroyed;              /* has no handle any more; guarded by context->lock */
    struct ct_mutex lock;           /* guards the members below */
    struct ct_timestamp *timestamp; /* NULL with CU_EVENT_DISABLE_TIMING */
    struct ct_stream *stream;       /* retained; belongs to our context; NULL: never recorded */
    uint64_t point;
    struct ct_object *captured;     /* a reference; see ct_event_set_captured */
    struct ct_shared_event *shared; /* with CU_EVENT_INTERPROCESS; constant */
    uint32_t shared_number;         /* number of our record among those of all processes; 0: none */
};

/* Creates an event without a handle; the caller has the only reference. */
CUresult ct_event_make(struct ct_context *context, unsigned flags, struct ct_event **out);
/* Adds the event to the context's list, which takes a reference. */
void ct_event_link(struct ct_event *event);

/* With event->lock held: whether the last record is complete or there is none. */
static inline bool ct_event_is_complete_locked(struct ct_event *event)
{
    return !event->stream || ct_stream_is_complete(event->stream, event->point);
}

#endif
