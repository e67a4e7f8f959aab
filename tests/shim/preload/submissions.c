/* SPDX-License-Identifier: Apache-2.0 */
/* Submissions and the contexts that they belong to. A submission waits for its points, is complete, and signals its points; its commands are
 * not looked at. */
#include "preload.h"

#include <errno.h>
#include <stddef.h>

/* ---- amdgpu: include/uapi/drm/amdgpu_drm.h ---- */

#define CHUNK_SYNCOBJ_IN 0x04
#define CHUNK_SYNCOBJ_OUT 0x05
#define CHUNK_TIMELINE_WAIT 0x08
#define CHUNK_TIMELINE_SIGNAL 0x09
#define CTX_ALLOC 1
#define CTX_FREE 2

union context { /* union drm_amdgpu_ctx */
    struct {
        uint32_t op, flags, id;
        int32_t priority;
    } in;
    uint32_t id;
    uint64_t words[2];
};

union submission { /* union drm_amdgpu_cs */
    struct {
        uint32_t context, list, n_chunks, flags;
        uint64_t chunks;
    } in;
    uint64_t number;
};

struct chunk { /* struct drm_amdgpu_cs_chunk */
    uint32_t id, n_words;
    uint64_t data;
};

struct point { /* struct drm_amdgpu_cs_chunk_syncobj */
    uint32_t handle, flags;
    uint64_t point;
};

int drm_amdgpu_ctx(const struct drm_call *call)
{
    static uint32_t last;
    union context *context = call->argument;

    switch (context->in.op) {
    case CTX_ALLOC:
        drm_shim_add(DRM_SHIM_CONTEXTS, 1);
        context->words[0] = context->words[1] = 0;
        context->id = ++last;
        return 0;
    case CTX_FREE:
        drm_shim_add(DRM_SHIM_CONTEXTS, -1);
        return 0;
    }
    /* The answer lies over the question: a state without resets. */
    context->words[0] = context->words[1] = 0;
    return 0;
}

static int for_points(const struct chunk *chunk, int (*do_point)(uint32_t handle, uint64_t point))
{
    const struct point *points = drm_pointer(chunk->data);

    for (size_t i = 0; i < chunk->n_words * sizeof(uint32_t) / sizeof *points; i++)
        if (do_point(points[i].handle, points[i].point))
            return -1;
    return 0;
}

static int for_handles(const struct chunk *chunk, int (*do_point)(uint32_t handle, uint64_t point))
{
    const uint32_t *handles = drm_pointer(chunk->data);

    for (size_t i = 0; i < chunk->n_words; i++)
        if (do_point(handles[i], 0))
            return -1;
    return 0;
}

static const struct {
    uint32_t id;
    int (*walk)(const struct chunk *chunk, int (*do_point)(uint32_t handle, uint64_t point));
    int (*do_point)(uint32_t handle, uint64_t point);
} chunk_kinds[] = {
    /* All waits come before the signals. */
    {CHUNK_SYNCOBJ_IN, for_handles, drm_syncobj_await_point},
    {CHUNK_TIMELINE_WAIT, for_points, drm_syncobj_await_point},
    {CHUNK_SYNCOBJ_OUT, for_handles, drm_syncobj_signal_point},
    {CHUNK_TIMELINE_SIGNAL, for_points, drm_syncobj_signal_point},
};

int drm_amdgpu_cs(const struct drm_call *call)
{
    union submission *submission = call->argument;
    const uint64_t *chunks = drm_pointer(submission->in.chunks);

    for (size_t k = 0; k < sizeof chunk_kinds / sizeof *chunk_kinds; k++)
        for (uint32_t i = 0; i < submission->in.n_chunks; i++) {
            const struct chunk *chunk = drm_pointer(chunks[i]);

            if (chunk->id == chunk_kinds[k].id && chunk_kinds[k].walk(chunk, chunk_kinds[k].do_point))
                return -1;
        }
    drm_shim_add(DRM_SHIM_SUBMISSIONS, 1);
    submission->number = (uint64_t)drm_shim_live(DRM_SHIM_SUBMISSIONS);
    return 0;
}

int drm_amdgpu_wait_cs(const struct drm_call *call)
{
    *(uint64_t *)call->argument = 0; /* union drm_amdgpu_wait_cs: it is not busy */
    return 0;
}

/* ---- i915: include/uapi/drm/i915_drm.h ---- */

#define EXEC_FENCE_ARRAY (1u << 19)
#define EXEC_USE_EXTENSIONS (1u << 21)
#define EXTENSION_TIMELINE_FENCES 0
#define FENCE_WAIT 1u
#define FENCE_SIGNAL 2u

struct execbuffer { /* struct drm_i915_gem_execbuffer2 */
    uint64_t buffers;
    uint32_t n_buffers, start, length, dr1, dr4, n_fences;
    uint64_t fences, flags;
};

struct extension { /* struct i915_user_extension */
    uint64_t next;
    uint32_t name, flags, reserved[4];
};

struct timeline_fences { /* struct drm_i915_gem_execbuffer_ext_timeline_fences */
    struct extension base;
    uint64_t n_fences, fences, points;
};

struct fence { /* struct drm_i915_gem_exec_fence */
    uint32_t handle, flags;
};

/* A list of fences; without points all are those of binary objects. */
static int do_fences(const struct fence *fences, const uint64_t *points, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (fences[i].flags & FENCE_WAIT && drm_syncobj_await_point(fences[i].handle, points ? points[i] : 0))
            return -1;
    for (uint64_t i = 0; i < n; i++)
        if (fences[i].flags & FENCE_SIGNAL && drm_syncobj_signal_point(fences[i].handle, points ? points[i] : 0))
            return -1;
    return 0;
}

int drm_i915_execbuffer(const struct drm_call *call)
{
    const struct execbuffer *submission = call->argument;

    drm_shim_add(DRM_SHIM_SUBMISSIONS, 1);
    if (submission->flags & EXEC_FENCE_ARRAY)
        return do_fences(drm_pointer(submission->fences), NULL, submission->n_fences);
    if (!(submission->flags & EXEC_USE_EXTENSIONS))
        return 0;
    for (const struct extension *at = drm_pointer(submission->fences); at; at = drm_pointer(at->next)) {
        const struct timeline_fences *list = (const struct timeline_fences *)at;

        if (at->name != EXTENSION_TIMELINE_FENCES)
            return drm_fail(EINVAL);
        if (do_fences(drm_pointer(list->fences), drm_pointer(list->points), list->n_fences))
            return -1;
    }
    return 0;
}

int drm_i915_context_create(const struct drm_call *call)
{
    const int result = drm_pass(call);

    if (result == 0)
        drm_shim_add(DRM_SHIM_CONTEXTS, 1);
    return result;
}

int drm_i915_context_destroy(const struct drm_call *call)
{
    (void)call;
    drm_shim_add(DRM_SHIM_CONTEXTS, -1);
    return 0;
}
