/* SPDX-License-Identifier: Apache-2.0 */
#include "array_refresh.h"

#include "array_decoded.h"
#include "array_group.h"
#include "array_mirror.h"
#include "array_mirrors.h"
#include "array_tiled.h"
#include "array_tiles.h"

static bool has_copies(struct ct_array_group *group)
{
    return atomic_load(&group->mirror) || atomic_load(&group->decoded) || atomic_load(&group->tiled);
}

/* The n-th array of the context that has copies, retained; NULL: there are no more. If arrays are created or destroyed meanwhile the caller may
 * see one twice, or miss one that no launch of its own can use yet. */
static struct ct_array_group *find_group_or_null(struct ct_context *context, unsigned n)
{
    struct ct_array_group *group;

    ct_mutex_lock(&context->lock);
    for (group = context->arrays; group; group = group->next)
        if (has_copies(group) && !n--)
            break;
    if (group)
        ct_object_retain(&group->object);
    ct_mutex_unlock(&context->lock);
    return group;
}

static CUresult refresh(struct ct_stream *stream, struct ct_array_group *group, enum ct_mirror_use use)
{
    bool is_accessible = true;
    CUresult r = group->tiles ? ct_array_tiles_await(group->tiles, stream, &is_accessible) : CUDA_SUCCESS;

    if (r != CUDA_SUCCESS || !is_accessible)
        return r;
    r = ct_array_mirror_copy(stream, group, use);
    if (r != CUDA_SUCCESS || use == CT_MIRROR_WRITE)
        return r;
    r = ct_array_decode(stream, group);
    return r == CUDA_SUCCESS ? ct_array_tiled_refresh(stream, group) : r;
}

static CUresult refresh_all(struct ct_stream *stream, enum ct_mirror_use use)
{
    struct ct_array_group *group;
    CUresult r = CUDA_SUCCESS;

    for (unsigned n = 0; r == CUDA_SUCCESS && (group = find_group_or_null(stream->context, n)); n++) {
        r = refresh(stream, group, use);
        ct_object_release(&group->object);
    }
    return r;
}

CUresult ct_array_refresh_begin(struct ct_stream *stream)
{
    CUresult r = ct_array_mirrors_enter(stream);

    if (r == CUDA_SUCCESS && (r = refresh_all(stream, CT_MIRROR_READ)) != CUDA_SUCCESS)
        (void)ct_array_mirrors_leave(stream);
    return r;
}

CUresult ct_array_refresh_end(struct ct_stream *stream)
{
    const CUresult r = refresh_all(stream, CT_MIRROR_WRITE), r_leave = ct_array_mirrors_leave(stream);

    return r == CUDA_SUCCESS ? r_leave : r;
}
