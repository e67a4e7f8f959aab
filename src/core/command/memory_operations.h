/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of memory operations in streams (Driver API: Stream Memory Operations). */
#ifndef CT_CORE_MEMORY_OPERATIONS_H
#define CT_CORE_MEMORY_OPERATIONS_H

#include "core/stream/stream.h"

struct ct_memory_operations {
    const CUstreamBatchMemOpParams *list;
    unsigned count, flags;
    int version; /* of the API: 1 or 2 */
};

/* INVALID_VALUE: 256 or more operations, a null pointer, flags that are not 0, an operation that does not exist, or an address that is invalid now;
 * NOT_SUPPORTED: flushing remote writes. */
CUresult ct_memory_operations_check(const struct ct_memory_operations *operations);
/* Validates all of them, and enqueues them. */
CUresult ct_memory_operations_enqueue(struct ct_stream *stream, const struct ct_memory_operations *operations);

#endif
