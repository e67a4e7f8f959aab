/* SPDX-License-Identifier: Apache-2.0 */
/* Events: points in a stream's work. */
#ifndef CT_CORE_EVENT_H
#define CT_CORE_EVENT_H

#include "core/device/context.h"
#include "core/ipc/shared_event.h"
#include "stream.h"

struct ct_event;

/* Creates an event with a handle. INVALID_VALUE: the flags. */
CUresult ct_event_create(struct ct_context *context, unsigned flags, CUevent *out);
/* Creates an event without a handle and without timing, for core's own use. The caller owns the reference. */
CUresult ct_event_create_internal(struct ct_context *context, struct ct_event **out);
void ct_event_discard(struct ct_event *event); /* releases such an event; its context may have been destroyed */
CUevent ct_event_handle(const struct ct_event *event);
struct ct_context *ct_event_context(const struct ct_event *event); /* borrowed: the struct, which may be that of a destroyed context */
/* The name by which other processes open an event. INVALID_HANDLE: the event has no CU_EVENT_INTERPROCESS. */
CUresult ct_event_share(struct ct_event *event, struct ct_ipc_name *out);
/* Creates an event with a handle that shares its records with an event of another process. Errors: those of ct_shared_event_open. */
CUresult ct_event_open(struct ct_context *context, const struct ct_ipc_name *name, CUevent *out);
/* Returns the event of a handle, retained, with one use of its context. Errors: INVALID_HANDLE, and those of ct_context_enter. */
CUresult ct_event_lookup(CUevent handle, struct ct_event **out);
void ct_event_release(struct ct_event *event); /* takes NULL */
/* Invalidates the handle; work that records the event or waits for it continues. */
CUresult ct_event_destroy(struct ct_event *event);

bool ct_event_is_timed(const struct ct_event *event);
bool ct_event_is_shared(const struct ct_event *event); /* with CU_EVENT_INTERPROCESS */
bool ct_event_is_recorded(struct ct_event *event);     /* in a stream that was not captured, at any time */
/* What the event stands for if it was last recorded in a captured stream (core/graph/capture.h): an object of which the event owns a reference.
 * It is returned retained; NULL: it was last recorded in another stream, or never. */
void ct_event_set_captured(struct ct_event *event, struct ct_object *captured_or_null);
struct ct_object *ct_event_captured_or_null(struct ct_event *event);
/* INVALID_HANDLE: the event and the stream belong to different contexts. */
CUresult ct_event_record(struct ct_event *event, struct ct_stream *stream);
/* CUDA_SUCCESS if the event is complete or was never recorded, else NOT_READY. */
CUresult ct_event_query(struct ct_event *event);
CUresult ct_event_synchronize(struct ct_event *event);
/* Makes the commands that `stream` records next wait for the event's last record; a no-op if it was never recorded. */
CUresult ct_event_wait(struct ct_event *event, struct ct_stream *stream);
/* Milliseconds between two records. INVALID_HANDLE: an event was not recorded or has no timing, or the contexts differ. NOT_READY. */
CUresult ct_event_elapsed(struct ct_event *start, struct ct_event *end, float *out_ms);

/* Destroys the context's events: invalidates their handles and frees their timestamps. The work of all streams is complete. */
void ct_events_destroy_all(struct ct_context *context);

#endif
