/* SPDX-License-Identifier: Apache-2.0 */
/* When a buffer of the shim is exported, it becomes a file in memory of its size. An imported file denotes the buffer for which it was
 * created, as in the kernel; other files are rejected. The files have no contents, since nothing is executed. */
#include "drm_shim_buffers.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of the kernel's include/uapi/drm/drm.h and amdgpu_drm.h. */
#define GEM_CLOSE 0x09
#define PRIME_HANDLE_TO_FD 0x2d
#define PRIME_FD_TO_HANDLE 0x2e
#define AMDGPU_GEM_CREATE 0x40
#define AMDGPU_GEM_OP 0x50
#define AMDGPU_GEM_USERPTR 0x51
#define GEM_OP_GET_CREATE_INFO 0
#define DOMAIN_GTT 0x2u
#define CREATE_CPU_GTT_USWC 0x4u /* flag: the host's mapping of the buffer is write-combined and not cached */
#define N_HANDLES 65536
#define FIRST_OF_PAGES 32768 /* our handles of user pages, for which the shim has none */

union gem_create { /* union drm_amdgpu_gem_create */
    struct gem_create_in {
        uint64_t bytes, align, domains, flags;
    } in;
    uint32_t handle;
};

struct gem_op { /* struct drm_amdgpu_gem_op */
    uint32_t handle, op;
    uint64_t value;
};

struct gem_userptr { /* struct drm_amdgpu_gem_userptr */
    uint64_t address, bytes;
    uint32_t flags, handle;
};

struct prime { /* struct drm_prime_handle */
    uint32_t handle, flags;
    int32_t fd;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct buffer {
    struct gem_create_in made; /* or, for pages of the process, zeros */
    uint64_t page_bytes;
    int file; /* 0: it has not been exported */
} buffers[N_HANDLES];

static struct buffer *find(uint32_t handle)
{
    return &buffers[handle % N_HANDLES];
}

static int fail(int error)
{
    errno = error;
    return -1;
}

static int create(drm_ioctl *next, int fd, unsigned long request, union gem_create *create)
{
    const struct gem_create_in made = create->in;
    int result = next(fd, request, create);

    if (result == 0)
        *find(create->handle) = (struct buffer){.made = made};
    return result;
}

static int use_pages(drm_ioctl *next, int fd, unsigned long request, struct gem_userptr *pages)
{
    static uint32_t last = FIRST_OF_PAGES - 1;
    int result = next(fd, request, pages);

    if (result)
        return result;
    last = last + 1 < N_HANDLES ? last + 1 : FIRST_OF_PAGES;
    pages->handle = last;
    *find(last) = (struct buffer){.page_bytes = pages->bytes};
    return 0;
}

/* Returns 0 if none is left. */
static int make_file(uint64_t bytes)
{
    int file = memfd_create("buffer", MFD_CLOEXEC);

    if (file >= 0 && ftruncate(file, (off_t)bytes) == 0)
        return file;
    if (file >= 0)
        close(file);
    return 0;
}

static int export(struct prime *prime)
{
    struct buffer *buffer = find(prime->handle);

    if (!buffer->made.bytes)
        return fail(ENOENT);
    if (!buffer->file && !(buffer->file = make_file(buffer->made.bytes)))
        return fail(EMFILE);
    prime->fd = fcntl(buffer->file, F_DUPFD_CLOEXEC, 0);
    return prime->fd < 0 ? -1 : 0;
}

static int import(struct prime *prime)
{
    struct stat wanted, file;

    if (fstat(prime->fd, &wanted))
        return -1;
    for (uint32_t i = 1; i < N_HANDLES; i++) {
        if (!buffers[i].file || fstat(buffers[i].file, &file) || file.st_dev != wanted.st_dev || file.st_ino != wanted.st_ino)
            continue;
        prime->handle = i;
        return 0;
    }
    return fail(EINVAL);
}

static int forget(drm_ioctl *next, int fd, unsigned long request, const uint32_t *handle)
{
    struct buffer *buffer = find(*handle);

    if (buffer->file)
        close(buffer->file);
    *buffer = (struct buffer){0};
    return *handle < FIRST_OF_PAGES ? next(fd, request, handle) : 0;
}

static int tell(const struct gem_op *op)
{
    if (op->op != GEM_OP_GET_CREATE_INFO)
        return fail(EINVAL);
    *(struct gem_create_in *)(uintptr_t)op->value = find(op->handle)->made;
    return 0;
}

int drm_shim_buffers(drm_ioctl *next, int fd, unsigned long request, void *argument, int *result)
{
    int is_ours = 1;

    pthread_mutex_lock(&lock);
    switch (_IOC_NR(request)) {
    case AMDGPU_GEM_CREATE:
        *result = create(next, fd, request, argument);
        break;
    case AMDGPU_GEM_USERPTR:
        *result = use_pages(next, fd, request, argument);
        break;
    case AMDGPU_GEM_OP:
        *result = tell(argument);
        break;
    case GEM_CLOSE:
        *result = forget(next, fd, request, argument);
        break;
    case PRIME_HANDLE_TO_FD:
        *result = export(argument);
        break;
    case PRIME_FD_TO_HANDLE:
        *result = import(argument);
        break;
    default:
        is_ours = 0;
    }
    pthread_mutex_unlock(&lock);
    return is_ours;
}

static uint64_t bytes_of(const struct buffer *buffer, enum drm_shim_kind kind)
{
    const bool uncached = buffer->made.flags & CREATE_CPU_GTT_USWC;

    if (kind == DRM_SHIM_PAGES)
        return buffer->page_bytes;
    return buffer->made.domains == DOMAIN_GTT && uncached == (kind == DRM_SHIM_UNCACHED) ? buffer->made.bytes : 0;
}

uint64_t drm_shim_bytes(enum drm_shim_kind kind)
{
    uint64_t bytes = 0;

    pthread_mutex_lock(&lock);
    for (uint32_t i = 1; i < N_HANDLES; i++)
        bytes += bytes_of(&buffers[i], kind);
    pthread_mutex_unlock(&lock);
    return bytes;
}
