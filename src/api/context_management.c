/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Context Management, and Context Management (deprecated).
 * NOT_INITIALIZED before cuInit. Functions that work on the current context return INVALID_CONTEXT if there is none, CONTEXT_IS_DESTROYED
 * if it has been destroyed or is a primary context without a reference, and the error of a kernel that failed in it.
 * INVALID_VALUE: the pointer for a result is NULL. */
#include "entry_points.h"

#include "core/device/device.h"
#include "core/device/green_context.h"
#include "core/graph/capture_state.h"
#include "core/stream/event.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "core/stream/context_streams.h"
#include "core/setup/context_setup.h"
#include "core/setup/context_limits.h"

#define CT_CHANNEL "context"

static CUresult create(CUcontext *pctx, unsigned flags, CUdevice dev, unsigned api_version)
{
    struct ct_device *device;
    CUcontext handle;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS || (r = ct_device_lookup(dev, &device)) != CUDA_SUCCESS)
        return r;
    if (!pctx)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pctx is NULL");
    if ((r = ct_context_check_flags(flags)) != CUDA_SUCCESS || (r = ct_context_create(device, flags, api_version, &handle)) != CUDA_SUCCESS)
        return r;
    r = ct_context_push(handle);
    if (r == CUDA_SUCCESS)
        *pctx = handle;
    else
        ct_context_destroy(handle);
    return r;
}

/* cuCtxCreate, the version of CUDA 2.0: cuCtxGetApiVersion returns 3010 for the context. */
CUresult CUDAAPI cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    return create(pctx, flags, dev, 3010);
}

/* cuCtxCreate_v2. Creates a context and pushes it on the stack. flags: CUctx_flags. INVALID_VALUE: unknown flags; INVALID_DEVICE;
 * OUT_OF_MEMORY. */
CUresult CUDAAPI cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    return create(pctx, flags, dev, 3020);
}

/* cuCtxCreate_v3. UNSUPPORTED_EXEC_AFFINITY: numParams is not 0, since devices cannot be partitioned. */
CUresult CUDAAPI cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags, CUdevice dev)
{
    if (numParams != 0 || paramsArray)
        return ct_fail(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "%d parameters of execution affinity: devices cannot be partitioned",
                       numParams);
    return create(pctx, flags, dev, 3020);
}

/* cuCtxCreate_v4. ctxCreateParams may be NULL. UNSUPPORTED_EXEC_AFFINITY as in cuCtxCreate_v3; NOT_SUPPORTED: compute in a graphics
 * context. */
CUresult CUDAAPI cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev)
{
    if (ctxCreateParams && ctxCreateParams->cigParams && ctxCreateParams->execAffinityParams)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "execution affinity and CIG are mutually exclusive");
    if (ctxCreateParams && ctxCreateParams->cigParams)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "compute in graphics contexts is not supported");
    if (ctxCreateParams)
        return cuCtxCreate_v3(pctx, ctxCreateParams->execAffinityParams, ctxCreateParams->numExecAffinityParams, flags, dev);
    return create(pctx, flags, dev, 3020);
}

/* Checks that the library is initialized and that ctx is not NULL. */
static CUresult check_given(CUcontext ctx)
{
    CUresult r = ct_process_check();

    return r != CUDA_SUCCESS || ctx ? r : ct_fail(CUDA_ERROR_INVALID_VALUE, "ctx is NULL");
}

/* cuCtxDestroy_v2. Waits for the work of the context, frees its resources, and pops it if it is on top of the calling thread's stack. It
 * stays current in other threads, where calls then return CONTEXT_IS_DESTROYED. INVALID_VALUE: ctx is NULL; INVALID_CONTEXT: ctx is not
 * a context, or is a primary one. */
CUresult CUDAAPI cuCtxDestroy_v2(CUcontext ctx)
{
    CUresult r = check_given(ctx);

    return r == CUDA_SUCCESS ? ct_context_destroy(ctx) : r;
}

