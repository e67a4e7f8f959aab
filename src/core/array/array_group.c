/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up the arrays and groups of handles; the layout of levels in plain memory. */
#include "array_group.h"

#include "core/base/log.h"
#include "core/base/process.h"

#define CT_CHANNEL "memory"

/* The error for a handle without an object. It says that the context was destroyed as long as this is known. */
static CUresult no_array(const void *handle, const char *what)
{
    if (ct_object_was_orphaned(handle))
        return ct_fail(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context of %s %p is destroyed", what, handle);
    return ct_fail(CUDA_ERROR_INVALID_HANDLE, "%p is not a %s", handle, what);
}

CUresult ct_array_lookup(CUarray handle, struct ct_array **out)
{
    struct ct_array *array;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (!(array = (struct ct_array *)ct_object_find_or_null(CT_OBJECT_ARRAY, handle)))
        return no_array(handle, "array");
    if ((r = ct_context_enter(array->group->context)) != CUDA_SUCCESS) {
        ct_object_release(&array->object);
        return r;
    }
    *out = array;
    return CUDA_SUCCESS;
}

void ct_array_release(struct ct_array *array)
{
    struct ct_context *context;

    if (!array)
        return;
    context = array->group->context; /* the reference to the context keeps it alive */
    ct_object_release(&array->object);
    ct_context_release(context);
}

CUresult ct_array_group_lookup(CUmipmappedArray handle, struct ct_array_group **out)
{
    struct ct_array_group *group;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (!(group = (struct ct_array_group *)ct_object_find_or_null(CT_OBJECT_MIPMAPPED_ARRAY, handle)))
        return no_array(handle, "mipmapped array");
    if ((r = ct_context_enter(group->context)) != CUDA_SUCCESS) {
        ct_object_release(&group->object);
        return r;
    }
    *out = group;
    return CUDA_SUCCESS;
}

void ct_array_group_release(struct ct_array_group *group)
{
    struct ct_context *context = group->context;

    ct_object_release(&group->object);
    ct_context_release(context);
}

uint64_t ct_array_plain_offset(const struct ct_array_group *group, unsigned level)
{
    uint64_t offset = 0;

    for (unsigned i = 0; i < level; i++) {
        const uint64_t bytes = group->levels[i].texels.slice_bytes * group->levels[i].slices;

        offset += (bytes + CT_ARRAY_LEVEL_ALIGN - 1) & ~(CT_ARRAY_LEVEL_ALIGN - 1);
    }
    return offset;
}

struct ct_sampled_extent ct_array_sampled_extent(const struct ct_array *first, unsigned n_levels)
{
    const CUDA_ARRAY3D_DESCRIPTOR *desc = &first->desc;

    return (struct ct_sampled_extent){
        .shape = desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP) ? PTX2SPV_IMAGE_LAYERS
                 : desc->Depth                                               ? PTX2SPV_IMAGE_VOLUME
                                                                             : PTX2SPV_IMAGE_PLANE,
        .width = (uint32_t)desc->Width,
        .height = desc->Height ? (uint32_t)desc->Height : 1,
        .slices = (uint32_t)first->slices,
        .n_levels = n_levels,
    };
}
