/* SPDX-License-Identifier: Apache-2.0 */
/* Copies (Driver API: Memory Management; "API synchronization behavior").
 *
 * The ways, by what the two places are:
 *   both known to the device   the stream's queue copies, or a kernel (copy_kernel.c)
 *                              where they overlap by way of the stream's ring (CUDA leaves the result open)
 *   pageable to device         through the stream's ring, piece by piece: the source has been read when the call comes back
 *   device to pageable         by staging buffers (copy_download.c): the call waits
 *   pageable to pageable       the host copies, when the stream's work is done
 *   two devices                by way of host memory; the call waits
 * Levels of images go these ways, too: to all of this their texels are bytes like others, which the host reaches by copies only.
 * Where the host reaches device memory as fast as the device does (CPU devices), it copies itself once the stream is idle. */
#include "copy_pieces.h"

#include "core/base/config.h"
#include "copy_kernel.h"
#include "core/base/log.h"
#include "core/memory/memory_arena.h"
#include "core/stream/stream_ring.h"

#include <stdlib.h>

#define CT_CHANNEL "copy"
#define PIECE_BYTES CT_RING_SHARED_BYTES
#define ASYNC_BY_HOST_BYTES ((uint64_t)4 << 20) /* the most that the caller of an asynchronous copy is asked to copy itself */
#define BOUNCE_BYTES CT_STAGING_BYTES

static uint64_t span(const struct ct_copy *copy, uint64_t pitch, uint64_t slice)
{
    return (copy->slices - 1) * slice + (copy->rows - 1) * pitch + copy->row_bytes;
}

static bool is_image(const struct ct_place *place)
{
    return place->memory && place->memory->texels;
}

/* Rows that follow each other on both sides are one row; but those of images stay what they are. */
static struct ct_copy simplified(const struct ct_copy *copy)
{
    struct ct_copy c = *copy;

    if (is_image(&c.dst) || is_image(&c.src))
        return c;
    if (c.rows == 1) { /* slices of one row each are rows */
        c.rows = c.slices;
        c.dst_pitch = c.dst_slice;
        c.src_pitch = c.src_slice;
        c.slices = 1;
    }
    if (c.dst_pitch == c.row_bytes && c.src_pitch == c.row_bytes) {
        c.row_bytes *= c.rows;
        c.rows = 1;
    }
    if (c.rows == 1 && c.slices > 1 && c.row_bytes != copy->row_bytes)
        return simplified(&c);
    return c;
}

/* ---- the ways ---- */

static void copy_by_host(const struct ct_copy *copy)
{
    for (uint64_t slice = 0; slice < copy->slices; slice++)
        ct_copy_rows(copy->dst.host + slice * copy->dst_slice, copy->dst_pitch, copy->src.host + slice * copy->src_slice, copy->src_pitch,
                     copy->row_bytes, copy->rows);
}

static CUresult record_direct_locked(struct ct_stream *stream, const struct ct_copy *copy)
{
    const struct ct_copy_region region = {
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

    return ct_stream_backend(stream)->queue_copy(stream->queue, copy->dst.memory, copy->src.memory, &region, 1);
}

static CUresult record_upload_locked(struct ct_stream *stream, const struct ct_copy *copy)
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
        r = ct_stream_backend(stream)->queue_copy(stream->queue, copy->dst.memory, staged.memory, &region, 1);
        ct_stream_ring_commit(stream->ring);
    }
    return r;
}

/* One piece from src to dst by way of the ring. */
static CUresult record_around_locked(struct ct_stream *stream, const struct ct_copy *copy, const struct ct_copy_piece *piece)
{
    const struct ct_backend *backend = ct_stream_backend(stream);
    struct ct_copy_region region;
    struct ct_ring_piece staged;
    CUresult r = ct_stream_ring_take(stream->ring, piece->rows * piece->bytes, CT_TEXEL_BYTES, &staged);

    if (r != CUDA_SUCCESS)
        return r;
    region =
        ct_copy_region_of(piece, staged.offset, piece->bytes, copy->src.offset + ct_copy_src_distance(copy, &piece->at), copy->src_pitch);
    r = backend->queue_copy(stream->queue, staged.memory, copy->src.memory, &region, 1);
    if (r == CUDA_SUCCESS) {
        region = ct_copy_region_of(piece, copy->dst.offset + ct_copy_dst_distance(copy, &piece->at), copy->dst_pitch, staged.offset,
                                   piece->bytes);
        r = backend->queue_copy(stream->queue, copy->dst.memory, staged.memory, &region, 1);
    }
    ct_stream_ring_commit(stream->ring);
    return r;
}

