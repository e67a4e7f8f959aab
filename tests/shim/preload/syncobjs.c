/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronization objects of the kernel (drm_syncobj), of which the shim has a single one that nobody signals. An object holds a fence or none.
 * A fence is complete from the beginning, since submissions are complete at once, and has the value of its point in a timeline, 0 in a binary
 * object. A wait lasts until there is the fence, as in the kernel. Handles are unique among all files of devices. */
#include "preload.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define N_HANDLES 65536u
/* Of the kernel's include/uapi/drm/drm.h. */
#define CREATE_SIGNALED 1u
#define OF_SYNC_FILE 1u /* a flag of exports and imports */
#define WAIT_ALL 1u
#define WAIT_FOR_SUBMIT 2u
#define WAIT_AVAILABLE 4u

struct handle { /* struct drm_syncobj_create, drm_syncobj_destroy */
    uint32_t handle, flags;
};

struct exchange { /* struct drm_syncobj_handle */
    uint32_t handle, flags;
    int32_t fd;
    uint32_t pad;
};

struct binary_wait { /* struct drm_syncobj_wait */
    uint64_t handles;
    int64_t timeout_ns;
    uint32_t n_handles, flags, first;
};

struct timeline_wait { /* struct drm_syncobj_timeline_wait */
    uint64_t handles, points;
    int64_t timeout_ns;
    uint32_t n_handles, flags, first;
};

struct binary_array { /* struct drm_syncobj_array */
    uint64_t handles;
    uint32_t n_handles;
};

struct timeline_array { /* struct drm_syncobj_timeline_array */
    uint64_t handles, points;
    uint32_t n_handles;
};

struct transfer { /* struct drm_syncobj_transfer */
    uint32_t from, to;
    uint64_t from_point, to_point;
    uint32_t flags;
};

struct object {
    unsigned references; /* handles */
    bool has_fence;
    uint64_t point;
    int file; /* 0: it has not been exported */
};

static pthread_mutex_t lock =
    PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP; /* recursive, since close comes here if a file has the number that a device had */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_cond_t changed;
static struct {
    struct object *object; /* NULL: the handle is free */
    int fd;
} handles[N_HANDLES];

static void prepare(void)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static struct object *find_locked(uint32_t handle)
{
    return handle < N_HANDLES ? handles[handle].object : NULL;
}

/* Returns 0 if there is none. */
static uint32_t add_handle_locked(struct object *object, int fd)
{
    static uint32_t last;

    for (uint32_t i = 1; i < N_HANDLES; i++) {
        const uint32_t handle = (last + i) % N_HANDLES;

        if (handle == 0 || handles[handle].object)
            continue;
        handles[handle].object = object;
        handles[handle].fd = fd;
        object->references++;
        drm_shim_add(DRM_SHIM_SYNCOBJS, 1);
        return last = handle;
    }
    return 0;
}

static void remove_handle_locked(uint32_t handle)
{
    struct object *object = handles[handle].object;

    handles[handle].object = NULL;
    drm_shim_add(DRM_SHIM_SYNCOBJS, -1);
    if (--object->references)
        return;
    if (object->file)
        close(object->file);
    free(object);
}

void drm_syncobjs_close(int fd)
{
    pthread_mutex_lock(&lock);
    for (uint32_t i = 1; i < N_HANDLES; i++)
        if (handles[i].object && handles[i].fd == fd)
            remove_handle_locked(i);
    pthread_mutex_unlock(&lock);
}

int drm_syncobj_create(const struct drm_call *call)
{
    struct handle *creation = call->argument;
    struct object *object = calloc(1, sizeof *object);

    if (!object)
        return drm_fail(ENOMEM);
    object->has_fence = creation->flags & CREATE_SIGNALED;
    pthread_mutex_lock(&lock);
    creation->handle = add_handle_locked(object, call->fd);
    pthread_mutex_unlock(&lock);
    if (creation->handle)
        return 0;
    free(object);
    return drm_fail(ENOMEM);
}

