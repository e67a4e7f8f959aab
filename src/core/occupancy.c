/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of occupancy: whole warps, blocks and shared memory against the limits of a multiprocessor. */
#include "occupancy.h"

#include "device.h"

static unsigned limit_of(const struct ct_function *function, CUdevice_attribute attribute)
{
    return (unsigned)ct_device_limit(function->module->context->device, attribute);
}

static unsigned min_unsigned(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Blocks by everything but shared memory. */
static unsigned blocks_by_threads(const struct ct_function *function, unsigned block_threads)
{
    unsigned whole_warps = (block_threads + CT_WARP_SIZE - 1) / CT_WARP_SIZE * CT_WARP_SIZE;

    if (block_threads > ct_function_block_limit(function))
        return 0;
    return min_unsigned(limit_of(function, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / whole_warps,
                        limit_of(function, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR));
}

unsigned ct_occupancy_blocks(const struct ct_function *function, unsigned block_threads, size_t dynamic_shared_bytes)
{
    unsigned blocks = blocks_by_threads(function, block_threads);
    size_t shared = ct_function_shared_base(function);

    if (dynamic_shared_bytes > ct_function_dynamic_shared_limit(function))
        return 0;
    shared += dynamic_shared_bytes; /* no overflow: both are within the device's limit */
    if (shared == 0)
        return blocks;
    shared = limit_of(function, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / shared;
    return shared < blocks ? (unsigned)shared : blocks;
}

void ct_occupancy_best_block(const struct ct_function *function, const struct ct_occupancy_query *query, int *out_grid, int *out_block)
{
    unsigned largest = ct_function_block_limit(function);
    unsigned best_threads = 0, best_block = 0, best_blocks = 0;

    if (query->block_limit)
        largest = min_unsigned(largest, query->block_limit);
    for (unsigned block = largest; block > 0; block -= block % CT_WARP_SIZE ? block % CT_WARP_SIZE : CT_WARP_SIZE) {
        size_t shared = query->dynamic_shared_of ? query->dynamic_shared_of((int)block) : query->dynamic_shared_bytes;
        unsigned blocks = ct_occupancy_blocks(function, block, shared);

        if (blocks * block <= best_threads)
            continue;
        best_threads = blocks * block;
        best_block = block;
        best_blocks = blocks;
    }
    *out_grid = (int)(best_blocks * limit_of(function, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    *out_block = (int)best_block;
}

size_t ct_occupancy_shared(const struct ct_function *function, unsigned blocks, unsigned block_threads)
{
    size_t each = limit_of(function, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / blocks;
    size_t used = ct_function_shared_base(function);
    size_t limit = ct_function_dynamic_shared_limit(function);

    if (blocks > blocks_by_threads(function, block_threads) || each < used)
        return 0;
    return each - used < limit ? each - used : limit;
}
