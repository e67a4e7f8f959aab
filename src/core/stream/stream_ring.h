/* SPDX-License-Identifier: Apache-2.0 */
/* A stream's host-visible memory for parameters and staging. The caller of each function holds the stream's lock. */
#ifndef CT_CORE_STREAM_RING_H
#define CT_CORE_STREAM_RING_H

#include "core/device/backend.h"
#include "core/device/context.h"

struct ct_stream_ring;

/* Requests of up to this many bytes share recycled blocks. */
#define CT_RING_SHARED_BYTES ((uint64_t)256 << 10)

struct ct_ring_piece {
    void *host;
    uint64_t address; /* for kernels */
    struct ct_memory *memory;
    uint64_t offset;
};

CUresult ct_stream_ring_create(struct ct_context *context, struct ct_queue *queue, struct ct_stream_ring **out);
void ct_stream_ring_destroy(struct ct_stream_ring *ring); /* the queue is idle; takes NULL */
CUresult ct_stream_ring_take(struct ct_stream_ring *ring, uint64_t size_bytes, uint64_t align, struct ct_ring_piece *out);
/* All pieces taken since the last commit are in use until the last command recorded so far is complete. */
void ct_stream_ring_commit(struct ct_stream_ring *ring);

#endif
