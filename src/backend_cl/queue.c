/* SPDX-License-Identifier: Apache-2.0 */
/* Queues: the common part of all commands, and waits for points and for other queues. The rules are in queue.h. */
#include "queue.h"

#include "core/base/log.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#define CT_CHANNEL "queue"
#define MAX_RUNNING 4096 /* commands in flight before recording blocks */
#define NS_PER_S UINT64_C(1000000000)
#define YIELD_NS 50000 /* how long a wait with a timeout polls before it starts to sleep */
#define MAX_SLEEP_NS 500000

/* ---- progress of a queue ---- */

/* CL_COMPLETE, an earlier state, or a negative error code. */
static cl_int status_of(const struct ct_queue *queue, cl_event event)
{
    cl_int status = CL_QUEUED, result;

    result = queue->device->api->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    return result == CL_SUCCESS ? status : result;
}

static CUresult fail_command(const struct ct_queue *queue, cl_int status)
{
    return ct_cl_device_lose(queue->device, ct_fail(CUDA_ERROR_LAUNCH_FAILED, "a command ended with OpenCL error %d", (int)status));
}

static void drop_first_locked(struct ct_queue *queue)
{
    struct ct_cl_pending *first = ct_cl_pending_at(queue, 0);

    queue->completed = first->point;
    queue->device->api->clReleaseEvent(first->event);
    queue->first = (queue->first + 1) & (queue->capacity - 1);
    queue->count--;
}

/* Removes completed commands. */
static CUresult retire_locked(struct ct_queue *queue)
{
    while (queue->count) {
        cl_int status = status_of(queue, ct_cl_pending_at(queue, 0)->event);

        if (status < 0)
            return fail_command(queue, status);
        if (status != CL_COMPLETE)
            break;
        drop_first_locked(queue);
    }
    return CUDA_SUCCESS;
}

static CUresult retire(struct ct_queue *queue, uint64_t *out_point)
{
    CUresult r;

    ct_mutex_lock(&queue->lock);
    r = retire_locked(queue);
    *out_point = queue->completed;
    ct_mutex_unlock(&queue->lock);
    return r;
}

/* The event that completes when `point` does, with a reference; NULL: it is complete already. */
static cl_event event_of_or_null(struct ct_queue *queue, uint64_t point)
{
    cl_event event = NULL;

    ct_mutex_lock(&queue->lock);
    if (queue->count && ct_cl_pending_at(queue, queue->count - 1)->point >= point) {
        uint64_t distance = point > ct_cl_pending_at(queue, 0)->point ? point - ct_cl_pending_at(queue, 0)->point : 0;

        event = ct_cl_pending_at(queue, distance)->event; /* the points in the list are consecutive */
        queue->device->api->clRetainEvent(event);
    }
    ct_mutex_unlock(&queue->lock);
    return event;
}

uint64_t ct_cl_queue_point(struct ct_queue *queue)
{
    return atomic_load_explicit(&queue->point, memory_order_relaxed);
}

CUresult ct_cl_queue_completed(struct ct_queue *queue, uint64_t *out_point)
{
    uint64_t point;
    CUresult r = ct_cl_device_check(queue->device);

    if (r != CUDA_SUCCESS || (r = retire(queue, &point)) != CUDA_SUCCESS)
        return r;
    *out_point = point;
    return CUDA_SUCCESS;
}

bool ct_cl_queue_working(struct ct_queue *queue, uint64_t *out_first, uint64_t *out_last)
{
    bool works;

    ct_mutex_lock(&queue->lock);
    works = retire_locked(queue) == CUDA_SUCCESS && queue->count && status_of(queue, ct_cl_pending_at(queue, 0)->event) == CL_RUNNING;
    if (works)
        *out_first = *out_last = ct_cl_pending_at(queue, 0)->point;
    ct_mutex_unlock(&queue->lock);
    return works;
}

/* ---- waits of the host ---- */

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static CUresult wait_for(const struct ct_queue *queue, cl_event event)
{
    cl_int result;
    CUresult r = ct_cl_wait(queue->device, event, &result);

    if (r != CUDA_SUCCESS)
        return r;
    return result == CL_SUCCESS ? CUDA_SUCCESS : ct_cl_device_lose(queue->device, ct_cl_result(result, "clWaitForEvents"));
}

/* OpenCL has no wait with a timeout. */
static CUresult poll_for(const struct ct_queue *queue, cl_event event, uint64_t timeout_ns, bool spin)
{
    const uint64_t start = now_ns();
    struct timespec pause = {0, 10000};
    CUresult r;

    for (;;) {
        cl_int status = status_of(queue, event);
        uint64_t waited = now_ns() - start;

        if (status < 0)
            return fail_command(queue, status);
        if (status == CL_COMPLETE)
            return CUDA_SUCCESS;
        if ((r = ct_cl_device_check(queue->device)) != CUDA_SUCCESS)
            return r;
        if (waited >= timeout_ns)
            return CUDA_ERROR_NOT_READY;
        if (spin || waited < YIELD_NS) {
            sched_yield();
        } else {
            nanosleep(&pause, NULL);
            pause.tv_nsec = pause.tv_nsec < MAX_SLEEP_NS ? pause.tv_nsec * 2 : MAX_SLEEP_NS;
        }
    }
}

