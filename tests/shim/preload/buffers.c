/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers. When one is exported, it becomes a file in memory of its size, which begins with how it was created. An imported file denotes the
 * buffer for which it was created, as in the kernel, while that exists; otherwise, and in other processes, it becomes a buffer like it, with
 * contents of its own. Other files are rejected. The shim itself frees no buffer that was mapped exactly once: its count of references is then
 * wrong by one (Mesa 25.0.7, drm_shim_bo_put). Such a buffer is mapped once more before it is closed, or the shim's 4 GiB would be used up
 * soon. */
#include "buffers.h"

#include "pages.h"
#include "preload.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of the kernel's include/uapi/drm/drm.h and amdgpu_drm.h. */
#define GEM_OP_GET_CREATE_INFO 0
#define DOMAIN_GTT 0x2u
#define CREATE_CPU_GTT_USWC 0x4u /* flag: the host's mapping of the buffer is write-combined and not cached */
#define AMDGPU_GEM_CREATE _IOC(_IOC_READ | _IOC_WRITE, 'd', 0x40, 32)
#define AMDGPU_GEM_MMAP _IOC(_IOC_READ | _IOC_WRITE, 'd', 0x41, 8)
#define I915_GEM_CREATE _IOC(_IOC_READ | _IOC_WRITE, 'd', 0x5b, 16)
#define I915_GEM_MMAP_OFFSET _IOC(_IOC_READ | _IOC_WRITE, 'd', 0x64, 32)
#define USERPTR_READONLY 1u
#define USERPTR_ANONONLY 2u
#define USERPTR_VALIDATE 4u
#define N_HANDLES 65536
#define N_FILES 1024
#define FIRST_OF_PAGES 32768 /* our handles of user pages of amdgpu, for which the shim has none */

union gem_create { /* union drm_amdgpu_gem_create */
    struct gem_create_in {
        uint64_t bytes, align, domains, flags;
    } in;
    uint32_t handle;
};

struct i915_gem_create { /* the beginning of struct drm_i915_gem_create and drm_i915_gem_create_ext */
    uint64_t bytes;
    uint32_t handle;
};

struct gem_op { /* struct drm_amdgpu_gem_op */
    uint32_t handle, op;
    uint64_t value;
};

struct gem_userptr { /* struct drm_amdgpu_gem_userptr, drm_i915_gem_userptr */
    uint64_t address, bytes;
    uint32_t flags, handle;
};

union gem_mmap { /* the beginning of union drm_amdgpu_gem_mmap, struct drm_i915_gem_mmap_offset and drm_i915_gem_mmap */
    uint32_t handle;
    char bytes[40];
};

struct prime { /* struct drm_prime_handle */
    uint32_t handle, flags;
    int32_t fd;
};

struct file_head {
    char magic[16];
    struct gem_create_in made;
};
static const char magic[16] = "shim buffer";

struct buffer {
    bool is_live;
    unsigned n_maps;           /* calls that have told the shim to map it */
    struct gem_create_in made; /* or, for pages of the process, zeros */
    uint64_t page_bytes;
    int file; /* 0: it has not been exported */
};

static pthread_mutex_t lock =
    PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP; /* recursive, since close comes here if a file has the number that a device had */
/* Handles belong to an open file of the device: N_HANDLES of each file that has any. */
static struct buffer *files[N_FILES];

static bool is_i915(void)
{
    return getenv("INTEL_STUB_GPU_PLATFORM") != NULL;
}

/* NULL: memory is exhausted. */
static struct buffer *find_locked(int fd, uint32_t handle)
{
    if (!files[fd])
        files[fd] = calloc(N_HANDLES, sizeof *files[fd]);
    return files[fd] ? &files[fd][handle % N_HANDLES] : NULL;
}

/* Remembers a buffer that was made. */
static int add(const struct drm_call *call, uint32_t handle, struct buffer buffer)
{
    struct buffer *place;

    buffer.is_live = true;
    pthread_mutex_lock(&lock);
    if ((place = find_locked(call->fd, handle)))
        *place = buffer;
    pthread_mutex_unlock(&lock);
    if (!place)
        return drm_fail(ENOMEM);
    drm_shim_add(DRM_SHIM_BUFFERS, 1);
    return 0;
}

