/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a batch, which say when their source may be read (CUmemcpySrcAccessOrder). */
#ifndef CT_CORE_COPY_ORDER_H
#define CT_CORE_COPY_ORDER_H

#include "copy.h"

/* Records the copy into the stream.
 *   STREAM            the source is read when the copy's turn comes, pageable memory, too
 *   DURING_API_CALL   it is read before the call comes back, and perhaps before work that was recorded earlier
 *   ANY               it is read at any time
 * What is written to pageable memory is there when the call comes back, whatever the order. */
CUresult ct_copy_run_ordered(struct ct_stream *stream, const struct ct_copy *copy, CUmemcpySrcAccessOrder order);

#endif