CUresult ct_cl_queue_await(struct ct_queue *queue, uint64_t point, uint64_t timeout_ns, bool spin)
{
    cl_event event;
    uint64_t done;
    CUresult r = ct_cl_queue_completed(queue, &done);

    if (r != CUDA_SUCCESS || done >= point)
        return r;
    if (point > ct_cl_queue_point(queue))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "wait for point %llu, which is not recorded", (unsigned long long)point);
    if (!(event = event_of_or_null(queue, point)))
        return CUDA_SUCCESS;
    spin = spin && queue->device->info->kind != CT_DEVICE_CPU; /* there, spinning would take processor time from the kernel */
    r = timeout_ns == UINT64_MAX && !spin ? wait_for(queue, event) : poll_for(queue, event, timeout_ns, spin);
    queue->device->api->clReleaseEvent(event);
    return r;
}

/* ---- the common part of all commands ---- */

static CUresult grow_locked(struct ct_queue *queue)
{
    struct ct_cl_pending *pending;

    if (queue->count < queue->capacity)
        return CUDA_SUCCESS;
    if (!(pending = malloc(2 * queue->capacity * sizeof *pending)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "list of %zu commands", queue->count);
    for (size_t i = 0; i < queue->count; i++)
        pending[i] = *ct_cl_pending_at(queue, i);
    free(queue->pending);
    queue->pending = pending;
    queue->capacity *= 2;
    queue->first = 0;
    return CUDA_SUCCESS;
}

/* If too many commands are in flight, waits until the oldest one is complete, provided that it runs. A wait for the host is not bounded,
 * since the host may be this thread. */
CUresult ct_cl_queue_await_room(struct ct_queue *queue)
{
    cl_event oldest = NULL;
    CUresult r;

    ct_mutex_lock(&queue->lock);
    r = retire_locked(queue);
    if (r == CUDA_SUCCESS)
        r = grow_locked(queue);
    if (r == CUDA_SUCCESS && queue->count >= MAX_RUNNING && status_of(queue, ct_cl_pending_at(queue, 0)->event) == CL_RUNNING) {
        oldest = ct_cl_pending_at(queue, 0)->event;
        queue->device->api->clRetainEvent(oldest);
    }
    ct_mutex_unlock(&queue->lock);
    if (oldest) {
        r = wait_for(queue, oldest);
        queue->device->api->clReleaseEvent(oldest);
    }
    return r;
}

CUresult ct_cl_command_begin(struct ct_queue *queue)
{
    CUresult r = ct_cl_device_check(queue->device);

    return r == CUDA_SUCCESS ? ct_cl_queue_await_room(queue) : r;
}

CUresult ct_cl_command_end(struct ct_queue *queue, CUresult result, cl_event event)
{
    if (result != CUDA_SUCCESS)
        return result;
    ct_mutex_lock(&queue->lock);
    assert(queue->count < queue->capacity);
    *ct_cl_pending_at(queue, queue->count) = (struct ct_cl_pending){event, ct_cl_queue_point(queue) + 1};
    queue->count++;
    atomic_fetch_add_explicit(&queue->point, 1, memory_order_relaxed);
    ct_mutex_unlock(&queue->lock);
    return ct_cl_queue_flush(queue);
}

/* ---- ordering ---- */

CUresult ct_cl_queue_wait_event(struct ct_queue *queue, cl_event awaited)
{
    cl_event event = NULL;
    CUresult r = ct_cl_command_begin(queue);

    if (r == CUDA_SUCCESS)
        r = ct_cl_result(queue->device->api->clEnqueueBarrierWithWaitList(queue->handle, 1, &awaited, &event),
                         "clEnqueueBarrierWithWaitList");
    return ct_cl_command_end(queue, r, event);
}

CUresult ct_cl_queue_wait_queue(struct ct_queue *queue, struct ct_queue *other, uint64_t point)
{
    cl_event event;
    uint64_t done;
    CUresult r;

    if (queue->device != other->device)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a queue cannot wait for a queue of another device");
    if (queue == other || !point)
        return CUDA_SUCCESS;
    if ((r = ct_cl_queue_completed(other, &done)) != CUDA_SUCCESS || done >= point)
        return r;
    if (point > ct_cl_queue_point(other))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "wait for point %llu, which is not recorded", (unsigned long long)point);
    if (!(event = event_of_or_null(other, point)))
        return CUDA_SUCCESS;
    r = ct_cl_queue_wait_event(queue, event);
    queue->device->api->clReleaseEvent(event);
    return r;
}

CUresult ct_cl_queue_flush(struct ct_queue *queue)
{
    CUresult r = ct_cl_device_check(queue->device);

    return r == CUDA_SUCCESS ? ct_cl_result(queue->device->api->clFlush(queue->handle), "clFlush") : r;
}