/* By way of the ring: pieces in the order in which none overwrites what a later one reads: as memmove for one row, any order for rows side
 * by side. */
static CUresult record_pieces_locked(struct ct_stream *stream, const struct ct_copy *copy)
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

static bool overlaps(const struct ct_copy *copy)
{
    uint64_t dst_end = copy->dst.offset + span(copy, copy->dst_pitch, copy->dst_slice);
    uint64_t src_end = copy->src.offset + span(copy, copy->src_pitch, copy->src_slice);

    return copy->dst.memory == copy->src.memory && copy->dst.offset < src_end && copy->src.offset < dst_end;
}

/* Whether everything in plain memory begins at a multiple of an image's texels. */
static bool is_whole(const struct ct_copy *copy, const struct ct_texels *texels, uint64_t offset, uint64_t pitch, uint64_t slice)
{
    return !((offset | (copy->rows > 1 ? pitch : 0) | (copy->slices > 1 ? slice : 0)) & (texels->texel_bytes - 1));
}

/* What queue_copy asks of images; the ring suits any. */
static bool suits_images(const struct ct_copy *copy)
{
    const struct ct_texels *dst = copy->dst.memory->texels, *src = copy->src.memory->texels;

    if (dst && src)
        return dst->texel_bytes == src->texel_bytes && (dst->shape == CT_IMAGE_1D) == (src->shape == CT_IMAGE_1D);
    if (dst)
        return is_whole(copy, dst, copy->src.offset, copy->src_pitch, copy->src_slice);
    return !src || is_whole(copy, src, copy->dst.offset, copy->dst_pitch, copy->dst_slice);
}

static CUresult record_locked(struct ct_stream *stream, const struct ct_copy *copy, bool by_kernel)
{
    if (!copy->src.memory)
        return record_upload_locked(stream, copy);
    if (overlaps(copy) || !suits_images(copy))
        return record_pieces_locked(stream, copy);
    return by_kernel ? ct_copy_kernel_record_locked(stream, copy) : record_direct_locked(stream, copy);
}

/* ---- two devices ---- */

static bool is_foreign(const struct ct_stream *stream, const struct ct_place *place)
{
    return place->memory && place->memory->device != stream->context->backend_device;
}

/* One direction through the legacy stream of the context that has the memory. */
static CUresult run_in_owner(CUcontext owner, const struct ct_copy *copy)
{
    struct ct_context *context;
    CUresult r = ct_context_lookup(owner, &context);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_copy_run(context->legacy_stream, copy, CT_COPY_SYNC);
    ct_context_release(context);
    return r;
}

static CUresult bounce(const struct ct_copy *copy, const struct ct_copy_piece *piece, char *buffer)
{
    struct ct_copy half = {
        .row_bytes = piece->bytes,
        .rows = piece->rows,
        .slices = 1,
        .dst = {.host = buffer},
        .dst_pitch = piece->bytes,
        .src = ct_place_moved(&copy->src, ct_copy_src_distance(copy, &piece->at)),
        .src_pitch = copy->src_pitch,
    };
    CUresult r = run_in_owner(copy->src.owner, &half);

    if (r != CUDA_SUCCESS)
        return r;
    half.src = half.dst;
    half.src_pitch = half.dst_pitch;
    half.dst = ct_place_moved(&copy->dst, ct_copy_dst_distance(copy, &piece->at));
    half.dst_pitch = copy->dst_pitch;
    return run_in_owner(copy->dst.owner, &half);
}

/* At least one place belongs to another device than the stream: the host stands between, in the stream's order. */
static CUresult run_foreign(struct ct_stream *stream, const struct ct_copy *copy)
{
    struct ct_copy_cursor cursor = {0};
    struct ct_copy_piece piece;
    char *buffer;
    CUresult r = ct_stream_settle(stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (!copy->src.memory || !copy->dst.memory)
        return run_in_owner(copy->src.memory ? copy->src.owner : copy->dst.owner, copy);
    buffer = malloc(BOUNCE_BYTES);
    if (!buffer)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "buffer between two devices");
    while (r == CUDA_SUCCESS && ct_copy_next_piece(copy, &cursor, BOUNCE_BYTES, &piece))
        r = bounce(copy, &piece, buffer);
    free(buffer);
    return r;
}

