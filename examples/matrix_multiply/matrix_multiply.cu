/* SPDX-License-Identifier: Apache-2.0 */
/* C = A * B, row-major, n a multiple of 64: each block computes 64 x 64 elements from tiles in shared memory, each thread 4 x 4.
 * Sums run over k in ascending order with fused multiply-adds, so a host loop gives the same bits. */
#include "device.h"

#define TILE 64
#define STEP 16
#define PER_THREAD 4

extern "C" __global__ void __launch_bounds__(256) matrix_multiply(const float *a, const float *b, float *c, unsigned n)
{
    __shared__ float tile_a[STEP][TILE + 4], tile_b[STEP][TILE];
    const unsigned tx = threadIdx.x, ty = threadIdx.y, thread = ty * 16 + tx;
    const unsigned row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;
    float sum[PER_THREAD][PER_THREAD];

#pragma unroll
    for (unsigned i = 0; i < PER_THREAD; i++)
#pragma unroll
        for (unsigned j = 0; j < PER_THREAD; j++)
            sum[i][j] = 0.0f;
    for (unsigned k0 = 0; k0 < n; k0 += STEP) {
#pragma unroll
        for (unsigned part = 0; part < TILE * STEP / 256; part++) {
            const unsigned item = thread + part * 256;

            tile_a[item % STEP][item / STEP] = a[(row0 + item / STEP) * n + k0 + item % STEP];
            tile_b[item / TILE][item % TILE] = b[(k0 + item / TILE) * n + column0 + item % TILE];
        }
        __syncthreads();
#pragma unroll
        for (unsigned k = 0; k < STEP; k++)
#pragma unroll
            for (unsigned i = 0; i < PER_THREAD; i++)
#pragma unroll
                for (unsigned j = 0; j < PER_THREAD; j++)
                    sum[i][j] = __fmaf_rn(tile_a[k][ty * PER_THREAD + i], tile_b[k][tx + j * 16], sum[i][j]);
        __syncthreads();
    }
#pragma unroll
    for (unsigned i = 0; i < PER_THREAD; i++)
#pragma unroll
        for (unsigned j = 0; j < PER_THREAD; j++)
            c[(row0 + ty * PER_THREAD + i) * n + column0 + tx + j * 16] = sum[i][j];
}
