/* SPDX-License-Identifier: Apache-2.0 */
/* Argument blocks of launches: a list of pieces of memory that the device can access, used in rotation. A piece is reused when the last
 * launch with a block in it is complete; until then, new pieces are allocated. */
#include "queue.h"

#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "queue"
#define PIECE_BYTES 65536
#define BLOCK_ALIGN 64 /* a cache line: blocks of two launches share none */

struct ct_cl_arguments {
    struct ct_cl_arguments *next;
    struct ct_memory *memory;
    size_t used_bytes;
    uint64_t last_point; /* of the last launch with a block in it */
};

static CUresult add_piece(struct ct_queue *queue, size_t size_bytes)
{
    const struct ct_memory_request request = {
        .size_bytes = size_bytes < PIECE_BYTES ? PIECE_BYTES : size_bytes, .align = BLOCK_ALIGN, .kind = CT_MEMORY_HOST};
    struct ct_cl_arguments *piece = calloc(1, sizeof *piece);
    CUresult r;

    if (!piece)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "argument blocks");
    if ((r = ct_cl_memory_create(queue->device, &request, &piece->memory)) != CUDA_SUCCESS) {
        free(piece);
        return r;
    }
    if (queue->last_arguments)
        queue->last_arguments->next = piece;
    else
        queue->arguments = piece;
    queue->last_arguments = piece;
    return CUDA_SUCCESS;
}

/* Moves the oldest piece to the end of the list, empty, if nothing uses it any more. */
static bool reuse_piece(struct ct_queue *queue, size_t size_bytes)
{
    struct ct_cl_arguments *oldest = queue->arguments;
    uint64_t done;

    if (!oldest || oldest->memory->size_bytes < size_bytes || ct_cl_queue_completed(queue, &done) != CUDA_SUCCESS ||
        done < oldest->last_point)
        return false;
    oldest->used_bytes = 0;
    if (!oldest->next)
        return true;
    queue->arguments = oldest->next;
    oldest->next = NULL;
    queue->last_arguments->next = oldest;
    queue->last_arguments = oldest;
    return true;
}

CUresult ct_cl_arguments_allocate(struct ct_queue *queue, size_t size_bytes, void **out)
{
    struct ct_cl_arguments *piece = queue->last_arguments;
    CUresult r;

    size_bytes = (size_bytes + BLOCK_ALIGN - 1) & ~(size_t)(BLOCK_ALIGN - 1);
    if (!piece || piece->memory->size_bytes - piece->used_bytes < size_bytes) {
        if (!reuse_piece(queue, size_bytes) && (r = add_piece(queue, size_bytes)) != CUDA_SUCCESS)
            return r;
        piece = queue->last_arguments;
    }
    *out = (char *)piece->memory->host + piece->used_bytes;
    piece->used_bytes += size_bytes;
    return CUDA_SUCCESS;
}

void ct_cl_arguments_mark_used(struct ct_queue *queue)
{
    queue->last_arguments->last_point = ct_cl_queue_point(queue);
}

void ct_cl_arguments_destroy(struct ct_queue *queue)
{
    for (struct ct_cl_arguments *piece = queue->arguments, *next; piece; piece = next) {
        next = piece->next;
        ct_cl_memory_destroy(piece->memory);
        free(piece);
    }
    queue->arguments = queue->last_arguments = NULL;
}
