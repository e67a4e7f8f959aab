/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory in which the blocks of a stream's kernels keep their shared memory (struct ptx2spv_slots). The commands of a stream run one
 * after the other, so all of them use the same memory. The caller of each function holds the stream's lock. */
#ifndef CT_CORE_STREAM_SLOTS_H
#define CT_CORE_STREAM_SLOTS_H

#include "core/device/backend.h"
#include "core/device/context.h"

struct ct_stream_slots;

/* Memory of at least `size_bytes` for the next command of `queue`. *slots is NULL before the first call. OUT_OF_MEMORY. */
CUresult ct_stream_slots_take(struct ct_context *context, struct ct_queue *queue, struct ct_stream_slots **slots, uint64_t size_bytes,
                              uint64_t *out_address);
void ct_stream_slots_destroy(struct ct_stream_slots *slots); /* the queue is idle; takes NULL */

#endif
