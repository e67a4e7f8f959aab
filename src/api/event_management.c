/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Event Management.
 * Every function: NOT_INITIALIZED, INVALID_HANDLE if a handle is not that of an event or a stream, and the error of a kernel that failed
 * in its context. Only cuEventCreate needs a current context; it is NOT_PERMITTED in a host function. */
#include "entry_points.h"

#include "core/command/event_call.h"
#include "core/base/log.h"

#define CT_CHANNEL "event"

/* cuEventCreate. Flags: CU_EVENT_BLOCKING_SYNC, CU_EVENT_DISABLE_TIMING, CU_EVENT_INTERPROCESS. INVALID_VALUE: phEvent is NULL, unknown
 * flags, or CU_EVENT_INTERPROCESS with timing; OUT_OF_MEMORY. */
CUresult CUDAAPI cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = phEvent ? ct_event_create(context, Flags, phEvent) : ct_fail(CUDA_ERROR_INVALID_VALUE, "phEvent is NULL");
    ct_context_release(context);
    return r;
}

/* cuEventRecordWithFlags. Records all work that is now in the stream. ILLEGAL_STATE: CU_EVENT_RECORD_EXTERNAL outside of a capture;
 * INVALID_VALUE: unknown flags; INVALID_HANDLE also: the event and the stream belong to different contexts. */
CUresult CUDAAPI cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
    struct ct_stream *stream;
    struct ct_event *event;
    CUresult r = ct_event_lookup(hEvent, &event);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_stream_lookup(hStream, &stream);
    if (r == CUDA_SUCCESS) {
        r = ct_event_record_call(stream, event, flags);
        ct_stream_release(stream);
    }
    ct_event_release(event);
    return r;
}

/* cuEventRecord */
CUresult CUDAAPI cuEventRecord(CUevent hEvent, CUstream hStream)
{
    return cuEventRecordWithFlags(hEvent, hStream, CU_EVENT_RECORD_DEFAULT);
}

/* cuEventQuery. SUCCESS: the recorded work is complete, or none was recorded; otherwise NOT_READY. */
CUresult CUDAAPI cuEventQuery(CUevent hEvent)
{
    struct ct_event *event;
    CUresult r = ct_event_lookup(hEvent, &event);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_event_query_call(event);
    ct_event_release(event);
    return r;
}

/* cuEventSynchronize. Waits for the recorded work; returns at once if none was recorded. */
CUresult CUDAAPI cuEventSynchronize(CUevent hEvent)
{
    struct ct_event *event;
    CUresult r = ct_event_lookup(hEvent, &event);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_event_synchronize_call(event);
    ct_event_release(event);
    return r;
}

/* cuEventDestroy_v2. Returns at once, even while the recorded work is pending. */
CUresult CUDAAPI cuEventDestroy_v2(CUevent hEvent)
{
    struct ct_event *event;
    CUresult r = ct_event_lookup(hEvent, &event);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_event_destroy(event);
    ct_event_release(event);
    return r;
}

/* cuEventDestroy, the version of CUDA 2.0. */
CUresult CUDAAPI cuEventDestroy(CUevent hEvent)
{
    return cuEventDestroy_v2(hEvent);
}

/* cuEventElapsedTime_v2. Milliseconds between the two records, measured by the device's clock. INVALID_HANDLE also: pMilliseconds is
 * NULL (as with the native driver), an event was never recorded or has no timing, or the events belong to different contexts; NOT_READY:
 * a record is pending. */
CUresult CUDAAPI cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    struct ct_event *start, *end;
    CUresult r = ct_event_lookup(hStart, &start);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_event_lookup(hEnd, &end);
    if (r == CUDA_SUCCESS) {
        r = pMilliseconds ? ct_event_elapsed_call(start, end, pMilliseconds) : ct_fail(CUDA_ERROR_INVALID_HANDLE, "pMilliseconds is NULL");
        ct_event_release(end);
    }
    ct_event_release(start);
    return r;
}

/* cuEventElapsedTime */
CUresult CUDAAPI cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    return cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}
