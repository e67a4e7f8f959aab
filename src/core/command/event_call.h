/* SPDX-License-Identifier: Apache-2.0 */
/* Events that may be recorded in captured streams. */
#ifndef CT_CORE_EVENT_CALL_H
#define CT_CORE_EVENT_CALL_H

#include "core/stream/event.h"
#include "core/stream/stream.h"

/* flags: CU_EVENT_RECORD_EXTERNAL adds a node to the graph of a captured stream. Errors of ct_event_record and ct_capture_record; ILLEGAL_STATE:
 * EXTERNAL in a stream that is not captured; INVALID_VALUE: other flags. */
CUresult ct_event_record_call(struct ct_stream *stream, struct ct_event *event, unsigned flags);
/* The same with CU_EVENT_WAIT_EXTERNAL. Errors of ct_event_wait and ct_capture_wait. */
CUresult ct_event_wait_call(struct ct_stream *stream, struct ct_event *event, unsigned flags);

/* ct_event_query, ct_event_synchronize and ct_event_elapsed, with the errors of ct_capture_check_event and ct_capture_check_unsafe. */
CUresult ct_event_query_call(struct ct_event *event);
CUresult ct_event_synchronize_call(struct ct_event *event);
CUresult ct_event_elapsed_call(struct ct_event *start, struct ct_event *end, float *out_ms);

#endif
