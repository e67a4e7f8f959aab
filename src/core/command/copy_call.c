/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves pointers and arrays and enqueues commands for them. */
#include "copy_call.h"

#include "command.h"
#include "core/backing/address_uses.h"
#include "core/graph/capture_calls.h"

/* The arrays are released after the uses are revoked, since the last reference to an array waits for the work of its context. */
CUresult ct_copy_call(struct ct_stream *stream, const struct ct_copy_request *request, enum ct_copy_mode mode)
{
    struct ct_copy_located located = {0};
    unsigned uses;
    CUresult r;

    if (ct_stream_is_captured(stream))
        return ct_capture_copy(stream, request, mode);
    uses = ct_address_uses_begin();
    r = ct_copy_request_locate(request, &located);
    if (r == CUDA_SUCCESS)
        r = ct_stream_enqueue(stream, &(struct ct_command){.kind = CT_COMMAND_COPY, .copy = {.copy = located.copy, .mode = mode}});
    ct_address_uses_end(uses);
    ct_copy_located_finish(&located);
    return r;
}

CUresult ct_fill_call(struct ct_stream *stream, const struct ct_fill_request *request)
{
    struct ct_command command = {.kind = CT_COMMAND_FILL};
    unsigned uses;
    CUresult r;

    if (ct_stream_is_captured(stream))
        return ct_capture_fill(stream, request);
    uses = ct_address_uses_begin();
    r = ct_fill_init(&command.fill, request);
    if (r == CUDA_SUCCESS)
        r = ct_stream_enqueue(stream, &command);
    ct_address_uses_end(uses);
    return r;
}
