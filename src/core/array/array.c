/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA arrays (Driver API: Memory Management; array_descriptor.c validates their descriptors).
 *
 * A group is plain memory in which its levels are stored one after another, or, if its memory is imported or bound later, an opaque image of the
 * backend. A CUarray is a level: the only one of its group, or one of a mipmapped array's, in which case the group has a
 * handle, too.
 *
 * Levels hold a reference to their group, and so does the context's list. The thread that removes the group from that list destroys it:
 * the handles are invalidated at once, and the memory is freed when the last call that has looked up a level has returned and the
 * context's work is complete. A look-up holds a reference to the context, so the destruction of a context has to consider only its list. */
#include "array_group.h"

#include "array_create.h"
#include "array_decoded.h"
#include "array_mirror.h"
#include "array_mirrors.h"
#include "array_planes.h"
#include "array_tiled.h"
#include "core/base/log.h"

#define CT_CHANNEL "memory"

/* ---- creating ---- */

/* What a group has besides its own memory. */
static void free_copies(struct ct_array_group *group)
{
    ct_array_mirror_free(group);
    ct_array_decoded_free(group);
    ct_array_tiled_free(group);
}

static void link_group(struct ct_array_group *group)
{
    struct ct_context *context = group->context;

    ct_object_retain(&group->object);
    ct_mutex_lock(&context->lock);
    group->next = context->arrays;
    group->link = &context->arrays;
    if (group->next)
        group->next->link = &group->next;
    context->arrays = group;
    ct_mutex_unlock(&context->lock);
}

static bool unlink_locked(struct ct_array_group *group)
{
    if (!group->link)
        return false;
    *group->link = group->next;
    if (group->next)
        group->next->link = group->link;
    group->link = NULL;
    return true;
}

/* The planes of a format with several are arrays of their own. */
static void drop_handles(struct ct_array_group *group, void (*drop)(struct ct_object *object))
{
    ct_array_planes_drop(group, drop);
    ct_array_group_drop_handles(group, drop);
}

static CUresult make_memory(struct ct_array_group *group, const struct ct_image_request *request)
{
    struct ct_array_planes planes;

    return ct_array_format_has_planes(request->format, &planes) ? ct_array_planes_create(group, &planes)
                                                                : ct_array_group_make_memory(group, request);
}

static CUresult publish(struct ct_array_group *group)
{
    CUresult r = group->is_mipmapped ? ct_object_publish(&group->object) : CUDA_SUCCESS;

    for (unsigned i = 0; i < group->n_levels && r == CUDA_SUCCESS; i++)
        r = ct_object_publish(&group->levels[i].object);
    return r;
}

/* Creates a group in the context's list, which holds the only reference apart from those of levels and handles. */
static CUresult create(struct ct_context *context, const struct ct_array_shape *shape, const struct ct_image_request *request,
                       bool is_mipmapped, struct ct_array_group **out)
{
    struct ct_array_group *group;
    CUresult r = ct_array_group_make(context, shape, &group);

    if (r != CUDA_SUCCESS)
        return r;
    group->free_copies = free_copies;
    group->is_mipmapped = is_mipmapped;
    if ((r = make_memory(group, request)) == CUDA_SUCCESS && (r = publish(group)) == CUDA_SUCCESS) {
        link_group(group);
        *out = group;
    } else {
        drop_handles(group, ct_array_forget_handle);
    }
    ct_object_release(&group->object);
    return r;
}

/* Creates an array that owns its memory. */
static CUresult create_own(struct ct_context *context, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels, bool is_mipmapped,
                           struct ct_array_group **out)
{
    struct ct_image_request request;
    struct ct_array_shape shape;
    const CUresult r = ct_array_own_request(&context->device->info, desc, levels, &shape, &request);

    return r == CUDA_SUCCESS ? create(context, &shape, &request, is_mipmapped, out) : r;
}

CUresult ct_array_create(struct ct_context *context, const CUDA_ARRAY3D_DESCRIPTOR *desc, CUarray *out)
{
    struct ct_array_group *group;
    CUresult r = create_own(context, desc, 1, false, &group);

    if (r == CUDA_SUCCESS)
        *out = group->levels[0].object.handle;
    return r;
}

/* ---- use ---- */

static bool is_within(uint64_t first, uint64_t count, uint64_t end)
{
    return first <= end && count <= end - first;
}

CUresult ct_array_locate(const struct ct_array *array, const struct ct_array_box *box, struct ct_place *out, uint64_t *out_pitch,
                         uint64_t *out_slice)
{
    const struct ct_texels *texels = &array->texels;
    uint64_t offset;

    if (array->group->planes[0])
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "an array of several planes is copied plane by plane (cuArrayGetPlane)");
    if ((box->x_bytes | box->width_bytes) & (texels->texel_bytes - 1))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%llu bytes at %llu are not whole elements of an array, which have %u bytes",
                       (unsigned long long)box->width_bytes, (unsigned long long)box->x_bytes, texels->texel_bytes);
    if (!is_within(box->x_bytes, box->width_bytes, ct_texel_elements(array->desc.Width, array->texels.block_side) * texels->texel_bytes) ||
        !is_within(box->y, box->height, ct_texel_elements(array->desc.Height, array->texels.block_side)) ||
        !is_within(box->z, box->depth, array->slices))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a copy exceeds an array of %zu x %zu x %zu", array->desc.Width, array->desc.Height,
                       array->desc.Depth);
    offset = box->z * texels->slice_bytes + box->y * texels->row_bytes + box->x_bytes;
    *out = array->base;
    out->offset += offset;
    out->host = out->host ? out->host + offset : NULL;
    *out_pitch = texels->row_bytes;
    *out_slice = texels->slice_bytes;
    return CUDA_SUCCESS;
}

