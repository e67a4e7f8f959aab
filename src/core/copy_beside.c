/* SPDX-License-Identifier: Apache-2.0 */
/* To the stream such a copy is a host function: it begins when all before it is complete, and what comes later waits for it. Where nothing
 * is before it the caller starts it, and the function only waits. */
#include "copy_beside.h"

#include "log.h"

#include <stdlib.h>

#define CT_CHANNEL "copy"
#define LEAST_BYTES ((uint64_t)16 << 20) /* below, handing over costs what the faster copy gains */

struct beside {
    struct ct_context *context; /* borrowed: in use while a stream of it has a queue */
    struct ct_copy_beside copy;
    struct ct_started_copy *started; /* NULL: not yet */
};

static bool is_page_locked(const struct ct_place *place)
{
    return place->memory && place->host && !place->is_device;
}

static struct ct_copy_beside as_run(const struct ct_copy *copy)
{
    return (struct ct_copy_beside){.dst = copy->dst.memory,
                                   .src = copy->src.memory,
                                   .dst_offset = copy->dst.offset,
                                   .src_offset = copy->src.offset,
                                   .size_bytes = copy->row_bytes};
}

bool ct_copy_beside_takes(const struct ct_stream *stream, const struct ct_copy *copy)
{
    const struct ct_backend *backend = ct_stream_backend(stream);
    const struct ct_place *dst = &copy->dst, *src = &copy->src;
    const struct ct_copy_beside run = as_run(copy);

    if (copy->row_bytes < LEAST_BYTES || copy->rows > 1 || copy->slices > 1 || !backend->copy_beside_takes)
        return false;
    if (!(dst->is_device && is_page_locked(src)) && !(src->is_device && is_page_locked(dst)))
        return false;
    return dst->memory && src->memory && !dst->memory->texels && !src->memory->texels && backend->copy_beside_takes(&run);
}

static CUresult start(struct beside *job)
{
    return job->context->backend->copy_beside_start(&job->copy, &job->started);
}

static CUresult finish(const struct beside *job)
{
    return job->context->backend->copy_beside_finish(&job->copy, job->started);
}

/* Of one that cannot go on. */
static void drop(const struct beside *job)
{
    if (job->started)
        (void)finish(job);
    else
        job->context->backend->copy_beside_leave(&job->copy);
}

/* As a host function. What was recorded behind it runs whatever comes of it, so a failure is one of the context. */
static void run_late(void *user, CUresult status)
{
    struct beside *job = user;
    CUresult r = status;

    if (r == CUDA_SUCCESS && !job->started)
        r = start(job);
    if (r == CUDA_SUCCESS)
        r = finish(job);
    else
        drop(job);
    if (status == CUDA_SUCCESS && r != CUDA_SUCCESS)
        ct_context_check(job->context, CUDA_ERROR_LAUNCH_FAILED);
    free(job);
}

/* With nothing to wait for it is under way at once, and the worker waits for it. */
static CUresult record_locked(struct ct_stream *stream, struct beside *job)
{
    if (!ct_stream_is_idle_locked(stream))
        return ct_stream_run_on_host_locked(stream, run_late, job);
    if (start(job) != CUDA_SUCCESS)
        return CUDA_ERROR_LAUNCH_FAILED;
    return ct_stream_wait_on_host_locked(stream, run_late, job);
}

static CUresult record(struct ct_stream *stream, const struct beside *job)
{
    struct beside *late = malloc(sizeof *late);
    CUresult r;

    if (!late) {
        drop(job);
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "a copy beside the queue");
    }
    *late = *job;
    r = ct_stream_begin(stream);
    if (r == CUDA_SUCCESS) {
        r = record_locked(stream, late);
        ct_stream_end(stream);
    }
    if (r != CUDA_SUCCESS) {
        drop(late);
        free(late);
    }
    return ct_context_check(stream->context, r);
}

CUresult ct_copy_beside_run(struct ct_stream *stream, const struct ct_copy *copy, bool wait)
{
    struct beside job = {.context = stream->context, .copy = as_run(copy)};
    CUresult r;

    if (!wait)
        return record(stream, &job);
    if ((r = ct_stream_settle(stream)) == CUDA_SUCCESS && (r = start(&job)) == CUDA_SUCCESS)
        return finish(&job);
    drop(&job);
    return r;
}
