/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of memory pools with addresses that stay the same while the memory is allocated and freed again and again: the memory of graphs. Only
 * while a block is allocated is there memory at its address for other calls. */
#ifndef CT_CORE_KEPT_BLOCK_H
#define CT_CORE_KEPT_BLOCK_H

#include "core/stream/stream.h"

struct ct_kept_block;

/* Takes a block of the device's pool of graphs, which is not allocated yet. The caller gets a reference. OUT_OF_MEMORY. */
CUresult ct_kept_block_create(struct ct_device *device, uint64_t size_bytes, struct ct_kept_block **out);
void ct_kept_block_retain(struct ct_kept_block *kept);
/* With the last reference the block returns to the pool, if it is allocated when it is freed. NULL is a no-op. */
void ct_kept_block_release(struct ct_kept_block *kept);
uint64_t ct_kept_block_address(const struct ct_kept_block *kept);
uint64_t ct_kept_block_size(const struct ct_kept_block *kept); /* of allocations, at most */
bool ct_kept_block_is_allocated(struct ct_kept_block *kept);
/* Whether the address is in any block, allocated or not. */
bool ct_kept_blocks_contain(uint64_t address);
/* Allocates the block for later work of the stream, which is ordered behind the work of the stream that freed it. ct_memory_pool_free_async and
 * ct_memory_pool_free free it. INVALID_VALUE: it is allocated already. */
CUresult ct_kept_block_alloc(struct ct_kept_block *kept, struct ct_stream *stream, uint64_t size_bytes);

/* The attributes CU_GRAPH_MEM_ATTR_* of a device, and the release of memory that no graph uses. INVALID_VALUE: the attribute does not exist, or
 * cannot be set to the value. */
CUresult ct_kept_blocks_get_attribute(struct ct_device *device, CUgraphMem_attribute attribute, uint64_t *out);
CUresult ct_kept_blocks_set_attribute(struct ct_device *device, CUgraphMem_attribute attribute, uint64_t value);
void ct_kept_blocks_trim(struct ct_device *device);

#endif
