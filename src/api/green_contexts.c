/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Green Contexts (core/device/green_context.h).
 * Every function: NOT_INITIALIZED; INVALID_VALUE: the pointer for a result is NULL; INVALID_CONTEXT: the handle is not that of a green context. */
#include "entry_points.h"

#include "core/base/log.h"
#include "core/base/process.h"
#include "core/graph/capture.h"
#include "core/setup/green_setup.h"
#include "core/stream/context_streams.h"
#include "core/stream/event.h"
#include "core/stream/stream.h"

#define CT_CHANNEL "context"

static CUresult check_type(const CUdevResource *out, CUdevResourceType type)
{
    if (!out)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "resource is NULL");
    return type == CU_DEV_RESOURCE_TYPE_SM ? CUDA_SUCCESS
                                           : ct_fail(CUDA_ERROR_INVALID_RESOURCE_TYPE, "devices have no resource of type %d", (int)type);
}

static CUresult lookup(CUgreenCtx handle, struct ct_green_context **out)
{
    CUresult r = ct_process_check();

    return r == CUDA_SUCCESS ? ct_green_lookup(handle, out) : r;
}

/* cuDeviceGetDevResource. INVALID_DEVICE; INVALID_RESOURCE_TYPE: only multiprocessors are a resource. */
CUresult CUDAAPI cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
    struct ct_device *found;
    CUresult r = ct_device_lookup(device, &found);

    if (r == CUDA_SUCCESS)
        r = check_type(resource, type);
    if (r == CUDA_SUCCESS)
        ct_green_device_resource(found, resource);
    return r;
}

/* cuCtxGetDevResource. A context that is not green has all multiprocessors. INVALID_RESOURCE_TYPE. */
CUresult CUDAAPI cuCtxGetDevResource(CUcontext hCtx, CUdevResource *resource, CUdevResourceType type)
{
    struct ct_green_context *green;
    struct ct_context *context;
    CUresult r = hCtx ? ct_context_lookup(hCtx, &context) : ct_fail(CUDA_ERROR_INVALID_CONTEXT, "hCtx is NULL");

    if (r != CUDA_SUCCESS)
        return r;
    r = check_type(resource, type);
    green = ct_green_find_or_null(hCtx);
    if (r == CUDA_SUCCESS && green)
        ct_green_resource(green, resource);
    else if (r == CUDA_SUCCESS)
        ct_green_device_resource(context->device, resource);
    ct_green_release(green);
    ct_context_release(context);
    return r;
}

/* cuGreenCtxGetDevResource. INVALID_RESOURCE_TYPE. */
CUresult CUDAAPI cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource *resource, CUdevResourceType type)
{
    struct ct_green_context *green;
    CUresult r = lookup(hCtx, &green);

    if (r != CUDA_SUCCESS)
        return r;
    r = check_type(resource, type);
    if (r == CUDA_SUCCESS)
        ct_green_resource(green, resource);
    ct_green_release(green);
    return r;
}

/* cuDevSmResourceSplitByCount. Splits into at most *nbGroups groups of at least minCount multiprocessors; a result of NULL only counts them.
 * Errors of ct_green_split. */
CUresult CUDAAPI cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups, const CUdevResource *input,
                                             CUdevResource *remaining, unsigned int useFlags, unsigned int minCount)
{
    CUresult r = ct_process_check();

    return r == CUDA_SUCCESS ? ct_green_split(result, nbGroups, input, remaining, useFlags, minCount) : r;
}

/* cuDevResourceGenerateDesc. INVALID_VALUE also: no resources. Errors of ct_green_describe. */
CUresult CUDAAPI cuDevResourceGenerateDesc(CUdevResourceDesc *phDesc, CUdevResource *resources, unsigned int nbResources)
{
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (!phDesc || !resources || !nbResources)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "no resources to describe");
    return ct_green_describe(resources, nbResources, phDesc);
}

/* cuGreenCtxCreate. INVALID_VALUE also: flags other than CU_GREEN_CTX_DEFAULT_STREAM, or desc is not a descriptor; INVALID_DEVICE;
 * INVALID_RESOURCE_CONFIGURATION: the device has fewer multiprocessors; OUT_OF_MEMORY. */
