/* SPDX-License-Identifier: Apache-2.0 */
/* Look-up of streams by handle, including the special handles of the default streams. */
#include "stream.h"

#include "core/base/log.h"
#include "core/base/process.h"

#define CT_CHANNEL "stream"

static CUresult default_stream(struct ct_context *context, CUstream handle, struct ct_stream **out)
{
    struct ct_stream *stream = context->legacy_stream;
    CUresult r = CUDA_SUCCESS;

    if (handle == CU_STREAM_PER_THREAD)
        r = ct_stream_of_thread(context, &stream);
    if (r != CUDA_SUCCESS)
        return r;
    ct_object_retain(&stream->object);
    *out = stream;
    return CUDA_SUCCESS;
}

/* On success the caller has a use of the stream's own context, which need not be the current one. */
static CUresult find(CUstream handle, struct ct_stream **out)
{
    struct ct_stream *stream = (struct ct_stream *)ct_object_find_or_null(CT_OBJECT_STREAM, handle);
    CUresult r;

    if (!stream)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "%p is not a stream", (void *)handle);
    r = ct_context_enter(stream->context);
    if (r == CUDA_SUCCESS)
        *out = stream;
    else
        ct_object_release(&stream->object);
    return r;
}

CUresult ct_stream_lookup(CUstream handle, struct ct_stream **out)
{
    struct ct_context *context;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD)
        return find(handle, out);
    r = ct_context_current(&context);
    if (r != CUDA_SUCCESS)
        return r;
    r = default_stream(context, handle, out);
    if (r != CUDA_SUCCESS)
        ct_context_release(context);
    return r;
}
