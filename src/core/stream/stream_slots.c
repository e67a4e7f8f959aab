/* SPDX-License-Identifier: Apache-2.0 */
/* The memory grows by replacement: memory that is too small is retired, and freed by a later call when the last command that was recorded
 * before its retirement is complete. Nothing waits. */
#include "stream_slots.h"

#include "core/base/log.h"
#include "core/backing/memory_backing.h"

#include <stdlib.h>

#define CT_CHANNEL "stream"

struct piece {
    struct piece *older;
    struct ct_backing backing;
    uint64_t size_bytes;
    uint64_t point; /* of a retired piece: the last command that may use it */
};

struct ct_stream_slots {
    struct ct_context *context; /* borrowed: it outlives the stream's queue */
    struct piece *newest;       /* the others are retired */
};

static void destroy_piece(struct ct_context *context, struct piece *piece)
{
    ct_backing_destroy(context, &piece->backing);
    free(piece);
}

static void free_retired(struct ct_stream_slots *slots, struct ct_queue *queue)
{
    struct piece **link = slots->newest ? &slots->newest->older : &slots->newest;
    uint64_t done;

    if (!*link || slots->context->backend->queues->completed(queue, &done) != CUDA_SUCCESS)
        return; /* after a failure, the memory is freed with the stream */
    while (*link) {
        struct piece *piece = *link;

        if (piece->point > done) {
            link = &piece->older;
            continue;
        }
        *link = piece->older;
        destroy_piece(slots->context, piece);
    }
}

static CUresult add_piece(struct ct_stream_slots *slots, struct ct_queue *queue, uint64_t size_bytes)
{
    struct piece *piece = calloc(1, sizeof *piece);
    CUresult r;

    if (!piece)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "memory for shared memory");
    r = ct_backing_create_device(slots->context, size_bytes, PTX2SPV_SLOT_ALIGN, &piece->backing);
    if (r != CUDA_SUCCESS) {
        free(piece);
        return r;
    }
    if (slots->newest)
        slots->newest->point = slots->context->backend->queues->point(queue);
    piece->size_bytes = size_bytes;
    piece->older = slots->newest;
    slots->newest = piece;
    return CUDA_SUCCESS;
}

CUresult ct_stream_slots_take(struct ct_context *context, struct ct_queue *queue, struct ct_stream_slots **slots, uint64_t size_bytes,
                              uint64_t *out_address)
{
    CUresult r;

    if (!*slots && !(*slots = calloc(1, sizeof **slots)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "memory for shared memory");
    (*slots)->context = context;
    free_retired(*slots, queue);
    if ((!(*slots)->newest || (*slots)->newest->size_bytes < size_bytes) && (r = add_piece(*slots, queue, size_bytes)) != CUDA_SUCCESS)
        return r;
    *out_address = (*slots)->newest->backing.address;
    return CUDA_SUCCESS;
}

void ct_stream_slots_destroy(struct ct_stream_slots *slots)
{
    if (!slots)
        return;
    for (struct piece *piece = slots->newest, *older; piece; piece = older) {
        older = piece->older;
        destroy_piece(slots->context, piece);
    }
    free(slots);
}