/* cuCtxDestroy, the version of CUDA 2.0, which does the same. */
CUresult CUDAAPI cuCtxDestroy(CUcontext ctx)
{
    return cuCtxDestroy_v2(ctx);
}

/* cuCtxPushCurrent_v2. INVALID_VALUE: ctx is NULL; INVALID_CONTEXT: ctx is not a context. */
CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext ctx)
{
    CUresult r = check_given(ctx);

    return r == CUDA_SUCCESS ? ct_context_push(ctx) : r;
}

/* cuCtxPushCurrent, the version of CUDA 2.0, which does the same. */
CUresult CUDAAPI cuCtxPushCurrent(CUcontext ctx)
{
    return cuCtxPushCurrent_v2(ctx);
}

/* cuCtxPopCurrent_v2. pctx may be NULL. INVALID_CONTEXT: the stack is empty. */
CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext *pctx)
{
    CUresult r = ct_process_check();

    return r == CUDA_SUCCESS ? ct_context_pop(pctx) : r;
}

/* cuCtxPopCurrent, the version of CUDA 2.0, which does the same. */
CUresult CUDAAPI cuCtxPopCurrent(CUcontext *pctx)
{
    return cuCtxPopCurrent_v2(pctx);
}

/* cuCtxSetCurrent. Replaces the top of the stack; NULL pops it. A primary context may be set before it is retained. INVALID_CONTEXT: ctx
 * is not a context. */
CUresult CUDAAPI cuCtxSetCurrent(CUcontext ctx)
{
    CUresult r = ct_process_check();

    return r == CUDA_SUCCESS ? ct_context_set_current(ctx) : r;
}

/* cuCtxGetCurrent. The result is NULL if no context is current. */
CUresult CUDAAPI cuCtxGetCurrent(CUcontext *pctx)
{
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (!pctx)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pctx is NULL");
    *pctx = ct_context_top_handle();
    return CUDA_SUCCESS;
}

/* Finds the context of a query: ctx, or the current context if ctx is NULL. */
static CUresult find_for(const void *out, CUcontext ctx, struct ct_context **context)
{
    CUresult r = ct_context_lookup_or_current(ctx, context);

    if (r == CUDA_SUCCESS && !out) {
        ct_context_release(*context);
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the pointer for the result is NULL");
    }
    return r;
}

/* Finds the current context for a query, which fails if a kernel failed in the context. */
static CUresult current_for(const void *out, struct ct_context **context)
{
    CUresult r = ct_context_current(context);

    if (r == CUDA_SUCCESS && !out) {
        ct_context_release(*context);
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the pointer for the result is NULL");
    }
    return r;
}

/* cuCtxGetDevice_v2. A ctx of NULL is the current context. The function also works for a context that is not active, since the device of
 * a context never changes. INVALID_VALUE: device is NULL; INVALID_CONTEXT: ctx is not a context. */
CUresult CUDAAPI cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    return device ? ct_context_ordinal(ctx, device) : ct_fail(CUDA_ERROR_INVALID_VALUE, "device is NULL");
}

/* cuCtxGetDevice. The device of the current context. */
CUresult CUDAAPI cuCtxGetDevice(CUdevice *device)
{
    return cuCtxGetDevice_v2(device, NULL);
}

/* cuCtxGetFlags. The CUctx_flags of the current context, even if a kernel failed in it. */
CUresult CUDAAPI cuCtxGetFlags(unsigned int *flags)
{
    struct ct_context *context;
    CUresult r = find_for(flags, NULL, &context);

    if (r != CUDA_SUCCESS)
        return r;
    *flags = context->flags;
    ct_context_release(context);
    return CUDA_SUCCESS;
}

/* cuCtxSetFlags. INVALID_VALUE: unknown flags. */
CUresult CUDAAPI cuCtxSetFlags(unsigned int flags)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_context_check_flags(flags);
    if (r == CUDA_SUCCESS)
        context->flags = flags;
    ct_context_release(context);
    return r;
}

