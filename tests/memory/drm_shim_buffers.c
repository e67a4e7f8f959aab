/* SPDX-License-Identifier: Apache-2.0 */
/* A buffer of the shim's becomes a file in memory of its size when it is exported. An imported file is the buffer that it was made for, as in
 * the kernel; other files are refused. There is nothing in them: nobody executes anything. */
#include "drm_shim_buffers.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
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
#define GEM_OP_GET_CREATE_INFO 0
#define N_HANDLES 65536

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

struct prime { /* struct drm_prime_handle */
    uint32_t handle, flags;
    int32_t fd;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct buffer {
    struct gem_create_in made;
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

static int export(struct prime *prime)
{
    struct buffer *buffer = find(prime->handle);

    if (!buffer->made.bytes)
        return fail(ENOENT);
    if (!buffer->file) {
        buffer->file = memfd_create("buffer", MFD_CLOEXEC);
        if (buffer->file < 0 || ftruncate(buffer->file, (off_t)buffer->made.bytes))
            return fail(ENOMEM);
    }
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
    return next(fd, request, handle);
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
