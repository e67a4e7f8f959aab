/* SPDX-License-Identifier: Apache-2.0 */
/* Slots for the shared memory of recorded kernels (struct ptx2spv_slots). Recordings contain the address, so a context has one memory for all of
 * them: within a replay a barrier separates kernels that use it, and replays that use it run one after the other. */
#ifndef CT_CORE_RECORDED_SLOTS_H
#define CT_CORE_RECORDED_SLOTS_H

#include "core/stream/stream.h"

/* The memory for recordings of kernels in the context, at least `size_bytes`. If it grows, earlier recordings keep the memory that they refer
 * to, which is freed with the context. OUT_OF_MEMORY. */
CUresult ct_recorded_slots_take(struct ct_context *context, uint64_t size_bytes, uint64_t *out_address);

/* Around the call that enqueues a replay in the stream: the replay runs after all earlier ones that use slots. Only after success of begin, end
 * is called. */
CUresult ct_recorded_slots_begin(struct ct_stream *stream);
CUresult ct_recorded_slots_end(struct ct_stream *stream);

/* Called when the context's streams are idle and its events still exist. */
void ct_recorded_slots_destroy(struct ct_context *context);

#endif
