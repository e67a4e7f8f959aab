/* SPDX-License-Identifier: Apache-2.0 */
/* The second source file of several.cu: kernels and variables with the same names in each, which must not be confused. */
#include "check.h"

static __device__ int own = 200;

static __global__ void tell(int *out)
{
    *out = own;
}

int tell_other()
{
    int *device, got;

    ok(cudaMalloc(&device, sizeof got));
    tell<<<1, 1>>>(device);
    ok(cudaMemcpy(&got, device, sizeof got, cudaMemcpyDeviceToHost));
    ok(cudaFree(device));
    return got;
}
