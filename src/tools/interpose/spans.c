/* SPDX-License-Identifier: Apache-2.0 */
/* Events work over every driver. Cuttle itself could write exact times of each of its commands; but then traces over NVIDIA's driver would have no
 * tracks of devices, and the two could not be compared. What events cost: they keep a driver from joining the work of two calls, some microseconds
 * for each, so much more than that is what a trace tells about. On Cuttle the event before is recorded by the command itself, behind compilations in the same call
 * (api/trace_table.h).
 *
 * Times of a device become times of the host by one event for each context, its base, whose time on the host is known. cuEventElapsedTime has 24 bits, so
 * the base moves on as time passes. The clocks agree within some ten microseconds; a span that would seem to begin before its call is moved to it.
 *
 * Nothing is recorded in a stream that is being captured, where events would become nodes; a graph is one span each time it is launched. While any stream
 * is captured, our calls are made with the thread's capture mode relaxed, as they must not end a capture. */
#include "spans.h"

#include "device_work.h"
#include "kernels.h"
#include "recorder.h"

#include "api/trace_table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    HARVEST_EVERY = 256,   /* spans of a context that wait for their events */
    PENDING_MAX = 1 << 14, /* beyond that further work is not measured, and counted */
    PATIENCE_US = 1000000, /* before a context ends, its work does */
    BASE_TRIES = 5,
};
#define BASE_WINDOW_NS 50000u /* a base is good if the host saw it within this time */
#define BASE_AGE_MS 1000.0f

/* Work whose events are recorded. */
struct pending {
    struct pending *next;
    struct span span;
    uint64_t correlation, call_begin_ns;
};

struct context {
    struct context *next;
    CUcontext handle;
    unsigned device;
    CUevent base;
    double base_ns; /* on the host */
    CUevent *spare;
    size_t n_spare;
    struct pending *first, **end; /* in the order of the calls */
    unsigned n_pending;
};

/* The lock guards the contexts. Driver calls are made under it: nothing that holds a driver's lock wants it. Work is waited for only where a context ends, for
 * PATIENCE_US at most. */
static struct {
    pthread_mutex_t lock;
    struct context *contexts;
    const struct ct_trace_table *cuttle; /* NULL: another driver; constant */
    atomic_uint captures; /* streams that are captured. relaxed: a thread that must know has begun one, or is told by the program */
    atomic_bool is_exit_registered; /* relaxed: it guards nothing else */
} spans = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Whether this thread makes calls of our own: a driver may report a failure of them to a callback of the program, which then calls. */
static _Thread_local bool is_inside;

/* ---- captures ---- */

static void count_captures(const struct forward_call *call, CUresult result)
{
    if (strstr(call->plan->base_name, "cuStreamBeginCapture") && result == CUDA_SUCCESS)
        atomic_fetch_add_explicit(&spans.captures, 1, memory_order_relaxed);
    else if (!strcmp(call->plan->base_name, "cuStreamEndCapture") &&
             (result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED || result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED))
        atomic_fetch_sub_explicit(&spans.captures, 1, memory_order_relaxed);
}

/* Our calls are made between these two. */
static bool relax(CUstreamCaptureMode *out_mode)
{
    *out_mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    return atomic_load_explicit(&spans.captures, memory_order_relaxed) &&
           DRIVER(cuThreadExchangeStreamCaptureMode)(out_mode) == CUDA_SUCCESS;
}

static void restore(bool is_relaxed, CUstreamCaptureMode mode)
{
    if (is_relaxed)
        DRIVER(cuThreadExchangeStreamCaptureMode)(&mode);
}