int drm_amdgpu_gem_create(const struct drm_call *call)
{
    union gem_create *create = call->argument;
    const struct gem_create_in made = create->in;
    const int result = drm_pass(call);

    return result ? result : add(call, create->handle, (struct buffer){.made = made});
}

int drm_i915_gem_create(const struct drm_call *call)
{
    struct i915_gem_create *create = call->argument;
    const struct gem_create_in made = {.bytes = create->bytes};
    const int result = drm_pass(call);

    return result ? result : add(call, create->handle, (struct buffer){.made = made});
}

int drm_amdgpu_gem_userptr(const struct drm_call *call)
{
    static uint32_t last = FIRST_OF_PAGES - 1;
    struct gem_userptr *pages = call->argument;
    const unsigned wanted =
        (pages->flags & USERPTR_READONLY ? 0 : DRM_PAGES_WRITTEN) | (pages->flags & USERPTR_ANONONLY ? DRM_PAGES_ANONYMOUS : 0);
    const int error = pages->flags & USERPTR_VALIDATE ? drm_pages_check(pages->address, pages->bytes, wanted) : 0;

    if (error)
        return drm_fail(error);
    pthread_mutex_lock(&lock);
    last = last + 1 < N_HANDLES ? last + 1 : FIRST_OF_PAGES;
    pages->handle = last;
    pthread_mutex_unlock(&lock);
    return add(call, pages->handle, (struct buffer){.page_bytes = pages->bytes});
}

int drm_i915_gem_userptr(const struct drm_call *call)
{
    const struct gem_userptr *pages = call->argument;
    const int result = drm_pass(call);

    return result ? result : add(call, pages->handle, (struct buffer){.page_bytes = pages->bytes});
}

int drm_gem_mmap(const struct drm_call *call)
{
    struct buffer *buffer;

    pthread_mutex_lock(&lock);
    if ((buffer = find_locked(call->fd, *(const uint32_t *)call->argument)) && buffer->is_live)
        buffer->n_maps++;
    else
        buffer = NULL; /* the shim does not check it */
    pthread_mutex_unlock(&lock);
    return buffer ? drm_pass(call) : drm_fail(ENOENT);
}

static void finish_locked(struct buffer *buffer)
{
    if (buffer->file)
        close(buffer->file);
    *buffer = (struct buffer){0};
    drm_shim_add(DRM_SHIM_BUFFERS, -1);
}

static void map_once_more(const struct drm_call *call, uint32_t handle)
{
    union gem_mmap mapped = {.handle = handle};

    call->next(call->fd, is_i915() ? I915_GEM_MMAP_OFFSET : AMDGPU_GEM_MMAP, &mapped);
}

int drm_gem_close(const struct drm_call *call)
{
    const uint32_t handle = *(const uint32_t *)call->argument;
    bool is_live, was_mapped_once, is_the_shims;
    struct buffer *buffer;

    pthread_mutex_lock(&lock);
    buffer = find_locked(call->fd, handle);
    is_live = buffer && buffer->is_live;
    was_mapped_once = is_live && buffer->n_maps == 1;
    is_the_shims = is_live && !(handle >= FIRST_OF_PAGES && buffer->page_bytes);
    if (is_live)
        finish_locked(buffer);
    pthread_mutex_unlock(&lock);
    if (was_mapped_once)
        map_once_more(call, handle);
    if (is_the_shims)
        return drm_pass(call);
    return is_live ? 0 : drm_fail(EINVAL);
}

void drm_buffers_close(int fd)
{
    struct buffer *buffers;

    pthread_mutex_lock(&lock);
    buffers = files[fd];
    files[fd] = NULL;
    for (uint32_t i = 0; buffers && i < N_HANDLES; i++)
        if (buffers[i].is_live)
            finish_locked(&buffers[i]);
    pthread_mutex_unlock(&lock);
    free(buffers);
}

int drm_amdgpu_gem_op(const struct drm_call *call)
{
    const struct gem_op *op = call->argument;
    struct buffer *buffer;

    if (op->op != GEM_OP_GET_CREATE_INFO)
        return drm_fail(EINVAL);
    pthread_mutex_lock(&lock);
    if ((buffer = find_locked(call->fd, op->handle)))
        *(struct gem_create_in *)drm_pointer(op->value) = buffer->made;
    pthread_mutex_unlock(&lock);
    return buffer ? 0 : drm_fail(ENOENT);
}

/* ---- files ---- */

