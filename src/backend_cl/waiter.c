/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for events that end when the device is given up.
 *
 * clWaitForEvents returns when the event is complete, and never before; in Intel's CPU runtime the thread that waits also executes kernels
 * meanwhile, so a fault of a kernel would be one of an application's thread. So threads of this file wait in place of the caller. There are
 * as many as there are callers that wait at one time; one that waits for an event of a device that was given up is not used again. Before
 * that the caller polls for a short time, since most waits are shorter than waking a thread takes twice. */
#include "cl.h"

#include "core/base/config.h"
#include "core/base/log.h"
#include "core/base/thread.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define CT_CHANNEL "queue"
#define POLL_NS UINT64_C(50000)
#define SLICE_NS 100000000 /* after how long a caller notices that the device was given up elsewhere */
#define NS_PER_S UINT64_C(1000000000)

struct waiter {
    struct waiter *next; /* in the list of idle ones */
    struct ct_backend_device *device;
    cl_event event; /* holds a reference; NULL: idle */
    cl_int result;
    bool is_done;
    pthread_cond_t changed; /* of `event` and `is_done`; waits with CLOCK_MONOTONIC */
};

/* Waiters are never freed: their number is that of the threads that ever waited at the same time. */
static struct {
    struct ct_mutex lock; /* rank CT_RANK_BACKEND; guards all waiters */
    struct waiter *idle;
} waiters = {.lock = CT_MUTEX_INITIALIZER(CT_RANK_BACKEND)};

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void *ct_cl_waiter_main(void *argument)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    struct waiter *waiter = argument;
    sigset_t set;

    sigemptyset(&set); /* kernels may run in this thread: core/backing/kernel_faults.c */
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigaddset(&set, faults[i]);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    ct_mutex_lock(&waiters.lock);
    for (;;) {
        while (!waiter->event || waiter->is_done)
            ct_mutex_wait(&waiters.lock, &waiter->changed);
        ct_mutex_unlock(&waiters.lock);
        waiter->result = waiter->device->api->clWaitForEvents(1, &waiter->event);
        ct_mutex_lock(&waiters.lock);
        waiter->is_done = true;
        pthread_cond_broadcast(&waiter->changed);
    }
    return NULL;
}

static struct waiter *make_or_null(void)
{
    struct waiter *waiter = calloc(1, sizeof *waiter);
    pthread_condattr_t attributes;
    pthread_t thread;

    if (!waiter)
        return NULL;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&waiter->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    if (ct_thread_start(&thread, ct_cl_waiter_main, waiter) != 0) {
        pthread_cond_destroy(&waiter->changed);
        free(waiter);
        return NULL;
    }
    pthread_detach(thread);
    return waiter;
}

static struct waiter *take_or_null(void)
{
    struct waiter *waiter;

    ct_mutex_lock(&waiters.lock);
    if ((waiter = waiters.idle))
        waiters.idle = waiter->next;
    ct_mutex_unlock(&waiters.lock);
    return waiter ? waiter : make_or_null();
}

/* Waits until the waiter is done, or the device is given up; *out_result is the wait's result. False: given up. */
static bool await_locked(struct waiter *waiter, cl_int *out_result)
{
    while (!waiter->is_done) {
        const uint64_t at = now_ns() + SLICE_NS;
        const struct timespec deadline = {(time_t)(at / NS_PER_S), (long)(at % NS_PER_S)};

        if (ct_cl_device_is_given_up(waiter->device))
            return false;
        (void)ct_mutex_wait_until(&waiters.lock, &waiter->changed, &deadline);
    }
    *out_result = waiter->result;
    return true;
}

static CUresult wait_by(struct waiter *waiter, struct ct_backend_device *device, cl_event event, cl_int *out_result)
{
    bool is_done;

    device->api->clRetainEvent(event);
    ct_mutex_lock(&waiters.lock);
    waiter->device = device;
    waiter->event = event;
    waiter->is_done = false;
    pthread_cond_broadcast(&waiter->changed);
    is_done = await_locked(waiter, out_result);
    if (is_done) {
        waiter->event = NULL;
        waiter->next = waiters.idle;
        waiters.idle = waiter;
    }
    ct_mutex_unlock(&waiters.lock);
    if (!is_done)
        return ct_cl_device_check(device);
    device->api->clReleaseEvent(event);
    return CUDA_SUCCESS;
}

/* Whether the event is complete, or has failed, within the time for polling. */
static bool poll(struct ct_backend_device *device, cl_event event)
{
    const uint64_t start = now_ns();
    cl_int status;

    do {
        status = CL_QUEUED;
        if (device->api->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL) != CL_SUCCESS ||
            status <= CL_COMPLETE)
            return true;
        sched_yield();
    } while (now_ns() - start < POLL_NS);
    return false;
}

bool ct_cl_device_needs_waiters(const struct ct_device_info *info)
{
    return ct_config()->kernel_timeout > 0 || (info->kind == CT_DEVICE_CPU && ct_config()->catch_faults);
}

CUresult ct_cl_wait(struct ct_backend_device *device, cl_event event, cl_int *out_result)
{
    struct waiter *waiter = NULL;

    if (ct_cl_device_needs_waiters(device->info) && !poll(device, event))
        waiter = take_or_null();
    if (waiter)
        return wait_by(waiter, device, event, out_result);
    *out_result = device->api->clWaitForEvents(1, &event);
    return CUDA_SUCCESS;
}
