/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: in-order lists of work on a backend queue, with CUDA's rules of the legacy default stream. */
#ifndef CT_CORE_STREAM_H
#define CT_CORE_STREAM_H

#include "backend.h"
#include "context.h"

struct ct_stream {
    struct ct_object object;
    struct ct_context *context;   /* borrowed: the context destroys its streams first */
    struct ct_stream *next_in_context;
    struct ct_queue *queue;
    unsigned flags;               /* CU_STREAM_* */
    int priority;
    bool is_legacy, is_per_thread;
    unsigned long long id;
    struct ct_mutex lock;         /* recording */
    struct ct_stream_ring *ring;  /* host-visible memory for parameters and staging, recycled by points */
    uint64_t seen_legacy_point;   /* legacy work this stream already waits for */
};

/* The stream behind a handle in the current context, retained. NULL and CU_STREAM_LEGACY: the legacy stream;
 * CU_STREAM_PER_THREAD: the calling thread's. INVALID_HANDLE, INVALID_CONTEXT and what ct_context_current gives. */
CUresult ct_stream_lookup(CUstream handle, struct ct_stream **out);
void ct_stream_release(struct ct_stream *stream);

/* Locks the stream for recording and orders it with the legacy stream (or the legacy stream with all blocking ones).
 * On success the caller records into stream->queue and ends with ct_stream_end. */
CUresult ct_stream_begin(struct ct_stream *stream);
void ct_stream_end(struct ct_stream *stream);

/* `size_bytes` of host-visible, device-readable memory for what is recorded next; recycled when the work recorded until the next
 * ct_stream_end is complete. Call between begin and end. May wait for older work when the ring is full.
 * *out_memory and *out_offset name the place for queue_copy, *out_address (CUDA address) for kernels. */
CUresult ct_stream_scratch(struct ct_stream *stream, uint64_t size_bytes, uint64_t align, void **out_host, uint64_t *out_address,
                           struct ct_memory **out_memory, uint64_t *out_offset);

CUresult ct_stream_synchronize(struct ct_stream *stream);
CUresult ct_stream_create(struct ct_context *context, unsigned flags, int priority, struct ct_stream **out);
/* Context set-up and tear-down. The legacy stream: flags 0, is_legacy. destroy waits for its work. */
CUresult ct_stream_create_legacy(struct ct_context *context, struct ct_stream **out);
void ct_streams_destroy_all(struct ct_context *context);

#endif
