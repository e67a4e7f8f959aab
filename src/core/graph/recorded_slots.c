/* SPDX-License-Identifier: Apache-2.0 */
#include "recorded_slots.h"

#include "core/backing/memory_backing.h"
#include "core/base/exclusive.h"
#include "core/base/log.h"
#include "launch_mark.h"

#include <stdlib.h>

#define CT_CHANNEL "graph"

struct piece {
    struct piece *smaller;
    struct ct_backing backing;
    uint64_t size_bytes;
};

struct ct_recorded_slots {
    struct ct_exclusive use;   /* of the thread that changes the members below */
    struct piece *largest;     /* NULL: none was needed yet */
    struct ct_event *replayed; /* after the last replay; NULL: there was none */
};

static struct ct_recorded_slots *slots_of(struct ct_context *context)
{
    struct ct_recorded_slots *before = atomic_load_explicit(&context->recorded_slots, memory_order_acquire); /* pairs with the exchange */
    struct ct_recorded_slots *made;

    if (before || !(made = calloc(1, sizeof *made)))
        return before;
    ct_exclusive_init(&made->use);
    if (atomic_compare_exchange_strong(&context->recorded_slots, &before, made))
        return made;
    ct_exclusive_finish(&made->use);
    free(made);
    return before;
}

/* At least twice the size of before, so that all pieces together are at most twice as large as the largest. */
static CUresult grow(struct ct_context *context, struct ct_recorded_slots *slots, uint64_t size_bytes)
{
    struct piece *piece = calloc(1, sizeof *piece);
    CUresult r;

    if (!piece)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the shared memory of recorded kernels");
    piece->size_bytes = slots->largest && 2 * slots->largest->size_bytes > size_bytes ? 2 * slots->largest->size_bytes : size_bytes;
    if ((r = ct_backing_create_device(context, piece->size_bytes, PTX2SPV_SLOT_ALIGN, &piece->backing)) != CUDA_SUCCESS) {
        free(piece);
        return r;
    }
    piece->smaller = slots->largest;
    slots->largest = piece;
    return CUDA_SUCCESS;
}

CUresult ct_recorded_slots_take(struct ct_context *context, uint64_t size_bytes, uint64_t *out_address)
{
    struct ct_recorded_slots *slots = slots_of(context);
    CUresult r = CUDA_SUCCESS;

    if (!slots)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the shared memory of recorded kernels");
    ct_exclusive_enter(&slots->use);
    if (!slots->largest || slots->largest->size_bytes < size_bytes)
        r = grow(context, slots, size_bytes);
    if (r == CUDA_SUCCESS)
        *out_address = slots->largest->backing.address;
    ct_exclusive_leave(&slots->use);
    return r;
}

CUresult ct_recorded_slots_begin(struct ct_stream *stream)
{
    struct ct_recorded_slots *slots = slots_of(stream->context); /* exists, since a recording uses it */
    CUresult r;

    ct_exclusive_enter(&slots->use);
    r = ct_launch_mark_follow(slots->replayed, stream);
    if (r != CUDA_SUCCESS)
        ct_exclusive_leave(&slots->use);
    return r;
}

CUresult ct_recorded_slots_end(struct ct_stream *stream)
{
    struct ct_recorded_slots *slots = slots_of(stream->context);
    CUresult r = ct_launch_mark_record(&slots->replayed, stream);

    ct_exclusive_leave(&slots->use);
    return r;
}

void ct_recorded_slots_destroy(struct ct_context *context)
{
    struct ct_recorded_slots *slots = atomic_exchange(&context->recorded_slots, NULL);

    if (!slots)
        return;
    while (slots->largest) {
        struct piece *piece = slots->largest;

        slots->largest = piece->smaller;
        ct_backing_destroy(context, &piece->backing);
        free(piece);
    }
    if (slots->replayed)
        ct_event_discard(slots->replayed);
    ct_exclusive_finish(&slots->use);
    free(slots);
}
