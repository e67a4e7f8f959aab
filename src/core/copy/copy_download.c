/* SPDX-License-Identifier: Apache-2.0 */
/* Copies from the device to pageable memory: through two alternating staging buffers, by several threads if the copy is large. */
#include "copy_pieces.h"

#include "core/base/config.h"
#include "core/memory/memory_arena.h"
#include "core/base/thread.h"
#include "core/stream/stream_record.h"

#include <pthread.h>
#include <unistd.h>

#define DOWNLOAD_THREADS 4
#define DOWNLOAD_PART_BYTES ((uint64_t)4 << 20) /* a smaller part is not worth a thread */

/* A piece of a download that is in flight. */
struct reading {
    struct ct_staging *staging;
    struct ct_copy_piece piece;
    uint64_t point;
    bool active;
};

static CUresult start_reading(struct ct_stream *stream, const struct ct_copy *copy, struct reading *reading)
{
    const struct ct_copy_piece *piece = &reading->piece;
    struct ct_copy_region region =
        ct_copy_region_of(piece, 0, piece->bytes, copy->src.offset + ct_copy_src_distance(copy, &piece->at), copy->src_pitch);
    CUresult r = ct_stream_begin(stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_stream_record_copy_locked(stream, reading->staging->backing.memory, copy->src.memory, &region);
    reading->point = ct_stream_point(stream);
    reading->active = true; /* even on failure: recorded commands must complete before the staging is freed */
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
        ct_copy_rows(copy->dst.host + ct_copy_dst_distance(copy, &reading->piece.at), copy->dst_pitch, reading->staging->backing.host,
                     reading->piece.bytes, reading->piece.bytes, reading->piece.rows);
    return r;
}

/* While the host copies one piece from the staging buffer, the device copies the next one into the other. */
static CUresult read_back(struct ct_stream *stream, const struct ct_copy *copy, struct reading readings[2])
{
    struct ct_copy_cursor cursor = {0};
    unsigned turn = 0;
    CUresult r = CUDA_SUCCESS, last;

    while (r == CUDA_SUCCESS && ct_copy_next_piece(copy, &cursor, CT_STAGING_BYTES, &readings[turn].piece)) {
        r = start_reading(stream, copy, &readings[turn]);
        turn ^= 1;
        if (r == CUDA_SUCCESS)
            r = finish_reading(stream, copy, &readings[turn]);
    }
    for (unsigned i = 0; i < 2; i++) { /* the last piece, or both after a failure */
        last = finish_reading(stream, copy, &readings[i]);
        r = r == CUDA_SUCCESS ? last : r;
    }
    return r;
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

/* One processor core copies slower than the bus, so large downloads are divided among several. */
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

/* Part `index` of `count`: whole rows, or a part of a single row. */
static struct ct_copy part_of(const struct ct_copy *copy, unsigned index, unsigned count)
{
    const uint64_t units = copy->rows > 1 ? copy->rows : copy->row_bytes;
    const uint64_t first = units / count * index, n = index + 1 == count ? units - first : units / count;
    struct ct_copy part = *copy;

    part.rows = copy->rows > 1 ? n : 1;
    part.row_bytes = copy->rows > 1 ? copy->row_bytes : n;
    part.dst = ct_place_moved(&copy->dst, copy->rows > 1 ? first * copy->dst_pitch : first);
    part.src = ct_place_moved(&copy->src, copy->rows > 1 ? first * copy->src_pitch : first);
    return part;
}

/* CPU devices use all processor cores themselves. */
static uint64_t allowed_threads(const struct ct_context *context)
{
    const long processors = context->device->info.kind == CT_DEVICE_CPU ? 1 : sysconf(_SC_NPROCESSORS_ONLN);
    const long requested = ct_config()->download_threads, allowed = requested > 0 ? requested : processors;

    return allowed < DOWNLOAD_THREADS ? (uint64_t)allowed : DOWNLOAD_THREADS;
}

static unsigned count_parts(const struct ct_context *context, const struct ct_copy *copy)
{
    const uint64_t allowed = allowed_threads(context), worth = ct_copy_bytes(copy) / DOWNLOAD_PART_BYTES,
                   units = copy->rows > 1 ? copy->rows : copy->row_bytes;
    uint64_t n = worth < allowed ? worth : allowed;

    if (copy->slices > 1 || copy->src.memory->texels) /* images are not rows of bytes */
        return 1;
    n = n < units ? n : units;
    return n ? (unsigned)n : 1;
}

/* Signals are left to the application's threads. */
CUresult ct_copy_download(struct ct_stream *stream, const struct ct_copy *copy)
{
    struct download parts[DOWNLOAD_THREADS];
    const unsigned n = count_parts(stream->context, copy);
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < n; i++)
        parts[i] = (struct download){.stream = stream, .copy = part_of(copy, i, n)};
    for (unsigned i = n; i-- > 0;) {
        parts[i].has_thread = i > 0 && ct_thread_start(&parts[i].thread, run_part, &parts[i]) == 0;
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
