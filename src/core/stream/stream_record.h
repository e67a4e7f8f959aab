/* SPDX-License-Identifier: Apache-2.0 */
/* Recording into a stream's queue, between ct_stream_begin and ct_stream_end. Every command of an application's stream is recorded into
 * the backend's queue by one of these functions. */
#ifndef CT_CORE_STREAM_RECORD_H
#define CT_CORE_STREAM_RECORD_H

#include "stream.h"

#include <assert.h>

/* The point of the last recorded command. */
static inline uint64_t ct_stream_point(const struct ct_stream *stream)
{
    return ct_stream_backend(stream)->queues->point(stream->queue);
}

static inline CUresult ct_stream_record_copy_locked(struct ct_stream *stream, struct ct_memory *dst, struct ct_memory *src,
                                                    const struct ct_copy_region *region)
{
    assert(ct_mutex_held(&stream->lock));
    return ct_stream_backend(stream)->queues->copy(stream->queue, dst, src, region, 1);
}

/* Offset and size are multiples of 4. */
static inline CUresult ct_stream_record_fill_locked(struct ct_stream *stream, struct ct_memory *dst, uint64_t offset, uint64_t size_bytes,
                                                    uint32_t value)
{
    assert(ct_mutex_held(&stream->lock));
    return ct_stream_backend(stream)->queues->fill(stream->queue, dst, offset, size_bytes, value);
}

static inline CUresult ct_stream_record_launch_locked(struct ct_stream *stream, const struct ct_launch *launch)
{
    assert(ct_mutex_held(&stream->lock));
    return ct_stream_backend(stream)->queues->launch(stream->queue, launch);
}

static inline CUresult ct_stream_record_replay_locked(struct ct_stream *stream, struct ct_recording *const *recordings, unsigned count)
{
    assert(ct_mutex_held(&stream->lock));
    return ct_stream_backend(stream)->recordings->replay(stream->queue, recordings, count);
}

static inline CUresult ct_stream_record_timestamp_locked(struct ct_stream *stream, struct ct_timestamp *timestamp)
{
    assert(ct_mutex_held(&stream->lock));
    return ct_stream_backend(stream)->queues->timestamp(stream->queue, timestamp);
}

/* Makes the commands recorded next wait for `point` of another stream of the same device. */
static inline CUresult ct_stream_record_wait_locked(struct ct_stream *stream, const struct ct_stream *other, uint64_t point)
{
    assert(ct_mutex_held(&stream->lock));
    return ct_stream_backend(stream)->queues->wait_queue(stream->queue, other->queue, point);
}

#endif
