/* SPDX-License-Identifier: Apache-2.0 */
/* A program of several source files: each registers its own fat binary. */
#include "check.h"

static __device__ int own = 100;

static __global__ void tell(int *out)
{
    *out = own;
}

int tell_other();

int main()
{
    int *device, got;

    ok(cudaMalloc(&device, sizeof got));
    tell<<<1, 1>>>(device);
    ok(cudaMemcpy(&got, device, sizeof got, cudaMemcpyDeviceToHost));
    check(got == 100);
    check(tell_other() == 200);
    ok(cudaFree(device));
    std::puts("ok");
    return 0;
}
