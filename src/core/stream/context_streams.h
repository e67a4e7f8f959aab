/* SPDX-License-Identifier: Apache-2.0 */
/* All streams of a context, or of many contexts, at once. */
#ifndef CT_CORE_CONTEXT_STREAMS_H
#define CT_CORE_CONTEXT_STREAMS_H

#include "core/device/context.h"

/* Waits for all work of the context that was recorded so far. Returns the first error. */
CUresult ct_streams_synchronize(struct ct_context *context);
/* Records the event after all current work of the context's streams. INVALID_HANDLE: the event belongs to another context. */
CUresult ct_streams_record(struct ct_context *context, struct ct_event *event);
/* The same for the streams of a green context of it: all work now in them, later work in them, and a call for each. OUT_OF_MEMORY. */
struct ct_green_context;
CUresult ct_streams_record_green(struct ct_context *context, const struct ct_green_context *green_or_null, struct ct_event *event);
CUresult ct_streams_wait_green(struct ct_context *context, const struct ct_green_context *green, struct ct_event *event);
CUresult ct_streams_of_green(struct ct_context *context, const struct ct_green_context *green, void (*call)(struct ct_stream *stream));
/* All later work in the context, also that of streams created later, waits for the event's last record. */
CUresult ct_streams_wait(struct ct_context *context, struct ct_event *event);

/* Waits for all streams of the context, then checks the context for errors. */
CUresult ct_context_synchronize(struct ct_context *context);
/* Waits for the work of all contexts except one, or of all contexts if it is NULL. Their errors are reported by later calls on them. */
void ct_contexts_synchronize_except(const struct ct_context *context_or_null);
/* The same for the contexts that have copied or filled memory of other contexts; usually there are none. */
void ct_contexts_synchronize_cross_context(const struct ct_context *except);

#endif
