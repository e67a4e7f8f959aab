/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

extern "C" __global__ void vector_add(const float *a, const float *b, float *c, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        c[i] = a[i] + b[i];
}
