/* SPDX-License-Identifier: Apache-2.0 */
/* Events: places in a stream's work. */
#ifndef CT_CORE_EVENT_H
#define CT_CORE_EVENT_H

#include "core/device/context.h"
#include "core/ipc/shared_event.h"
#include "stream.h"

struct ct_event;

/* A published event of the context. INVALID_VALUE: flags. */
CUresult ct_event_create(struct ct_context *context, unsigned flags, CUevent *out);
/* The name of an event with CU_EVENT_INTERPROCESS, for other processes; INVALID_HANDLE: one without. */
CUresult ct_event_share(struct ct_event *event, struct ct_ipc_name *out);
/* A published event of the context that is one with that of another process. What ct_shared_event_open gives. */
CUresult ct_event_open(struct ct_context *context, const struct ct_ipc_name *name, CUevent *out);
/* The event behind a handle, retained, with one use of its context. INVALID_HANDLE, and what ct_context_enter gives. */
CUresult ct_event_lookup(CUevent handle, struct ct_event **out);
void ct_event_release(struct ct_event *event); /* takes NULL */
/* The handle is dead; work that records the event or waits for it goes on. */
CUresult ct_event_destroy(struct ct_event *event);

bool ct_event_is_timed(const struct ct_event *event);
/* Both of one context, else INVALID_HANDLE. */
CUresult ct_event_record(struct ct_event *event, struct ct_stream *stream);
/* CUDA_SUCCESS: complete, or never recorded; NOT_READY. */
CUresult ct_event_query(struct ct_event *event);
CUresult ct_event_synchronize(struct ct_event *event);
/* What `stream` records next waits for what the event recorded last; nothing if it never was. */
CUresult ct_event_wait(struct ct_event *event, struct ct_stream *stream);
/* Milliseconds between two records. INVALID_HANDLE: not recorded, without timing, of two contexts; NOT_READY. */
CUresult ct_event_elapsed(struct ct_event *start, struct ct_event *end, float *out_ms);

/* Tear-down: handles die, timestamps go. The work of all streams is complete. */
void ct_events_destroy_all(struct ct_context *context);

#endif
