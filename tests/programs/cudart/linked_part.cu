/* SPDX-License-Identifier: Apache-2.0 */
/* The second source file of linked.cu. */
#include "linked.h"

static __device__ int own = 7; /* not the one of the first file */

__device__ int counter = 5;
__device__ int *pointer = &own;
__constant__ int factors[4] = {10, 20, 30, 40};

static __device__ int add_one(int x)
{
    return x + 1;
}

static __device__ int take_one(int x)
{
    return x - 1;
}

__device__ operation operations[2] = {add_one, take_one};

__device__ int twice(int x)
{
    return 2 * x;
}

__device__ int through_shared(int x)
{
    extern __shared__ int words[];

    words[x] = x;
    __syncthreads();
    return words[blockDim.x - 1 - x];
}

static __global__ void count(int *out)
{
    *out = ++counter;
}

int count_in_the_other_part()
{
    int *device, got;

    ok(cudaMalloc(&device, sizeof got));
    count<<<1, 1>>>(device);
    squares<<<1, 1>>>(device); /* the same as in the first file */
    ok(cudaMemcpy(&got, device, sizeof got, cudaMemcpyDeviceToHost));
    check(got == 36);
    ok(cudaMemcpyFromSymbol(&got, counter, sizeof got));
    ok(cudaFree(device));
    return got;
}
