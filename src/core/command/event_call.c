/* SPDX-License-Identifier: Apache-2.0 */
/* An event stands for work of a stream, or for nodes of a graph if it was last recorded in a captured stream. */
#include "event_call.h"

#include "command.h"
#include "core/base/log.h"
#include "core/graph/capture_calls.h"

#define CT_CHANNEL "event"

static CUresult check_flags(const struct ct_stream *stream, unsigned flags, unsigned external)
{
    if (flags & ~external)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "flags 0x%x", flags);
    if (flags && !ct_stream_is_captured(stream))
        return ct_fail(CUDA_ERROR_ILLEGAL_STATE, "an external event in a stream that is not captured");
    return CUDA_SUCCESS;
}

CUresult ct_event_record_call(struct ct_stream *stream, struct ct_event *event, unsigned flags)
{
    const CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord.event = ct_event_handle(event)};
    CUresult r = check_flags(stream, flags, CU_EVENT_RECORD_EXTERNAL);

    if (r != CUDA_SUCCESS)
        return r;
    if (ct_stream_is_captured(stream))
        return flags ? ct_capture_node(stream, &node) : ct_capture_record(stream, event);
    r = ct_stream_enqueue(stream, &(struct ct_command){.kind = CT_COMMAND_EVENT_RECORD, .event_record = event});
    if (r == CUDA_SUCCESS)
        ct_event_set_captured(event, NULL);
    return r;
}

CUresult ct_event_wait_call(struct ct_stream *stream, struct ct_event *event, unsigned flags)
{
    const CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait.event = ct_event_handle(event)};
    struct ct_object *captured;
    CUresult r = check_flags(stream, flags, CU_EVENT_WAIT_EXTERNAL);

    if (r != CUDA_SUCCESS)
        return r;
    if (flags)
        return ct_capture_node(stream, &node);
    captured = ct_event_captured_or_null(event);
    if (captured || ct_stream_is_captured(stream))
        r = ct_capture_wait(stream, event);
    else
        r = ct_stream_enqueue(stream, &(struct ct_command){.kind = CT_COMMAND_EVENT_WAIT, .event_wait = event});
    ct_object_release(captured);
    return r;
}

CUresult ct_event_query_call(struct ct_event *event)
{
    CUresult r = ct_capture_check_event(event, true);

    if (r == CUDA_SUCCESS)
        r = ct_capture_check_unsafe("cuEventQuery");
    return r == CUDA_SUCCESS ? ct_event_query(event) : r;
}

CUresult ct_event_synchronize_call(struct ct_event *event)
{
    CUresult r = ct_capture_check_event(event, true);

    if (r == CUDA_SUCCESS)
        r = ct_capture_check_unsafe("cuEventSynchronize");
    return r == CUDA_SUCCESS ? ct_event_synchronize(event) : r;
}

CUresult ct_event_elapsed_call(struct ct_event *start, struct ct_event *end, float *out_ms)
{
    CUresult r = ct_capture_check_event(start, false);

    if (r == CUDA_SUCCESS)
        r = ct_capture_check_event(end, false);
    return r == CUDA_SUCCESS ? ct_event_elapsed(start, end, out_ms) : r;
}