/* Returns 0 if none is left. */
static int make_file(const struct gem_create_in *made)
{
    struct file_head head = {.made = *made};
    int file = memfd_create("buffer", MFD_CLOEXEC);

    memcpy(head.magic, magic, sizeof magic);
    if (file >= 0 && ftruncate(file, (off_t)made->bytes) == 0 && pwrite(file, &head, sizeof head, 0) == sizeof head)
        return file;
    if (file >= 0)
        close(file);
    return 0;
}

static int export_locked(const struct drm_call *call)
{
    struct prime *prime = call->argument;
    struct buffer *buffer = find_locked(call->fd, prime->handle);

    if (!buffer || !buffer->made.bytes)
        return drm_fail(ENOENT);
    if (!buffer->file && !(buffer->file = make_file(&buffer->made)))
        return drm_fail(EMFILE);
    prime->fd = fcntl(buffer->file, F_DUPFD_CLOEXEC, 0);
    return prime->fd < 0 ? -1 : 0;
}

/* Returns 0 if none of this open device is that of the file. */
static uint32_t find_file_locked(int fd, const struct stat *wanted)
{
    struct stat file;

    for (uint32_t i = 1; i < N_HANDLES; i++) {
        const struct buffer *buffer = find_locked(fd, i);

        if (buffer && buffer->file && !fstat(buffer->file, &file) && file.st_dev == wanted->st_dev && file.st_ino == wanted->st_ino)
            return i;
    }
    return 0;
}

/* A buffer like that of the file. */
static int import_again_locked(const struct drm_call *call)
{
    struct prime *prime = call->argument;
    struct file_head head;
    union gem_create amdgpu;
    struct i915_gem_create i915[2] = {{0}}; /* the structure is larger */
    int result, file;

    if (pread(prime->fd, &head, sizeof head, 0) != sizeof head || memcmp(head.magic, magic, sizeof magic))
        return drm_fail(EINVAL);
    if ((file = fcntl(prime->fd, F_DUPFD_CLOEXEC, 0)) < 0)
        return -1;
    amdgpu.in = head.made;
    i915->bytes = head.made.bytes;
    result = is_i915() ? call->next(call->fd, I915_GEM_CREATE, i915) : call->next(call->fd, AMDGPU_GEM_CREATE, &amdgpu);
    if (result) {
        close(file);
        return drm_fail(ENOMEM);
    }
    prime->handle = is_i915() ? i915->handle : amdgpu.handle;
    *find_locked(call->fd, prime->handle) = (struct buffer){.is_live = true, .made = head.made, .file = file};
    drm_shim_add(DRM_SHIM_BUFFERS, 1);
    return 0;
}

static int import_locked(const struct drm_call *call)
{
    struct prime *prime = call->argument;
    struct stat wanted;
    uint32_t handle;

    if (fstat(prime->fd, &wanted))
        return -1;
    if (!(handle = find_file_locked(call->fd, &wanted)))
        return import_again_locked(call);
    prime->handle = handle;
    return 0;
}

int drm_prime_handle_to_fd(const struct drm_call *call)
{
    int result;

    pthread_mutex_lock(&lock);
    result = export_locked(call);
    pthread_mutex_unlock(&lock);
    return result;
}

int drm_prime_fd_to_handle(const struct drm_call *call)
{
    int result;

    pthread_mutex_lock(&lock);
    result = import_locked(call);
    pthread_mutex_unlock(&lock);
    return result;
}

/* ---- sizes ---- */

static uint64_t bytes_of(const struct buffer *buffer, enum drm_shim_caching caching)
{
    const bool uncached = buffer->made.flags & CREATE_CPU_GTT_USWC;

    if (caching == DRM_SHIM_PAGES)
        return buffer->page_bytes;
    return buffer->made.domains == DOMAIN_GTT && uncached == (caching == DRM_SHIM_UNCACHED) ? buffer->made.bytes : 0;
}

uint64_t drm_shim_bytes(enum drm_shim_caching caching)
{
    uint64_t bytes = 0;

    pthread_mutex_lock(&lock);
    for (int fd = 0; fd < N_FILES; fd++)
        for (uint32_t i = 1; files[fd] && i < N_HANDLES; i++)
            bytes += bytes_of(&files[fd][i], caching);
    pthread_mutex_unlock(&lock);
    return bytes;
}
