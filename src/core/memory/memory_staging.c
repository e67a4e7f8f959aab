/* SPDX-License-Identifier: Apache-2.0 */
/* Staging buffers for downloads; an arena keeps some for reuse. */
#include "memory_arena.h"

#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "memory"
#define STAGING_KEPT 8 /* two for each thread of a download: copy_download.c */

static void staging_destroy(struct ct_context *context, struct ct_staging *staging)
{
    ct_backing_destroy(context, &staging->backing);
    free(staging);
}

CUresult ct_staging_acquire(struct ct_context *context, struct ct_staging **out)
{
    struct ct_memory_arena *arena = context->arena;
    struct ct_staging *staging;
    CUresult r;

    ct_mutex_lock(&arena->lock);
    staging = arena->stagings;
    if (staging) {
        arena->stagings = staging->next;
        arena->n_stagings--;
    }
    ct_mutex_unlock(&arena->lock);
    if (staging) {
        *out = staging;
        return CUDA_SUCCESS;
    }
    staging = calloc(1, sizeof *staging);
    if (!staging)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "staging");
    r = ct_backing_create_host(context, CT_STAGING_BYTES, CT_MEMORY_HOST, &staging->backing);
    if (r != CUDA_SUCCESS) {
        free(staging);
        return r;
    }
    *out = staging;
    return CUDA_SUCCESS;
}

void ct_staging_release(struct ct_context *context, struct ct_staging *staging)
{
    struct ct_memory_arena *arena = context->arena;
    bool keep;

    if (!staging)
        return;
    ct_mutex_lock(&arena->lock);
    keep = arena->n_stagings < STAGING_KEPT;
    if (keep) {
        staging->next = arena->stagings;
        arena->stagings = staging;
        arena->n_stagings++;
    }
    ct_mutex_unlock(&arena->lock);
    if (!keep)
        staging_destroy(context, staging);
}

void ct_stagings_destroy_all(struct ct_memory_arena *arena)
{
    while (arena->stagings) {
        struct ct_staging *staging = arena->stagings;

        arena->stagings = staging->next;
        staging_destroy(arena->context, staging);
    }
}