/* cuCtxGetId. A number that no other context of the process ever has. A ctx of NULL is the current context. */
CUresult CUDAAPI cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
    struct ct_green_context *green;
    struct ct_context *context;
    CUresult r = find_for(ctxId, ctx, &context);

    if (r != CUDA_SUCCESS)
        return r;
    green = ctx ? ct_green_find_or_null(ctx) : NULL;
    *ctxId = green ? green->id : context->id;
    ct_green_release(green);
    ct_context_release(context);
    return CUDA_SUCCESS;
}

/* cuCtxSynchronize_v2. Waits for all work of ctx (NULL: of the current context) and returns the error of work that failed. */
CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext ctx)
{
    struct ct_context *context;
    CUresult r = ctx ? ct_context_lookup_or_current(ctx, &context) : ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_capture_check_context(context, "cuCtxSynchronize");
    if (r == CUDA_SUCCESS)
        r = ct_context_synchronize(context);
    ct_context_release(context);
    return r;
}

/* cuCtxSynchronize. Waits for all work of the current context. */
CUresult CUDAAPI cuCtxSynchronize(void)
{
    return cuCtxSynchronize_v2(NULL);
}

/* cuCtxSetLimit. value is in the unit of the limit, mostly bytes. UNSUPPORTED_LIMIT: no device supports the limit; NOT_PERMITTED: it is
 * a limit of compute in graphics contexts; INVALID_VALUE: the limit does not exist, or value is out of range. */
CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_context_set_limit(context, limit, value);
    ct_context_release(context);
    return r;
}

/* cuCtxGetLimit. UNSUPPORTED_LIMIT: no device supports the limit; INVALID_VALUE: the limit does not exist. */
CUresult CUDAAPI cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
    struct ct_context *context;
    CUresult r = current_for(pvalue, &context);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_context_get_limit(context, limit, pvalue);
    ct_context_release(context);
    return r;
}

/* cuCtxGetCacheConfig. */
CUresult CUDAAPI cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
    struct ct_context *context;
    CUresult r = current_for(pconfig, &context);

    if (r != CUDA_SUCCESS)
        return r;
    *pconfig = context->cache_config;
    ct_context_release(context);
    return CUDA_SUCCESS;
}

/* cuCtxSetCacheConfig. The preference is stored and has no effect. INVALID_VALUE: config does not exist. */
CUresult CUDAAPI cuCtxSetCacheConfig(CUfunc_cache config)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "cache configuration %d does not exist", (int)config);
    else
        context->cache_config = config;
    ct_context_release(context);
    return r;
}

/* cuCtxGetApiVersion. 3010 for a context of the original cuCtxCreate, otherwise 3020. A ctx of NULL is the current context. */
CUresult CUDAAPI cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    struct ct_context *context;
    CUresult r = find_for(version, ctx, &context);

    if (r != CUDA_SUCCESS)
        return r;
    *version = context->api_version;
    ct_context_release(context);
    return CUDA_SUCCESS;
}

/* cuCtxGetStreamPriorityRange. 0 and -1 if the device's queues have priorities (CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED),
 * otherwise 0 and 0. Either pointer may be NULL. */
CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    if (leastPriority)
        *leastPriority = CT_STREAM_PRIORITY_LEAST;
    if (greatestPriority)
        *greatestPriority = ct_stream_greatest_priority(context->device);
    ct_context_release(context);
    return CUDA_SUCCESS;
}

/* Calls a function for an event and a context, which is the current one if `ctx` is NULL. */
static CUresult with_event(CUresult (*call)(struct ct_context *context, struct ct_event *event), CUcontext ctx, CUevent handle)
{
    struct ct_context *context;
    struct ct_event *event;
    CUresult r = ct_event_lookup(handle, &event);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_context_lookup_or_current(ctx, &context);
    if (r == CUDA_SUCCESS) {
        r = ct_context_check(context, CUDA_SUCCESS);
        if (r == CUDA_SUCCESS)
            r = ct_capture_check_context(context, "a record of or wait for a context");
        if (r == CUDA_SUCCESS)
            r = call(context, event);
        ct_context_release(context);
    }
    ct_event_release(event);
    return r;
}

