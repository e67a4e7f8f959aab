/* SPDX-License-Identifier: Apache-2.0 */
#include "array_layers.h"

#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "memory"

/* A layer is a part of its group's array of layers, so it is not freed itself. */
static void drop_layer(struct ct_object *object)
{
    ct_object_release(&((struct ct_array *)object)->group->object);
}

static void init_layer(struct ct_array *layer, const struct ct_array *level, unsigned number)
{
    *layer = *level;
    ct_object_init(&layer->object, CT_OBJECT_ARRAY, drop_layer);
    ct_object_retain(&layer->group->object);
    layer->desc.Depth = 0;
    layer->desc.Flags &= ~(unsigned)(CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    layer->slices = 1;
    layer->base = ct_place_moved(&level->base, number * level->texels.slice_bytes);
}

/* Creates the layer if it does not exist. context->lock is held. */
static CUresult find_locked(struct ct_array_group *group, unsigned level, unsigned number, CUarray *out)
{
    const struct ct_array *whole = &group->levels[level];
    struct ct_array *layer;
    CUresult r = CUDA_SUCCESS;

    if (!group->link) /* another thread destroys the group, and has dropped its layers, or will not see this one */
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "the array is destroyed already");
    if (!group->layers && !(group->layers = calloc(group->n_levels * whole->slices, sizeof *group->layers)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the layers of an array");
    layer = &group->layers[level * whole->slices + number];
    if (!layer->object.handle) {
        init_layer(layer, whole, number);
        if ((r = ct_object_publish(&layer->object)) != CUDA_SUCCESS)
            ct_object_release(&layer->object);
    }
    if (r == CUDA_SUCCESS)
        *out = layer->object.handle;
    return r;
}

static bool is_layered(const struct ct_array *array)
{
    return array->desc.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
}

CUresult ct_mipmapped_array_layer(CUmipmappedArray handle, unsigned level, unsigned layer, CUarray *out)
{
    struct ct_array_group *group;
    CUresult r = ct_array_group_lookup(handle, &group);

    if (r != CUDA_SUCCESS)
        return r;
    if (level >= group->n_levels || !is_layered(&group->levels[level]) || layer >= group->levels[level].slices) {
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "layer %u of level %u of an array with %u levels", layer, level, group->n_levels);
    } else {
        ct_mutex_lock(&group->context->lock);
        r = find_locked(group, level, layer, out);
        ct_mutex_unlock(&group->context->lock);
    }
    ct_array_group_release(group);
    return r;
}

void ct_array_layers_drop(struct ct_array_group *group, void (*drop)(struct ct_object *object))
{
    for (uint64_t i = 0; group->layers && i < group->n_levels * group->levels[0].slices; i++)
        if (group->layers[i].object.handle) {
            drop(&group->layers[i].object);
            ct_object_release(&group->layers[i].object);
        }
}

void ct_array_layers_free(struct ct_array_group *group)
{
    free(group->layers);
}
