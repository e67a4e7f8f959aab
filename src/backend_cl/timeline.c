/* SPDX-License-Identifier: Apache-2.0 */
/* Timelines: counters that queues and the host signal and wait for.
 *
 * A queue that signals enqueues a marker whose callback raises the counter. A queue that waits for a value which is not reached yet
 * enqueues a barrier behind a user event, which the thread that raises the counter completes. A callback may run after its marker's
 * point was seen to be complete and the timeline was destroyed, so it holds a reference. */
#include "queue.h"

#include "core/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define CT_CHANNEL "queue"
#define NS_PER_S UINT64_C(1000000000)
#define AWAIT_SLICE_NS UINT64_C(200000000) /* after how long a waiting thread notices that the device was lost elsewhere */

/* A queue that waits for a value. */
struct waiter {
    struct waiter *next;
    cl_event event; /* a user event; holds a reference */
    uint64_t value;
};

struct ct_timeline {
    struct ct_backend_device *device;
    struct ct_mutex lock; /* guards what follows; rank CT_RANK_BACKEND */
    pthread_cond_t raised;
    uint64_t value;    /* the current value */
    uint64_t recorded; /* the greatest value that has been signalled or will be by a recorded command */
    struct waiter *waiters;
    unsigned references;
};

/* The argument of a marker's callback. */
struct signal {
    struct ct_timeline *timeline; /* holds a reference */
    uint64_t value;
};

CUresult ct_cl_timeline_create(struct ct_backend_device *device, struct ct_timeline **out)
{
    struct ct_timeline *timeline = calloc(1, sizeof *timeline);
    pthread_condattr_t attributes;

    if (!timeline)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "timeline object");
    timeline->device = device;
    timeline->references = 1;
    ct_mutex_init(&timeline->lock, CT_RANK_BACKEND);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&timeline->raised, &attributes);
    pthread_condattr_destroy(&attributes);
    *out = timeline;
    return CUDA_SUCCESS;
}

/* Completes the user events of a list that no other thread can access. No lock is held: commands may run during this call. */
static void complete(struct ct_backend_device *device, struct waiter *waiters, cl_int status)
{
    for (struct waiter *waiter = waiters, *next; waiter; waiter = next) {
        next = waiter->next;
        (void)ct_cl_result(device->api->clSetUserEventStatus(waiter->event, status), "clSetUserEventStatus");
        device->api->clReleaseEvent(waiter->event);
        free(waiter);
    }
}

static void release(struct ct_timeline *timeline)
{
    unsigned left;

    ct_mutex_lock(&timeline->lock);
    left = --timeline->references;
    ct_mutex_unlock(&timeline->lock);
    if (left || ct_cl_device_is_given_up(timeline->device))
        return;
    /* if the device was lost: otherwise these commands would wait for ever */
    complete(timeline->device, timeline->waiters, CL_INVALID_EVENT);
    pthread_cond_destroy(&timeline->raised);
    ct_mutex_finish(&timeline->lock);
    free(timeline);
}

void ct_cl_timeline_destroy(struct ct_timeline *timeline)
{
    if (timeline)
        release(timeline);
}

/* Removes the waiters for values up to `value`. */
static struct waiter *take_waiters_locked(struct ct_timeline *timeline, uint64_t value)
{
    struct waiter *taken = NULL;

    for (struct waiter **link = &timeline->waiters; *link;) {
        struct waiter *waiter = *link;

        if (waiter->value > value) {
            link = &waiter->next;
            continue;
        }
        *link = waiter->next;
        waiter->next = taken;
        taken = waiter;
    }
    return taken;
}

static void raise_locked(struct ct_timeline *timeline, uint64_t value)
{
    if (value > timeline->value)
        timeline->value = value;
    if (value > timeline->recorded)
        timeline->recorded = value;
    pthread_cond_broadcast(&timeline->raised);
}

CUresult ct_cl_timeline_signal(struct ct_timeline *timeline, uint64_t value)
{
    struct waiter *waiters = NULL;
    CUresult r = CUDA_SUCCESS;

    ct_mutex_lock(&timeline->lock);
    if (value <= timeline->value) {
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "host signals %llu on a timeline at %llu", (unsigned long long)value,
                    (unsigned long long)timeline->value);
    } else {
        raise_locked(timeline, value);
        waiters = take_waiters_locked(timeline, value);
    }
    ct_mutex_unlock(&timeline->lock);
    complete(timeline->device, waiters, CL_COMPLETE);
    return r;
}

/* Called by a thread of the runtime: the marker of a signal was reached, or its queue has failed. */
static void CL_CALLBACK on_marker(cl_event event, cl_int status, void *user)
{
    struct signal *signal = user;
    struct ct_timeline *timeline = signal->timeline;
    struct waiter *waiters;

    (void)event;
    if (status < 0)
        ct_cl_device_lose(timeline->device, CUDA_ERROR_LAUNCH_FAILED);
    ct_mutex_lock(&timeline->lock);
    raise_locked(timeline, status < 0 ? 0 : signal->value);
    waiters = take_waiters_locked(timeline, status < 0 ? UINT64_MAX : timeline->value);
    ct_mutex_unlock(&timeline->lock);
    complete(timeline->device, waiters, status < 0 ? status : CL_COMPLETE);
    release(timeline);
    free(signal);
}

