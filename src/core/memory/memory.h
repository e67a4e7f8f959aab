/* SPDX-License-Identifier: Apache-2.0 */
/* Device and managed memory of a context. */
#ifndef CT_CORE_MEMORY_H
#define CT_CORE_MEMORY_H

#include "core/backing/address_space.h"
#include "core/device/backend.h"

CUresult ct_memory_arena_create(struct ct_context *context, struct ct_memory_arena **out);
void ct_memory_arena_destroy(struct ct_memory_arena *arena); /* frees and unmaps what is left; the context is idle */

/* Memory for `kind` DEVICE, MODULE or MANAGED, aligned to at least 256. OUT_OF_MEMORY. */
CUresult ct_memory_alloc(struct ct_context *context, uint64_t size_bytes, uint64_t align, enum ct_range_kind kind, uint64_t *out_address);
/* Takes it out of the map, waits for the work of its context, frees it. INVALID_VALUE: nothing of that kind starts at `address`. */
CUresult ct_memory_free(struct ct_context *context, uint64_t address, enum ct_range_kind kind);
/* Takes memory of kind DEVICE out of the map; it goes when the stream comes to this place. INVALID_VALUE: none starts at `address`. */
CUresult ct_memory_free_async(struct ct_stream *stream, uint64_t address);

#endif
