/* SPDX-License-Identifier: Apache-2.0 */
/* Waits (Driver API: Stream Management): the host for a stream, a stream for the host, and a stream for another stream. */
#include "stream.h"

#include "core/base/log.h"
#include "core/base/process.h"
#include "host_gate.h"
#include "stream_record.h"
#include "stream_worker.h"

#include <assert.h>
#include <stdlib.h>

#define CT_CHANNEL "stream"

/* ---- the host waits for a stream ---- */

/* Follows the stream's own policy, else the context's. A CPU device needs the cores that a spinning thread would occupy. */
static bool may_spin(struct ct_stream *stream)
{
    unsigned scheduling = stream->context->flags & CU_CTX_SCHED_MASK;
    int policy = atomic_load_explicit(&stream->sync_policy, memory_order_relaxed); /* only a hint, so relaxed order is enough */

    if (stream->context->device->info.kind == CT_DEVICE_CPU)
        return false;
    if (policy != CU_SYNC_POLICY_AUTO)
        return policy == CU_SYNC_POLICY_SPIN;
    return scheduling == CU_CTX_SCHED_AUTO || scheduling == CU_CTX_SCHED_SPIN;
}

CUresult ct_stream_await(struct ct_stream *stream, uint64_t point)
{
    CUresult r;

    ct_host_gates_open(stream, point);
    r = ct_stream_backend(stream)->queues->await(stream->queue, point, UINT64_MAX, may_spin(stream));
    r = ct_context_check(stream->context, r);
    /* Work that the host executed for the stream may have failed, too. */
    return r == CUDA_SUCCESS ? ct_context_error(stream->context) : r;
}

/* The point after which a command recorded now would run. */
static CUresult next_point(struct ct_stream *stream, uint64_t *out)
{
    CUresult r = ct_stream_begin(stream);

    if (r != CUDA_SUCCESS)
        return r;
    *out = ct_stream_point(stream);
    ct_stream_end(stream);
    return CUDA_SUCCESS;
}

/* The point that covers all the stream's work; for the legacy stream that includes the work of the blocking streams. */
static CUresult last_point(struct ct_stream *stream, uint64_t *out)
{
    if (stream->is_legacy)
        return next_point(stream, out);
    *out = ct_stream_point(stream);
    return CUDA_SUCCESS;
}

void ct_stream_observe_wait(struct ct_stream *stream, uint64_t point)
{
    for (unsigned i = 0; i < ct_process.n_devices; i++)
        ct_process.devices[i].hooks.observe_wait(&ct_process.devices[i], stream, point);
}

static CUresult await_and_notify(struct ct_stream *stream, uint64_t point)
{
    CUresult r = ct_stream_await(stream, point);

    if (r == CUDA_SUCCESS)
        ct_stream_observe_wait(stream, point);
    return r;
}

CUresult ct_stream_synchronize(struct ct_stream *stream)
{
    uint64_t point;
    CUresult r = last_point(stream, &point);

    return r == CUDA_SUCCESS ? await_and_notify(stream, point) : r;
}

CUresult ct_stream_drain(struct ct_stream *stream)
{
    uint64_t point;
    CUresult r = next_point(stream, &point);

    return r == CUDA_SUCCESS ? await_and_notify(stream, point) : r;
}

CUresult ct_stream_query(struct ct_stream *stream)
{
    uint64_t point, completed;
    CUresult r = last_point(stream, &point);

    if (r != CUDA_SUCCESS)
        return r;
    ct_host_gates_open(stream, point);
    r = ct_stream_backend(stream)->queues->completed(stream->queue, &completed);
    r = ct_context_check(stream->context, r);
    if (r != CUDA_SUCCESS)
        return r;
    return completed >= point ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; /* NOT_READY is no failure and is not logged */
}

/* ---- a stream waits for the host: host functions, and waits that a backend's queues cannot perform ---- */

/* Called with the stream locked. */
static CUresult worker_of_locked(struct ct_stream *stream, struct ct_stream_worker **out)
{
    CUresult r = CUDA_SUCCESS;

    if (!stream->worker)
        r = ct_stream_worker_create(stream->context, &stream->worker);
    if (r == CUDA_SUCCESS)
        *out = stream->worker;
    return r;
}

static CUresult record_on_worker_locked(struct ct_stream *stream, enum ct_worker_order order, ct_host_function function, void *user)
{
    struct ct_stream_worker *worker;
    CUresult r = worker_of_locked(stream, &worker);

    return r == CUDA_SUCCESS ? ct_stream_worker_record(worker, stream->queue, order, function, user) : r;
}

