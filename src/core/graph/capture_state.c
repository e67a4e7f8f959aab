/* SPDX-License-Identifier: Apache-2.0 */
#include "capture_state.h"

#include "core/base/log.h"

#define CT_CHANNEL "graph"

static struct ct_mutex lock = CT_MUTEX_INITIALIZER(CT_RANK_CAPTURES);
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
struct ct_capture *ct_captures;
atomic_uint ct_capture_count;

void ct_captures_lock(void)
{
    ct_mutex_lock(&lock);
}

void ct_captures_unlock(void)
{
    ct_mutex_unlock(&lock);
}

bool ct_stream_is_captured(const struct ct_stream *stream)
{
    return atomic_load_explicit(&stream->capture, memory_order_acquire) != NULL; /* pairs with join_locked */
}

struct ct_capture_part *ct_capture_part_locked(const struct ct_stream *stream)
{
    return atomic_load_explicit(&stream->capture, memory_order_relaxed);
}

CUresult ct_capture_check_locked(const struct ct_capture_part *part)
{
    if (!part)
        return ct_fail(CUDA_ERROR_ILLEGAL_STATE, "the stream is not captured");
    if (part->capture->is_invalid)
        return ct_fail(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "the capture was invalidated by an earlier error");
    return CUDA_SUCCESS;
}

void ct_capture_end_locked(struct ct_capture *capture)
{
    struct ct_capture **link = &ct_captures;

    while (*link != capture)
        link = &(*link)->next;
    *link = capture->next;
    atomic_fetch_sub_explicit(&ct_capture_count, 1, memory_order_relaxed);
    for (struct ct_capture_part *part = capture->parts; part; part = part->next)
        atomic_store_explicit(&part->stream->capture, NULL, memory_order_release);
}

static struct ct_capture *find_in_context_locked(const struct ct_context *context)
{
    for (struct ct_capture *capture = ct_captures; capture; capture = capture->next)
        for (const struct ct_capture_part *part = capture->parts; part; part = part->next)
            if (part->stream->context == context)
                return capture;
    return NULL;
}

void ct_captures_end_in_context(const struct ct_context *context)
{
    struct ct_capture *capture;

    do {
        ct_captures_lock();
        if ((capture = find_in_context_locked(context)))
            ct_capture_end_locked(capture);
        ct_captures_unlock();
        if (capture)
            capture->finish(capture);
    } while (capture);
}

void ct_capture_invalidate(struct ct_stream *stream)
{
    const struct ct_capture_part *part;

    ct_captures_lock();
    if ((part = ct_capture_part_locked(stream)))
        part->capture->is_invalid = true;
    ct_captures_unlock();
}

CUstreamCaptureMode ct_capture_exchange_mode(CUstreamCaptureMode mode)
{
    const CUstreamCaptureMode before = thread_mode;

    thread_mode = mode;
    return before;
}

/* ---- forbidden calls ---- */

/* Which captures forbid a call; `of` is the context or stream that the call uses. */
typedef bool forbids(const struct ct_capture *capture, const void *of);

static bool invalidate_all(forbids *capture_forbids, const void *of, bool keeps_valid)
{
    bool found = false;

    if (!ct_captures_exist())
        return false;
    ct_captures_lock();
    for (struct ct_capture *capture = ct_captures; capture; capture = capture->next)
        if (capture_forbids(capture, of)) {
            found = true;
            capture->is_invalid |= !keeps_valid;
        }
    ct_captures_unlock();
    return found;
}

static bool forbids_unsafe(const struct ct_capture *capture, const void *of)
{
    const bool is_own = pthread_equal(capture->thread, pthread_self());

    (void)of;
    switch (thread_mode) {
    case CU_STREAM_CAPTURE_MODE_RELAXED:
        return false;
    case CU_STREAM_CAPTURE_MODE_THREAD_LOCAL:
        return is_own && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    default:
        return capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL || (is_own && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED);
    }
}

CUresult ct_capture_check_unsafe(const char *call)
{
    if (!invalidate_all(forbids_unsafe, NULL, false))
        return CUDA_SUCCESS;
    return ct_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                   "%s is not allowed while a stream is captured (cuThreadExchangeStreamCaptureMode)", call);
}

CUresult ct_capture_check_stream(struct ct_stream *stream, const char *call)
{
    if (!ct_stream_is_captured(stream))
        return CUDA_SUCCESS;
    ct_capture_invalidate(stream);
    return ct_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "%s is not allowed in a captured stream", call);
}

CUresult ct_stream_lookup_uncaptured(CUstream handle, const char *call, struct ct_stream **out)
{
    CUresult r = ct_stream_lookup(handle, out);

    if (r == CUDA_SUCCESS && (r = ct_capture_check_stream(*out, call)) != CUDA_SUCCESS)
        ct_stream_release(*out);
    return r;
}

static bool has_part_in_context(const struct ct_capture *capture, const void *of)
{
    for (const struct ct_capture_part *part = capture->parts; part; part = part->next)
        if (part->stream->context == of)
            return true;
    return false;
}

CUresult ct_capture_check_context(const struct ct_context *context, const char *call)
{
    if (!invalidate_all(has_part_in_context, context, false))
        return CUDA_SUCCESS;
    return ct_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "%s is not allowed while a stream of the context is captured", call);
}

static bool has_blocking_part(const struct ct_capture *capture, const void *of)
{
    for (const struct ct_capture_part *part = capture->parts; part; part = part->next)
        if (part->stream->context == of && !(part->stream->flags & CU_STREAM_NON_BLOCKING))
            return true;
    return false;
}

static CUresult check_implicit(const struct ct_stream *stream, bool is_query)
{
    if (!stream->is_legacy || !invalidate_all(has_blocking_part, stream->context, is_query))
        return CUDA_SUCCESS;
    return ct_fail(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "the legacy stream would wait for a captured stream");
}

CUresult ct_capture_check_implicit(const struct ct_stream *stream)
{
    return check_implicit(stream, false);
}

CUresult ct_capture_check_implicit_query(const struct ct_stream *stream)
{
    return check_implicit(stream, true);
}

CUresult ct_capture_check_wait(struct ct_stream *stream, const char *call)
{
    CUresult r = ct_capture_check_stream(stream, call);

    if (r == CUDA_SUCCESS)
        r = ct_capture_check_implicit(stream);
    return r == CUDA_SUCCESS ? ct_capture_check_unsafe(call) : r;
}
