/* SPDX-License-Identifier: Apache-2.0 */
/* Semaphores that another API or process shares with streams. */
#ifndef CT_CORE_EXTERNAL_SEMAPHORE_H
#define CT_CORE_EXTERNAL_SEMAPHORE_H

#include "core/stream/stream.h"

/* Creates and publishes the object in the context. Takes ownership of the descriptor on success. INVALID_VALUE: invalid flags or type;
 * OPERATING_SYSTEM: the descriptor does not refer to a semaphore; NOT_SUPPORTED: a type that the device does not import. */
CUresult ct_external_semaphore_import(struct ct_context *context, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *desc,
                                      CUexternalSemaphore *out);
/* Pending signals and waits continue. INVALID_HANDLE. */
CUresult ct_external_semaphore_destroy(CUexternalSemaphore handle);
/* Destroys those of a context that is being destroyed. */
void ct_external_semaphores_destroy_all(const struct ct_context *context);

/* A semaphore and the value to signal or to wait for. */
struct ct_external_semaphore;
struct ct_external_fence {
    struct ct_external_semaphore *semaphore; /* retained */
    uint64_t value;                          /* of timelines */
};
struct ct_external_fences {
    const struct ct_external_fence *list;
    unsigned count;
};
/* Looks up the semaphore of a handle, which must be usable in streams of the context. INVALID_HANDLE. */
CUresult ct_external_semaphore_lookup(const struct ct_context *context, CUexternalSemaphore handle, struct ct_external_semaphore **out);
void ct_external_semaphore_release(struct ct_external_semaphore *semaphore);

/* Signals the semaphores in stream order, one after the other. INVALID_VALUE: the value of a timeline is not greater than the previous
 * ones. */
CUresult ct_external_semaphores_signal(struct ct_stream *stream, const struct ct_external_fences *fences);
CUresult ct_external_semaphores_wait(struct ct_stream *stream, const struct ct_external_fences *fences);

#endif