CUresult ct_stream_run_on_host_locked(struct ct_stream *stream, ct_host_function function, void *user)
{
    assert(ct_mutex_held(&stream->lock));
    return record_on_worker_locked(stream, CT_WORKER_AFTER_QUEUE, function, user);
}

static CUresult record_on_worker(struct ct_stream *stream, enum ct_worker_order order, ct_host_function function, void *user)
{
    CUresult r = ct_stream_begin(stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = record_on_worker_locked(stream, order, function, user);
    ct_stream_end(stream);
    /* A recorded function runs and owns `user`, so this call succeeds even if the context has failed; the next call reports that. */
    return r == CUDA_SUCCESS ? r : ct_context_check(stream->context, r);
}

CUresult ct_stream_run_on_host(struct ct_stream *stream, ct_host_function function, void *user)
{
    return record_on_worker(stream, CT_WORKER_AFTER_QUEUE, function, user);
}

CUresult ct_stream_wait_on_host(struct ct_stream *stream, ct_host_function function, void *user)
{
    return record_on_worker(stream, CT_WORKER_AT_ONCE, function, user);
}

/* ---- a stream waits for another stream ---- */

/* A wait for a stream of another device. The worker performs it, with a use of the other context. */
struct foreign_wait {
    struct ct_stream *stream; /* retained, with a use of its context: freed by ct_stream_release */
    uint64_t point;
};

static void await_foreign(void *user, CUresult status)
{
    struct foreign_wait *wait = user;

    (void)status; /* the wait ends in any case */
    ct_stream_await(wait->stream, wait->point);
    ct_stream_release(wait->stream);
    free(wait);
}

static CUresult wait_for_foreign(struct ct_stream *stream, struct ct_stream *other, uint64_t point)
{
    struct foreign_wait *wait = malloc(sizeof *wait);
    CUresult r;

    if (!wait)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "wait for another device");
    r = ct_context_use(other->context);
    if (r != CUDA_SUCCESS) {
        free(wait);
        return r;
    }
    ct_object_retain(&other->object);
    *wait = (struct foreign_wait){other, point};
    r = record_on_worker(stream, CT_WORKER_AT_ONCE, await_foreign, wait);
    if (r != CUDA_SUCCESS) {
        ct_stream_release(other);
        free(wait);
    }
    return r;
}

static struct ct_stream_order copy_order(struct ct_stream *stream)
{
    struct ct_stream_order order;

    ct_mutex_lock(&stream->order_lock);
    order = stream->order;
    ct_mutex_unlock(&stream->order_lock);
    return order;
}

/* `known` is a copy of the other stream's table. */
static void note_order_locked(struct ct_stream *stream, struct ct_stream *other, uint64_t point, const struct ct_stream_order *known)
{
    uint64_t since = ct_stream_point(stream);

    ct_mutex_lock(&stream->order_lock);
    ct_stream_order_inherit(&stream->order, known, point, since);
    ct_stream_order_add(&stream->order, &(struct ct_order_entry){other->id, point, since});
    ct_mutex_unlock(&stream->order_lock);
}

CUresult ct_stream_wait_for(struct ct_stream *stream, struct ct_stream *other, uint64_t point)
{
    struct ct_stream_order known;
    CUresult r;

    if (stream->context->backend_device != other->context->backend_device)
        return wait_for_foreign(stream, other, point);
    known = copy_order(other);
    r = ct_stream_begin(stream);
    if (r != CUDA_SUCCESS)
        return r;
    if (stream != other && !ct_stream_is_complete(other, point))
        r = ct_stream_record_wait_locked(stream, other, point);
    if (r == CUDA_SUCCESS && stream != other)
        note_order_locked(stream, other, point, &known);
    ct_stream_end(stream);
    return ct_context_check(stream->context, r);
}

bool ct_stream_follows_locked(struct ct_stream *stream, const struct ct_stream *other, uint64_t point)
{
    bool follows;

    assert(ct_mutex_held(&stream->lock));
    if (stream == other)
        return true;
    if (stream->context == other->context && other->is_legacy && stream->seen_legacy_point >= point)
        return true;
    if (stream->context == other->context && stream->is_legacy && other->seen_by_legacy >= point)
        return true;
    ct_mutex_lock(&stream->order_lock);
    follows = ct_stream_order_has(&stream->order, other->id, point);
    ct_mutex_unlock(&stream->order_lock);
    return follows;
}
