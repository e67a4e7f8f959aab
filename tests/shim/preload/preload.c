/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded before Mesa's drm-shim, for whole runs of RADV and ANV without a GPU. The shim accepts every call and does nothing; what programs
 * need beyond that is here: synchronization objects that are signalled (syncobjs.c), submissions that are complete at once (submissions.c),
 * buffers that are shared, freed and counted (buffers.c). Nothing is executed, but all work that the driver is given is complete at once. */
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define DRM_TYPE 'd'
#define N_NUMBERS 256
#define N_FILES 1024 /* descriptors of devices are below this */

static drm_handler *const amdgpu[N_NUMBERS] = {
#define CORE(number, handler) [number] = handler,
#define AMDGPU(number, handler) [number] = handler,
#include "ioctls.def"
};

static drm_handler *const i915[N_NUMBERS] = {
#define CORE(number, handler) [number] = handler,
#define I915(number, handler) [number] = handler,
#include "ioctls.def"
};

static atomic_bool is_device[N_FILES];
static atomic_llong live[DRM_SHIM_N_KINDS];

int drm_pass(const struct drm_call *call)
{
    const int result = call->next(call->fd, call->request, call->argument);

    return result < -1 ? drm_fail(-result) : result;
}

int drm_fail(int error)
{
    errno = error;
    return -1;
}

void *drm_pointer(uint64_t address)
{
    return (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
}

int64_t drm_shim_live(enum drm_shim_kind kind)
{
    return atomic_load(&live[kind]);
}

void drm_shim_add(enum drm_shim_kind kind, int64_t n)
{
    atomic_fetch_add(&live[kind], n);
}

/* The next library's function of a name, which is looked up once. */
static void *find_next(_Atomic(void *) *cached, const char *name)
{
    void *function = atomic_load(cached);

    if (!function)
        atomic_store(cached, function = dlsym(RTLD_NEXT, name));
    return function;
}

int ioctl(int fd, unsigned long request, ...)
{
    static _Atomic(void *) cached;
    struct drm_call call = {.fd = fd, .request = request};
    drm_handler *handler;
    va_list list;

    va_start(list, request);
    call.argument = va_arg(list, void *);
    va_end(list);
    *(void **)&call.next = find_next(&cached, "ioctl");
    if (_IOC_TYPE(request) != DRM_TYPE || fd < 0 || fd >= N_FILES)
        return call.next(fd, request, call.argument);
    atomic_store(&is_device[fd], true);
    handler = (getenv("INTEL_STUB_GPU_PLATFORM") ? i915 : amdgpu)[_IOC_NR(request)];
    return handler ? handler(&call) : drm_pass(&call);
}

int close(int fd)
{
    static _Atomic(void *) cached;
    int (*next)(int);

    *(void **)&next = find_next(&cached, "close");
    if (fd >= 0 && fd < N_FILES && atomic_exchange(&is_device[fd], false)) {
        drm_buffers_close(fd);
        drm_syncobjs_close(fd);
    }
    return next(fd);
}

typedef void *map_function(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);

/* The shim maps buffers wherever there is room, and ignores a wanted address. */
static void *map(map_function *next, void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    void *mapped;

    if (fd < 0 || fd >= N_FILES || !atomic_load(&is_device[fd]) || !(flags & MAP_FIXED))
        return next(address, bytes, protection, flags, fd, offset);
    mapped = next(NULL, bytes, protection, flags & ~MAP_FIXED, fd, offset);
    return mapped == MAP_FAILED ? mapped : mremap(mapped, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, address);
}

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    static _Atomic(void *) cached;
    map_function *next;

    *(void **)&next = find_next(&cached, "mmap");
    return map(next, address, bytes, protection, flags, fd, offset);
}

void *mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    static _Atomic(void *) cached;
    map_function *next;

    *(void **)&next = find_next(&cached, "mmap64");
    return map(next, address, bytes, protection, flags, fd, offset);
}
