/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the device runtime: libcudadevrt.a is linked like any other library. The functions that it requires of its driver are missing
 * only where a kernel reaches them: here the launch of a kernel by a kernel. */
#include "check.h"

#include <cstring>

static __global__ void name_errors(char *out)
{
    const char *name = cudaGetErrorString(cudaErrorInvalidValue);

    do
        *out++ = *name;
    while (*name++);
}

static __global__ void child(int *out)
{
    *out = 2;
}

static __global__ void parent(int *out)
{
    *out = 1;
    if (threadIdx.x == 0)
        child<<<1, 1>>>(out);
}

int main()
{
    char got[100] = "", *device;

    ok(cudaMalloc(&device, sizeof got));
    name_errors<<<1, 1>>>(device);
    ok(cudaMemcpy(got, device, sizeof got, cudaMemcpyDeviceToHost));
    check(!std::strcmp(got, cudaGetErrorString(cudaErrorInvalidValue)));
    parent<<<1, 1>>>((int *)device);
    check(cudaGetLastError() == cudaErrorNotSupported);
    name_errors<<<1, 1>>>(device); /* the others still run */
    ok(cudaDeviceSynchronize());
    ok(cudaFree(device));
    std::puts("ok");
    return 0;
}
