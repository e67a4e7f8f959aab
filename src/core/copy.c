/* SPDX-License-Identifier: Apache-2.0 */
/* Copies (Driver API: Memory Management; "API synchronization behavior").
 *
 * The ways, by what the two places are:
 *   both known to the device   the stream's queue copies, or a kernel (copy_kernel.c). Where they overlap, by way of the stream's ring (CUDA leaves the result open).
 *   pageable to device         through the stream's ring, piece by piece: the source has been read when the call comes back
 *   device to pageable         through two staging buffers in turn, by several threads if it is much: the call waits
 *   pageable to pageable       the host copies, when the stream's work is done
 *   two devices                by way of host memory; the call waits
 * Levels of images go these ways, too: to all of this their texels are bytes like others, which the host reaches by copies only.
 * Where the host reaches device memory as fast as the device does (CPU devices), it copies itself once the stream is idle. */
#include "copy.h"

#include "config.h"
#include "copy_kernel.h"
#include "log.h"
#include "memory_arena.h"
#include "stream_ring.h"
#include "thread.h"
#include "vmm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CT_CHANNEL "copy"
#define PIECE_BYTES CT_RING_SHARED_BYTES
#define ASYNC_BY_HOST_BYTES ((uint64_t)64 << 10) /* what the caller of an asynchronous copy can be asked to copy itself */
#define BOUNCE_BYTES CT_STAGING_BYTES
#define DOWNLOAD_THREADS 4
#define DOWNLOAD_PART_BYTES ((uint64_t)4 << 20) /* less is not worth a thread */

/* ---- places ---- */

static bool is_device_kind(enum ct_range_kind kind)
{
    return kind == CT_RANGE_DEVICE || kind == CT_RANGE_POOL || kind == CT_RANGE_IPC || kind == CT_RANGE_MODULE;
}

static CUresult find_virtual(uint64_t address, uint64_t span_bytes, bool synchronous, struct ct_place *out)
{
    struct ct_vmm_spot spot;
    CUresult r = ct_vmm_spot_at(address, span_bytes, &spot);

    if (r == CUDA_SUCCESS)
        *out = (struct ct_place){.memory = spot.memory,
                                 .offset = spot.offset,
                                 .host = spot.host,
                                 .is_device = true,
                                 .read_only = spot.read_only,
                                 .synchronous = synchronous,
                                 .owner = spot.owner};
    return r;
}

CUresult ct_place_find(enum ct_pointer_role role, uint64_t address, uint64_t span_bytes, struct ct_place *out)
{
    struct ct_range range;
    CUresult r;

    if (!address)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a NULL pointer");
    if (!ct_address_find_any(address, 1, &range) && role != CT_POINTER_DEVICE) {
        *out = (struct ct_place){.host = (char *)(uintptr_t)address};
        return CUDA_SUCCESS;
    }
    r = ct_address_find(address, span_bytes, &range);
    if (r != CUDA_SUCCESS && role == CT_POINTER_HOST && range.kind == CT_RANGE_REGISTERED &&
        (uint64_t)(uintptr_t)range.host == range.start) {
        *out = (struct ct_place){.host = (char *)(uintptr_t)address}; /* only its beginning was registered: ordinary memory */
        return CUDA_SUCCESS;
    }
    if (r != CUDA_SUCCESS)
        return r;
    if (range.kind == CT_RANGE_VIRTUAL)
        return find_virtual(address, span_bytes, range.synchronous, out);
    *out = (struct ct_place){
        .memory = range.memory,
        .offset = range.memory_offset + (address - range.start),
        .host = range.host ? (char *)range.host + (address - range.start) : NULL,
        .is_device = is_device_kind(range.kind),
        .synchronous = range.synchronous,
        .owner = range.owner,
    };
    return CUDA_SUCCESS;
}