/* ---- which way ---- */

bool ct_copy_host_is_fast(const struct ct_context *context)
{
    const struct ct_device_info *info = &context->device->info;

    return info->host_visible_device_memory && info->kind == CT_DEVICE_CPU && ct_config()->copy_by_host;
}

/* Waits for the stream, then the host copies. */
static CUresult run_by_host(struct ct_stream *stream, const struct ct_copy *copy)
{
    CUresult r = ct_stream_settle(stream);

    if (r == CUDA_SUCCESS)
        copy_by_host(copy);
    return r;
}

static bool may_wait(const struct ct_copy *copy, enum ct_copy_mode mode)
{
    if (!copy->dst.memory)
        return true;
    return mode == CT_COPY_SYNC && (copy->dst.synchronous || copy->src.synchronous || !copy->dst.is_device || !copy->src.is_device);
}

static bool host_could(const struct ct_stream *stream, const struct ct_copy *copy)
{
    if (!copy->dst.host || !copy->src.host)
        return false;
    return (!copy->dst.memory && !copy->src.memory) || ct_copy_host_is_fast(stream->context);
}

/* Whether the host copies at once what has nothing to wait for: pageable memory is read during the call in any case, and to hand a small
 * copy over to a CPU device's own thread takes as long as to make it. */
static bool is_for_caller(const struct ct_stream *stream, const struct ct_copy *copy)
{
    return host_could(stream, copy) && (!copy->src.memory || ct_copy_bytes(copy) <= ASYNC_BY_HOST_BYTES);
}

static CUresult run_recorded(struct ct_stream *stream, const struct ct_copy *copy, enum ct_copy_mode mode)
{
    const bool by_kernel = ct_copy_kernel_takes(stream->context->device, copy); /* may compile it: not with the stream begun */
    uint64_t point;
    CUresult r = ct_stream_begin(stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (is_for_caller(stream, copy) && ct_stream_is_idle_locked(stream)) {
        copy_by_host(copy);
        ct_stream_end(stream);
        return ct_context_check(stream->context, CUDA_SUCCESS);
    }
    r = record_locked(stream, copy, by_kernel);
    point = ct_stream_backend(stream)->queue_point(stream->queue);
    ct_stream_end(stream);
    if (r == CUDA_SUCCESS && may_wait(copy, mode))
        return ct_stream_await(stream, point);
    return ct_context_check(stream->context, r);
}

static CUresult run_simplified(struct ct_stream *stream, const struct ct_copy *copy, enum ct_copy_mode mode)
{
    if (copy->dst.read_only)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a copy to memory that may only be read");
    ct_context_reach(stream->context, copy->dst.owner);
    ct_context_reach(stream->context, copy->src.owner);
    if (is_foreign(stream, &copy->dst) || is_foreign(stream, &copy->src))
        return run_foreign(stream, copy);
    if (host_could(stream, copy) && may_wait(copy, mode))
        return run_by_host(stream, copy);
    if (!copy->dst.memory)
        return ct_copy_download(stream, copy);
    return run_recorded(stream, copy, mode);
}

CUresult ct_copy_run(struct ct_stream *stream, const struct ct_copy *copy, enum ct_copy_mode mode)
{
    const struct ct_copy c = simplified(copy);

    return run_simplified(stream, &c, mode);
}

CUresult ct_copy_linear(struct ct_stream *stream, enum ct_pointer_role dst_role, uint64_t dst, enum ct_pointer_role src_role, uint64_t src,
                        uint64_t size_bytes, enum ct_copy_mode mode)
{
    struct ct_copy copy = {.row_bytes = size_bytes, .rows = 1, .slices = 1};
    CUresult r;

    if (size_bytes == 0)
        return CUDA_SUCCESS;
    r = ct_place_find(dst_role, dst, size_bytes, &copy.dst);
    if (r == CUDA_SUCCESS)
        r = ct_place_find(src_role, src, size_bytes, &copy.src);
    return r == CUDA_SUCCESS ? run_simplified(stream, &copy, mode) : r;
}

CUresult ct_copy_to_device(struct ct_context *context, uint64_t dst, const void *src, uint64_t size_bytes)
{
    return ct_copy_linear(context->legacy_stream, CT_POINTER_DEVICE, dst, CT_POINTER_HOST, (uint64_t)(uintptr_t)src, size_bytes,
                          CT_COPY_SYNC);
}
