/* SPDX-License-Identifier: Apache-2.0 */
/* The host functions of a stream run on one thread, one after the other, in stream order.
 *
 * Function n has two values of the timeline: 2n + 1, which the queue signals when all earlier commands are complete, and 2n + 2, which the
 * thread signals when the function has returned and for which the queue waits. No lock is held while a function runs.
 *
 * A call that records a host function waits while MAX_PENDING are pending. Waits on the host (CT_WORKER_AT_ONCE) are not limited, since the
 * calling thread may be the one that ends them. */
#include "stream_worker.h"

#include "core/base/log.h"
#include "core/base/thread.h"

#include <pthread.h>
#include <stdlib.h>

#define CT_CHANNEL "stream"
#define MAX_PENDING 1024 /* host functions; on Vulkan each takes 6.4 KB until it has run */

struct item {
    struct item *next;
    ct_host_function function;
    void *user;
    uint64_t start_value; /* 0: starts at once */
    uint64_t done_value;
};

struct ct_stream_worker {
    struct ct_context *context; /* borrowed: its parts live while one of its streams has a queue */
    struct ct_timeline *timeline;
    uint64_t last_value;  /* guarded by the stream's lock */
    struct ct_mutex lock; /* guards the members below */
    pthread_cond_t changed, has_room;
    unsigned pending; /* items that have not run yet */
    struct item *first, **end;
    bool stopping;
    pthread_t thread;
};

/* The next function, or NULL when the worker stops. */
static struct item *next_item(struct ct_stream_worker *worker)
{
    struct item *item;

    ct_mutex_lock(&worker->lock);
    while (!worker->first && !worker->stopping)
        ct_mutex_wait(&worker->lock, &worker->changed);
    item = worker->first;
    if (item) {
        worker->first = item->next;
        if (!worker->first)
            worker->end = &worker->first;
    }
    ct_mutex_unlock(&worker->lock);
    return item;
}

static void run_item(struct ct_stream_worker *worker, const struct item *item)
{
    const struct ct_backend *backend = worker->context->backend;
    CUresult status = CUDA_SUCCESS;

    if (item->start_value)
        status = backend->timelines->await(worker->timeline, item->start_value, UINT64_MAX);
    status = ct_context_check(worker->context, status);
    ct_thread_set_in_host_function(true);
    item->function(item->user, status);
    ct_thread_set_in_host_function(false);
    if (backend->timelines->signal(worker->timeline, item->done_value) != CUDA_SUCCESS && ct_context_error(worker->context) == CUDA_SUCCESS)
        ct_log(CT_LOG_WARN, "a stream hangs after a host function, because the timeline cannot be signalled");
}

static void leave(struct ct_stream_worker *worker)
{
    ct_mutex_lock(&worker->lock);
    worker->pending--;
    pthread_cond_signal(&worker->has_room);
    ct_mutex_unlock(&worker->lock);
}

static void *worker_main(void *user)
{
    struct ct_stream_worker *worker = user;
    struct item *item;

    while ((item = next_item(worker)) != NULL) {
        run_item(worker, item);
        free(item);
        leave(worker);
    }
    return NULL;
}

CUresult ct_stream_worker_create(struct ct_context *context, struct ct_stream_worker **out)
{
    struct ct_stream_worker *worker = calloc(1, sizeof *worker);
    CUresult r;

    if (!worker)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "worker");
    worker->context = context;
    worker->end = &worker->first;
    r = context->backend->timelines->create(context->backend_device, &worker->timeline);
    if (r != CUDA_SUCCESS) {
        free(worker);
        return r;
    }
    ct_mutex_init(&worker->lock, CT_RANK_WORKER);
    pthread_cond_init(&worker->changed, NULL);
    pthread_cond_init(&worker->has_room, NULL);
    if (ct_thread_start(&worker->thread, worker_main, worker) == 0) {
        *out = worker;
        return CUDA_SUCCESS;
    }
    pthread_cond_destroy(&worker->changed);
    pthread_cond_destroy(&worker->has_room);
    ct_mutex_finish(&worker->lock);
    context->backend->timelines->destroy(worker->timeline);
    free(worker);
    return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "thread for host functions");
}

void ct_stream_worker_destroy(struct ct_stream_worker *worker)
{
    if (!worker)
        return;
    ct_mutex_lock(&worker->lock);
    worker->stopping = true;
    pthread_cond_signal(&worker->changed);
    ct_mutex_unlock(&worker->lock);
    pthread_join(worker->thread, NULL);
    pthread_cond_destroy(&worker->changed);
    pthread_cond_destroy(&worker->has_room);
    ct_mutex_finish(&worker->lock);
    worker->context->backend->timelines->destroy(worker->timeline);
    free(worker);
}

static void push(struct ct_stream_worker *worker, struct item *item)
{
    ct_mutex_lock(&worker->lock);
    worker->pending++;
    *worker->end = item;
    worker->end = &item->next;
    pthread_cond_signal(&worker->changed);
    ct_mutex_unlock(&worker->lock);
}

/* Only the thread that has the stream's lock adds items, so there is still room when it does. */
static void await_room(struct ct_stream_worker *worker)
{
    ct_mutex_lock(&worker->lock);
    while (worker->pending >= MAX_PENDING)
        ct_mutex_wait(&worker->lock, &worker->has_room);
    ct_mutex_unlock(&worker->lock);
}

CUresult ct_stream_worker_record(struct ct_stream_worker *worker, struct ct_queue *queue, enum ct_worker_order order,
                                 ct_host_function function, void *user)
{
    const struct ct_backend *backend = worker->context->backend;
    struct item *item = calloc(1, sizeof *item);
    uint64_t start = worker->last_value + 1, done = start + 1;
    CUresult r = CUDA_SUCCESS;

    if (!item)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "host function");
    *item = (struct item){.function = function, .user = user, .done_value = done};
    item->start_value = order == CT_WORKER_AFTER_QUEUE ? start : 0;
    if (order == CT_WORKER_AFTER_QUEUE)
        await_room(worker);
    if (order == CT_WORKER_AFTER_QUEUE)
        r = backend->queues->signal(queue, worker->timeline, start);
    if (r == CUDA_SUCCESS) {
        worker->last_value = done; /* a value is used only once, even if this call fails */
        r = backend->queues->wait(queue, worker->timeline, done);
    }
    if (r != CUDA_SUCCESS) {
        free(item);
        return r;
    }
    push(worker, item);
    return CUDA_SUCCESS;
}
