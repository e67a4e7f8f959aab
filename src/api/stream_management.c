/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Stream Management.
 * Every function: NOT_INITIALIZED; INVALID_CONTEXT and CONTEXT_IS_DESTROYED according to the current context; INVALID_HANDLE if the handle
 * is not that of a stream; NOT_PERMITTED in a host function unless host_functions.def lists the function; and the error of a kernel that
 * failed. INVALID_VALUE: the pointer for a result is NULL. For the errors while streams are captured see core/graph/capture_state.h.
 * A stream may be 0 or CU_STREAM_LEGACY (the legacy default stream) or CU_STREAM_PER_THREAD; the _ptsz variants are defined in
 * per_thread_variants.c. */
#include "entry_points.h"

#include "core/command/command.h"
#include "core/command/event_call.h"
#include "core/device/green_context.h"
#include "core/graph/capture.h"
#include "core/base/log.h"
#include "core/memory/managed.h"
#include "core/base/process.h"

#include <stdlib.h>

#define CT_CHANNEL "stream"

/* cuStreamCreate. Flags: CU_STREAM_DEFAULT or CU_STREAM_NON_BLOCKING. INVALID_VALUE; OUT_OF_MEMORY. */
CUresult CUDAAPI cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
    return cuStreamCreateWithPriority(phStream, Flags, 0);
}

/* cuStreamCreateWithPriority. The priority is clamped to cuCtxGetStreamPriorityRange. */
CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
    struct ct_context *context;
    struct ct_stream *stream;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = phStream ? ct_stream_create(context, flags, priority, ct_context_top_green_or_null(), &stream)
                 : ct_fail(CUDA_ERROR_INVALID_VALUE, "phStream is NULL");
    if (r == CUDA_SUCCESS)
        *phStream = stream->object.handle;
    ct_context_release(context);
    return r;
}

/* cuStreamGetPriority */
CUresult CUDAAPI cuStreamGetPriority(CUstream hStream, int *priority)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(hStream, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (priority)
        *priority = stream->priority;
    else
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "priority is NULL");
    ct_stream_release(stream);
    return r;
}

/* cuStreamGetDevice */
CUresult CUDAAPI cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup_uncaptured(hStream, "cuStreamGetDevice", &stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (device)
        *device = stream->context->device->ordinal;
    else
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "device is NULL");
    ct_stream_release(stream);
    return r;
}

/* cuStreamGetFlags */
CUresult CUDAAPI cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup_uncaptured(hStream, "cuStreamGetFlags", &stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (flags)
        *flags = stream->flags;
    else
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "flags is NULL");
    ct_stream_release(stream);
    return r;
}

/* cuStreamGetId. A number that is unique to the stream for the lifetime of the process. */
CUresult CUDAAPI cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup_uncaptured(hStream, "cuStreamGetId", &stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (streamId)
        *streamId = stream->id;
    else
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "streamId is NULL");
    ct_stream_release(stream);
    return r;
}

/* cuStreamGetCtx */
CUresult CUDAAPI cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(hStream, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (pctx)
        *pctx = stream->green ? (CUcontext)stream->green->object.handle : stream->context->object.handle;
    else
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "pctx is NULL");
    ct_stream_release(stream);
    return r;
}

/* cuStreamGetCtx_v2. For a stream of a green context, that and the primary context. */
CUresult CUDAAPI cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
    struct ct_stream *stream;
    CUresult r;

    if (!pGreenCtx || !pCtx)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%s is NULL", pCtx ? "pGreenCtx" : "pCtx");
    r = ct_stream_lookup(hStream, &stream);
    if (r != CUDA_SUCCESS)
        return r;
    *pCtx = stream->context->object.handle;
    *pGreenCtx = stream->green ? (CUgreenCtx)stream->green->object.handle : NULL;
    ct_stream_release(stream);
    return r;
}

/* cuStreamWaitEvent. Later work of the stream waits for the last record of the event. ILLEGAL_STATE: CU_EVENT_WAIT_EXTERNAL outside of a
 * capture; INVALID_VALUE: unknown flags. */
CUresult CUDAAPI cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    struct ct_stream *stream;
    struct ct_event *event;
    CUresult r = ct_stream_lookup(hStream, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_event_lookup(hEvent, &event);
    if (r == CUDA_SUCCESS) {
        r = ct_event_wait_call(stream, event, Flags);
        ct_event_release(event);
    } else {
        ct_capture_invalidate(stream);
    }
    ct_stream_release(stream);
    return r;
}

struct callback {
    CUstreamCallback function;
    CUstream stream; /* as the application passed it */
    void *user;
};

static void call_callback(void *user, CUresult status)
{
    struct callback callback = *(struct callback *)user;

    free(user);
    callback.function(callback.stream, status, callback.user);
}

/* cuStreamAddCallback. The callback runs on a worker thread of the library, even after an error, which it receives as its status. flags
 * must be 0. */
CUresult CUDAAPI cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags)
{
    struct ct_stream *stream;
    struct callback *call;
    CUresult r = ct_stream_lookup_uncaptured(hStream, "cuStreamAddCallback", &stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (!callback || flags != 0) {
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "callback %s, flags 0x%x", callback ? "given" : "NULL", flags);
    } else if (!(call = malloc(sizeof *call))) {
        r = ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a callback");
    } else {
        *call = (struct callback){callback, hStream, userData};
        r = ct_stream_enqueue(stream, &(struct ct_command){.kind = CT_COMMAND_HOST_FUNCTION, .host_function = {call_callback, call}});
        if (r != CUDA_SUCCESS)
            free(call);
    }
    ct_stream_release(stream);
    return r;
}

