/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of copying that are recorded into a stream. See enum ct_copy_method. */
#include "copy_record.h"

#include "core/base/log.h"
#include "core/stream/stream_record.h"
#include "core/stream/stream_ring.h"
#include "copy_pieces.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "copy"
#define PIECE_BYTES CT_RING_SHARED_BYTES

static struct ct_copy_region region_of(const struct ct_copy *copy)
{
    return (struct ct_copy_region){
        .dst_offset = copy->dst.offset,
        .src_offset = copy->src.offset,
        .row_bytes = copy->row_bytes,
        .rows = copy->rows,
        .dst_pitch = copy->dst_pitch,
        .src_pitch = copy->src_pitch,
        .slices = copy->slices,
        .dst_slice = copy->dst_slice,
        .src_slice = copy->src_slice,
    };
}

CUresult ct_copy_record_direct_locked(struct ct_stream *stream, const struct ct_copy *copy)
{
    const struct ct_copy_region region = region_of(copy);

    return ct_stream_record_copy_locked(stream, copy->dst.memory, copy->src.memory, &region);
}

CUresult ct_copy_record_upload_locked(struct ct_stream *stream, const struct ct_copy *copy)
{
    struct ct_copy_cursor cursor = {0};
    struct ct_ring_piece staged;
    struct ct_copy_piece piece;
    CUresult r = CUDA_SUCCESS;

    while (r == CUDA_SUCCESS && ct_copy_next_piece(copy, &cursor, PIECE_BYTES, &piece)) {
        struct ct_copy_region region;

        r = ct_stream_ring_take(stream->ring, piece.rows * piece.bytes, CT_TEXEL_BYTES, &staged);
        if (r != CUDA_SUCCESS)
            return r;
        ct_copy_rows(staged.host, piece.bytes, copy->src.host + ct_copy_src_distance(copy, &piece.at), copy->src_pitch, piece.bytes,
                     piece.rows);
        region = ct_copy_region_of(&piece, copy->dst.offset + ct_copy_dst_distance(copy, &piece.at), copy->dst_pitch, staged.offset,
                                   piece.bytes);
        r = ct_stream_record_copy_locked(stream, copy->dst.memory, staged.memory, &region);
        ct_stream_ring_commit(stream->ring);
    }
    return r;
}

/* Copies one piece from src to dst through the ring. */
static CUresult record_around_locked(struct ct_stream *stream, const struct ct_copy *copy, const struct ct_copy_piece *piece)
{
    struct ct_copy_region region;
    struct ct_ring_piece staged;
    CUresult r = ct_stream_ring_take(stream->ring, piece->rows * piece->bytes, CT_TEXEL_BYTES, &staged);

    if (r != CUDA_SUCCESS)
        return r;
    region =
        ct_copy_region_of(piece, staged.offset, piece->bytes, copy->src.offset + ct_copy_src_distance(copy, &piece->at), copy->src_pitch);
    r = ct_stream_record_copy_locked(stream, staged.memory, copy->src.memory, &region);
    if (r == CUDA_SUCCESS) {
        region = ct_copy_region_of(piece, copy->dst.offset + ct_copy_dst_distance(copy, &piece->at), copy->dst_pitch, staged.offset,
                                   piece->bytes);
        r = ct_stream_record_copy_locked(stream, copy->dst.memory, staged.memory, &region);
    }
    ct_stream_ring_commit(stream->ring);
    return r;
}

/* Through the ring, in an order of pieces in which no piece overwrites the source of a later one: as in memmove for one row, and in any
 * order for adjacent rows. */
CUresult ct_copy_record_staged_locked(struct ct_stream *stream, const struct ct_copy *copy)
{
    bool backwards = copy->rows == 1 && copy->slices == 1 && copy->dst.offset > copy->src.offset;
    struct ct_copy_cursor cursor = {0};
    struct ct_copy_piece piece;
    CUresult r = CUDA_SUCCESS;

    if (!backwards) {
        while (r == CUDA_SUCCESS && ct_copy_next_piece(copy, &cursor, PIECE_BYTES, &piece))
            r = record_around_locked(stream, copy, &piece);
        return r;
    }
    for (uint64_t end = copy->row_bytes; end > 0 && r == CUDA_SUCCESS; end -= piece.bytes) {
        piece = (struct ct_copy_piece){.rows = 1, .bytes = end < PIECE_BYTES ? end : PIECE_BYTES};
        piece.at.column = end - piece.bytes;
        r = record_around_locked(stream, copy, &piece);
    }
    return r;
}

/* ---- pageable memory that is read in stream order ---- */

/* Pageable memory that a host function will read. */
struct late_read {
    struct ct_copy copy;
    char *to; /* in the ring; rows and slices without gaps */
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
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "copy with a source that is read in stream order");
    *late = (struct late_read){*copy, to};
    r = ct_stream_run_on_host_locked(stream, read_late, late);
    if (r != CUDA_SUCCESS)
        free(late);
    return r;
}

static CUresult record_late_locked(struct ct_stream *stream, const struct ct_copy *copy)
{
    struct ct_ring_piece staged;
    struct ct_copy_region region = region_of(copy);
    CUresult r = ct_stream_ring_take(stream->ring, ct_copy_bytes(copy), CT_TEXEL_BYTES, &staged);

    if (r == CUDA_SUCCESS)
        r = record_read_locked(stream, copy, staged.host);
    if (r != CUDA_SUCCESS)
        return r;
    region.src_offset = staged.offset;
    region.src_pitch = copy->row_bytes;
    region.src_slice = copy->row_bytes * copy->rows;
    return ct_stream_record_copy_locked(stream, copy->dst.memory, staged.memory, &region);
}

CUresult ct_copy_record_in_order_locked(struct ct_stream *stream, const struct ct_copy *copy)
{
    return ct_stream_is_idle_locked(stream) ? ct_copy_record_upload_locked(stream, copy) : record_late_locked(stream, copy);
}
