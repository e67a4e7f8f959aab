/* SPDX-License-Identifier: Apache-2.0 */
/* The number of subslices of an Intel GPU, which correspond to CUDA's multiprocessors: a work-group runs in one subslice and has its
 * shared memory there. (ANV reports no such number in VkPhysicalDeviceProperties.)
 *
 * Numbers and layouts are those of Linux's user-space interface: include/uapi/drm/drm.h, i915_drm.h and xe_drm.h. They are repeated here
 * since distributions' headers lack xe (Debian 12), or are not installed. */
#include "intel_topology.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DRM_IOCTL(nr, type) _IOWR('d', nr, type)
#define DRM_DRIVER_BASE 0x40
#define REPLY_BYTES_MAX 65536

struct drm_version {
    int major, minor, patch;
    size_t name_length;
    char *name;
    size_t date_length;
    char *date;
    size_t description_length;
    char *description;
};

/* ---- i915 ---- */

#define I915_QUERY DRM_IOCTL(DRM_DRIVER_BASE + 0x39, struct i915_query)
#define I915_QUERY_TOPOLOGY_INFO 1

struct i915_query_item {
    uint64_t id;
    int32_t length;
    uint32_t flags;
    uint64_t data;
};

struct i915_query {
    uint32_t n_items, flags;
    uint64_t items;
};

/* The header of the reply. Bit masks follow: of slices, then of the subslices of each slice, then of execution units. */
struct i915_topology {
    uint16_t flags, max_slices, max_subslices, max_eus;
    uint16_t subslice_offset, subslice_stride, eu_offset, eu_stride; /* offsets from the end of the header */
};

static bool has_bit(const unsigned char *mask, unsigned bit)
{
    return mask[bit / 8] >> bit % 8 & 1;
}

static unsigned count_bits(const unsigned char *mask, size_t bytes)
{
    unsigned n = 0;

    for (size_t i = 0; i < bytes; i++)
        n += (unsigned)__builtin_popcount(mask[i]);
    return n;
}

unsigned ct_vk_i915_subslices(const void *reply, size_t size)
{
    const unsigned char *data = (const unsigned char *)reply + sizeof(struct i915_topology);
    struct i915_topology head;
    unsigned n = 0;

    if (size < sizeof head)
        return 0;
    memcpy(&head, reply, sizeof head);
    size -= sizeof head;
    if ((head.max_slices + 7u) / 8 > size || (head.max_subslices + 7u) / 8 > head.subslice_stride ||
        head.subslice_offset + (size_t)head.max_slices * head.subslice_stride > size)
        return 0;
    for (unsigned slice = 0; slice < head.max_slices; slice++)
        if (has_bit(data, slice))
            n += count_bits(data + head.subslice_offset + (size_t)slice * head.subslice_stride, head.subslice_stride);
    return n;
}

static int query_i915(int file, void *data, int32_t *length)
{
    struct i915_query_item item = {.id = I915_QUERY_TOPOLOGY_INFO, .length = *length, .data = (uintptr_t)data};
    struct i915_query query = {.n_items = 1, .items = (uintptr_t)&item};
    const int result = ioctl(file, I915_QUERY, &query);

    *length = item.length;
    return result ? result : item.length < 0 ? -1 : 0;
}

static unsigned i915_subslices(int file)
{
    int32_t length = 0;
    unsigned n = 0;
    void *reply;

    if (query_i915(file, NULL, &length) || length <= 0 || length > REPLY_BYTES_MAX || !(reply = calloc(1, (size_t)length)))
        return 0;
    if (!query_i915(file, reply, &length))
        n = ct_vk_i915_subslices(reply, (size_t)length);
    free(reply);
    return n;
}

/* ---- xe ---- */

#define XE_DEVICE_QUERY DRM_IOCTL(DRM_DRIVER_BASE + 0x00, struct xe_device_query)
#define XE_QUERY_GT_TOPOLOGY 5
#define XE_GTS_MAX 16

enum { XE_DSS_GEOMETRY = 1, XE_DSS_COMPUTE = 2 };

struct xe_device_query {
    uint64_t extensions;
    uint32_t query, size;
    uint64_t data, reserved[2];
};

/* The reply is a sequence of these, each followed by its bit mask. */
struct xe_topology_mask {
    uint16_t gt, type;
    uint32_t bytes;
};

/* Uses the larger of both counts for each graphics tile (gt): the masks for geometry and for compute overlap, or one of them is empty. */
unsigned ct_vk_xe_subslices(const void *reply, size_t size)
{
    const unsigned char *at = reply;
    unsigned counts[XE_GTS_MAX] = {0}, n = 0;

    while (size > 0) {
        struct xe_topology_mask head;
        unsigned count;

        if (size < sizeof head)
            return 0;
        memcpy(&head, at, sizeof head);
        at += sizeof head;
        size -= sizeof head;
        if (head.bytes > size || head.gt >= XE_GTS_MAX)
            return 0;
        count = head.type == XE_DSS_GEOMETRY || head.type == XE_DSS_COMPUTE ? count_bits(at, head.bytes) : 0;
        counts[head.gt] = count > counts[head.gt] ? count : counts[head.gt];
        at += head.bytes;
        size -= head.bytes;
    }
    for (unsigned i = 0; i < XE_GTS_MAX; i++)
        n += counts[i];
    return n;
}

static unsigned xe_subslices(int file)
{
    struct xe_device_query query = {.query = XE_QUERY_GT_TOPOLOGY};
    unsigned n = 0;
    void *reply;

    if (ioctl(file, XE_DEVICE_QUERY, &query) || !query.size || query.size > REPLY_BYTES_MAX || !(reply = calloc(1, query.size)))
        return 0;
    query.data = (uintptr_t)reply;
    if (!ioctl(file, XE_DEVICE_QUERY, &query))
        n = ct_vk_xe_subslices(reply, query.size);
    free(reply);
    return n;
}

/* ---- the node ---- */

/* Opens the render node with these device numbers; -1 on failure. */
static int open_node(int64_t render_major, int64_t render_minor)
{
    struct stat status;
    char path[64];
    int file;

    snprintf(path, sizeof path, "/dev/dri/renderD%lld", (long long)render_minor);
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return -1;
    if (fstat(file, &status) == 0 && S_ISCHR(status.st_mode) && major(status.st_rdev) == (unsigned)render_major &&
        minor(status.st_rdev) == (unsigned)render_minor)
        return file;
    close(file);
    return -1;
}

unsigned ct_vk_intel_subslices(int64_t render_major, int64_t render_minor)
{
    const int file = open_node(render_major, render_minor);
    char name[32] = "";
    struct drm_version version = {.name = name, .name_length = sizeof name - 1};
    unsigned n = 0;

    if (file < 0)
        return 0;
    if (!ioctl(file, DRM_IOCTL(0x00, struct drm_version), &version))
        n = !strcmp(name, "i915") ? i915_subslices(file) : !strcmp(name, "xe") ? xe_subslices(file) : 0;
    close(file);
    return n;
}
