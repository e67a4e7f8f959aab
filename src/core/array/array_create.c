/* SPDX-License-Identifier: Apache-2.0 */
#include "array_create.h"

#include "array_layers.h"
#include "array_tiles.h"
#include "core/base/log.h"
#include "core/stream/context_streams.h"

#include <stdlib.h>

#define CT_CHANNEL "memory"

/* ---- levels ---- */

static void free_group(struct ct_object *object)
{
    struct ct_array_group *group = (struct ct_array_group *)object;
    struct ct_context *context = group->context;

    if (group->image || group->backing.memory)
        (void)ct_streams_synchronize(context); /* a no-op for a context whose streams are destroyed */
    ct_contexts_synchronize_cross_context(context);
    if (group->image)
        context->backend->images->destroy(group->image);
    ct_array_tiles_destroy(group->tiles); /* its memory can be freed, since the image that used it is destroyed */
    ct_backing_destroy(context, &group->backing);
    if (group->free_copies)
        group->free_copies(group);
    ct_place_changes_finish(&group->changes);
    ct_object_release(&context->object);
    ct_array_layers_free(group);
    free(group);
}

/* A level is a part of its group, so it is not freed itself. */
static void drop_level(struct ct_object *object)
{
    ct_object_release(&((struct ct_array *)object)->group->object);
}

static void init_level(struct ct_array_group *group, const struct ct_array_shape *shape, unsigned level)
{
    struct ct_array *array = &group->levels[level];

    ct_object_init(&array->object, CT_OBJECT_ARRAY, drop_level);
    ct_object_retain(&group->object);
    array->group = group;
    array->desc = ct_array_level_descriptor(shape, level);
    array->texels = ct_array_texels(shape, &array->desc);
    array->slices = array->desc.Depth ? array->desc.Depth : 1;
    array->base = (struct ct_place){.is_device = true, .owner = group->context->object.handle};
}

CUresult ct_array_group_make(struct ct_context *context, const struct ct_array_shape *shape, struct ct_array_group **out)
{
    struct ct_array_group *group = calloc(1, sizeof *group + shape->levels * sizeof *group->levels);

    if (!group)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for an array of %u levels", shape->levels);
    ct_object_init(&group->object, CT_OBJECT_MIPMAPPED_ARRAY, free_group);
    ct_object_retain(&context->object);
    group->context = context;
    ct_place_changes_init(&group->changes, context);
    group->n_levels = shape->levels;
    for (unsigned i = 0; i < group->n_levels; i++)
        init_level(group, shape, i);
    *out = group;
    return CUDA_SUCCESS;
}

/* ---- memory ---- */

/* Gives the levels the layout that they have in the image that may be their texture (core/texture/texture_image.c). *out_bytes: the size of
 * that image; 0: there is none. */
static void take_image_layout(struct ct_array_group *group, uint64_t *out_bytes)
{
    const struct ct_context *context = group->context;
    const uint32_t texel_bytes = group->levels[0].texels.texel_bytes;
    const struct ct_sampled_extent extent = ct_array_sampled_extent(&group->levels[0], group->n_levels);
    struct ct_sampled_layout layout;

    *out_bytes = 0;
    if (group->levels[0].texels.block_side > 1 || !context->device->info.target.sampled_images ||
        context->backend->images->sampled_layout(context->backend_device, texel_bytes, &extent, &layout) != CUDA_SUCCESS)
        return;
    for (unsigned i = 0; i < group->n_levels; i++)
        if (layout.levels[i].row_bytes % texel_bytes || layout.levels[i].slice_bytes % layout.levels[i].row_bytes)
            return;
    for (unsigned i = 0; i < group->n_levels; i++) {
        group->levels[i].base.offset = layout.levels[i].offset;
        group->levels[i].texels.row_bytes = layout.levels[i].row_bytes;
        group->levels[i].texels.slice_bytes = layout.levels[i].slice_bytes;
    }
    *out_bytes = layout.size_bytes;
}

static CUresult make_image(struct ct_array_group *group, const struct ct_image_request *request)
{
    struct ct_context *context = group->context;
    CUresult r = context->backend->images->create(context->backend_device, request, &group->image);

    for (unsigned i = 0; i < group->n_levels && r == CUDA_SUCCESS; i++)
        group->levels[i].base.memory = context->backend->images->level(group->image, i);
    return r;
}

/* One level after another. */
static void take_plain_layout(struct ct_array_group *group, uint64_t *out_bytes)
{
    for (unsigned i = 0; i < group->n_levels; i++)
        group->levels[i].base.offset = ct_array_plain_offset(group, i);
    *out_bytes = ct_array_plain_offset(group, group->n_levels);
}

static CUresult make_plain(struct ct_array_group *group)
{
    uint64_t bytes;
    CUresult r;

    take_image_layout(group, &bytes);
    if (!bytes)
        take_plain_layout(group, &bytes);
    r = ct_backing_create_device(group->context, bytes, CT_ARRAY_LEVEL_ALIGN, &group->backing);
    for (unsigned i = 0; i < group->n_levels && r == CUDA_SUCCESS; i++) {
        struct ct_place *base = &group->levels[i].base;

        base->memory = group->backing.memory;
        base->changes_or_null = group->context->device->info.target.sampled_images ? &group->changes : NULL;
        base->host = group->backing.host ? (char *)group->backing.host + base->offset : NULL;
    }
    return r;
}

CUresult ct_array_group_make_memory(struct ct_array_group *group, const struct ct_image_request *request)
{
    CUresult r;

    if (!request->import && request->memory == CT_IMAGE_OWN)
        return make_plain(group); /* for texture and surface objects, kernels need the addresses of texels */
    r = make_image(group, request);
    if (r == CUDA_SUCCESS && request->memory != CT_IMAGE_OWN)
        r = ct_array_tiles_create(&group->image->tiling, request, &group->tiles);
    return r;
}

/* ---- handles ---- */

void ct_array_forget_handle(struct ct_object *object)
{
    (void)ct_object_unpublish(object);
}

void ct_array_group_drop_handles(struct ct_array_group *group, void (*drop)(struct ct_object *object))
{
    if (group->object.handle)
        drop(&group->object);
    ct_array_layers_drop(group, drop);
    for (unsigned i = 0; i < group->n_levels; i++) {
        if (group->levels[i].object.handle)
            drop(&group->levels[i].object);
        ct_object_release(&group->levels[i].object);
    }
}

/* ---- groups in no list ---- */

CUresult ct_array_group_create_unlisted(struct ct_context *context, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels,
                                        struct ct_array_group **out)
{
    struct ct_image_request request;
    struct ct_array_shape shape;
    CUresult r = ct_array_own_request(&context->device->info, desc, levels, &shape, &request);

    if (r != CUDA_SUCCESS)
        return r;
    if ((r = ct_array_group_make(context, &shape, out)) == CUDA_SUCCESS && (r = ct_array_group_make_memory(*out, &request)) != CUDA_SUCCESS)
        ct_array_group_drop_unlisted(*out);
    return r;
}

void ct_array_group_drop_unlisted(struct ct_array_group *group)
{
    ct_array_group_drop_handles(group, ct_array_forget_handle);
    ct_object_release(&group->object);
}