int drm_syncobj_destroy(const struct drm_call *call)
{
    const struct handle *destroyed = call->argument;
    bool found;

    pthread_mutex_lock(&lock);
    if ((found = find_locked(destroyed->handle)))
        remove_handle_locked(destroyed->handle);
    pthread_mutex_unlock(&lock);
    return found ? 0 : drm_fail(EINVAL);
}

/* ---- files ---- */

/* A file that denotes the object. */
static int export_locked(struct object *object)
{
    if (!object->file && (object->file = memfd_create("syncobj", MFD_CLOEXEC)) < 0) {
        object->file = 0;
        return -1;
    }
    return fcntl(object->file, F_DUPFD_CLOEXEC, 0);
}

int drm_syncobj_handle_to_fd(const struct drm_call *call)
{
    struct exchange *exchange = call->argument;
    struct object *object;
    int fd = -1, error = EINVAL;

    pthread_mutex_lock(&lock);
    object = find_locked(exchange->handle);
    /* A sync file is a fence, and so complete: a file that poll finds readable. */
    if (object && (object->has_fence || !(exchange->flags & OF_SYNC_FILE))) {
        fd = exchange->flags & OF_SYNC_FILE ? eventfd(1, EFD_CLOEXEC) : export_locked(object);
        error = errno;
    }
    pthread_mutex_unlock(&lock);
    if (fd < 0)
        return drm_fail(error);
    exchange->fd = fd;
    return 0;
}

static struct object *find_file_locked(int fd)
{
    struct stat wanted, file;

    if (fstat(fd, &wanted))
        return NULL;
    for (uint32_t i = 1; i < N_HANDLES; i++) {
        struct object *object = handles[i].object;

        if (object && object->file && fstat(object->file, &file) == 0 && file.st_dev == wanted.st_dev && file.st_ino == wanted.st_ino)
            return object;
    }
    return NULL;
}

int drm_syncobj_fd_to_handle(const struct drm_call *call)
{
    struct exchange *exchange = call->argument;
    struct object *object;

    if (exchange->flags & OF_SYNC_FILE)
        return drm_syncobj_signal_point(exchange->handle, 0);
    pthread_mutex_lock(&lock);
    if ((object = find_file_locked(exchange->fd)))
        exchange->handle = add_handle_locked(object, call->fd);
    pthread_mutex_unlock(&lock);
    return object && exchange->handle ? 0 : drm_fail(EINVAL);
}

/* ---- fences ---- */

static bool has_point(const struct object *object, uint64_t point)
{
    return object->has_fence && object->point >= point;
}

static void put_fence_locked(struct object *object, uint64_t point)
{
    if (point == 0 || !object->has_fence || object->point < point)
        object->point = point;
    object->has_fence = true;
    pthread_once(&once, prepare);
    pthread_cond_broadcast(&changed);
}

int drm_syncobj_signal_point(uint32_t handle, uint64_t point)
{
    struct object *object;

    pthread_mutex_lock(&lock);
    if ((object = find_locked(handle)))
        put_fence_locked(object, point);
    pthread_mutex_unlock(&lock);
    return object ? 0 : drm_fail(ENOENT);
}

int drm_syncobj_signal(const struct drm_call *call)
{
    const struct binary_array *array = call->argument;
    const uint32_t *list = drm_pointer(array->handles);

    for (uint32_t i = 0; i < array->n_handles; i++)
        if (drm_syncobj_signal_point(list[i], 0))
            return -1;
    return 0;
}

int drm_syncobj_timeline_signal(const struct drm_call *call)
{
    const struct timeline_array *array = call->argument;
    const uint32_t *list = drm_pointer(array->handles);
    const uint64_t *points = drm_pointer(array->points);

    for (uint32_t i = 0; i < array->n_handles; i++)
        if (drm_syncobj_signal_point(list[i], points[i]))
            return -1;
    return 0;
}

