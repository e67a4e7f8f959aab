/* SPDX-License-Identifier: Apache-2.0 */
/* Sum of floats. Each block adds 256 partial sums in a tree in shared memory; the order is fixed, so the host gets the same bits. */
#include "device.h"

#define BLOCK 256

extern "C" __global__ void reduction(const float *values, float *block_sums, unsigned n)
{
    __shared__ float partial[BLOCK];
    const unsigned t = threadIdx.x;
    float sum = 0.0f;

    for (unsigned i = blockIdx.x * BLOCK + t; i < n; i += gridDim.x * BLOCK)
        sum += values[i];
    partial[t] = sum;
    __syncthreads();
    for (unsigned half = BLOCK / 2; half > 0; half /= 2) {
        if (t < half)
            partial[t] += partial[t + half];
        __syncthreads();
    }
    if (t == 0)
        block_sums[blockIdx.x] = partial[0];
}
