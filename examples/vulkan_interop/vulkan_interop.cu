/* SPDX-License-Identifier: Apache-2.0 */
/* Waves on a square pond, one thread for each point. `previous` is overwritten by the next state: a thread reads only its own point of it.
 * Every operation is rounded exactly once, so the host computes the same heights. */
#include "device.h"

extern "C" __global__ void drop(float *heights, unsigned size, unsigned x, unsigned y, unsigned radius, float depth)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    const int dx = column - (int)x, dy = row - (int)y, left = (int)(radius * radius) - dx * dx - dy * dy;

    if (column < (int)size && row < (int)size && left > 0)
        heights[row * size + column] -= depth * (float)left;
}

extern "C" __global__ void step(const float *now, float *previous, unsigned size, float speed, float keep)
{
    const unsigned column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    const unsigned at = row * size + column;

    if (column == 0 || row == 0 || column + 1 >= size || row + 1 >= size)
        return;
    const float around = (now[at - 1] + now[at + 1]) + (now[at - size] + now[at + size]);
    const float pull = speed * (around - 4.0f * now[at]);

    previous[at] = keep * (((now[at] + now[at]) - previous[at]) + pull);
}