/* ---- destroying ---- */

static CUresult destroy(struct ct_array_group *group, void (*drop)(struct ct_object *object))
{
    struct ct_context *context = group->context;
    bool first;

    ct_mutex_lock(&context->lock);
    first = unlink_locked(group);
    ct_mutex_unlock(&context->lock);
    if (!first)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "the array is destroyed already");
    drop_handles(group, drop);
    ct_object_release(&group->object); /* the reference of the list */
    return CUDA_SUCCESS;
}

CUresult ct_array_destroy(CUarray handle)
{
    struct ct_array *array;
    CUresult r = ct_array_lookup(handle, &array);

    if (r != CUDA_SUCCESS)
        return r;
    if (array->group->of_resource)
        r = ct_fail(CUDA_ERROR_ARRAY_IS_MAPPED, "the array belongs to a graphics resource");
    else if (!array->group->is_mipmapped &&
             !array->group->is_plane) /* as in NVIDIA's driver, destroying a level or a plane has no effect */
        r = destroy(array->group, ct_array_forget_handle);
    ct_array_release(array);
    return r;
}

void ct_arrays_destroy_all(struct ct_context *context)
{
    while (context->arrays) /* no other thread can change the list any more */
        (void)destroy(context->arrays, ct_object_orphan);
    ct_array_mirrors_destroy(context);
}

/* ---- mipmapped arrays ---- */

CUresult ct_mipmapped_array_create(struct ct_context *context, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels, CUmipmappedArray *out)
{
    struct ct_array_group *group;
    CUresult r = create_own(context, desc, levels, true, &group);

    if (r == CUDA_SUCCESS)
        *out = group->object.handle;
    return r;
}

CUresult ct_mipmapped_array_import(struct ct_context *context, const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *desc,
                                   const struct ct_fd_import *import, CUmipmappedArray *out)
{
    const struct ct_device_info *info = &context->device->info;
    struct ct_image_request request;
    struct ct_array_group *group;
    struct ct_array_shape shape;
    CUresult r = ct_array_check(info, &desc->arrayDesc, desc->numLevels, CT_ARRAY_IMPORTED, &shape);

    if (r != CUDA_SUCCESS)
        return r;
    if (desc->numLevels != shape.levels || desc->offset >= import->total_bytes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "an image of %u levels at offset %llu does not fit into %llu bytes of external memory",
                       desc->numLevels, desc->offset, (unsigned long long)import->total_bytes);
    if (!info->opaque_images || import->dma_buf) /* the manual excludes dma-bufs, which do not describe the layout of texels */
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not support images in such external memory", info->name);
    ct_array_request(&shape, &request);
    request.import = import;
    request.import_offset = desc->offset;
    if ((r = create(context, &shape, &request, true, &group)) == CUDA_SUCCESS)
        *out = group->object.handle;
    return r;
}

CUresult ct_mipmapped_array_level(CUmipmappedArray handle, unsigned level, CUarray *out)
{
    struct ct_array_group *group;
    CUresult r = ct_array_group_lookup(handle, &group);

    if (r != CUDA_SUCCESS)
        return r;
    if (level < group->n_levels)
        *out = group->levels[level].object.handle;
    else
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "level %u of an array with %u levels", level, group->n_levels);
    ct_array_group_release(group);
    return r;
}

CUresult ct_mipmapped_array_check(CUmipmappedArray handle)
{
    struct ct_array_group *group;
    CUresult r = ct_array_group_lookup(handle, &group);

    if (r == CUDA_SUCCESS)
        ct_array_group_release(group);
    return r;
}

CUresult ct_mipmapped_array_destroy(CUmipmappedArray handle)
{
    struct ct_array_group *group;
    CUresult r = ct_array_group_lookup(handle, &group);

    if (r != CUDA_SUCCESS)
        return r;
    r = group->of_resource ? ct_fail(CUDA_ERROR_ARRAY_IS_MAPPED, "the array belongs to a graphics resource")
                           : destroy(group, ct_array_forget_handle);
    ct_array_group_release(group);
    return r;
}

void ct_mipmapped_array_keep(CUmipmappedArray handle)
{
    struct ct_array_group *group;

    if (ct_array_group_lookup(handle, &group) != CUDA_SUCCESS)
        return;
    group->of_resource = true;
    ct_array_group_release(group);
}

void ct_mipmapped_array_drop(CUmipmappedArray handle)
{
    struct ct_array_group *group;

    if (ct_array_group_lookup(handle, &group) != CUDA_SUCCESS)
        return;
    (void)destroy(group, ct_array_forget_handle);
    ct_array_group_release(group);
}
