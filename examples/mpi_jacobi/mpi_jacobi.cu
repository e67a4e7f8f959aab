/* SPDX-License-Identifier: Apache-2.0 */
/* One step of the Jacobi iteration: each inner element becomes the mean of its four neighbours. */
#include "device.h"

/* Computes n_rows rows from first_row on. `width` counts the fixed columns at both sides, too. *largest becomes at least the bits of the
 * largest change of an element: bits of floats that are not negative are ordered as the floats are. */
extern "C" __global__ void jacobi(const float *now, float *next, unsigned width, unsigned first_row, unsigned n_rows, unsigned *largest)
{
    const unsigned column = blockIdx.x * blockDim.x + threadIdx.x + 1, row = blockIdx.y * blockDim.y + threadIdx.y;

    if (column >= width - 1 || row >= n_rows)
        return;
    const unsigned long i = (unsigned long)(first_row + row) * width + column;
    const float mean = 0.25f * ((now[i - width] + now[i + width]) + (now[i - 1] + now[i + 1]));
    union {
        float value;
        unsigned bits;
    } change;

    next[i] = mean;
    change.value = mean - now[i];
    atomicMax(largest, change.bits & 0x7fffffffu);
}
