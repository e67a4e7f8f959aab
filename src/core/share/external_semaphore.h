/* SPDX-License-Identifier: Apache-2.0 */
/* Semaphores that another API or process shares with streams. */
#ifndef CT_CORE_EXTERNAL_SEMAPHORE_H
#define CT_CORE_EXTERNAL_SEMAPHORE_H

#include "core/stream/stream.h"

/* Published, of the context. Takes the descriptor on success. INVALID_VALUE: flags, no such type; OPERATING_SYSTEM: a descriptor
 * that is none of a semaphore; NOT_SUPPORTED: a type that the device does not import. */
CUresult ct_external_semaphore_import(struct ct_context *context, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *desc,
                                      CUexternalSemaphore *out);
/* What is outstanding goes on. INVALID_HANDLE. */
CUresult ct_external_semaphore_destroy(CUexternalSemaphore handle);
/* Those of a context that goes. */
void ct_external_semaphores_destroy_all(const struct ct_context *context);

/* A semaphore and what is to happen to it. */
struct ct_external_semaphore;
struct ct_external_fence {
    struct ct_external_semaphore *semaphore; /* retained */
    uint64_t value;                          /* of timelines */
};
struct ct_external_fences {
    const struct ct_external_fence *list;
    unsigned count;
};
/* The semaphore behind a handle, if streams of the context can use it. INVALID_HANDLE. */
CUresult ct_external_semaphore_lookup(const struct ct_context *context, CUexternalSemaphore handle, struct ct_external_semaphore **out);
void ct_external_semaphore_release(struct ct_external_semaphore *semaphore);

/* In the order of the stream, one after the other. INVALID_VALUE: a timeline's value that is not above those before it. */
CUresult ct_external_semaphores_signal(struct ct_stream *stream, const struct ct_external_fences *fences);
CUresult ct_external_semaphores_wait(struct ct_stream *stream, const struct ct_external_fences *fences);

#endif