int drm_syncobj_reset(const struct drm_call *call)
{
    const struct binary_array *array = call->argument;
    const uint32_t *list = drm_pointer(array->handles);
    int error = 0;

    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < array->n_handles; i++) {
        struct object *object = find_locked(list[i]);

        if (object)
            object->has_fence = false, object->point = 0;
        else
            error = ENOENT;
    }
    pthread_mutex_unlock(&lock);
    return error ? drm_fail(error) : 0;
}

int drm_syncobj_query(const struct drm_call *call)
{
    const struct timeline_array *array = call->argument;
    const uint32_t *list = drm_pointer(array->handles);
    uint64_t *points = drm_pointer(array->points);
    int error = 0;

    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < array->n_handles; i++) {
        const struct object *object = find_locked(list[i]);

        if (object)
            points[i] = object->point;
        else
            error = ENOENT;
    }
    pthread_mutex_unlock(&lock);
    return error ? drm_fail(error) : 0;
}

/* ---- waits ---- */

struct wait {
    const uint32_t *handles;
    const uint64_t *points; /* NULL: of binary objects */
    int64_t timeout_ns;     /* of the monotonic clock */
    uint32_t n_handles, flags, first;
};

/* Returns 0 if the wait is over, or an error: EAGAIN if it is not. */
static int look_locked(struct wait *wait)
{
    uint32_t ready = 0;

    for (uint32_t i = 0; i < wait->n_handles; i++) {
        const struct object *object = find_locked(wait->handles[i]);

        if (!object)
            return ENOENT;
        if (has_point(object, wait->points ? wait->points[i] : 0)) {
            if (!ready++)
                wait->first = i;
        } else if (!(wait->flags & (WAIT_FOR_SUBMIT | WAIT_AVAILABLE))) {
            return EINVAL;
        }
    }
    return ready == wait->n_handles || (ready && !(wait->flags & WAIT_ALL)) ? 0 : EAGAIN;
}

static int wait_for(struct wait *wait)
{
    const int64_t timeout_ns = wait->timeout_ns > 0 ? wait->timeout_ns : 0;
    const struct timespec until = {.tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000};
    int error, waited = 0;

    pthread_once(&once, prepare);
    pthread_mutex_lock(&lock);
    while ((error = look_locked(wait)) == EAGAIN && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&changed, &lock, &until);
    pthread_mutex_unlock(&lock);
    return error ? drm_fail(error == EAGAIN ? ETIME : error) : 0;
}

int drm_syncobj_await_point(uint32_t handle, uint64_t point)
{
    struct wait wait = {.handles = &handle, .points = &point, .timeout_ns = INT64_MAX, .n_handles = 1, .flags = WAIT_FOR_SUBMIT};

    return wait_for(&wait);
}

int drm_syncobj_wait(const struct drm_call *call)
{
    struct binary_wait *asked = call->argument;
    struct wait wait = {
        .handles = drm_pointer(asked->handles), .timeout_ns = asked->timeout_ns, .n_handles = asked->n_handles, .flags = asked->flags};
    const int result = wait_for(&wait);

    asked->first = wait.first;
    return result;
}

int drm_syncobj_timeline_wait(const struct drm_call *call)
{
    struct timeline_wait *asked = call->argument;
    struct wait wait = {.handles = drm_pointer(asked->handles),
                        .points = drm_pointer(asked->points),
                        .timeout_ns = asked->timeout_ns,
                        .n_handles = asked->n_handles,
                        .flags = asked->flags};
    const int result = wait_for(&wait);

    asked->first = wait.first;
    return result;
}

int drm_syncobj_transfer(const struct drm_call *call)
{
    const struct transfer *transfer = call->argument;
    struct wait wait = {.handles = &transfer->from,
                        .points = &transfer->from_point,
                        .timeout_ns = INT64_MAX,
                        .n_handles = 1,
                        .flags = transfer->flags & WAIT_FOR_SUBMIT};

    return wait_for(&wait) ? -1 : drm_syncobj_signal_point(transfer->to, transfer->to_point);
}
