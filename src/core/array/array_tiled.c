/* SPDX-License-Identifier: Apache-2.0 */
#include "array_tiled.h"

#include "array_group.h"
#include "array_mirrors.h"
#include "core/base/config.h"
#include "core/base/log.h"
#include "core/copy/copy.h"
#include "core/device/device.h"

#include <string.h>

#define CT_CHANNEL "memory"
#define SLOW_LINEAR_BYTES 16u /* linear images of larger texels: an H200 fetches them at 0.61 of the speed of others */

static bool is_forced(void)
{
    return !strcmp(ct_config()->textures, "tiled");
}

/* Generated code on CPUs is not so much slower that memory twice as large would pay. */
static bool is_possible(const struct ct_array_group *group)
{
    const CUDA_ARRAY3D_DESCRIPTOR *desc = &group->levels[0].desc;

    return group->free_copies && !group->image && !group->of_resource && !(desc->Flags & CUDA_ARRAY3D_SURFACE_LDST) &&
           group->levels[0].base.changes_or_null && (is_forced() || group->context->device->info.kind != CT_DEVICE_CPU);
}

bool ct_array_prefers_tiled(const struct ct_array *level)
{
    return is_possible(level->group) && (is_forced() || level->texels.texel_bytes >= SLOW_LINEAR_BYTES);
}

/* Lines are planes of one row, as textures read them. */
static struct ct_image_request request_of(const struct ct_array_group *group)
{
    const struct ct_array *first = &group->levels[0];
    const struct ct_sampled_extent extent = ct_array_sampled_extent(first, group->n_levels);
    const bool is_volume = extent.shape == PTX2SPV_IMAGE_VOLUME;

    return (struct ct_image_request){
        .memory = CT_IMAGE_OWN,
        .format = first->desc.Format,
        .channels = first->desc.NumChannels,
        .texel_bytes = first->texels.texel_bytes,
        .block_side = 1,
        .shape = is_volume ? CT_IMAGE_3D : CT_IMAGE_2D,
        .width = extent.width,
        .height = extent.height,
        .depth = is_volume ? extent.slices : 1,
        .layers = is_volume ? 1 : extent.slices,
        .levels = group->n_levels,
    };
}

CUresult ct_array_tiled(const struct ct_array *level, struct ct_texel_image **out)
{
    struct ct_array_group *group = level->group;
    struct ct_context *context = group->context;
    struct ct_texel_image *image = atomic_load_explicit(&group->tiled, memory_order_acquire), *none = NULL; /* pairs with the exchange */
    const struct ct_image_request request = request_of(group);
    CUresult r;

    if (!is_possible(group))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!image) {
        if ((r = ct_array_mirrors_prepare(context)) != CUDA_SUCCESS ||
            (r = context->backend->images->create(context->backend_device, &request, &image)) != CUDA_SUCCESS)
            return r;
        ct_place_changes_watch(&group->changes);
        if (atomic_compare_exchange_strong(&group->tiled, &none, image)) {
            ct_array_mirrors_count(context, 1);
        } else { /* another thread has created it meanwhile */
            context->backend->images->destroy(image);
            image = none;
        }
    }
    *out = image;
    return CUDA_SUCCESS;
}

static CUresult copy_level(struct ct_stream *stream, const struct ct_array *level, struct ct_memory *to)
{
    const struct ct_texels *from = &level->texels;
    const uint64_t row_bytes = level->desc.Width * from->texel_bytes;
    const struct ct_copy_command command = {.copy = {.dst = {.memory = to, .is_device = true, .owner = level->base.owner},
                                                     .src = level->base,
                                                     .row_bytes = row_bytes,
                                                     .rows = to->texels->slice_bytes / to->texels->row_bytes,
                                                     .slices = level->slices,
                                                     .dst_pitch = to->texels->row_bytes,
                                                     .src_pitch = from->row_bytes,
                                                     .dst_slice = to->texels->slice_bytes,
                                                     .src_slice = from->slice_bytes},
                                            .mode = CT_COPY_ASYNC};

    return ct_copy_execute(stream, &command);
}

static CUresult copy_all(struct ct_stream *stream, const struct ct_array_group *group, struct ct_texel_image *image)
{
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < group->n_levels && r == CUDA_SUCCESS; i++)
        r = copy_level(stream, &group->levels[i], stream->context->backend->images->level(image, i));
    return r;
}

CUresult ct_array_tiled_refresh(struct ct_stream *stream, struct ct_array_group *group)
{
    struct ct_texel_image *image = atomic_load(&group->tiled);
    CUresult r = CUDA_SUCCESS;
    bool is_stale;

    if (!image)
        return CUDA_SUCCESS;
    is_stale = ct_place_changes_begin(&group->changes);
    if (is_stale)
        r = copy_all(stream, group, image);
    ct_place_changes_end(&group->changes, stream, is_stale && r == CUDA_SUCCESS);
    return r;
}

void ct_array_tiled_free(struct ct_array_group *group)
{
    struct ct_texel_image *image = atomic_exchange(&group->tiled, NULL);

    if (!image)
        return;
    group->context->backend->images->destroy(image);
    ct_array_mirrors_count(group->context, -1);
}