CUresult CUDAAPI cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
    struct ct_device *device;
    CUdevResource all;
    unsigned count;
    CUresult r = ct_device_lookup(dev, &device);

    if (r != CUDA_SUCCESS)
        return r;
    if (!phCtx || flags != CU_GREEN_CTX_DEFAULT_STREAM)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "flags 0x%x", flags);
    if ((r = ct_green_described(desc, &count)) != CUDA_SUCCESS)
        return r;
    ct_green_device_resource(device, &all);
    return count <= all.sm.smCount ? ct_green_create(device, count, phCtx)
                                   : ct_fail(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, "%u multiprocessors of %u", count, all.sm.smCount);
}

static void destroy_stream(struct ct_stream *stream)
{
    ct_capture_forget(stream);
    (void)ct_stream_destroy(stream);
}

/* cuGreenCtxDestroy. Destroys its streams; without memory for a list of them they stay until the primary context is destroyed. */
CUresult CUDAAPI cuGreenCtxDestroy(CUgreenCtx hCtx)
{
    struct ct_green_context *green;
    CUresult r = lookup(hCtx, &green);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_green_destroy(green);
    if (r == CUDA_SUCCESS) /* if that was the last use of the primary context there are none any more */
        (void)ct_streams_of_green(green->primary, green, destroy_stream);
    ct_green_release(green);
    return r;
}

/* cuCtxFromGreenCtx. The result can be made current; it is destroyed with the green context. */
CUresult CUDAAPI cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx)
{
    struct ct_green_context *green;
    CUresult r = lookup(hCtx, &green);

    if (r != CUDA_SUCCESS)
        return r;
    if (pContext)
        *pContext = green->object.handle;
    else
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "pContext is NULL");
    ct_green_release(green);
    return r;
}

/* cuGreenCtxGetId. A number that no other context of the process ever has. */
CUresult CUDAAPI cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long *greenCtxId)
{
    struct ct_green_context *green;
    CUresult r = lookup(greenCtx, &green);

    if (r != CUDA_SUCCESS)
        return r;
    if (greenCtxId)
        *greenCtxId = green->id;
    else
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "greenCtxId is NULL");
    ct_green_release(green);
    return r;
}

/* ---- streams and events ---- */

/* cuGreenCtxStreamCreate. INVALID_VALUE also: flags other than CU_STREAM_NON_BLOCKING. */
CUresult CUDAAPI cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags, int priority)
{
    struct ct_green_context *green;
    struct ct_stream *stream;
    CUresult r = lookup(greenCtx, &green);

    if (r != CUDA_SUCCESS)
        return r;
    if (!phStream || flags != CU_STREAM_NON_BLOCKING)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "stream flags 0x%x in a green context", flags);
    else if ((r = ct_context_enter(green->primary)) == CUDA_SUCCESS) {
        r = ct_stream_create(green->primary, flags, priority, green, &stream);
        if (r == CUDA_SUCCESS)
            *phStream = stream->object.handle;
        ct_context_release(green->primary);
    }
    ct_green_release(green);
    return r;
}

/* cuStreamGetGreenCtx. NULL: the stream belongs to none. A default stream belongs to the current green context. */
CUresult CUDAAPI cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx *phCtx)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(hStream, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (phCtx) {
        const struct ct_green_context *green = stream->is_legacy || stream->is_per_thread ? ct_context_top_green_or_null() : stream->green;

        *phCtx = green ? (CUgreenCtx)green->object.handle : NULL;
    } else {
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "phCtx is NULL");
    }
    ct_stream_release(stream);
    return r;
}

static CUresult with_event(CUgreenCtx handle, CUevent event_handle,
                           CUresult (*call)(struct ct_context *context, const struct ct_green_context *green, struct ct_event *event))
{
    struct ct_green_context *green;
    struct ct_event *event;
    CUresult r = lookup(handle, &green);

    if (r != CUDA_SUCCESS)
        return r;
    if ((r = ct_event_lookup(event_handle, &event)) == CUDA_SUCCESS) {
        if ((r = ct_context_enter(green->primary)) == CUDA_SUCCESS) {
            r = call(green->primary, green, event);
            ct_context_release(green->primary);
        }
        ct_event_release(event);
    }
    ct_green_release(green);
    return r;
}

/* cuGreenCtxRecordEvent. Records all work that is now in its streams. INVALID_HANDLE: hEvent is not an event, or of another device's context. */
CUresult CUDAAPI cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent)
{
    return with_event(hCtx, hEvent, ct_streams_record_green);
}

/* cuGreenCtxWaitEvent. All later work of its streams, of which it does not create more, waits for the last record of the event. */
CUresult CUDAAPI cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent)
{
    return with_event(hCtx, hEvent, ct_streams_wait_green);
}
