/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves the handles of a launch and enqueues it as a command. */
#include "launch_call.h"

#include "command.h"
#include "core/graph/capture_calls.h"
#include "core/launch/compile_ahead.h"
#include "core/library/function_lookup.h"
#include "event_call.h"

static CUresult enqueue_launch(struct ct_stream *stream, struct ct_function *function, const struct ct_launch_shape *shape, void **params,
                               void **extra)
{
    unsigned char room[CT_LAUNCH_ROOM_BYTES];
    struct ct_command command;
    CUresult r = ct_launch_command_init(&command.launch, function, shape, params, extra, room);

    if (r != CUDA_SUCCESS)
        return r;
    command.kind = CT_COMMAND_LAUNCH;
    r = ct_stream_enqueue(stream, &command);
    ct_launch_command_finish(&command.launch);
    if (r == CUDA_SUCCESS)
        ct_compile_ahead(function, shape);
    return r;
}

CUresult ct_launch_in_stream(CUfunction handle, const struct ct_launch_shape *shape, struct ct_stream *stream, void **params, void **extra)
{
    struct ct_function *function;
    CUresult r;

    if (ct_stream_is_captured(stream))
        return ct_capture_launch(stream, handle, shape, params, extra);
    r = ct_function_lookup(handle, stream->context, &function);
    if (r != CUDA_SUCCESS)
        return r;
    r = enqueue_launch(stream, function, shape, params, extra);
    ct_function_release(function);
    return r;
}

CUresult ct_launch_call(CUfunction handle, const struct ct_launch_shape *shape, CUstream stream_handle, void **params, void **extra)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(stream_handle, &stream); /* also checks for initialization and a current context */

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_launch_in_stream(handle, shape, stream, params, extra);
    ct_stream_release(stream);
    return r;
}

CUresult ct_launch_call_record_events(CUstream handle, const CUlaunchAttribute *attributes, unsigned count)
{
    struct ct_stream *stream;
    struct ct_event *event;
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++) {
        if ((r = ct_launch_attribute_event(&attributes[i], &event)) != CUDA_SUCCESS)
            return r;
        if (!event)
            continue;
        if ((r = ct_stream_lookup(handle, &stream)) == CUDA_SUCCESS) {
            r = ct_event_record_call(stream, event, 0);
            ct_stream_release(stream);
        }
        ct_event_release(event);
    }
    return r;
}