CUresult ct_copy_span(uint64_t row_bytes, uint64_t rows, uint64_t pitch, uint64_t slices, uint64_t slice, uint64_t *out)
{
    uint64_t in_rows, in_slices;

    if (__builtin_mul_overflow(rows - 1, pitch, &in_rows) || __builtin_mul_overflow(slices - 1, slice, &in_slices) ||
        __builtin_add_overflow(in_rows, in_slices, &in_rows) || __builtin_add_overflow(in_rows, row_bytes, out))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a copy of more than 64 bits of address");
    return CUDA_SUCCESS;
}

static uint64_t total_bytes(const struct ct_copy *copy)
{
    return copy->row_bytes * copy->rows * copy->slices; /* no more than the spans, which fit */
}

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

/* ---- pieces ---- */

struct cursor {
    uint64_t slice, row, column;
};

/* A part of a copy: `rows` rows of `bytes` each. */
struct piece {
    struct cursor at;
    uint64_t rows, bytes;
};

/* The next part of at most `limit` bytes. False: that was all. */
static bool next_piece(const struct ct_copy *copy, struct cursor *cursor, uint64_t limit, struct piece *out)
{
    if (cursor->slice == copy->slices)
        return false;
    *out = (struct piece){.at = *cursor};
    if (copy->row_bytes <= limit) {
        uint64_t fit = limit / copy->row_bytes, left = copy->rows - cursor->row;

        out->rows = fit < left ? fit : left;
        out->bytes = copy->row_bytes;
        cursor->row += out->rows;
    } else {
        uint64_t left = copy->row_bytes - cursor->column;

        out->rows = 1;
        out->bytes = limit < left ? limit : left;
        cursor->column += out->bytes;
        if (cursor->column == copy->row_bytes) {
            cursor->column = 0;
            cursor->row++;
        }
    }
    if (cursor->row == copy->rows) {
        cursor->row = 0;
        cursor->slice++;
    }
    return true;
}

static uint64_t dst_distance(const struct ct_copy *copy, const struct cursor *at)
{
    return at->slice * copy->dst_slice + at->row * copy->dst_pitch + at->column;
}

static uint64_t src_distance(const struct ct_copy *copy, const struct cursor *at)
{
    return at->slice * copy->src_slice + at->row * copy->src_pitch + at->column;
}

static void copy_rows(char *dst, uint64_t dst_pitch, const char *src, uint64_t src_pitch, uint64_t bytes, uint64_t rows)
{
    for (uint64_t row = 0; row < rows; row++)
        memmove(dst + row * dst_pitch, src + row * src_pitch, bytes);
}

/* A region from or to a place where the piece lies without gaps. */
static struct ct_copy_region region_of_piece(const struct piece *piece, uint64_t dst, uint64_t dst_pitch, uint64_t src, uint64_t src_pitch)
{
    return (struct ct_copy_region){
        .dst_offset = dst,
        .src_offset = src,
        .row_bytes = piece->bytes,
        .rows = piece->rows,
        .dst_pitch = dst_pitch,
        .src_pitch = src_pitch,
        .slices = 1,
    };
}

/* ---- the ways ---- */

static const struct ct_backend *backend_of(const struct ct_stream *stream)
{
    return stream->context->backend;
}

