/* SPDX-License-Identifier: Apache-2.0 */
/* External semaphores (Driver API: External Resource Interoperability).
 *
 * Signals are commands of the stream's queue. So are waits for binary semaphores, whose signal must already have been submitted. A
 * timeline may be signalled much later, and its signaller may itself wait for work of this library that shares a hardware queue with the
 * stream: a wait for a value that is not reached yet therefore begins on the host, in the stream's worker, and is submitted to the
 * device only afterwards. */
#include "external_semaphore.h"

#include "core/base/log.h"
#include "core/base/process.h"

#include <fcntl.h>
#include <stdlib.h>

#define CT_CHANNEL "stream"

struct ct_external_semaphore {
    struct ct_object object;
    struct ct_context *context; /* a reference, which keeps the struct alive */
    struct ct_semaphore *semaphore;
    bool timeline;
};

/* ---- import ---- */

static void free_semaphore(struct ct_object *object)
{
    struct ct_external_semaphore *semaphore = (struct ct_external_semaphore *)object;

    semaphore->context->backend->semaphores->destroy(semaphore->semaphore);
    ct_object_release(&semaphore->context->object);
    free(semaphore);
}

static CUresult check_type(const struct ct_device_info *info, CUexternalSemaphoreHandleType type)
{
    switch (type) {
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD:
        return info->external_semaphore_fd ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not import semaphores", info->name);
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD:
        return info->external_timeline_fd ? CUDA_SUCCESS
                                          : ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not import timeline semaphores", info->name);
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_NVSCISYNC:
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "NvSciSync exists on NVIDIA's embedded systems only");
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32:
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_KMT:
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE:
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_FENCE:
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX:
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX_KMT:
    case CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32:
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "semaphore handles of type %d exist on Windows only", (int)type);
    }
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "external semaphore type %d does not exist", (int)type);
}

static CUresult check_desc(const struct ct_device_info *info, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *desc)
{
    CUresult r = check_type(info, desc->type);

    if (r != CUDA_SUCCESS)
        return r;
    if (desc->flags)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "flags of an external semaphore are 0x%x instead of 0", desc->flags);
    if (fcntl(desc->handle.fd, F_GETFD) < 0)
        return ct_fail(CUDA_ERROR_OPERATING_SYSTEM, "%d is not an open file descriptor", desc->handle.fd);
    return CUDA_SUCCESS;
}

/* Publishing fails only for lack of memory; the descriptor has been taken by then. */
static CUresult import(struct ct_external_semaphore *semaphore, int fd, CUexternalSemaphore *out)
{
    struct ct_context *context = semaphore->context;
    CUresult r = context->backend->semaphores->import(context->backend_device, fd, semaphore->timeline, &semaphore->semaphore);

    if (r == CUDA_SUCCESS && (r = ct_object_publish(&semaphore->object)) == CUDA_SUCCESS)
        *out = semaphore->object.handle;
    return r;
}

CUresult ct_external_semaphore_import(struct ct_context *context, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *desc, CUexternalSemaphore *out)
{
    struct ct_external_semaphore *semaphore;
    CUresult r = check_desc(&context->device->info, desc);

    if (r != CUDA_SUCCESS)
        return r;
    if (!(semaphore = calloc(1, sizeof *semaphore)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for an external semaphore");
    ct_object_init(&semaphore->object, CT_OBJECT_EXTERNAL_SEMAPHORE, free_semaphore);
    ct_object_retain(&context->object);
    semaphore->context = context;
    semaphore->timeline = desc->type == CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
    r = import(semaphore, desc->handle.fd, out);
    ct_object_release(&semaphore->object); /* the table has its own reference */
    return r;
}

/* ---- look-up ---- */

static CUresult find(CUexternalSemaphore handle, struct ct_external_semaphore **out)
{
    *out = (struct ct_external_semaphore *)ct_object_find_or_null(CT_OBJECT_EXTERNAL_SEMAPHORE, handle);
    return *out ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_INVALID_HANDLE, "%p is not an external semaphore", (void *)handle);
}

CUresult ct_external_semaphore_lookup(const struct ct_context *context, CUexternalSemaphore handle, struct ct_external_semaphore **out)
{
    struct ct_external_semaphore *semaphore;
    CUresult r = find(handle, &semaphore);

    if (r != CUDA_SUCCESS)
        return r;
    if (semaphore->context->backend_device != context->backend_device) {
        ct_object_release(&semaphore->object);
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "external semaphore %p belongs to another device", (void *)handle);
    }
    *out = semaphore;
    return CUDA_SUCCESS;
}

