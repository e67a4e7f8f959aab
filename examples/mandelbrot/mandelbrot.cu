/* SPDX-License-Identifier: Apache-2.0 */
/* Iteration counts of the Mandelbrot set, one thread for each pixel. Every operation is rounded exactly once, so the host computes the same
 * counts. */
#include "device.h"

extern "C" __global__ void mandelbrot(unsigned short *counts, unsigned width, unsigned height, float left, float top, float step,
                                      unsigned limit)
{
    const unsigned column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    const float cx = __fmaf_rn((float)column, step, left), cy = __fmaf_rn(-(float)row, step, top);
    float x = 0.0f, y = 0.0f;
    unsigned i = 0;

    if (column >= width || row >= height)
        return;
    while (i < limit) {
        const float xx = x * x, yy = y * y;

        if (xx + yy > 4.0f)
            break;
        y = __fmaf_rn(x + x, y, cy);
        x = (xx - yy) + cx;
        i++;
    }
    counts[row * width + column] = (unsigned short)i;
}