static void copy_by_host(const struct ct_copy *copy)
{
    for (uint64_t slice = 0; slice < copy->slices; slice++)
        copy_rows(copy->dst.host + slice * copy->dst_slice, copy->dst_pitch, copy->src.host + slice * copy->src_slice, copy->src_pitch,
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

    return backend_of(stream)->queue_copy(stream->queue, copy->dst.memory, copy->src.memory, &region, 1);
}

static CUresult record_upload_locked(struct ct_stream *stream, const struct ct_copy *copy)
{
    struct cursor cursor = {0};
    struct ct_ring_piece staged;
    struct piece piece;
    CUresult r = CUDA_SUCCESS;

    while (r == CUDA_SUCCESS && next_piece(copy, &cursor, PIECE_BYTES, &piece)) {
        struct ct_copy_region region;

        r = ct_stream_ring_take(stream->ring, piece.rows * piece.bytes, CT_TEXEL_BYTES, &staged);
        if (r != CUDA_SUCCESS)
            return r;
        copy_rows(staged.host, piece.bytes, copy->src.host + src_distance(copy, &piece.at), copy->src_pitch, piece.bytes, piece.rows);
        region = region_of_piece(&piece, copy->dst.offset + dst_distance(copy, &piece.at), copy->dst_pitch, staged.offset, piece.bytes);
        r = backend_of(stream)->queue_copy(stream->queue, copy->dst.memory, staged.memory, &region, 1);
        ct_stream_ring_commit(stream->ring);
    }
    return r;
}

/* One piece from src to dst by way of the ring. */
static CUresult record_around_locked(struct ct_stream *stream, const struct ct_copy *copy, const struct piece *piece)
{
    const struct ct_backend *backend = backend_of(stream);
    struct ct_copy_region region;
    struct ct_ring_piece staged;
    CUresult r = ct_stream_ring_take(stream->ring, piece->rows * piece->bytes, CT_TEXEL_BYTES, &staged);

    if (r != CUDA_SUCCESS)
        return r;
    region = region_of_piece(piece, staged.offset, piece->bytes, copy->src.offset + src_distance(copy, &piece->at), copy->src_pitch);
    r = backend->queue_copy(stream->queue, staged.memory, copy->src.memory, &region, 1);
    if (r == CUDA_SUCCESS) {
        region = region_of_piece(piece, copy->dst.offset + dst_distance(copy, &piece->at), copy->dst_pitch, staged.offset, piece->bytes);
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
    struct cursor cursor = {0};
    struct piece piece;
    CUresult r = CUDA_SUCCESS;

    if (!backwards) {
        while (r == CUDA_SUCCESS && next_piece(copy, &cursor, PIECE_BYTES, &piece))
            r = record_around_locked(stream, copy, &piece);
        return r;
    }
    for (uint64_t end = copy->row_bytes; end > 0 && r == CUDA_SUCCESS; end -= piece.bytes) {
        piece = (struct piece){.rows = 1, .bytes = end < PIECE_BYTES ? end : PIECE_BYTES};
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

/* A piece of a download that is under way. */
struct reading {
    struct ct_staging *staging;
    struct piece piece;
    uint64_t point;
    bool active;
};

static CUresult start_reading(struct ct_stream *stream, const struct ct_copy *copy, struct reading *reading)
{
    const struct piece *piece = &reading->piece;
    struct ct_copy_region region =
        region_of_piece(piece, 0, piece->bytes, copy->src.offset + src_distance(copy, &piece->at), copy->src_pitch);
    CUresult r = ct_stream_begin(stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = backend_of(stream)->queue_copy(stream->queue, reading->staging->backing.memory, copy->src.memory, &region, 1);
    reading->point = backend_of(stream)->queue_point(stream->queue);
    reading->active = true; /* even if it failed: what was recorded of it must be over before the staging is given back */
    ct_stream_end(stream);
    return ct_context_check(stream->context, r);
}

static CUresult finish_reading(struct ct_stream *stream, const struct ct_copy *copy, struct reading *reading)
{
    CUresult r;

    if (!reading->active)
        return CUDA_SUCCESS;
    reading->active = false;
    r = ct_stream_await(stream, reading->point);
    if (r == CUDA_SUCCESS)
        copy_rows(copy->dst.host + dst_distance(copy, &reading->piece.at), copy->dst_pitch, reading->staging->backing.host,
                  reading->piece.bytes, reading->piece.bytes, reading->piece.rows);
    return r;
}

/* While the host copies one piece out, the device copies the next. */
static CUresult read_back(struct ct_stream *stream, const struct ct_copy *copy, struct reading readings[2])
{
    struct cursor cursor = {0};
    unsigned turn = 0;
    CUresult r = CUDA_SUCCESS, last;

    while (r == CUDA_SUCCESS && next_piece(copy, &cursor, CT_STAGING_BYTES, &readings[turn].piece)) {
        r = start_reading(stream, copy, &readings[turn]);
        turn ^= 1;
        if (r == CUDA_SUCCESS)
            r = finish_reading(stream, copy, &readings[turn]);
    }
    for (unsigned i = 0; i < 2; i++) { /* the last one, or both after a failure */
        last = finish_reading(stream, copy, &readings[i]);
        r = r == CUDA_SUCCESS ? last : r;
    }
    return r;
}

static struct ct_place moved(const struct ct_place *place, uint64_t distance)
{
    struct ct_place p = *place;

    p.offset += distance;
    p.host = p.host ? p.host + distance : NULL;
    return p;
}

static CUresult download_part(struct ct_stream *stream, const struct ct_copy *copy)
{
    struct reading readings[2] = {0};
    CUresult r = ct_staging_acquire(stream->context, &readings[0].staging);

    if (r == CUDA_SUCCESS)
        r = ct_staging_acquire(stream->context, &readings[1].staging);
    if (r == CUDA_SUCCESS)
        r = read_back(stream, copy, readings);
    ct_staging_release(stream->context, readings[0].staging);
    ct_staging_release(stream->context, readings[1].staging);
    return r;
}

/* One processor does not copy as fast as a bus: large downloads are shared out among some. */
struct download {
    struct ct_stream *stream;
    struct ct_copy copy;
    CUresult result;
    pthread_t thread;
    bool has_thread;
};

static void *run_part(void *argument)
{
    struct download *part = argument;

    part->result = download_part(part->stream, &part->copy);
    return NULL;
}

/* Part `index` of `count`: whole rows, or of one row some of its bytes. */
static struct ct_copy part_of(const struct ct_copy *copy, unsigned index, unsigned count)
{
    const uint64_t units = copy->rows > 1 ? copy->rows : copy->row_bytes;
    const uint64_t first = units / count * index, n = index + 1 == count ? units - first : units / count;
    struct ct_copy part = *copy;

    part.rows = copy->rows > 1 ? n : 1;
    part.row_bytes = copy->rows > 1 ? copy->row_bytes : n;
    part.dst = moved(&copy->dst, copy->rows > 1 ? first * copy->dst_pitch : first);
    part.src = moved(&copy->src, copy->rows > 1 ? first * copy->src_pitch : first);
    return part;
}

/* CPU devices take the processors for themselves. */
static uint64_t allowed_threads(const struct ct_context *context)
{
    const long processors = context->device->info.kind == CT_DEVICE_CPU ? 1 : sysconf(_SC_NPROCESSORS_ONLN);
    const long asked = ct_config()->download_threads, allowed = asked > 0 ? asked : processors;

    return allowed < DOWNLOAD_THREADS ? (uint64_t)allowed : DOWNLOAD_THREADS;
}

static unsigned count_parts(const struct ct_context *context, const struct ct_copy *copy)
{
    const uint64_t allowed = allowed_threads(context), worth = total_bytes(copy) / DOWNLOAD_PART_BYTES, units = copy->rows > 1 ? copy->rows : copy->row_bytes;
    uint64_t n = worth < allowed ? worth : allowed;

    if (copy->slices > 1 || copy->src.memory->texels) /* images are no rows of bytes */
        return 1;
    n = n < units ? n : units;
    return n ? (unsigned)n : 1;
}

/* Signals are for the application's threads. */
static CUresult run_download(struct ct_stream *stream, const struct ct_copy *copy)
{
    struct download parts[DOWNLOAD_THREADS];
    const unsigned n = count_parts(stream->context, copy);
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < n; i++)
        parts[i] = (struct download){.stream = stream, .copy = part_of(copy, i, n)};
    for (unsigned i = n; i-- > 0;) {
        parts[i].has_thread = i > 0 && ct_thread_start(&parts[i].thread, NULL, run_part, &parts[i]) == 0;
        if (!parts[i].has_thread)
            run_part(&parts[i]);
    }
    for (unsigned i = 0; i < n; i++) {
        if (parts[i].has_thread)
            pthread_join(parts[i].thread, NULL);
        r = r == CUDA_SUCCESS ? parts[i].result : r;
    }
    return r;
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

static CUresult bounce(const struct ct_copy *copy, const struct piece *piece, char *buffer)
{
    struct ct_copy half = {
        .row_bytes = piece->bytes,
        .rows = piece->rows,
        .slices = 1,
        .dst = {.host = buffer},
        .dst_pitch = piece->bytes,
        .src = moved(&copy->src, src_distance(copy, &piece->at)),
        .src_pitch = copy->src_pitch,
    };
    CUresult r = run_in_owner(copy->src.owner, &half);

    if (r != CUDA_SUCCESS)
        return r;
    half.src = half.dst;
    half.src_pitch = half.dst_pitch;
    half.dst = moved(&copy->dst, dst_distance(copy, &piece->at));
    half.dst_pitch = copy->dst_pitch;
    return run_in_owner(copy->dst.owner, &half);
}

/* At least one place belongs to another device than the stream: the host stands between, in the stream's order. */
static CUresult run_foreign(struct ct_stream *stream, const struct ct_copy *copy)
{
    struct cursor cursor = {0};
    struct piece piece;
    char *buffer;
    CUresult r = ct_stream_settle(stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (!copy->src.memory || !copy->dst.memory)
        return run_in_owner(copy->src.memory ? copy->src.owner : copy->dst.owner, copy);
    buffer = malloc(BOUNCE_BYTES);
    if (!buffer)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "buffer between two devices");
    while (r == CUDA_SUCCESS && next_piece(copy, &cursor, BOUNCE_BYTES, &piece))
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

static CUresult run_recorded(struct ct_stream *stream, const struct ct_copy *copy, enum ct_copy_mode mode)
{
    const bool by_kernel = ct_copy_kernel_takes(stream->context->device, copy); /* may compile it: not with the stream begun */
    uint64_t point;
    CUresult r = ct_stream_begin(stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (host_could(stream, copy) && total_bytes(copy) <= ASYNC_BY_HOST_BYTES && ct_stream_is_idle_locked(stream)) {
        copy_by_host(copy);
        ct_stream_end(stream);
        return ct_context_check(stream->context, CUDA_SUCCESS);
    }
    r = record_locked(stream, copy, by_kernel);
    point = backend_of(stream)->queue_point(stream->queue);
    ct_stream_end(stream);
    if (r == CUDA_SUCCESS && may_wait(copy, mode))
        return ct_stream_await(stream, point);
    return ct_context_check(stream->context, r);
}

CUresult ct_copy_run(struct ct_stream *stream, const struct ct_copy *copy, enum ct_copy_mode mode)
{
    struct ct_copy c = simplified(copy);

    if (c.dst.read_only)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a copy to memory that may only be read");
    if (is_foreign(stream, &c.dst) || is_foreign(stream, &c.src))
        return run_foreign(stream, &c);
    if (host_could(stream, &c) && may_wait(&c, mode))
        return run_by_host(stream, &c);
    if (!c.dst.memory)
        return run_download(stream, &c);
    return run_recorded(stream, &c, mode);
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
    return r == CUDA_SUCCESS ? ct_copy_run(stream, &copy, mode) : r;
}

CUresult ct_copy_to_device(struct ct_context *context, uint64_t dst, const void *src, uint64_t size_bytes)
{
    return ct_copy_linear(context->legacy_stream, CT_POINTER_DEVICE, dst, CT_POINTER_HOST, (uint64_t)(uintptr_t)src, size_bytes,
                          CT_COPY_SYNC);
}
