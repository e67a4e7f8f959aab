/* SPDX-License-Identifier: Apache-2.0 */
/* The number of blocks of a kernel that fit on a multiprocessor, by the limits that the device reports. Drivers do not report how many
 * registers a kernel uses, so the compiler estimates it; the estimate never prevents the largest block from running. */
#ifndef CT_CORE_OCCUPANCY_H
#define CT_CORE_OCCUPANCY_H

#include "function.h"

/* The number of 32-bit registers of a thread, from 1 to 255. The function must be compiled. */
unsigned ct_occupancy_registers(const struct ct_function *function);
/* 0: not even one block fits. The function must be compiled. */
unsigned ct_occupancy_blocks(const struct ct_function *function, unsigned block_threads, size_t dynamic_shared_bytes);

/* The block size with the most threads on a multiprocessor, and the number of blocks that then fill the device. */
struct ct_occupancy_query {
    CUoccupancyB2DSize dynamic_shared_of; /* NULL: dynamic_shared_bytes for every block size */
    size_t dynamic_shared_bytes;
    unsigned block_limit; /* threads; 0 none */
};
void ct_occupancy_best_block(const struct ct_function *function, const struct ct_occupancy_query *query, int *out_grid, int *out_block);

/* Bytes of dynamic shared memory that a block may have if `blocks` blocks of that size are to fit. */
size_t ct_occupancy_shared(const struct ct_function *function, unsigned blocks, unsigned block_threads);

#endif
