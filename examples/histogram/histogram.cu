/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of byte values: each block counts in shared memory with atomics, then adds its counts to the result. */
#include "device.h"

#define BINS 256

extern "C" __global__ void histogram(const unsigned *words, unsigned *counts, unsigned n_words)
{
    __shared__ unsigned local[BINS];

    for (unsigned bin = threadIdx.x; bin < BINS; bin += blockDim.x)
        local[bin] = 0;
    __syncthreads();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n_words; i += gridDim.x * blockDim.x) {
        const unsigned word = words[i];

        atomicAdd(&local[word & 255u], 1u);
        atomicAdd(&local[word >> 8 & 255u], 1u);
        atomicAdd(&local[word >> 16 & 255u], 1u);
        atomicAdd(&local[word >> 24], 1u);
    }
    __syncthreads();
    for (unsigned bin = threadIdx.x; bin < BINS; bin += blockDim.x)
        atomicAdd(&counts[bin], local[bin]);
}
