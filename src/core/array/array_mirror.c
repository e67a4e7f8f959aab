/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants: a mirror has the layout of struct ct_texels, level after level, and is kept until its array is freed. Between begin and end no other
 * launch uses mirrors: threads enter one after another, and the stream waits for the last such launch of another stream. Otherwise one launch
 * could copy an image into its mirror while another one writes to that, and those texels would be lost. */
#include "array_mirror.h"

#include "array_group.h"
#include "array_tiles.h"
#include "core/base/exclusive.h"
#include "core/base/log.h"
#include "core/stream/event.h"

#include <stdlib.h>

#define CT_CHANNEL "memory"

struct ct_array_mirror {
    struct ct_backing backing;
    atomic_bool is_written;
};

struct ct_array_mirrors { /* of a context */
    struct ct_exclusive use;
    struct ct_event *last; /* the last launch that used mirrors */
    atomic_uint n;         /* mirrors that exist */
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
            atomic_fetch_add(&atomic_load(&group->context->mirrors)->n, 1);
        }
    }
    *out = mirror;
    return CUDA_SUCCESS;
}

void ct_array_mirror_free(struct ct_array_group *group)
{
    struct ct_array_mirrors *mirrors = atomic_load(&group->context->mirrors);
    struct ct_array_mirror *mirror = atomic_exchange(&group->mirror, NULL);

    if (!mirror)
        return;
    destroy_mirror(group->context, mirror);
    if (mirrors)
        atomic_fetch_sub(&mirrors->n, 1);
}

static void destroy_mirrors(struct ct_array_mirrors *mirrors)
{
    if (mirrors->last)
        ct_event_discard(mirrors->last);
    ct_exclusive_finish(&mirrors->use);
    free(mirrors);
}

void ct_array_mirrors_destroy(struct ct_context *context)
{
    struct ct_array_mirrors *mirrors = atomic_exchange(&context->mirrors, NULL);

    if (mirrors)
        destroy_mirrors(mirrors);
}

/* What the launches that use mirrors need. */
static CUresult prepare_context(struct ct_context *context)
{
    struct ct_array_mirrors *mirrors, *none = NULL;
    CUresult r;

    if (atomic_load(&context->mirrors))
        return CUDA_SUCCESS;
    if (!(mirrors = calloc(1, sizeof *mirrors)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for mirrors of arrays");
    ct_exclusive_init(&mirrors->use);
    if ((r = ct_event_create_internal(context, &mirrors->last)) != CUDA_SUCCESS ||
        !atomic_compare_exchange_strong(&context->mirrors, &none, mirrors))
        destroy_mirrors(mirrors);
    return r;
}

CUresult ct_array_mirror(const struct ct_array *level, enum ct_mirror_use use, uint64_t *out_address)
{
    struct ct_array_group *group = level->group;
    struct ct_array_mirror *mirror;
    CUresult r;

    if ((group->tiles && !ct_array_tiles_are_optional(group->tiles)) || level < group->levels || level >= group->levels + group->n_levels)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "textures and surfaces of arrays with deferred mapping are not supported");
    if ((r = prepare_context(group->context)) != CUDA_SUCCESS || (r = find_mirror(group, &mirror)) != CUDA_SUCCESS)
        return r;
    if (use == CT_MIRROR_WRITE)
        atomic_store(&mirror->is_written, true);
    *out_address = mirror->backing.address + ct_array_plain_offset(group, (unsigned)(level - group->levels));
    return CUDA_SUCCESS;
}

/* ---- launches ---- */

bool ct_array_mirrors_exist(struct ct_context *context)
{
    const struct ct_array_mirrors *mirrors =
        atomic_load_explicit(&context->mirrors, memory_order_acquire); /* pairs with the exchange in prepare_context */

    return mirrors && atomic_load(&mirrors->n);
}

/* The n-th array of the context that has a mirror, retained; NULL: there are no more. If arrays are created or destroyed meanwhile the caller may
 * see one twice, or miss one that no launch of its own can use yet. */
static struct ct_array_group *find_group_or_null(struct ct_context *context, unsigned n)
{
    struct ct_array_group *group;

    ct_mutex_lock(&context->lock);
    for (group = context->arrays; group; group = group->next)
        if (atomic_load(&group->mirror) && !n--)
            break;
    if (group)
        ct_object_retain(&group->object);
    ct_mutex_unlock(&context->lock);
    return group;
}

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

/* READ: from the image; WRITE: back to it. */
static CUresult copy_group(struct ct_stream *stream, const struct ct_array_group *group, enum ct_mirror_use use)
{
    struct ct_array_mirror *mirror = atomic_load(&group->mirror);
    CUresult r = CUDA_SUCCESS;

    if (use == CT_MIRROR_WRITE && !atomic_load(&mirror->is_written))
        return CUDA_SUCCESS;
    for (unsigned i = 0; i < group->n_levels && r == CUDA_SUCCESS; i++) {
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

static CUresult copy_all(struct ct_stream *stream, enum ct_mirror_use use)
{
    struct ct_array_group *group;
    CUresult r = CUDA_SUCCESS;

    for (unsigned n = 0; r == CUDA_SUCCESS && (group = find_group_or_null(stream->context, n)); n++) {
        r = copy_group(stream, group, use);
        ct_object_release(&group->object);
    }
    return r;
}

CUresult ct_array_mirrors_begin(struct ct_stream *stream)
{
    struct ct_array_mirrors *mirrors = stream->context->mirrors;
    CUresult r;

    ct_exclusive_enter(&mirrors->use);
    if ((r = ct_event_wait(mirrors->last, stream)) != CUDA_SUCCESS || (r = copy_all(stream, CT_MIRROR_READ)) != CUDA_SUCCESS)
        ct_exclusive_leave(&mirrors->use);
    return r;
}

CUresult ct_array_mirrors_end(struct ct_stream *stream)
{
    struct ct_array_mirrors *mirrors = stream->context->mirrors;
    const CUresult r = copy_all(stream, CT_MIRROR_WRITE), r_event = ct_event_record(mirrors->last, stream);

    ct_exclusive_leave(&mirrors->use);
    return r == CUDA_SUCCESS ? r_event : r;
}
