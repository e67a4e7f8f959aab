/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of compressed data that a stream decompresses (cuMemBatchDecompressAsync). */
#ifndef CT_CORE_DECOMPRESSION_H
#define CT_CORE_DECOMPRESSION_H

#include "copy.h"

/* A batch whose parameters have been validated, and what it needs when it runs. */
struct ct_decompression;

/* Validates the operations and finds their memory, which stays valid until the caller's ct_address_uses_end, or, once the batch is enqueued, until it
 * has run. On failure *out_index is the operation at fault. INVALID_VALUE: a size of 0, or one beyond the limit; NULL; memory that is not all known, or
 * read-only, or that of another device; an unknown algorithm; padding that is not 0. NOT_SUPPORTED: the algorithm's library is not installed. */
CUresult ct_decompression_create(struct ct_stream *stream, const CUmemDecompressParams *operations, size_t count, size_t *out_index,
                                 struct ct_decompression **out);
void ct_decompression_destroy(struct ct_decompression *decompression); /* takes NULL */

/* Records the batch, which the stream's worker carries out and destroys. On failure it remains the caller's. */
CUresult ct_decompression_record(struct ct_stream *stream, struct ct_decompression *const *decompression);

#endif
