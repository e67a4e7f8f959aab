/* SPDX-License-Identifier: Apache-2.0 */
/* Recording into streams (Driver API, "Stream synchronization behavior").
 *
 * The legacy default stream and the blocking streams of its context wait for each other: a command in the legacy stream waits for all
 * commands recorded earlier into blocking streams, and vice versa. Both waits are recorded by ct_stream_begin. A wait only ever names a
 * point that is already recorded, so there is no cycle, however the threads interleave. */
#include "stream.h"

#include "core/base/log.h"
#include "stream_record.h"
#include "stream_ring.h"

#include <assert.h>
#include <limits.h>

#define CT_CHANNEL "stream"

#define JOIN_BATCH 16 /* number of streams that the legacy stream joins per locking of the context */

bool ct_stream_is_complete(struct ct_stream *stream, uint64_t point)
{
    uint64_t completed;

    /* a failed queue runs nothing any more */
    return ct_stream_backend(stream)->queues->completed(stream->queue, &completed) != CUDA_SUCCESS || completed >= point;
}

void ct_stream_release(struct ct_stream *stream)
{
    struct ct_context *context;

    if (!stream)
        return;
    context = stream->context;
    ct_object_release(&stream->object);
    ct_context_release(context);
}

/* ---- recording ---- */

/* Makes the commands that `stream` records next wait for all recorded commands of `other`. *seen is the point it already waits for. */
static CUresult join(struct ct_stream *stream, struct ct_stream *other, uint64_t *seen)
{
    uint64_t point = ct_stream_point(other);
    CUresult r = CUDA_SUCCESS;

    if (point <= *seen)
        return CUDA_SUCCESS;
    if (!ct_stream_is_complete(other, point))
        r = ct_stream_record_wait_locked(stream, other, point);
    if (r == CUDA_SUCCESS)
        *seen = point;
    return r;
}

/* Whether the legacy stream, which is locked, has yet to wait for the work of this stream. */
static bool is_ahead_of_legacy(const struct ct_stream *legacy, struct ct_stream *stream)
{
    return stream != legacy && !(stream->flags & CU_STREAM_NON_BLOCKING) && ct_stream_point(stream) > stream->seen_by_legacy;
}

/* Retains the next streams that the legacy stream has to wait for. The context's list is in descending order of list numbers: this takes
 * streams with numbers below *below, which becomes the number of the last one. */
static unsigned take_ahead(struct ct_stream *legacy, unsigned long long *below, struct ct_stream *out[JOIN_BATCH])
{
    struct ct_context *context = legacy->context;
    unsigned n = 0;

    ct_mutex_lock(&context->lock);
    for (struct ct_stream *stream = context->streams; stream && n < JOIN_BATCH; stream = stream->next_in_context)
        if (stream->list_number < *below && is_ahead_of_legacy(legacy, stream)) {
            ct_object_retain(&stream->object);
            *below = stream->list_number;
            out[n++] = stream;
        }
    ct_mutex_unlock(&context->lock);
    return n;
}

/* The context's lock is not held while the waits are recorded, since recording may wait for room in the queue. */
static CUresult begin_legacy(struct ct_stream *legacy)
{
    struct ct_stream *ahead[JOIN_BATCH];
    unsigned long long below = ULLONG_MAX;
    CUresult r = CUDA_SUCCESS;
    unsigned n;

    ct_mutex_lock(&legacy->lock);
    while (r == CUDA_SUCCESS && (n = take_ahead(legacy, &below, ahead)) > 0)
        for (unsigned i = 0; i < n; i++) {
            r = r == CUDA_SUCCESS ? join(legacy, ahead[i], &ahead[i]->seen_by_legacy) : r;
            ct_object_release(&ahead[i]->object);
        }
    return r;
}

static CUresult begin_other(struct ct_stream *stream)
{
    ct_mutex_lock(&stream->lock);
    if (stream->flags & CU_STREAM_NON_BLOCKING)
        return CUDA_SUCCESS;
    return join(stream, stream->context->legacy_stream, &stream->seen_legacy_point);
}

CUresult ct_stream_begin(struct ct_stream *stream)
{
    CUresult r = stream->is_legacy ? begin_legacy(stream) : begin_other(stream);

    if (r != CUDA_SUCCESS) {
        ct_mutex_unlock(&stream->lock);
        return ct_context_check(stream->context, r);
    }
    if (stream->is_reaped) {
        ct_mutex_unlock(&stream->lock);
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "another thread has destroyed the stream");
    }
    return CUDA_SUCCESS;
}

void ct_stream_end(struct ct_stream *stream)
{
    ct_stream_ring_commit(stream->ring);
    ct_mutex_unlock(&stream->lock);
}

bool ct_stream_is_idle_locked(struct ct_stream *stream)
{
    assert(ct_mutex_held(&stream->lock));
    return ct_stream_is_complete(stream, ct_stream_point(stream));
}
