/* SPDX-License-Identifier: Apache-2.0 */
/* A list of running kernels grows with the commands in flight, whose number the queues limit; complete kernels are dropped when it is full. */
#include "running.h"

#include "context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 112 /* longer names are truncated */
#define FIRST_CAPACITY 16
#define NAMES_MAX 4 /* in a description */

struct ct_running_kernel {
    uint64_t first, last; /* its points */
    char name[NAME_BYTES];
};

static struct ct_running_kernel *at(const struct ct_running *running, size_t i)
{
    return &running->kernels[(running->first + i) & (running->capacity - 1)];
}

void ct_running_add(struct ct_running *running, struct ct_device *device, struct ct_queue *queue)
{
    *running = (struct ct_running){.device = device, .queue = queue};
    ct_mutex_lock(&device->running_lock);
    running->next = device->running;
    running->link = &device->running;
    if (running->next)
        running->next->link = &running->next;
    device->running = running;
    ct_mutex_unlock(&device->running_lock);
}

void ct_running_remove(struct ct_running *running)
{
    struct ct_device *device = running->device;

    if (!device)
        return;
    ct_mutex_lock(&device->running_lock);
    *running->link = running->next;
    if (running->next)
        running->next->link = running->link;
    ct_mutex_unlock(&device->running_lock);
    free(running->kernels);
    *running = (struct ct_running){0};
}

static void drop_complete_locked(struct ct_running *running)
{
    uint64_t completed;

    if (running->device->backend->queues->completed(running->queue, &completed) != CUDA_SUCCESS)
        return;
    while (running->count && at(running, 0)->last <= completed) {
        running->first = (running->first + 1) & (running->capacity - 1);
        running->count--;
    }
}

static bool grow_locked(struct ct_running *running)
{
    size_t capacity = running->capacity ? 2 * running->capacity : FIRST_CAPACITY;
    struct ct_running_kernel *kernels = malloc(capacity * sizeof *kernels);

    if (!kernels)
        return false;
    for (size_t i = 0; i < running->count; i++)
        kernels[i] = *at(running, i);
    free(running->kernels);
    running->kernels = kernels;
    running->capacity = capacity;
    running->first = 0;
    return true;
}

/* If no memory is left a report will not name the kernel, which is no reason not to launch it. */
static bool make_room_locked(struct ct_running *running)
{
    if (running->count == running->capacity && running->count)
        drop_complete_locked(running);
    return running->count < running->capacity || grow_locked(running);
}

void ct_running_begin(struct ct_running *running, const char *name)
{
    const uint64_t before = running->device->backend->queues->point(running->queue);
    const size_t length = strnlen(name, NAME_BYTES - 1);

    ct_mutex_lock(&running->device->running_lock);
    running->is_recording = make_room_locked(running);
    if (running->is_recording) {
        struct ct_running_kernel *kernel = at(running, running->count++);

        kernel->first = before + 1;
        kernel->last = UINT64_MAX;
        memcpy(kernel->name, name, length);
        kernel->name[length] = '\0';
    }
    ct_mutex_unlock(&running->device->running_lock);
}

CUresult ct_running_end(struct ct_running *running, CUresult result)
{
    const uint64_t point = running->device->backend->queues->point(running->queue);

    ct_mutex_lock(&running->device->running_lock);
    if (running->is_recording && result != CUDA_SUCCESS)
        running->count--;
    else if (running->is_recording)
        at(running, running->count - 1)->last = point;
    running->is_recording = false;
    ct_mutex_unlock(&running->device->running_lock);
    return result;
}

/* ---- which kernels run ---- */

struct names {
    const char *found[NAMES_MAX];
    unsigned count; /* may be larger than NAMES_MAX */
};

static void add_name(struct names *names, const char *name)
{
    for (unsigned i = 0; i < names->count && i < NAMES_MAX; i++)
        if (!strcmp(names->found[i], name))
            return;
    if (names->count < NAMES_MAX)
        names->found[names->count] = name;
    names->count++;
}

/* The kernels with a point in [first, last]. */
static void add_between_locked(const struct ct_running *running, uint64_t first, uint64_t last, struct names *names)
{
    for (size_t i = 0; i < running->count; i++)
        if (at(running, i)->first <= last && at(running, i)->last >= first)
            add_name(names, at(running, i)->name);
}

static void find_names_locked(const struct ct_device *device, struct names *names)
{
    const struct ct_queue_calls *queues = device->backend->queues;
    uint64_t first, last, completed;

    for (const struct ct_running *running = device->running; running; running = running->next)
        if (queues->working(running->queue, &first, &last))
            add_between_locked(running, first, last, names);
    for (const struct ct_running *running = device->running; running && !names->count; running = running->next)
        if (queues->completed(running->queue, &completed) == CUDA_SUCCESS)
            add_between_locked(running, completed + 1, UINT64_MAX, names);
}

static void print_names(const struct names *names, char *out, size_t size)
{
    const char *before = names->count == 1 ? "kernel" : "one of the kernels";
    size_t used = 0;

    if (names->count == 0)
        snprintf(out, size, "a kernel without a name");
    for (unsigned i = 0; i < names->count && i < NAMES_MAX && used < size; i++) {
        int n = snprintf(out + used, size - used, "%s%s %s", i ? "," : "", i ? "" : before, names->found[i]);

        used += n > 0 ? (size_t)n : 0;
    }
    if (names->count > NAMES_MAX && used < size)
        snprintf(out + used, size - used, " and others");
}

void ct_running_describe(struct ct_device *device, char *out, size_t size)
{
    struct names names = {.count = 0};

    ct_mutex_lock(&device->running_lock);
    find_names_locked(device, &names);
    print_names(&names, out, size);
    ct_mutex_unlock(&device->running_lock);
}

bool ct_running_now_locked(const struct ct_running *running, uint64_t *out_point)
{
    uint64_t first, last;

    if (!running->device->backend->queues->working(running->queue, &first, &last))
        return false;
    for (size_t i = 0; i < running->count; i++)
        if (at(running, i)->first <= last && at(running, i)->last >= first) {
            *out_point = first;
            return true;
        }
    return false;
}

static bool any_locked(const struct ct_running *running)
{
    uint64_t completed;

    return running->count && running->device->backend->queues->completed(running->queue, &completed) == CUDA_SUCCESS &&
           at(running, running->count - 1)->last > completed;
}

bool ct_running_any(struct ct_device *device)
{
    bool any = false;

    ct_mutex_lock(&device->running_lock);
    for (const struct ct_running *running = device->running; running && !any; running = running->next)
        any = any_locked(running);
    ct_mutex_unlock(&device->running_lock);
    return any;
}
