/* SPDX-License-Identifier: Apache-2.0 */
/* How many blocks of a kernel a multiprocessor can hold, by the limits that the device reports. Drivers do not tell how many registers
 * a kernel takes, so that is an estimate of the compiler's, which never keeps the largest block from running. */
#ifndef CT_CORE_OCCUPANCY_H
#define CT_CORE_OCCUPANCY_H

#include "function.h"

/* 32-bit registers of a thread, from 1 to 255. The function is compiled. */
unsigned ct_occupancy_registers(const struct ct_function *function);
/* 0: not even one. The function is compiled. */
unsigned ct_occupancy_blocks(const struct ct_function *function, unsigned block_threads, size_t dynamic_shared_bytes);

/* The block size, in threads, with most threads on a multiprocessor, and how many blocks then fill the device. */
struct ct_occupancy_query {
    CUoccupancyB2DSize dynamic_shared_of; /* NULL: dynamic_shared_bytes whatever the block size */
    size_t dynamic_shared_bytes;
    unsigned block_limit; /* threads; 0 none */
};
void ct_occupancy_best_block(const struct ct_function *function, const struct ct_occupancy_query *query, int *out_grid, int *out_block);

/* Bytes of dynamic shared memory a block may have when `blocks` of that size are to fit. */
size_t ct_occupancy_shared(const struct ct_function *function, unsigned blocks, unsigned block_threads);

#endif
