/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up the semaphores of arrays and enqueues commands for them. */
#include "semaphore_calls.h"

#include "command.h"
#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "semaphore"

static CUresult check_arrays(const void *semaphores, const void *params, unsigned count)
{
    return count && (!semaphores || !params) ? ct_fail(CUDA_ERROR_INVALID_VALUE, "%u semaphores at %p, %p", count, semaphores, params)
                                             : CUDA_SUCCESS;
}

/* The flags apply only to semaphores of NVIDIA's embedded systems. */
static CUresult check_flags(unsigned flags)
{
    return flags ? ct_fail(CUDA_ERROR_INVALID_VALUE, "flags of external semaphores are 0x%x instead of 0", flags) : CUDA_SUCCESS;
}

CUresult ct_semaphore_signals_check(const struct ct_semaphore_signals *signals)
{
    CUresult r = check_arrays(signals->semaphores, signals->params, signals->count);

    for (unsigned i = 0; i < signals->count && r == CUDA_SUCCESS; i++)
        r = check_flags(signals->params[i].flags);
    return r;
}

CUresult ct_semaphore_waits_check(const struct ct_semaphore_waits *waits)
{
    CUresult r = check_arrays(waits->semaphores, waits->params, waits->count);

    for (unsigned i = 0; i < waits->count && r == CUDA_SUCCESS; i++)
        r = check_flags(waits->params[i].flags);
    return r;
}

static void release(struct ct_external_fence *fences, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        ct_external_semaphore_release(fences[i].semaphore);
    free(fences);
}

/* Looks up and retains the semaphores of an array; the values are left 0. */
static CUresult look_up(const struct ct_stream *stream, const CUexternalSemaphore *handles, unsigned count, struct ct_external_fence **out)
{
    struct ct_external_fence *fences = calloc(count ? count : 1, sizeof *fences);
    CUresult r;

    if (!fences)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for %u external semaphores", count);
    for (unsigned i = 0; i < count; i++) {
        r = ct_external_semaphore_lookup(stream->context, handles[i], &fences[i].semaphore);
        if (r != CUDA_SUCCESS) {
            release(fences, i);
            return r;
        }
    }
    *out = fences;
    return CUDA_SUCCESS;
}

CUresult ct_semaphore_signals_enqueue(struct ct_stream *stream, const struct ct_semaphore_signals *signals)
{
    struct ct_external_fence *fences;
    CUresult r = ct_semaphore_signals_check(signals);

    if (r != CUDA_SUCCESS || (r = look_up(stream, signals->semaphores, signals->count, &fences)) != CUDA_SUCCESS)
        return r;
    for (unsigned i = 0; i < signals->count; i++)
        fences[i].value = signals->params[i].params.fence.value;
    r = ct_stream_enqueue(stream, &(struct ct_command){.kind = CT_COMMAND_SEMAPHORE_SIGNAL, .semaphore_signal = {fences, signals->count}});
    release(fences, signals->count);
    return r;
}

CUresult ct_semaphore_waits_enqueue(struct ct_stream *stream, const struct ct_semaphore_waits *waits)
{
    struct ct_external_fence *fences;
    CUresult r = ct_semaphore_waits_check(waits);

    if (r != CUDA_SUCCESS || (r = look_up(stream, waits->semaphores, waits->count, &fences)) != CUDA_SUCCESS)
        return r;
    for (unsigned i = 0; i < waits->count; i++)
        fences[i].value = waits->params[i].params.fence.value;
    r = ct_stream_enqueue(stream, &(struct ct_command){.kind = CT_COMMAND_SEMAPHORE_WAIT, .semaphore_wait = {fences, waits->count}});
    release(fences, waits->count);
    return r;
}
