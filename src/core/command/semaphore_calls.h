/* SPDX-License-Identifier: Apache-2.0 */
/* Signals of external semaphores and waits for them, by handles as in the API. */
#ifndef CT_CORE_SEMAPHORE_CALLS_H
#define CT_CORE_SEMAPHORE_CALLS_H

#include "core/stream/stream.h"

/* Arrays of `count` elements. */
struct ct_semaphore_signals {
    const CUexternalSemaphore *semaphores;
    const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *params;
    unsigned count;
};
struct ct_semaphore_waits {
    const CUexternalSemaphore *semaphores;
    const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *params;
    unsigned count;
};

/* INVALID_VALUE: an array is NULL, or flags are not 0. */
CUresult ct_semaphore_signals_check(const struct ct_semaphore_signals *signals);
CUresult ct_semaphore_waits_check(const struct ct_semaphore_waits *waits);
/* Enqueue them. Errors of the checks; INVALID_HANDLE: a semaphore does not exist, or not in the stream's context; INVALID_VALUE: the value of a
 * timeline is not greater than the previous one. */
CUresult ct_semaphore_signals_enqueue(struct ct_stream *stream, const struct ct_semaphore_signals *signals);
CUresult ct_semaphore_waits_enqueue(struct ct_stream *stream, const struct ct_semaphore_waits *waits);

#endif
