/* SPDX-License-Identifier: Apache-2.0 */
/* A stream's ring: blocks of host memory in the order in which they were filled.
 *
 *   FILLING ──full, or committed──> BUSY(point) ──point complete──> free, and FILLING again
 *
 * Only the newest block is filled; the oldest blocks are recycled first. `open` blocks hold pieces taken since the last commit, whose
 * point is not known yet. A large request gets a block of its own, which is destroyed when its point is complete. */
#include "stream_ring.h"

#include "core/base/log.h"
#include "core/backing/memory_backing.h"

#include <assert.h>
#include <stdlib.h>

#define CT_CHANNEL "stream"
#define FIRST_BLOCK_BYTES ((uint64_t)256 << 10) /* most streams never need more */
#define BLOCK_BYTES ((uint64_t)1 << 20)
#define RING_BYTES ((uint64_t)16 << 20) /* above this size, wait for older work */
#define LARGE_IN_FLIGHT_BYTES ((uint64_t)256 << 20)
#define MIN_ALIGN 16

struct block {
    struct block *next; /* newer */
    struct ct_backing backing;
    uint64_t used_bytes;
    uint64_t point; /* the last command that uses the block */
    bool open;
    bool large;
};

struct ct_stream_ring {
    struct ct_context *context; /* borrowed: outlives the stream's queue */
    struct ct_queue *queue;     /* borrowed: the stream's */
    struct block *oldest, *newest;
    uint64_t shared_bytes, large_bytes; /* totals of all blocks */
};

static CUresult block_create(struct ct_stream_ring *ring, uint64_t size_bytes, bool large, struct block **out)
{
    struct block *block = calloc(1, sizeof *block);
    CUresult r;

    if (!block)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "ring block");
    r = ct_backing_create_host(ring->context, size_bytes, CT_MEMORY_HOST, &block->backing);
    if (r != CUDA_SUCCESS) {
        free(block);
        return r;
    }
    block->large = large;
    *(large ? &ring->large_bytes : &ring->shared_bytes) += block->backing.memory->size_bytes;
    *out = block;
    return CUDA_SUCCESS;
}

static void block_destroy(struct ct_stream_ring *ring, struct block *block)
{
    *(block->large ? &ring->large_bytes : &ring->shared_bytes) -= block->backing.memory->size_bytes;
    ct_backing_destroy(ring->context, &block->backing);
    free(block);
}

static void append(struct ct_stream_ring *ring, struct block *block)
{
    block->next = NULL;
    if (ring->newest)
        ring->newest->next = block;
    else
        ring->oldest = block;
    ring->newest = block;
}

static void unlink_block(struct ct_stream_ring *ring, struct block *block)
{
    struct block **link = &ring->oldest, *before = NULL;

    while (*link != block) {
        before = *link;
        link = &before->next;
    }
    *link = block->next;
    if (ring->newest == block)
        ring->newest = before;
}

static uint64_t completed_point(const struct ct_stream_ring *ring)
{
    uint64_t point;

    /* a failed queue runs nothing any more */
    return ring->context->backend->queues->completed(ring->queue, &point) == CUDA_SUCCESS ? point : UINT64_MAX;
}

/* Removes the oldest shared block from the list and returns it if its work is complete, else NULL. Complete large blocks before it are
 * destroyed. */
static struct block *take_complete_or_null(struct ct_stream_ring *ring)
{
    uint64_t completed = completed_point(ring);
    struct block *block = ring->oldest, *next;

    for (; block && !block->open && block->point <= completed; block = next) {
        next = block->next;
        unlink_block(ring, block);
        if (!block->large)
            return block;
        block_destroy(ring, block);
    }
    return NULL;
}

/* Waits until the oldest block's work is complete. False: there is no such block, or the wait failed. */
static bool await_oldest(struct ct_stream_ring *ring)
{
    if (!ring->oldest || ring->oldest->open)
        return false;
    return ring->context->backend->queues->await(ring->queue, ring->oldest->point, UINT64_MAX, false) == CUDA_SUCCESS;
}

