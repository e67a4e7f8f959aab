/* SPDX-License-Identifier: Apache-2.0 */
/* Host functions run on a worker thread of the stream (core/stream/stream_worker.c). */
#include "host_function.h"

#include "command.h"
#include "core/base/log.h"
#include "core/graph/capture_calls.h"

#include <stdlib.h>

#define CT_CHANNEL "stream"

struct call {
    CUhostFn function;
    void *user;
};

static void call_function(void *user, CUresult status)
{
    struct call call = *(struct call *)user;

    free(user);
    if (status == CUDA_SUCCESS) /* unlike a callback, a host function does not run after an error */
        call.function(call.user);
}

CUresult ct_host_function_enqueue(struct ct_stream *stream, CUhostFn function, void *user)
{
    const CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = {.fn = function, .userData = user}};
    struct call *call;
    CUresult r;

    if (ct_stream_is_captured(stream))
        return ct_capture_node(stream, &node);
    if (!(call = malloc(sizeof *call)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a host function");
    *call = (struct call){function, user};
    r = ct_stream_enqueue(stream, &(struct ct_command){.kind = CT_COMMAND_HOST_FUNCTION, .host_function = {call_function, call}});
    if (r != CUDA_SUCCESS)
        free(call);
    return r;
}