/* cuStreamAttachMemAsync. Declares which streams use managed memory, or pageable memory that the device can access. length: 0, or the
 * size of the allocation; never 0 for pageable memory. Flags: CU_MEM_ATTACH_GLOBAL, _HOST or _SINGLE. The host and the device can access
 * managed memory at any time, so there is no effect. INVALID_VALUE: other memory, a part of an allocation, unknown flags, or SINGLE with
 * a default stream. */
CUresult CUDAAPI cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(hStream, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_capture_check_wait(stream, "cuStreamAttachMemAsync");
    if (r == CUDA_SUCCESS)
        r = ct_managed_attach(stream, dptr, length, flags);
    ct_stream_release(stream);
    return r;
}

/* cuStreamQuery. SUCCESS: all work is complete; otherwise NOT_READY. */
CUresult CUDAAPI cuStreamQuery(CUstream hStream)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(hStream, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_capture_check_wait(stream, "cuStreamQuery");
    if (r == CUDA_SUCCESS)
        r = ct_stream_query(stream);
    ct_stream_release(stream);
    return r;
}

/* cuStreamSynchronize. Waits for all work of the stream. */
CUresult CUDAAPI cuStreamSynchronize(CUstream hStream)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(hStream, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_capture_check_wait(stream, "cuStreamSynchronize");
    if (r == CUDA_SUCCESS)
        r = ct_stream_synchronize(stream);
    ct_stream_release(stream);
    return r;
}

/* cuStreamDestroy_v2. Returns at once; the stream is freed when its work is complete. A capture that began in
 * it ends. INVALID_HANDLE also: a default stream. */
CUresult CUDAAPI cuStreamDestroy_v2(CUstream hStream)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(hStream, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (stream->is_legacy || stream->is_per_thread) {
        r = ct_fail(CUDA_ERROR_INVALID_HANDLE, "a default stream cannot be destroyed");
    } else {
        ct_capture_forget(stream);
        r = ct_stream_destroy(stream);
    }
    ct_stream_release(stream);
    return r;
}

/* cuStreamDestroy, the version of CUDA 2.0. */
CUresult CUDAAPI cuStreamDestroy(CUstream hStream)
{
    return cuStreamDestroy_v2(hStream);
}

static CUresult get_attribute(struct ct_stream *stream, CUstreamAttrID attr, CUstreamAttrValue *value)
{
    switch ((int)attr) {
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        value->syncPolicy = (CUsynchronizationPolicy)atomic_load_explicit(&stream->sync_policy, memory_order_relaxed);
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        value->priority = stream->priority;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "stream attribute %d is not supported", (int)attr);
    default:
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "streams have no attribute %d", (int)attr);
    }
}

static CUresult set_attribute(struct ct_stream *stream, CUstreamAttrID attr, const CUstreamAttrValue *value)
{
    switch ((int)attr) {
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        if (value->syncPolicy < CU_SYNC_POLICY_AUTO || value->syncPolicy > CU_SYNC_POLICY_BLOCKING_SYNC)
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "synchronization policy %d does not exist", (int)value->syncPolicy);
        atomic_store_explicit(&stream->sync_policy, (int)value->syncPolicy, memory_order_relaxed); /* a hint, which orders nothing */
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY: /* the priority of a queue is fixed at its creation */
        if (ct_stream_clamp_priority(stream->context->device, value->priority) != stream->priority)
            return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "the priority %d of a stream cannot be changed", stream->priority);
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "stream attribute %d is not supported", (int)attr);
    default:
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "streams have no attribute %d", (int)attr);
    }
}

/* cuStreamCopyAttributes. Both streams must belong to the same context. */
CUresult CUDAAPI cuStreamCopyAttributes(CUstream dstStream, CUstream srcStream)
{
    struct ct_stream *dst, *src;
    CUresult r = ct_stream_lookup(dstStream, &dst);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_stream_lookup(srcStream, &src);
    if (r == CUDA_SUCCESS) {
        if (dst->context != src->context)
            r = ct_fail(CUDA_ERROR_INVALID_VALUE, "streams %llu and %llu belong to different contexts", dst->id, src->id);
        else
            atomic_store_explicit(&dst->sync_policy, atomic_load_explicit(&src->sync_policy, memory_order_relaxed), memory_order_relaxed);
        ct_stream_release(src);
    }
    ct_stream_release(dst);
    return r;
}

/* cuStreamGetAttribute. Supports CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY and _PRIORITY. NOT_SUPPORTED: other attributes of streams;
 * INVALID_VALUE: the attribute does not exist. */
CUresult CUDAAPI cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(hStream, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = value ? get_attribute(stream, attr, value) : ct_fail(CUDA_ERROR_INVALID_VALUE, "value is NULL");
    ct_stream_release(stream);
    return r;
}

/* cuStreamSetAttribute. The same attributes and errors as cuStreamGetAttribute. */
CUresult CUDAAPI cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *value)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(hStream, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = value ? set_attribute(stream, attr, value) : ct_fail(CUDA_ERROR_INVALID_VALUE, "value is NULL");
    ct_stream_release(stream);
    return r;
}
