/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of *.comp here and in bench/handwritten once more, in CUDA C++: what a compiler for GPUs makes of the two is compared by
 * tests/judge/parity.c. Loops are unrolled alike on both sides, so that numbers of instructions can be compared. parity.ptx is nvcc's:
 *   nvcc -ptx -O3 -prec-sqrt=false -arch=sm_75 -I examples/common bench/parity/parity.cu -o bench/parity/parity.ptx
 * parity_ftz.ptx is the same with -ftz=true. */
#include "device.h"

#define BLOCK 256

extern "C" __global__ void copy(const float *source, float *target, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        target[i] = source[i];
}

#define TILE 64
#define STEP 16
#define PER_THREAD 4

extern "C" __global__ void __launch_bounds__(256) sgemm(const float *a, const float *b, float *c, unsigned n)
{
    __shared__ float tile_a[STEP][TILE + 4], tile_b[STEP][TILE];
    const unsigned tx = threadIdx.x, ty = threadIdx.y, thread = ty * 16 + tx;
    const unsigned row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;
    float sum[PER_THREAD][PER_THREAD] = {};

    for (unsigned k0 = 0; k0 < n; k0 += STEP) {
        for (unsigned part = 0; part < TILE * STEP / 256; part++) {
            const unsigned item = thread + part * 256;

            tile_a[item % STEP][item / STEP] = a[(row0 + item / STEP) * n + k0 + item % STEP];
            tile_b[item / TILE][item % TILE] = b[(k0 + item / TILE) * n + column0 + item % TILE];
        }
        __syncthreads();
#pragma unroll
        for (unsigned k = 0; k < STEP; k++)
            for (unsigned i = 0; i < PER_THREAD; i++)
                for (unsigned j = 0; j < PER_THREAD; j++)
                    sum[i][j] = __fmaf_rn(tile_a[k][ty * PER_THREAD + i], tile_b[k][tx + j * 16], sum[i][j]);
        __syncthreads();
    }
    for (unsigned i = 0; i < PER_THREAD; i++)
        for (unsigned j = 0; j < PER_THREAD; j++)
            c[(row0 + ty * PER_THREAD + i) * n + column0 + tx + j * 16] = sum[i][j];
}

extern "C" __global__ void nbody(const float4 *bodies, float *accelerations, unsigned n, float softening)
{
    __shared__ float4 tile[BLOCK];
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    const float4 me = bodies[i];
    float ax = 0, ay = 0, az = 0;

    for (unsigned first = 0; first < n; first += BLOCK) {
        tile[threadIdx.x] = bodies[first + threadIdx.x];
        __syncthreads();
#pragma unroll 1
        for (unsigned j = 0; j < BLOCK; j++) {
            const float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
            const float r = rsqrtf(__fmaf_rn(dx, dx, __fmaf_rn(dy, dy, __fmaf_rn(dz, dz, softening))));
            const float s = tile[j].w * r * r * r;

            ax = __fmaf_rn(dx, s, ax);
            ay = __fmaf_rn(dy, s, ay);
            az = __fmaf_rn(dz, s, az);
        }
        __syncthreads();
    }
    accelerations[3 * i] = ax;
    accelerations[3 * i + 1] = ay;
    accelerations[3 * i + 2] = az;
}

extern "C" __global__ void reduction(const float *values, float *block_sums, unsigned n)
{
    __shared__ float partial[BLOCK];
    const unsigned t = threadIdx.x;
    float sum = 0;

#pragma unroll 1
    for (unsigned i = blockIdx.x * BLOCK + t; i < n; i += gridDim.x * BLOCK)
        sum += values[i];
    partial[t] = sum;
    __syncthreads();
#pragma unroll
    for (unsigned width = BLOCK / 2; width > 0; width /= 2) {
        if (t < width)
            partial[t] += partial[t + width];
        __syncthreads();
    }
    if (t == 0)
        block_sums[blockIdx.x] = partial[0];
}

