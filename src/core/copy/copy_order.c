/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that say when their source may be read (Driver API: Memory Management, cuMemcpyBatchAsync).
 *
 * An ordinary asynchronous copy reads pageable memory at the call and all other memory in stream order. So there are two cases with ways
 * of their own: pageable memory in stream order is read by a host function of the stream, into the stream's ring, from where the queue
 * copies; and page-locked memory during the call is read as if it were pageable. Device memory is waited for. */
#include "copy_order.h"

#include "core/base/log.h"
#include "core/stream/stream_ring.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "copy"
#define READ_LATER_BYTES ((uint64_t)64 << 20) /* what waits for its turn in memory of ours; for more than that the caller waits */

/* Pageable memory that a host function will read. */
struct late_read {
    struct ct_copy copy;
    char *to; /* in the ring: rows and slices without gaps */
};

static void read_late(void *user, CUresult status)
{
    struct late_read *late = user;
    const struct ct_copy *c = &late->copy;
    char *to = late->to;

    for (uint64_t slice = 0; slice < c->slices && status == CUDA_SUCCESS; slice++)
        for (uint64_t row = 0; row < c->rows; row++, to += c->row_bytes)
            memcpy(to, c->src.host + slice * c->src_slice + row * c->src_pitch, c->row_bytes);
    free(late);
}

static CUresult record_read_locked(struct ct_stream *stream, const struct ct_copy *copy, char *to)
{
    struct late_read *late = malloc(sizeof *late);
    CUresult r;

    if (!late)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "a copy of a batch");
    *late = (struct late_read){*copy, to};
    r = ct_stream_run_on_host_locked(stream, read_late, late);
    if (r != CUDA_SUCCESS)
        free(late);
    return r;
}

static CUresult record_late_locked(struct ct_stream *stream, const struct ct_copy *copy, uint64_t bytes)
{
    struct ct_ring_piece staged;
    struct ct_copy_region region = {
        .dst_offset = copy->dst.offset,
        .row_bytes = copy->row_bytes,
        .rows = copy->rows,
        .slices = copy->slices,
        .dst_pitch = copy->dst_pitch,
        .dst_slice = copy->dst_slice,
        .src_pitch = copy->row_bytes,
        .src_slice = copy->row_bytes * copy->rows,
    };
    CUresult r = ct_stream_ring_take(stream->ring, bytes, CT_TEXEL_BYTES, &staged);

    if (r == CUDA_SUCCESS)
        r = record_read_locked(stream, copy, staged.host);
    if (r != CUDA_SUCCESS)
        return r;
    region.src_offset = staged.offset;
    return stream->context->backend->queue_copy(stream->queue, copy->dst.memory, staged.memory, &region, 1);
}

/* From pageable memory to memory of the stream's device. */
static CUresult run_late(struct ct_stream *stream, const struct ct_copy *copy)
{
    uint64_t bytes = copy->row_bytes * copy->rows * copy->slices; /* no more than the span, which fits */
    bool at_once;
    CUresult r = ct_stream_begin(stream);

    if (r != CUDA_SUCCESS)
        return r;
    ct_context_reach(stream->context, copy->dst.owner);
    at_once = bytes > READ_LATER_BYTES || ct_stream_is_idle_locked(stream);
    if (!at_once)
        r = record_late_locked(stream, copy, bytes);
    ct_stream_end(stream);
    if (!at_once)
        return ct_context_check(stream->context, r);
    r = ct_stream_settle(stream);
    return r == CUDA_SUCCESS ? ct_copy_run(stream, copy, CT_COPY_ASYNC) : r;
}

static CUresult run_in_order(struct ct_stream *stream, const struct ct_copy *copy)
{
    bool pageable = !copy->src.memory, own = copy->dst.memory && copy->dst.memory->device == stream->context->backend_device;

    return pageable && own && !copy->dst.read_only ? run_late(stream, copy) : ct_copy_run(stream, copy, CT_COPY_ASYNC);
}

static CUresult run_during_call(struct ct_stream *stream, const struct ct_copy *copy)
{
    struct ct_copy c = *copy;
    bool device = c.src.memory && (c.src.is_device || !c.src.host);
    CUresult r;

    if (!device)
        c.src.memory = NULL;
    r = ct_copy_run(stream, &c, CT_COPY_ASYNC);
    return r == CUDA_SUCCESS && device ? ct_stream_synchronize(stream) : r;
}

CUresult ct_copy_run_ordered(struct ct_stream *stream, const struct ct_copy *copy, CUmemcpySrcAccessOrder order)
{
    switch (order) {
    case CU_MEMCPY_SRC_ACCESS_ORDER_STREAM:
        return run_in_order(stream, copy);
    case CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL:
        return run_during_call(stream, copy);
    case CU_MEMCPY_SRC_ACCESS_ORDER_ANY:
        return ct_copy_run(stream, copy, CT_COPY_ASYNC);
    case CU_MEMCPY_SRC_ACCESS_ORDER_INVALID:
    case CU_MEMCPY_SRC_ACCESS_ORDER_MAX:
        break;
    }
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "source access order %d", (int)order);
}