static bool is_captured(CUstream stream)
{
    CUstreamCaptureStatus status;

    return atomic_load_explicit(&spans.captures, memory_order_relaxed) &&
           (DRIVER(cuStreamIsCapturing)(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE);
}

/* ---- contexts ---- */

static int32_t device_attribute(CUdevice device, CUdevice_attribute attribute)
{
    int value;

    return DRIVER(cuDeviceGetAttribute)(&value, attribute, device) == CUDA_SUCCESS ? value : -1;
}

static void record_device(unsigned ordinal)
{
    char name[256] = "";
    const struct trace_device_facts facts = {
        .threads_per_multiprocessor = device_attribute((CUdevice)ordinal, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
        .registers_per_multiprocessor = device_attribute((CUdevice)ordinal, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR),
        .shared_bytes_per_multiprocessor = device_attribute((CUdevice)ordinal, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
        .blocks_per_multiprocessor = device_attribute((CUdevice)ordinal, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
        .warp_lanes = device_attribute((CUdevice)ordinal, CU_DEVICE_ATTRIBUTE_WARP_SIZE),
    };
    struct trace_record *record;

    DRIVER(cuDeviceGetName)(name, sizeof name, (CUdevice)ordinal);
    record = recorder_open(TRACE_DEVICE, 0);
    if (!record)
        return;
    record->device = ordinal;
    record->begin_ns = recorder_now_ns();
    recorder_field(record, TRACE_NAME, 0, name, strlen(name));
    recorder_field(record, TRACE_FACTS, 0, &facts, sizeof facts);
    recorder_close(record);
}

/* Makes the base, in a stream of its own, so that it waits for no other work: the event of some that the host saw within the shortest time. */
static bool make_base(struct context *context)
{
    uint64_t window_ns = UINT64_MAX;
    CUstream stream;

    if (DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
        return false;
    for (int i = 0; i < BASE_TRIES && window_ns >= BASE_WINDOW_NS; i++) {
        uint64_t begin_ns, end_ns;
        CUevent event;

        if (DRIVER(cuEventCreate)(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS)
            break;
        begin_ns = recorder_now_ns();
        if (DRIVER(cuEventRecord)(event, stream) != CUDA_SUCCESS || DRIVER(cuEventSynchronize)(event) != CUDA_SUCCESS) {
            DRIVER(cuEventDestroy_v2)(event);
            break;
        }
        end_ns = recorder_now_ns();
        if (end_ns - begin_ns < window_ns) {
            CUevent worse = context->base;

            window_ns = end_ns - begin_ns;
            context->base = event;
            context->base_ns = (double)begin_ns + (double)window_ns / 2;
            event = worse;
        }
        if (event)
            DRIVER(cuEventDestroy_v2)(event);
    }
    DRIVER(cuStreamDestroy_v2)(stream);
    return context->base;
}

/* The entry of the current context. NULL: there is none, or no events can be made in it. */
static struct context *current_locked(void)
{
    struct context *context;
    CUcontext handle;
    CUdevice device;

    if (DRIVER(cuCtxGetCurrent)(&handle) != CUDA_SUCCESS || !handle)
        return NULL;
    for (context = spans.contexts; context; context = context->next)
        if (context->handle == handle)
            return context;
    context = calloc(1, sizeof *context);
    if (!context || DRIVER(cuCtxGetDevice)(&device) != CUDA_SUCCESS || !make_base(context)) {
        free(context);
        return NULL;
    }
    context->handle = handle;
    context->device = (unsigned)device;
    context->end = &context->first;
    context->next = spans.contexts;
    spans.contexts = context;
    record_device(context->device);
    return context;
}

static struct context *find_locked(uint64_t handle)
{
    struct context *context = spans.contexts;

    while (context && (uint64_t)(uintptr_t)context->handle != handle)
        context = context->next;
    return context;
}

static bool take_event_locked(struct context *context, CUevent *out)
{
    if (!context->n_spare)
        return DRIVER(cuEventCreate)(out, CU_EVENT_DEFAULT) == CUDA_SUCCESS;
    *out = context->spare[--context->n_spare];
    return true;
}

static void give_event_locked(struct context *context, CUevent event)
{
    if ((context->n_spare & (context->n_spare - 1)) == 0) {
        CUevent *grown = realloc(context->spare, (context->n_spare ? 2 * context->n_spare : 1) * sizeof *grown);

        if (!grown) {
            DRIVER(cuEventDestroy_v2)(event);
            return;
        }
        context->spare = grown;
    }
    context->spare[context->n_spare++] = event;
}

/* ---- spans ---- */

/* Writes the record of complete work, or counts it. */
static void write_span(struct context *context, const struct pending *work)
{
    struct trace_record *record;
    float begin_ms, duration_ms;
    double begin_ns;

    if (DRIVER(cuEventElapsedTime)(&begin_ms, context->base, work->span.before) != CUDA_SUCCESS ||
        DRIVER(cuEventElapsedTime)(&duration_ms, work->span.before, work->span.after) != CUDA_SUCCESS) {
        recorder_count_unmeasured();
        return;
    }
    begin_ns = context->base_ns + (double)begin_ms * 1e6;
    record = recorder_open(TRACE_SPAN, 0);
    if (!record)
        return;
    record->correlation = work->correlation;
    record->begin_ns = begin_ns > (double)work->call_begin_ns ? (uint64_t)begin_ns : work->call_begin_ns;
    record->end_ns = record->begin_ns + (uint64_t)(duration_ms > 0 ? (double)duration_ms * 1e6 : 0);
    recorder_field(record, TRACE_WORK, 0, &work->span.work, sizeof work->span.work);
    recorder_close(record);
}

/* Releases the events of complete work; the one before it becomes the base if that is old. */
static void release_events_locked(struct context *context, const struct pending *work)
{
    CUevent before = work->span.before;
    float age_ms;

    if (DRIVER(cuEventElapsedTime)(&age_ms, context->base, before) == CUDA_SUCCESS && age_ms > BASE_AGE_MS) {
        const CUevent old = context->base;

        context->base = before;
        context->base_ns += (double)age_ms * 1e6;
        before = old;
    }
    give_event_locked(context, before);
    give_event_locked(context, work->span.after);
}

/* Writes all spans of a context that are complete. Those of a stream follow one another, so none is asked for behind one that is not. */
static void harvest_locked(struct context *context)
{
    uint64_t busy[16];
    unsigned n_busy = 0;

    for (struct pending **at = &context->first, *work; (work = *at);) {
        CUresult result = CUDA_ERROR_NOT_READY;
        unsigned i = 0;

        while (i < n_busy && busy[i] != work->span.work.stream)
            i++;
        if (i == n_busy)
            result = DRIVER(cuEventQuery)(work->span.after);
        if (result == CUDA_ERROR_NOT_READY) {
            if (i == n_busy && n_busy < sizeof busy / sizeof *busy)
                busy[n_busy++] = work->span.work.stream;
            at = &work->next;
            continue;
        }
        if (result == CUDA_SUCCESS) {
            write_span(context, work);
            release_events_locked(context, work);
        } else {
            recorder_count_unmeasured(); /* the context has failed, and the events are of no use */
        }
        *at = work->next;
        context->n_pending--;
        free(work);
    }
    context->end = &context->first;
    while (*context->end)
        context->end = &(*context->end)->next;
}

static void harvest_all(void)
{
    pthread_mutex_lock(&spans.lock);
    for (struct context *context = spans.contexts; context; context = context->next)
        harvest_locked(context);
    pthread_mutex_unlock(&spans.lock);
}

/* Before it ends: its work should be complete, but a kernel may never be. */
static void finish_context_locked(struct context *context)
{
    for (unsigned waited_us = 0; harvest_locked(context), context->first && waited_us < PATIENCE_US; waited_us += 1000)
        usleep(1000);
    while (context->first) {
        struct pending *work = context->first;

        context->first = work->next;
        DRIVER(cuEventDestroy_v2)(work->span.before);
        DRIVER(cuEventDestroy_v2)(work->span.after);
        free(work);
        recorder_count_unmeasured();
    }
    for (size_t i = 0; i < context->n_spare; i++)
        DRIVER(cuEventDestroy_v2)(context->spare[i]);
    DRIVER(cuEventDestroy_v2)(context->base);
    free(context->spare);
    free(context);
}

/* Before a call that may end contexts: finishes those which it means. */
static void finish_contexts(const struct forward_call *call)
{
    uint64_t number;

    pthread_mutex_lock(&spans.lock);
    for (struct context **at = &spans.contexts, *context; (context = *at);) {
        if ((call && forward_number(call, "ctx", &number) && (uint64_t)(uintptr_t)context->handle != number) ||
            (call && forward_number(call, "dev", &number) && context->device != number)) {
            at = &context->next;
            continue;
        }
        *at = context->next;
        finish_context_locked(context);
    }
    pthread_mutex_unlock(&spans.lock);
}

static void finish_at_exit(void)
{
    is_inside = true;
    finish_contexts(NULL);
    is_inside = false;
}

/* ---- the calls ---- */

static void observe_compilation(const char *compiler, const char *kernel, uint64_t begin_ns, uint64_t end_ns)
{
    struct trace_record *record = recorder_open(TRACE_BUILD, 0);

    if (!record)
        return;
    record->begin_ns = begin_ns;
    record->end_ns = end_ns;
    recorder_field(record, TRACE_NAME, 0, compiler, strlen(compiler));
    recorder_field(record, TRACE_NAME, 1, kernel, strlen(kernel));
    recorder_close(record);
}

void spans_start(void)
{
    const CUuuid id = {CT_TRACE_TABLE_ID};
    const void *table;

    if (DRIVER(cuGetExportTable)(&table, &id) == CUDA_SUCCESS && ((const struct ct_trace_table *)table)->size_bytes >= sizeof *spans.cuttle)
        spans.cuttle = table; /* not that of an older version */
    if (spans.cuttle)
        spans.cuttle->observe_compilations(observe_compilation);
}

void spans_call_for(const void *caller)
{
    if (spans.cuttle)
        spans.cuttle->call_for(caller);
}

/* Takes events and lets the first be recorded. */
static bool open_span(const struct forward_call *call, struct span *span)
{
    struct context *context;
    CUresult result = CUDA_ERROR_UNKNOWN;
    CUstream stream;

    device_work_describe(call, &span->work);
    stream = (CUstream)(uintptr_t)span->work.stream;
    if (is_captured(stream))
        return false;
    pthread_mutex_lock(&spans.lock);
    context = current_locked();
    if (context && context->n_pending >= PENDING_MAX) {
        recorder_count_unmeasured();
    } else if (context && take_event_locked(context, &span->before)) {
        if (take_event_locked(context, &span->after)) {
            span->work.context = (uint64_t)(uintptr_t)context->handle;
            span->work.device = context->device;
            result = spans.cuttle ? spans.cuttle->record_before_next(span->before) : DRIVER(cuEventRecord)(span->before, stream);
            if (result != CUDA_SUCCESS)
                give_event_locked(context, span->after);
        }
        if (result != CUDA_SUCCESS)
            give_event_locked(context, span->before);
    }
    pthread_mutex_unlock(&spans.lock);
    return result == CUDA_SUCCESS;
}

/* Records the second event, or takes both back. Returns whether the work is measured. */
static bool close_span(const struct forward_call *call, CUresult result, const struct span *span)
{
    struct pending *work = NULL;
    struct context *context;

    if (spans.cuttle && spans.cuttle->record_before_next(NULL) != CUDA_SUCCESS)
        result = CUDA_ERROR_NOT_READY; /* there was no work */
    if (result == CUDA_SUCCESS && DRIVER(cuEventRecord)(span->after, (CUstream)(uintptr_t)span->work.stream) == CUDA_SUCCESS)
        work = malloc(sizeof *work);
    if (work)
        *work = (struct pending){.span = *span, .correlation = call->correlation, .call_begin_ns = call->begin_ns};
    pthread_mutex_lock(&spans.lock);
    context = find_locked(span->work.context);
    if (context && work) {
        *context->end = work;
        context->end = &work->next;
        if (++context->n_pending % HARVEST_EVERY == 0)
            harvest_locked(context);
    } else if (context) {
        give_event_locked(context, span->before);
        give_event_locked(context, span->after);
    }
    pthread_mutex_unlock(&spans.lock);
    if (!context)
        free(work);
    return context && work;
}

void spans_begin(const struct forward_call *call, struct span *span)
{
    CUstreamCaptureMode mode;
    bool is_relaxed;

    span->is_open = false;
    if (is_inside || (!call->plan->work && !call->plan->ends_contexts))
        return;
    is_inside = true;
    is_relaxed = relax(&mode);
    if (call->plan->ends_contexts)
        finish_contexts(call);
    else
        span->is_open = open_span(call, span);
    restore(is_relaxed, mode);
    is_inside = false;
}

void spans_end(const struct forward_call *call, CUresult result, struct span *span)
{
    CUstreamCaptureMode mode;
    bool is_relaxed;

    count_captures(call, result);
    if (call->symbol == FORWARD_cuInit && result == CUDA_SUCCESS &&
        !atomic_exchange_explicit(&spans.is_exit_registered, true, memory_order_relaxed))
        atexit(finish_at_exit); /* behind the driver's own, so it is called before them; without it the last spans are missing */
    if (is_inside || (!span->is_open && !call->plan->waits))
        return;
    is_inside = true;
    is_relaxed = relax(&mode);
    if (span->is_open && close_span(call, result, span) && span->work.kind == TRACE_WORK_KERNEL)
        kernels_record_facts(call);
    if (call->plan->waits && result == CUDA_SUCCESS) /* after a failure all events would fail, and each failure would be reported */
        harvest_all();
    restore(is_relaxed, mode);
    is_inside = false;
}

void spans_after_fork(void)
{
    pthread_mutex_init(&spans.lock, NULL);
    spans.contexts = NULL; /* drivers do not work in the children of a process that used them */
    atomic_store_explicit(&spans.captures, 0, memory_order_relaxed);
}