/* A point's six neighbours in a volume of n x n x n; each thread goes through a column. */
extern "C" __global__ void stencil(const float *from, float *to, unsigned n, float x)
{
    const unsigned column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;

    if (column < 1 || row < 1 || column >= n - 1 || row >= n - 1)
        return;
    unsigned at = row * n + column;
    float below = from[at], own = from[at + n * n];

#pragma unroll 1
    for (unsigned plane = 1; plane < n - 1; plane++) {
        at += n * n;
        const float above = from[at + n * n];
        const float around = from[at - 1] + from[at + 1] + from[at - n] + from[at + n];

        to[at] = __fmaf_rn(around + below + above, x, own);
        below = own;
        own = above;
    }
}

/* Prefix sums of 256 values in shared memory. */
extern "C" __global__ void scan(const unsigned *values, unsigned *sums, unsigned n)
{
    __shared__ unsigned part[2][BLOCK];
    const unsigned t = threadIdx.x, i = blockIdx.x * BLOCK + t;
    unsigned side = 0;

    part[0][t] = i < n ? values[i] : 0;
    __syncthreads();
#pragma unroll 1
    for (unsigned distance = 1; distance < BLOCK; distance *= 2) {
        part[1 - side][t] = t >= distance ? part[side][t] + part[side][t - distance] : part[side][t];
        side = 1 - side;
        __syncthreads();
    }
    if (i < n)
        sums[i] = part[side][t];
}

/* How often each byte occurs. */
extern "C" __global__ void histogram(const unsigned *words, unsigned *counts, unsigned n)
{
    __shared__ unsigned bins[256];
    const unsigned t = threadIdx.x;

    bins[t] = 0;
    __syncthreads();
#pragma unroll 1
    for (unsigned i = blockIdx.x * BLOCK + t; i < n; i += gridDim.x * BLOCK) {
        const unsigned word = words[i];

        atomicAdd(&bins[word & 255], 1);
        atomicAdd(&bins[word >> 8 & 255], 1);
        atomicAdd(&bins[word >> 16 & 255], 1);
        atomicAdd(&bins[word >> 24], 1);
    }
    __syncthreads();
    atomicAdd(&counts[t], bins[t]);
}

extern "C" __global__ void transpose(const float *from, float *to, unsigned n)
{
    __shared__ float tile[32][33];
    const unsigned x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 32, row = blockIdx.y * 32;

#pragma unroll
    for (unsigned i = 0; i < 32; i += 8)
        tile[y + i][x] = from[(row + y + i) * n + column + x];
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < 32; i += 8)
        to[(column + y + i) * n + row + x] = tile[x][y + i];
}

static __device__ __forceinline__ float normal_distribution(float d)
{
    const float k = __fdividef(1.0f, 1.0f + 0.2316419f * fabsf(d));
    float sum = 1.330274429f;

    sum = __fmaf_rn(sum, k, -1.821255978f);
    sum = __fmaf_rn(sum, k, 1.781477937f);
    sum = __fmaf_rn(sum, k, -0.356563782f);
    sum = __fmaf_rn(sum, k, 0.31938153f);
    sum = sum * k * 0.39894228f * __expf(-0.5f * d * d);
    return d > 0 ? 1.0f - sum : sum;
}

/* Prices of options: stock price, strike price and time in, call and put out. */
extern "C" __global__ void black_scholes(const float4 *options, float2 *prices, unsigned n, float rate)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;

    if (i >= n)
        return;
    const float4 option = options[i];
    const float volatility = option.w, root = sqrtf(option.z);
    const float d1 = __fdividef(__logf(__fdividef(option.x, option.y)) + (rate + 0.5f * volatility * volatility) * option.z, volatility * root);
    const float d2 = d1 - volatility * root, n1 = normal_distribution(d1), n2 = normal_distribution(d2);
    const float strike = option.y * __expf(-rate * option.z);

    prices[i] = {option.x * n1 - strike * n2, strike * (1.0f - n2) - option.x * (1.0f - n1)};
}

/* A sparse matrix (compressed rows) times a vector; a thread for each row. */
extern "C" __global__ void spmv(const unsigned *starts, const unsigned *columns, const float *values, const float *x, float *y, unsigned n)
{
    const unsigned row = blockIdx.x * BLOCK + threadIdx.x;
    float sum = 0;

    if (row >= n)
        return;
#pragma unroll 1
    for (unsigned i = starts[row]; i < starts[row + 1]; i++)
        sum = __fmaf_rn(values[i], x[columns[i]], sum);
    y[row] = sum;
}
