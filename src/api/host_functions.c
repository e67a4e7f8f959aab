/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Execution Control: host functions. They run on a worker thread of the stream (core/stream/stream_worker.c). */
#include "entry_points.h"

#include "core/base/log.h"
#include "core/command/command.h"

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

/* cuLaunchHostFunc. fn runs when all earlier work of the stream is complete, and later work of the stream waits until fn has returned.
 * fn may call the functions that host_functions.def lists. It does not run if a kernel of the context failed. INVALID_VALUE: fn is NULL;
 * INVALID_HANDLE: the stream does not exist; OUT_OF_MEMORY. */
CUresult CUDAAPI cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
    struct ct_stream *stream;
    struct call *call;
    CUresult r = ct_stream_lookup(hStream, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (!fn) {
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "fn is NULL");
    } else if (!(call = malloc(sizeof *call))) {
        r = ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a host function");
    } else {
        *call = (struct call){fn, userData};
        r = ct_stream_enqueue(stream, &(struct ct_command){.kind = CT_COMMAND_HOST_FUNCTION, .host_function = {call_function, call}});
        if (r != CUDA_SUCCESS)
            free(call);
    }
    ct_stream_release(stream);
    return r;
}
