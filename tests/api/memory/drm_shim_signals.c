/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded before Mesa's drm-shim, for tests of RADV without a GPU. drm_shim_buffers.c adds buffers as file descriptors. The shim does not
 * implement signals of synchronization objects, so RADV considers the device lost once memory was bound to a sparse buffer; here the
 * signals succeed, and a wait lasts until the signal, or a moment for signals that only a GPU would send. */
#include "drm_shim_buffers.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Of the kernel's include/uapi/drm/drm.h. */
#define DRM_TYPE 'd'
#define SYNCOBJ_CREATE 0xbf
#define SYNCOBJ_CREATE_SIGNALED 1u /* flag */
#define SYNCOBJ_WAIT 0xc3
#define SYNCOBJ_RESET 0xc4
#define SYNCOBJ_SIGNAL 0xc5
#define N_HANDLES 4096
#define POLLS 10000
#define POLL_US 100

struct creation { /* struct drm_syncobj_create */
    uint32_t handle, flags;
};

struct objects { /* the beginning of struct drm_syncobj_array */
    uint64_t handles;
    uint32_t n_handles;
};

struct waiting { /* of struct drm_syncobj_wait */
    uint64_t handles;
    int64_t timeout_ns;
    uint32_t n_handles;
};

static atomic_bool signalled[N_HANDLES];

static void set(const struct objects *objects, int value)
{
    const uint32_t *handles = (const uint32_t *)(uintptr_t)objects->handles;

    for (uint32_t i = 0; i < objects->n_handles; i++)
        atomic_store(&signalled[handles[i] % N_HANDLES], value);
}

static int all_signalled(const struct waiting *waiting)
{
    const uint32_t *handles = (const uint32_t *)(uintptr_t)waiting->handles;

    for (uint32_t i = 0; i < waiting->n_handles; i++)
        if (!atomic_load(&signalled[handles[i] % N_HANDLES]))
            return 0;
    return 1;
}

static int create(drm_ioctl *next, int fd, unsigned long request, struct creation *creation)
{
    int result = next(fd, request, creation);

    if (result == 0)
        atomic_store(&signalled[creation->handle % N_HANDLES], (creation->flags & SYNCOBJ_CREATE_SIGNALED) != 0);
    return result;
}

static int wait(const struct waiting *waiting)
{
    for (int i = 0; i < POLLS && !all_signalled(waiting); i++)
        usleep(POLL_US);
    return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
    drm_ioctl *next = (drm_ioctl *)dlsym(RTLD_NEXT, "ioctl");
    va_list list;
    void *argument;
    int result;

    va_start(list, request);
    argument = va_arg(list, void *);
    va_end(list);
    if (_IOC_TYPE(request) != DRM_TYPE)
        return next(fd, request, argument);
    switch (_IOC_NR(request)) {
    case SYNCOBJ_CREATE:
        return create(next, fd, request, argument);
    case SYNCOBJ_SIGNAL:
    case SYNCOBJ_RESET:
        set(argument, _IOC_NR(request) == SYNCOBJ_SIGNAL);
        return 0;
    case SYNCOBJ_WAIT:
        return wait(argument);
    }
    return drm_shim_buffers(next, fd, request, argument, &result) ? result : next(fd, request, argument);
}
