/* SPDX-License-Identifier: Apache-2.0 */
/* Device and managed memory of a context. */
#ifndef CT_CORE_MEMORY_H
#define CT_CORE_MEMORY_H

#include "core/backing/address_space.h"
#include "core/device/backend.h"

CUresult ct_memory_arena_create(struct ct_context *context, struct ct_memory_arena **out);
void ct_memory_arena_destroy(struct ct_memory_arena *arena); /* frees and unmaps all remaining memory; the context must be idle */

/* Allocates memory; `kind` is DEVICE, MODULE or MANAGED; the alignment is at least 512 bytes. OUT_OF_MEMORY. */
CUresult ct_memory_alloc(struct ct_context *context, uint64_t size_bytes, uint64_t align, enum ct_range_kind kind, uint64_t *out_address);
/* Unpublishes the memory, waits for the work of its context and frees it. INVALID_VALUE: nothing of that kind starts at `address`. */
CUresult ct_memory_free(struct ct_context *context, uint64_t address, enum ct_range_kind kind);
/* Unpublishes memory of kind DEVICE; it is freed when the stream's preceding work is done. INVALID_VALUE: none starts at `address`. */
CUresult ct_memory_free_async(struct ct_stream *stream, uint64_t address);

#endif
