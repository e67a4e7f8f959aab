/* SPDX-License-Identifier: Apache-2.0 */
#include "array_planes.h"

#include "array_create.h"
#include "core/base/log.h"

#define CT_CHANNEL "memory"

static CUresult create(struct ct_array_group *group, const struct ct_array_planes *planes, unsigned number)
{
    const CUDA_ARRAY3D_DESCRIPTOR *whole = &group->levels[0].desc;
    const CUDA_ARRAY3D_DESCRIPTOR desc = {
        .Width = number ? whole->Width / planes->x : whole->Width,
        .Height = number ? whole->Height / planes->y : whole->Height,
        .Format = planes->format,
        .NumChannels = number ? planes->channels : 1,
    };
    struct ct_array_group *plane;
    CUresult r = ct_array_group_create_unlisted(group->context, &desc, 1, &plane);

    if (r != CUDA_SUCCESS)
        return r;
    plane->is_plane = true;
    plane->levels[0].desc.Flags = whole->Flags;
    group->planes[number] = plane;
    return ct_object_publish(&plane->levels[0].object);
}

CUresult ct_array_planes_create(struct ct_array_group *group, const struct ct_array_planes *planes)
{
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < planes->n && r == CUDA_SUCCESS; i++)
        r = create(group, planes, i);
    return r;
}

void ct_array_planes_drop(struct ct_array_group *group, void (*drop)(struct ct_object *object))
{
    for (unsigned i = 0; i < CT_ARRAY_PLANES; i++)
        if (group->planes[i]) {
            ct_array_group_drop_handles(group->planes[i], drop);
            ct_object_release(&group->planes[i]->object);
        }
}

CUresult ct_array_plane(CUarray handle, unsigned plane, CUarray *out)
{
    struct ct_array *array;
    CUresult r = ct_array_lookup(handle, &array);

    if (r != CUDA_SUCCESS)
        return r;
    if (plane < CT_ARRAY_PLANES && array->group->planes[plane])
        *out = array->group->planes[plane]->levels[0].object.handle;
    else
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "plane %u of an array of format 0x%x", plane, (unsigned)array->desc.Format);
    ct_array_release(array);
    return r;
}
