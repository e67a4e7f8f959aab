// SPDX-License-Identifier: Apache-2.0
#version 450
layout(local_size_x = 32, local_size_y = 8) in;
layout(std430, binding = 0) readonly buffer From { float from[]; };
layout(std430, binding = 1) writeonly buffer To { float to[]; };
layout(push_constant) uniform Scalars { uint n; float unused; };

shared float tile[32][33];

void main()
{
    const uint x = gl_LocalInvocationID.x, y = gl_LocalInvocationID.y, column = gl_WorkGroupID.x * 32, row = gl_WorkGroupID.y * 32;

    for (uint i = 0; i < 32; i += 8)
        tile[y + i][x] = from[(row + y + i) * n + column + x];
    barrier();
    for (uint i = 0; i < 32; i += 8)
        to[(column + y + i) * n + row + x] = tile[x][y + i];
}
