/* SPDX-License-Identifier: Apache-2.0 */
/* Memset (Driver API: Memory Management).
 *
 * The queue fills the part of a run of bytes that is aligned to 4; the unaligned ends (at most 3 bytes each) are small copies from the
 * stream's ring. Many short rows with gaps are one copy, whose source is a single row in the ring with a pitch of 0. */
#include "memset.h"

#include "core/backing/address_uses.h"
#include "core/base/config.h"
#include "core/base/log.h"
#include "core/stream/stream_record.h"
#include "core/stream/stream_ring.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CT_CHANNEL "memset"
#define FILL_ROWS 16 /* up to this many rows are filled one by one */
#define HOST_FILL_BYTES ((uint64_t)64 << 10)

static uint32_t pattern_of(uint32_t value, unsigned element_bytes)
{
    switch (element_bytes) {
    case 1:
        return (value & 0xff) * 0x01010101u;
    case 2:
        return (value & 0xffff) * 0x00010001u;
    default:
        return value;
    }
}

/* The pattern that begins at a byte with an offset of `phase` from a multiple of 4. */
static void write_pattern(char *to, uint64_t bytes, uint32_t pattern, unsigned phase)
{
    char four[4];

    memcpy(four, &pattern, sizeof four);
    for (uint64_t i = 0; i < bytes && i < 4; i++)
        to[i] = four[(phase + i) % 4];
    for (uint64_t done = 4; done < bytes; done *= 2) /* doubles the filled part; copies of whole patterns keep the phase */
        memcpy(to + done, to, done < bytes - done ? done : bytes - done);
}

/* Copies one row from the ring to all rows. The row is no longer than a shared request of the ring. */
static CUresult copy_rows_locked(struct ct_stream *stream, const struct ct_fill *fill, uint64_t offset, uint64_t bytes, uint64_t rows)
{
    struct ct_copy_region region = {
        .dst_offset = offset,
        .row_bytes = bytes,
        .rows = rows,
        .dst_pitch = fill->pitch,
        .src_pitch = 0,
        .slices = 1,
    };
    struct ct_ring_piece staged;
    CUresult r = ct_stream_ring_take(stream->ring, bytes, 4, &staged);

    if (r != CUDA_SUCCESS)
        return r;
    write_pattern(staged.host, bytes, fill->pattern, (unsigned)(offset % 4));
    region.src_offset = staged.offset;
    return ct_stream_record_copy_locked(stream, fill->place.memory, staged.memory, &region);
}

/* Fills one run of bytes at `offset` of the memory. The run is aligned to the element, so the pattern starts with a whole one. */
static CUresult fill_run_locked(struct ct_stream *stream, const struct ct_fill *fill, uint64_t offset, uint64_t bytes)
{
    uint64_t head = -offset & 3, middle, tail;
    CUresult r = CUDA_SUCCESS;

    head = head < bytes ? head : bytes;
    middle = (bytes - head) & ~(uint64_t)3;
    tail = bytes - head - middle;
    if (head)
        r = copy_rows_locked(stream, fill, offset, head, 1);
    if (r == CUDA_SUCCESS && middle)
        r = ct_stream_record_fill_locked(stream, fill->place.memory, offset + head, middle, fill->pattern);
    if (r == CUDA_SUCCESS && tail)
        r = copy_rows_locked(stream, fill, offset + head + middle, tail, 1);
    return r;
}

/* If the pitch is not a multiple of 4 the rows begin at different phases, but the pattern of 1-byte elements is the same in all phases, and
 * that of 2-byte elements repeats every 2 bytes. So one staged row is enough for all. */
static CUresult fill_locked(struct ct_stream *stream, const struct ct_fill *fill)
{
    CUresult r = CUDA_SUCCESS;

    if (fill->rows > FILL_ROWS && fill->row_bytes <= CT_RING_SHARED_BYTES)
        return copy_rows_locked(stream, fill, fill->place.offset, fill->row_bytes, fill->rows);
    for (uint64_t row = 0; row < fill->rows && r == CUDA_SUCCESS; row++) {
        r = fill_run_locked(stream, fill, fill->place.offset + row * fill->pitch, fill->row_bytes);
        ct_stream_ring_commit(stream->ring);
    }
    return r;
}

static void fill_by_host(const struct ct_fill *fill)
{
    for (uint64_t row = 0; row < fill->rows; row++)
        write_pattern(fill->place.host + row * fill->pitch, fill->row_bytes, fill->pattern,
                      (unsigned)((fill->place.offset + row * fill->pitch) % 4));
}

