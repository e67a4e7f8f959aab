/* SPDX-License-Identifier: Apache-2.0 */
/* Calculates occupancy: whole warps, blocks and shared memory against the limits of a multiprocessor. */
#include "occupancy.h"

#include "core/device/device.h"

#include <limits.h>

static unsigned limit_of(const struct ct_function *function, CUdevice_attribute attribute)
{
    return (unsigned)ct_device_limit(function->module->context->device, attribute);
}

static unsigned min_unsigned(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* ---- registers ----
 * As in NVIDIA's occupancy calculator (cuda_occupancy.h), registers are allocated to warps in units of 256, and the multiprocessor has four
 * parts. They are never scarce here, so the reported number never exceeds what the kernel's largest block can have on a multiprocessor of
 * the device's compute capability, nor a limit that the program gives. */
#define REGISTER_UNIT 256
#define PARTS 4
#define MIN_REGISTERS 8   /* of a kernel with any code, according to ptxas */
#define MAX_REGISTERS 255 /* of a thread */
#define EXTRA_REGISTERS 4 /* for addresses and the like, which the count of live values lacks; by comparison with ptxas */

static unsigned round_up(unsigned n, unsigned unit)
{
    return (n + unit - 1) / unit * unit;
}

static unsigned warps_of(unsigned block_threads)
{
    return (block_threads + CT_WARP_SIZE - 1) / CT_WARP_SIZE;
}

/* The largest number that each thread of a block may have. */
static unsigned registers_with_room(const struct ct_function *function, unsigned block_threads)
{
    unsigned all = min_unsigned(limit_of(function, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
                                limit_of(function, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR));

    return all / round_up(warps_of(block_threads), PARTS) / REGISTER_UNIT * REGISTER_UNIT / CT_WARP_SIZE;
}

unsigned ct_occupancy_registers(const struct ct_function *function)
{
    unsigned room = registers_with_room(function, ct_function_block_limit(function));
    unsigned registers = min_unsigned(function->info.registers, MAX_REGISTERS) + EXTRA_REGISTERS;

    registers = registers > MIN_REGISTERS ? registers : MIN_REGISTERS;
    if (function->decl->max_nreg)
        registers = min_unsigned(registers, function->decl->max_nreg);
    if (function->module->code->max_registers)
        registers = min_unsigned(registers, function->module->code->max_registers);
    return min_unsigned(min_unsigned(registers, MAX_REGISTERS), room ? room : MIN_REGISTERS);
}

static unsigned blocks_by_registers(const struct ct_function *function, unsigned block_threads)
{
    unsigned of_warp = round_up(ct_occupancy_registers(function) * CT_WARP_SIZE, REGISTER_UNIT);
    unsigned of_part = limit_of(function, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR) / PARTS;

    if (!registers_with_room(function, block_threads))
        return UINT_MAX; /* the device's blocks are larger than any that the compute capability allows */
    if (of_warp * round_up(warps_of(block_threads), PARTS) > limit_of(function, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK))
        return 0;
    return of_part / of_warp * PARTS / warps_of(block_threads);
}

/* The number of blocks without regard to shared memory. */
static unsigned blocks_by_threads(const struct ct_function *function, unsigned block_threads)
{
    unsigned blocks;

    if (block_threads > ct_function_block_limit(function))
        return 0;
    blocks = min_unsigned(limit_of(function, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / (warps_of(block_threads) * CT_WARP_SIZE),
                          limit_of(function, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR));
    return min_unsigned(blocks, blocks_by_registers(function, block_threads));
}

/* There is room for one block of the largest size, whatever compute capability its library saw. */
static unsigned shared_of_multiprocessor(const struct ct_function *function)
{
    const unsigned of_block = ct_function_shared_limit(function) + limit_of(function, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    const unsigned reported = limit_of(function, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);

    return of_block > reported ? of_block : reported;
}

unsigned ct_occupancy_blocks(const struct ct_function *function, unsigned block_threads, size_t dynamic_shared_bytes)
{
    unsigned blocks = blocks_by_threads(function, block_threads);
    size_t shared = ct_function_shared_base(function);

    if (dynamic_shared_bytes > ct_function_dynamic_shared_limit(function))
        return 0;
    shared += dynamic_shared_bytes; /* no overflow: both are within the device's limit */
    shared += limit_of(function, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    if (shared == 0)
        return blocks;
    shared = shared_of_multiprocessor(function) / shared;
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
    size_t used = ct_function_shared_base(function) + limit_of(function, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    size_t limit = ct_function_dynamic_shared_limit(function);

    if (blocks > blocks_by_threads(function, block_threads) || each < used)
        return 0;
    return each - used < limit ? each - used : limit;
}