static CUresult record_value(struct ct_timeline *timeline, uint64_t value)
{
    CUresult r = CUDA_SUCCESS;

    ct_mutex_lock(&timeline->lock);
    if (value <= timeline->recorded) {
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "timeline signal of %llu behind %llu", (unsigned long long)value,
                    (unsigned long long)timeline->recorded);
    } else {
        timeline->recorded = value;
        timeline->references++;
    }
    ct_mutex_unlock(&timeline->lock);
    return r;
}

/* Enqueues the marker; its callback owns `signal` from then on. */
static CUresult enqueue_signal(struct ct_queue *queue, struct signal *signal, cl_event *out)
{
    const struct ct_cl_api *api = queue->device->api;
    CUresult r = ct_cl_command_begin(queue);

    if (r != CUDA_SUCCESS ||
        (r = ct_cl_result(api->clEnqueueMarkerWithWaitList(queue->handle, 0, NULL, out), "clEnqueueMarkerWithWaitList")) != CUDA_SUCCESS)
        return r;
    if ((r = ct_cl_result(api->clSetEventCallback(*out, CL_COMPLETE, on_marker, signal), "clSetEventCallback")) != CUDA_SUCCESS)
        api->clReleaseEvent(*out);
    return r;
}

CUresult ct_cl_queue_signal(struct ct_queue *queue, struct ct_timeline *timeline, uint64_t value)
{
    struct signal *signal = malloc(sizeof *signal);
    cl_event event = NULL;
    CUresult r;

    if (!signal)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "signal of a timeline");
    *signal = (struct signal){timeline, value};
    if ((r = record_value(timeline, value)) != CUDA_SUCCESS) {
        free(signal);
        return r;
    }
    if ((r = enqueue_signal(queue, signal, &event)) != CUDA_SUCCESS) {
        release(timeline);
        free(signal);
    }
    return ct_cl_command_end(queue, r, event);
}

/* A user event for the value, with a reference for the caller; NULL: the value is reached. */
static CUresult add_waiter(struct ct_timeline *timeline, uint64_t value, cl_event *out_or_null)
{
    const struct ct_cl_api *api = timeline->device->api;
    struct waiter *waiter = calloc(1, sizeof *waiter);
    cl_int result;
    CUresult r;
    bool reached;

    if (!waiter)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "wait for a timeline");
    waiter->value = value;
    waiter->event = api->clCreateUserEvent(timeline->device->context, &result);
    if ((r = ct_cl_result(result, "clCreateUserEvent")) != CUDA_SUCCESS) {
        free(waiter);
        return r;
    }
    *out_or_null = NULL;
    ct_mutex_lock(&timeline->lock);
    reached = timeline->value >= value;
    if (!reached) {
        api->clRetainEvent(waiter->event);
        *out_or_null = waiter->event;
        waiter->next = timeline->waiters;
        timeline->waiters = waiter;
    }
    ct_mutex_unlock(&timeline->lock);
    if (reached)
        complete(timeline->device, waiter, CL_COMPLETE);
    return CUDA_SUCCESS;
}

static bool is_reached(struct ct_timeline *timeline, uint64_t value)
{
    bool reached;

    ct_mutex_lock(&timeline->lock);
    reached = timeline->value >= value;
    ct_mutex_unlock(&timeline->lock);
    return reached;
}

CUresult ct_cl_queue_wait(struct ct_queue *queue, struct ct_timeline *timeline, uint64_t value)
{
    cl_event event;
    CUresult r;

    if (is_reached(timeline, value))
        return CUDA_SUCCESS;
    if ((r = add_waiter(timeline, value, &event)) != CUDA_SUCCESS || !event)
        return r;
    r = ct_cl_queue_wait_event(queue, event);
    queue->device->api->clReleaseEvent(event);
    return r;
}

/* ---- waits of the host ---- */

static struct timespec deadline_after(uint64_t ns)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    ns += (uint64_t)at.tv_nsec;
    at.tv_sec += (time_t)(ns / NS_PER_S);
    at.tv_nsec = (long)(ns % NS_PER_S);
    return at;
}

CUresult ct_cl_timeline_await(struct ct_timeline *timeline, uint64_t value, uint64_t timeout_ns)
{
    CUresult r = CUDA_SUCCESS;

    ct_mutex_lock(&timeline->lock);
    while (timeline->value < value && r == CUDA_SUCCESS) {
        uint64_t slice = timeout_ns < AWAIT_SLICE_NS ? timeout_ns : AWAIT_SLICE_NS;
        struct timespec deadline = deadline_after(slice);

        if ((r = ct_cl_device_check(timeline->device)) != CUDA_SUCCESS)
            break;
        if (ct_mutex_wait_until(&timeline->lock, &timeline->raised, &deadline))
            continue;
        if (slice == timeout_ns && timeline->value < value)
            r = CUDA_ERROR_NOT_READY;
        if (timeout_ns != UINT64_MAX)
            timeout_ns -= slice;
    }
    ct_mutex_unlock(&timeline->lock);
    return r;
}
