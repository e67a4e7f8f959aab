/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Execution Control: host functions. */
#include "entry_points.h"

#include "core/base/log.h"
#include "core/command/host_function.h"

#define CT_CHANNEL "stream"

/* cuLaunchHostFunc. fn runs when all earlier work of the stream is complete, and later work of the stream waits until fn has returned.
 * fn may call the functions that host_functions.def lists. It does not run if a kernel of the context failed. INVALID_VALUE: fn is NULL;
 * INVALID_HANDLE: the stream does not exist; OUT_OF_MEMORY. */
CUresult CUDAAPI cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(hStream, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = fn ? ct_host_function_enqueue(stream, fn, userData) : ct_fail(CUDA_ERROR_INVALID_VALUE, "fn is NULL");
    ct_stream_release(stream);
    return r;
}