static CUresult next_shared_block(struct ct_stream_ring *ring, struct block **out)
{
    struct block *block = take_complete_or_null(ring);
    CUresult r = CUDA_SUCCESS;

    if (!block && ring->shared_bytes >= RING_BYTES && await_oldest(ring))
        block = take_complete_or_null(ring);
    if (!block)
        r = block_create(ring, ring->shared_bytes ? BLOCK_BYTES : FIRST_BLOCK_BYTES, false, &block);
    if (r != CUDA_SUCCESS && await_oldest(ring)) { /* out of memory: wait for an existing block */
        block = take_complete_or_null(ring);
        r = block ? CUDA_SUCCESS : r;
    }
    if (r != CUDA_SUCCESS)
        return r;
    block->used_bytes = 0;
    append(ring, block);
    *out = block;
    return CUDA_SUCCESS;
}

static CUresult large_block(struct ct_stream_ring *ring, uint64_t size_bytes, struct block **out)
{
    struct block *recycled;
    CUresult r;

    do { /* frees large blocks whose work is complete; a shared block found along the way becomes the newest */
        recycled = take_complete_or_null(ring);
        if (recycled) {
            recycled->used_bytes = 0;
            append(ring, recycled);
        }
    } while (ring->large_bytes >= LARGE_IN_FLIGHT_BYTES && await_oldest(ring));
    r = block_create(ring, size_bytes, true, out);
    if (r == CUDA_SUCCESS)
        append(ring, *out);
    return r;
}

static bool has_room(const struct block *block, uint64_t size_bytes, uint64_t align, uint64_t *out_offset)
{
    uint64_t offset = (block->used_bytes + align - 1) & ~(align - 1);

    if (block->large || offset > block->backing.memory->size_bytes || size_bytes > block->backing.memory->size_bytes - offset)
        return false;
    *out_offset = offset;
    return true;
}

CUresult ct_stream_ring_take(struct ct_stream_ring *ring, uint64_t size_bytes, uint64_t align, struct ct_ring_piece *out)
{
    struct block *block = ring->newest;
    uint64_t offset = 0;
    CUresult r = CUDA_SUCCESS;

    align = align < MIN_ALIGN ? MIN_ALIGN : align;
    if (size_bytes > CT_RING_SHARED_BYTES)
        r = large_block(ring, size_bytes, &block);
    else if (!block || !has_room(block, size_bytes, align, &offset))
        r = next_shared_block(ring, &block);
    if (r != CUDA_SUCCESS)
        return r;
    block->used_bytes = offset + size_bytes;
    block->open = true;
    out->host = (char *)block->backing.host + offset;
    out->address = block->backing.address + offset;
    out->memory = block->backing.memory;
    out->offset = offset;
    return CUDA_SUCCESS;
}

void ct_stream_ring_commit(struct ct_stream_ring *ring)
{
    uint64_t point = 0;

    for (struct block *block = ring->oldest; block; block = block->next) {
        if (!block->open)
            continue;
        point = point ? point : ring->context->backend->queues->point(ring->queue);
        block->open = false;
        block->point = point;
    }
}

CUresult ct_stream_ring_create(struct ct_context *context, struct ct_queue *queue, struct ct_stream_ring **out)
{
    struct ct_stream_ring *ring = calloc(1, sizeof *ring);

    if (!ring)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "ring");
    ring->context = context;
    ring->queue = queue;
    *out = ring;
    return CUDA_SUCCESS;
}

void ct_stream_ring_destroy(struct ct_stream_ring *ring)
{
    if (!ring)
        return;
    while (ring->oldest) {
        struct block *block = ring->oldest;

        unlink_block(ring, block);
        block_destroy(ring, block);
    }
    free(ring);
}
