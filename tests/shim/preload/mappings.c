/* SPDX-License-Identifier: Apache-2.0 */
/* The mappings of buffers at addresses of the device (amdgpu). The rules are the kernel's: where a new mapping replaces others, the parts of these that lie
 * before and behind it stay. */
#include "preload.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* Of the kernel's include/uapi/drm/amdgpu_drm.h. */
enum operation { VA_MAP = 1, VA_UNMAP, VA_CLEAR, VA_REPLACE };

struct gem_va { /* the beginning of struct drm_amdgpu_gem_va */
    uint32_t handle, pad, operation, flags;
    uint64_t address, offset, bytes;
};

struct mapping {
    uint64_t start, end;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapping *mappings;
static size_t n_mappings, room;

static int add_locked(uint64_t start, uint64_t end)
{
    struct mapping *larger = mappings;

    if (start == end)
        return 0;
    if (n_mappings == room) {
        room = 2 * room + 64;
        if (!(larger = realloc(mappings, room * sizeof *mappings)))
            return ENOMEM;
    }
    mappings = larger;
    mappings[n_mappings++] = (struct mapping){start, end};
    return 0;
}

static int clear_locked(uint64_t start, uint64_t end)
{
    int error = 0;

    for (size_t i = 0; i < n_mappings && !error;) {
        const struct mapping old = mappings[i];

        if (old.end <= start || end <= old.start) {
            i++;
            continue;
        }
        mappings[i] = mappings[--n_mappings];
        if (old.start < start)
            error = add_locked(old.start, start);
        if (!error && end < old.end)
            error = add_locked(end, old.end);
    }
    return error;
}

static int unmap_locked(uint64_t start)
{
    for (size_t i = 0; i < n_mappings; i++)
        if (mappings[i].start == start) {
            mappings[i] = mappings[--n_mappings];
            return 0;
        }
    return EINVAL;
}

static int change_locked(const struct gem_va *va)
{
    const uint64_t end = va->address + va->bytes;
    int error = 0;

    switch ((enum operation)va->operation) {
    case VA_MAP:
        for (size_t i = 0; i < n_mappings; i++)
            if (mappings[i].start < end && va->address < mappings[i].end)
                return EINVAL;
        return add_locked(va->address, end);
    case VA_UNMAP:
        return unmap_locked(va->address);
    case VA_CLEAR:
        return clear_locked(va->address, end);
    case VA_REPLACE:
        error = clear_locked(va->address, end);
        return error ? error : add_locked(va->address, end);
    }
    return EINVAL;
}

int drm_amdgpu_gem_va(const struct drm_call *call)
{
    int64_t before;
    int error;

    pthread_mutex_lock(&lock);
    before = (int64_t)n_mappings;
    error = change_locked(call->argument);
    drm_shim_add(DRM_SHIM_MAPPINGS, (int64_t)n_mappings - before);
    pthread_mutex_unlock(&lock);
    return error ? drm_fail(error) : 0;
}
