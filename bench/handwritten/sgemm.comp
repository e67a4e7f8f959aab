// SPDX-License-Identifier: Apache-2.0
// C = A * B, row-major, n a multiple of 64: a block computes 64 x 64 elements from tiles in shared memory, a thread 4 x 4.
#version 450
#define TILE 64
#define STEP 16
#define PER_THREAD 4
layout(local_size_x = 16, local_size_y = 16) in;
layout(std430, binding = 0) readonly buffer A { float a[]; };
layout(std430, binding = 1) readonly buffer B { float b[]; };
layout(std430, binding = 2) writeonly buffer C { float c[]; };
layout(push_constant) uniform Scalars { uint n; float x; };

shared float tile_a[STEP][TILE + 4], tile_b[STEP][TILE];

void main()
{
    const uint tx = gl_LocalInvocationID.x, ty = gl_LocalInvocationID.y, thread = ty * 16 + tx;
    const uint row0 = gl_WorkGroupID.y * TILE, column0 = gl_WorkGroupID.x * TILE;
    float sum[PER_THREAD][PER_THREAD];

    for (uint i = 0; i < PER_THREAD; i++)
        for (uint j = 0; j < PER_THREAD; j++)
            sum[i][j] = 0.0;
    for (uint k0 = 0; k0 < n; k0 += STEP) {
        for (uint part = 0; part < TILE * STEP / 256; part++) {
            const uint item = thread + part * 256;

            tile_a[item % STEP][item / STEP] = a[(row0 + item / STEP) * n + k0 + item % STEP];
            tile_b[item / TILE][item % TILE] = b[(k0 + item / TILE) * n + column0 + item % TILE];
        }
        barrier();
        for (uint k = 0; k < STEP; k++)
            for (uint i = 0; i < PER_THREAD; i++)
                for (uint j = 0; j < PER_THREAD; j++)
                    sum[i][j] = fma(tile_a[k][ty * PER_THREAD + i], tile_b[k][tx + j * 16], sum[i][j]);
        barrier();
    }
    for (uint i = 0; i < PER_THREAD; i++)
        for (uint j = 0; j < PER_THREAD; j++)
            c[(row0 + ty * PER_THREAD + i) * n + column0 + tx + j * 16] = sum[i][j];
}
