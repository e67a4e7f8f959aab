/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of registered.c. */
extern "C" {
__device__ int bias = 3;

__global__ void saxpy(float a, const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        y[i] += a * x[i] + bias;
}
}