static CUresult run(struct ct_stream *stream, const struct ct_fill *fill)
{
    uint64_t point;
    CUresult r = ct_stream_begin(stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (fill->place.host && ct_copy_host_is_fast(stream->context) && fill->row_bytes * fill->rows <= HOST_FILL_BYTES &&
        ct_stream_is_idle_locked(stream)) {
        fill_by_host(fill);
        ct_stream_end(stream);
        return ct_context_check(stream->context, CUDA_SUCCESS);
    }
    r = fill_locked(stream, fill);
    point = ct_stream_point(stream);
    ct_stream_end(stream);
    if (r == CUDA_SUCCESS && fill->mode == CT_COPY_SYNC && (fill->place.synchronous || !fill->place.is_device))
        return ct_stream_await(stream, point);
    return ct_context_check(stream->context, r);
}

/* Memory of another device is filled in the legacy stream of its own context, after this stream's work is complete. */
static CUresult run_in_owner(struct ct_stream *stream, const struct ct_fill *fill)
{
    struct ct_fill waiting = *fill;
    struct ct_context *context;
    CUresult r = ct_stream_drain(stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_context_lookup(fill->place.owner, &context);
    if (r != CUDA_SUCCESS)
        return r;
    waiting.mode = CT_COPY_SYNC;
    r = run(context->legacy_stream, &waiting);
    if (r == CUDA_SUCCESS)
        r = ct_stream_synchronize(context->legacy_stream);
    ct_context_release(context);
    return r;
}

static CUresult check_shape(uint64_t address, uint64_t pitch, unsigned element_bytes, uint64_t row_bytes, uint64_t height)
{
    if (address % element_bytes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "address 0x%llx is not aligned to elements of %u bytes", (unsigned long long)address,
                       element_bytes);
    if (height > 1 && pitch % element_bytes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pitch %llu is not a multiple of elements of %u bytes", (unsigned long long)pitch,
                       element_bytes);
    if (height > 1 && pitch < row_bytes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pitch %llu is less than a row of %llu bytes", (unsigned long long)pitch,
                       (unsigned long long)row_bytes);
    return CUDA_SUCCESS;
}

CUresult ct_fill_init(struct ct_fill *out, const struct ct_fill_request *request)
{
    struct ct_fill fill = {
        .pattern = pattern_of(request->value, request->element_bytes),
        .rows = request->height,
        .pitch = request->pitch,
        .mode = request->mode,
    };
    uint64_t span;
    CUresult r;

    *out = (struct ct_fill){0};
    if (request->width == 0 || request->height == 0)
        return CUDA_SUCCESS;
    if (__builtin_mul_overflow(request->width, (uint64_t)request->element_bytes, &fill.row_bytes))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the size of rows of %llu elements overflows", (unsigned long long)request->width);
    r = check_shape(request->address, fill.pitch, request->element_bytes, fill.row_bytes, fill.rows);
    if (r == CUDA_SUCCESS)
        r = ct_copy_span(fill.row_bytes, fill.rows, fill.pitch, 1, 0, &span);
    if (r == CUDA_SUCCESS)
        r = ct_place_find(CT_POINTER_DEVICE, request->address, span, &fill.place);
    if (r != CUDA_SUCCESS)
        return r;
    if (fill.place.read_only)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is read-only memory", (unsigned long long)request->address);
    if (fill.pitch == fill.row_bytes) {
        fill.row_bytes *= fill.rows;
        fill.rows = 1;
    }
    *out = fill;
    return CUDA_SUCCESS;
}

static void note_written(const struct ct_stream *stream, const struct ct_fill *fill)
{
    for (uint64_t row = 0; row < fill->rows; row++) {
        const struct ct_place place = ct_place_moved(&fill->place, row * fill->pitch);

        ct_place_note_write(stream, &place, fill->row_bytes);
    }
}

CUresult ct_fill_execute(struct ct_stream *stream, const struct ct_fill *fill)
{
    if (fill->rows == 0)
        return CUDA_SUCCESS;
    ct_context_note_access(stream->context, fill->place.owner);
    if (ct_config()->check_written)
        note_written(stream, fill);
    if (fill->place.memory->device != stream->context->backend_device)
        return run_in_owner(stream, fill);
    return run(stream, fill);
}

static CUresult clear(struct ct_context *context, uint64_t address, uint64_t size_bytes)
{
    const struct ct_fill_request request = {.address = address, .width = size_bytes, .height = 1, .element_bytes = 1, .mode = CT_COPY_SYNC};
    struct ct_fill fill;
    CUresult r = ct_fill_init(&fill, &request);

    return r == CUDA_SUCCESS ? ct_fill_execute(context->legacy_stream, &fill) : r;
}

/* On CPU devices, gives whole pages of memory back to the system, which makes new ones, with zeros, where they are used. It refuses (EINVAL)
 * for other memory than that of files. */
static bool drop_pages(struct ct_context *context, uint64_t start, uint64_t end)
{
    struct ct_place place;

    return start < end && ct_copy_host_is_fast(context) && ct_place_find(CT_POINTER_DEVICE, start, end - start, &place) == CUDA_SUCCESS &&
           place.host && madvise(place.host, end - start, MADV_REMOVE) == 0;
}

CUresult ct_clear_device(struct ct_context *context, uint64_t address, uint64_t size_bytes)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t start = (address + page - 1) & ~(page - 1), end = (address + size_bytes) & ~(page - 1);
    const unsigned uses = ct_address_uses_begin();
    CUresult r;

    if (drop_pages(context, start, end)) {
        r = clear(context, address, start - address);
        if (r == CUDA_SUCCESS)
            r = clear(context, end, address + size_bytes - end);
    } else {
        r = clear(context, address, size_bytes);
    }
    ct_address_uses_end(uses);
    return r == CUDA_SUCCESS ? ct_stream_synchronize(context->legacy_stream) : r;
}
