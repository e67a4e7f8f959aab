/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between two devices: through host memory, with each half in the context that owns the memory. */
#include "copy_devices.h"

#include "core/base/log.h"
#include "core/memory/memory_arena.h"
#include "copy_pieces.h"

#include <stdlib.h>

#define CT_CHANNEL "copy"
#define BOUNCE_BYTES CT_STAGING_BYTES

/* One half, in the legacy stream of the context that owns the memory. */
static CUresult run_in_owner(CUcontext owner, const struct ct_copy *copy, ct_copy_executor *execute)
{
    struct ct_context *context;
    CUresult r = ct_context_lookup(owner, &context);

    if (r != CUDA_SUCCESS)
        return r;
    r = execute(context->legacy_stream, &(struct ct_copy_command){.copy = *copy, .mode = CT_COPY_SYNC});
    ct_context_release(context);
    return r;
}

static CUresult bounce(const struct ct_copy *copy, const struct ct_copy_piece *piece, char *buffer, ct_copy_executor *execute)
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
    CUresult r = run_in_owner(copy->src.owner, &half, execute);

    if (r != CUDA_SUCCESS)
        return r;
    half.src = half.dst;
    half.src_pitch = half.dst_pitch;
    half.dst = ct_place_moved(&copy->dst, ct_copy_dst_distance(copy, &piece->at));
    half.dst_pitch = copy->dst_pitch;
    return run_in_owner(copy->dst.owner, &half, execute);
}

/* At least one location belongs to another device than the stream, so the host copies through a buffer, in stream order. */
CUresult ct_copy_between_devices(struct ct_stream *stream, const struct ct_copy *copy, ct_copy_executor *execute)
{
    struct ct_copy_cursor cursor = {0};
    struct ct_copy_piece piece;
    char *buffer;
    CUresult r = ct_stream_drain(stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (!copy->src.memory || !copy->dst.memory)
        return run_in_owner(copy->src.memory ? copy->src.owner : copy->dst.owner, copy, execute);
    buffer = malloc(BOUNCE_BYTES);
    if (!buffer)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "buffer for a copy between two devices");
    while (r == CUDA_SUCCESS && ct_copy_next_piece(copy, &cursor, BOUNCE_BYTES, &piece))
        r = bounce(copy, &piece, buffer, execute);
    free(buffer);
    return r;
}
