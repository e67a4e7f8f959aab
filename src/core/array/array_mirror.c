/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: a mirror has the layout of struct ct_texels, level after level, and is kept until its array is freed. */
#include "array_mirror.h"

#include "array_group.h"
#include "array_mirrors.h"
#include "core/base/log.h"
#include "core/copy/copy.h"

#include <stdlib.h>

#define CT_CHANNEL "memory"

struct ct_array_mirror {
    struct ct_backing backing;
    atomic_bool is_written;
};

/* ---- creation ---- */

static void destroy_mirror(struct ct_context *context, struct ct_array_mirror *mirror)
{
    ct_backing_destroy(context, &mirror->backing);
    free(mirror);
}

static CUresult create_mirror(struct ct_array_group *group, struct ct_array_mirror **out)
{
    struct ct_array_mirror *mirror = calloc(1, sizeof *mirror);
    CUresult r;

    if (!mirror)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the mirror of an array");
    r = ct_backing_create_device(group->context, ct_array_plain_offset(group, group->n_levels), CT_ARRAY_LEVEL_ALIGN, &mirror->backing);
    if (r != CUDA_SUCCESS) {
        free(mirror);
        return r;
    }
    *out = mirror;
    return CUDA_SUCCESS;
}

static CUresult find_mirror(struct ct_array_group *group, struct ct_array_mirror **out)
{
    struct ct_array_mirror *mirror = atomic_load_explicit(&group->mirror, memory_order_acquire), *none = NULL; /* pairs with the exchange */
    CUresult r;

    if (!mirror) {
        if ((r = create_mirror(group, &mirror)) != CUDA_SUCCESS)
            return r;
        if (!atomic_compare_exchange_strong(&group->mirror, &none, mirror)) { /* another thread has created it meanwhile */
            destroy_mirror(group->context, mirror);
            mirror = none;
        } else {
            ct_array_mirrors_count(group->context, 1);
        }
    }
    *out = mirror;
    return CUDA_SUCCESS;
}

void ct_array_mirror_free(struct ct_array_group *group)
{
    struct ct_array_mirror *mirror = atomic_exchange(&group->mirror, NULL);

    if (!mirror)
        return;
    destroy_mirror(group->context, mirror);
    ct_array_mirrors_count(group->context, -1);
}

CUresult ct_array_mirror(const struct ct_array *level, enum ct_mirror_use use, uint64_t *out_address)
{
    struct ct_array_group *group = level->group;
    struct ct_array_mirror *mirror;
    CUresult r;

    if (level < group->levels || level >= group->levels + group->n_levels)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "textures and surfaces of a layer are not supported");
    if ((r = ct_array_mirrors_prepare(group->context)) != CUDA_SUCCESS || (r = find_mirror(group, &mirror)) != CUDA_SUCCESS)
        return r;
    if (use == CT_MIRROR_WRITE)
        atomic_store(&mirror->is_written, true);
    *out_address = mirror->backing.address + ct_array_plain_offset(group, (unsigned)(level - group->levels));
    return CUDA_SUCCESS;
}

CUresult ct_array_address(const struct ct_array *level, enum ct_mirror_use use, uint64_t *out)
{
    if (level->group->image)
        return ct_array_mirror(level, use, out);
    *out = level->group->backing.address + level->base.offset;
    return CUDA_SUCCESS;
}

/* ---- launches ---- */

static CUresult copy_level(struct ct_stream *stream, const struct ct_array *level, const struct ct_place *mirror, enum ct_mirror_use use)
{
    const struct ct_texels *texels = &level->texels; /* of both sides */
    const struct ct_copy_command command = {.copy = {.dst = use == CT_MIRROR_READ ? *mirror : level->base,
                                                     .src = use == CT_MIRROR_READ ? level->base : *mirror,
                                                     .row_bytes = texels->row_bytes,
                                                     .rows = texels->slice_bytes / texels->row_bytes,
                                                     .slices = level->slices,
                                                     .dst_pitch = texels->row_bytes,
                                                     .src_pitch = texels->row_bytes,
                                                     .dst_slice = texels->slice_bytes,
                                                     .src_slice = texels->slice_bytes},
                                            .mode = CT_COPY_ASYNC};

    return ct_copy_execute(stream, &command);
}

CUresult ct_array_mirror_copy(struct ct_stream *stream, const struct ct_array_group *group, enum ct_mirror_use use)
{
    struct ct_array_mirror *mirror = atomic_load(&group->mirror);
    CUresult r = CUDA_SUCCESS;

    if (use == CT_MIRROR_WRITE && !(mirror && atomic_load(&mirror->is_written)))
        return CUDA_SUCCESS;
    for (unsigned i = 0; mirror && i < group->n_levels && r == CUDA_SUCCESS; i++) {
        const uint64_t offset = ct_array_plain_offset(group, i);
        const struct ct_place place = {.memory = mirror->backing.memory,
                                       .offset = offset,
                                       .host = mirror->backing.host ? (char *)mirror->backing.host + offset : NULL,
                                       .is_device = true,
                                       .owner = group->context->object.handle};

        r = copy_level(stream, &group->levels[i], &place, use);
    }
    return r;
}
