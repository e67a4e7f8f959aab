/* SPDX-License-Identifier: Apache-2.0 */
#include "recorded_params.h"

#include "core/base/log.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "queue"
#define ALIGN 16u /* more than any member of a parameter block needs */
#define PIECE_BYTES 16384u

struct ct_vk_params_piece {
    struct ct_vk_params_piece *before;
    struct ct_memory *memory;
    uint64_t used_bytes; /* a multiple of ALIGN */
};

static CUresult add_piece(struct ct_backend_device *device, struct ct_vk_recorded_params *params, uint64_t least_bytes)
{
    const struct ct_memory_request request = {
        .size_bytes = least_bytes > PIECE_BYTES ? least_bytes : PIECE_BYTES, .align = ALIGN, .kind = CT_MEMORY_HOST_WC};
    struct ct_vk_params_piece *piece = calloc(1, sizeof *piece);
    CUresult r = piece ? ct_vk_memory_create(device, &request, &piece->memory)
                       : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the parameters of recorded kernels");

    if (r != CUDA_SUCCESS) {
        free(piece);
        return r;
    }
    piece->before = params->last;
    params->last = piece;
    return CUDA_SUCCESS;
}

CUresult ct_vk_recorded_params_add(struct ct_backend_device *device, struct ct_vk_recorded_params *params, const void *bytes, uint32_t size,
                                   uint64_t *out_address)
{
    const uint64_t needed = ((uint64_t)size + ALIGN - 1) / ALIGN * ALIGN;
    struct ct_vk_params_piece *piece = params->last;

    if (!piece || piece->memory->size_bytes - piece->used_bytes < needed) {
        CUresult r = add_piece(device, params, needed);

        if (r != CUDA_SUCCESS)
            return r;
        piece = params->last;
    }
    memcpy((char *)piece->memory->host + piece->used_bytes, bytes, size);
    *out_address = piece->memory->address.v + piece->used_bytes; /* the pointer rule leaves device addresses as they are */
    piece->used_bytes += needed;
    return CUDA_SUCCESS;
}

void ct_vk_recorded_params_finish(struct ct_vk_recorded_params *params)
{
    while (params->last) {
        struct ct_vk_params_piece *piece = params->last;

        params->last = piece->before;
        ct_vk_memory_destroy(piece->memory);
        free(piece);
    }
}