void ct_external_semaphore_release(struct ct_external_semaphore *semaphore)
{
    ct_object_release(&semaphore->object);
}

CUresult ct_external_semaphore_destroy(CUexternalSemaphore handle)
{
    struct ct_external_semaphore *semaphore;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS || (r = find(handle, &semaphore)) != CUDA_SUCCESS)
        return r;
    r = ct_object_unpublish(&semaphore->object);
    ct_object_release(&semaphore->object);
    return r;
}

void ct_external_semaphores_destroy_all(const struct ct_context *context)
{
    uint32_t cursor = 0;
    struct ct_object *object;

    while ((object = ct_object_next_or_null(CT_OBJECT_EXTERNAL_SEMAPHORE, &cursor))) {
        if (((struct ct_external_semaphore *)object)->context == context)
            (void)ct_object_unpublish(object);
        ct_object_release(object);
    }
}

/* ---- signals and waits ---- */

typedef CUresult (*queue_command)(struct ct_queue *queue, struct ct_semaphore *semaphore, uint64_t value);

static CUresult record(struct ct_stream *stream, const struct ct_external_fences *fences, queue_command command)
{
    CUresult r = ct_stream_begin(stream);

    if (r != CUDA_SUCCESS)
        return r;
    for (unsigned i = 0; i < fences->count && r == CUDA_SUCCESS; i++)
        r = command(stream->queue, fences->list[i].semaphore->semaphore, fences->list[i].value);
    if (r == CUDA_SUCCESS)
        r = stream->context->backend->queues->flush(stream->queue);
    ct_stream_end(stream);
    return ct_context_check(stream->context, r);
}

CUresult ct_external_semaphores_signal(struct ct_stream *stream, const struct ct_external_fences *fences)
{
    return record(stream, fences, stream->context->backend->semaphores->queue_signal);
}

/* Waits on the host; the wait also ends when the device is lost. */
static void await(void *user, CUresult status)
{
    struct ct_external_fence *fence = user;

    (void)status;
    fence->semaphore->context->backend->semaphores->await(fence->semaphore->semaphore, fence->value, UINT64_MAX);
    ct_external_semaphore_release(fence->semaphore);
    free(fence);
}

static CUresult await_on_host(struct ct_stream *stream, const struct ct_external_fence *fence)
{
    struct ct_external_fence *copy = malloc(sizeof *copy);
    CUresult r;

    if (!copy)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a wait for an external semaphore");
    *copy = *fence;
    ct_object_retain(&copy->semaphore->object);
    r = ct_stream_wait_on_host(stream, await, copy);
    if (r != CUDA_SUCCESS) {
        ct_external_semaphore_release(copy->semaphore);
        free(copy);
    }
    return r;
}

/* First the waits on the host, then all waits on the device. */
CUresult ct_external_semaphores_wait(struct ct_stream *stream, const struct ct_external_fences *fences)
{
    const struct ct_backend *backend = stream->context->backend;
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < fences->count && r == CUDA_SUCCESS; i++) {
        const struct ct_external_fence *fence = &fences->list[i];

        if (fence->semaphore->timeline)
            r = backend->semaphores->await(fence->semaphore->semaphore, fence->value, 0);
        if (r == CUDA_ERROR_NOT_READY)
            r = await_on_host(stream, fence);
    }
    return r == CUDA_SUCCESS ? record(stream, fences, backend->semaphores->queue_wait) : r;
}