/* cuCtxRecordEvent. Records all work that is now in the streams of the context. An hCtx of NULL is the current context. INVALID_HANDLE:
 * hEvent is not an event, or belongs to another context. */
CUresult CUDAAPI cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
    return with_event(ct_streams_record, hCtx, hEvent);
}

/* cuCtxWaitEvent. All later work in the streams of the context, including streams created later, waits for the last record of the event.
 * The event may belong to another context or device. An hCtx of NULL is the current context. */
CUresult CUDAAPI cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)
{
    return with_event(ct_streams_wait, hCtx, hEvent);
}

/* cuCtxResetPersistingL2Cache. NOT_SUPPORTED: no part of the cache can be set aside (CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE is
 * 0), so no line persists in it. */
CUresult CUDAAPI cuCtxResetPersistingL2Cache(void)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    ct_context_release(context);
    return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "no part of the L2 cache can be set aside for persisting accesses");
}

/* cuCtxGetExecAffinity. The result is always the whole device. UNSUPPORTED_EXEC_AFFINITY: type does not exist. */
CUresult CUDAAPI cuCtxGetExecAffinity(CUexecAffinityParam *pExecAffinity, CUexecAffinityType type)
{
    struct ct_context *context;
    CUresult r = current_for(pExecAffinity, &context);

    if (r != CUDA_SUCCESS)
        return r;
    if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) {
        r = ct_fail(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "execution affinity type %d is not supported", (int)type);
    } else {
        pExecAffinity->type = type;
        pExecAffinity->param.smCount.val = (unsigned)ct_device_limit(context->device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    }
    ct_context_release(context);
    return r;
}

/* cuCtxAttach (deprecated). The context then needs one more cuCtxDetach. INVALID_VALUE: flags is not 0. */
CUresult CUDAAPI cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
    struct ct_context *context;
    CUresult r = current_for(pctx, &context);

    if (r != CUDA_SUCCESS)
        return r;
    if (flags != 0) {
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "flags is 0x%x instead of 0", flags);
    } else {
        ct_mutex_lock(&context->lock);
        context->attaches++;
        ct_mutex_unlock(&context->lock);
        *pctx = context->object.handle;
    }
    ct_context_release(context);
    return r;
}

/* cuCtxDetach (deprecated). The last call destroys the context. INVALID_CONTEXT: ctx is not the current context. */
CUresult CUDAAPI cuCtxDetach(CUcontext ctx)
{
    struct ct_context *context;
    bool last = false;
    CUresult r = ct_context_lookup_or_current(NULL, &context);

    if (r != CUDA_SUCCESS)
        return r;
    if (ctx != context->object.handle) {
        r = ct_fail(CUDA_ERROR_INVALID_CONTEXT, "%p is not the current context", (void *)ctx);
    } else {
        ct_mutex_lock(&context->lock);
        last = context->attaches == 0;
        context->attaches -= !last;
        ct_mutex_unlock(&context->lock);
    }
    ct_context_release(context);
    return last ? ct_context_destroy(ctx) : r;
}

/* cuCtxGetSharedMemConfig (deprecated). */
CUresult CUDAAPI cuCtxGetSharedMemConfig(CUsharedconfig *pConfig)
{
    struct ct_context *context;
    CUresult r = current_for(pConfig, &context);

    if (r != CUDA_SUCCESS)
        return r;
    *pConfig = context->shared_config;
    ct_context_release(context);
    return CUDA_SUCCESS;
}

/* cuCtxSetSharedMemConfig (deprecated). The setting is stored and has no effect: the hardware determines the width of the banks.
 * INVALID_VALUE: config does not exist. */
CUresult CUDAAPI cuCtxSetSharedMemConfig(CUsharedconfig config)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    if ((unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "shared memory configuration %d does not exist", (int)config);
    else
        context->shared_config = config;
    ct_context_release(context);
    return r;
}
