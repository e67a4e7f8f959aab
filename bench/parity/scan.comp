// SPDX-License-Identifier: Apache-2.0
// Prefix sums of 256 values in shared memory.
#version 450
#define BLOCK 256
layout(local_size_x = BLOCK) in;
layout(std430, binding = 0) readonly buffer Values { uint values[]; };
layout(std430, binding = 1) writeonly buffer Sums { uint sums[]; };
layout(push_constant) uniform Scalars { uint n; float x; };

shared uint part[2][BLOCK];

void main()
{
    const uint t = gl_LocalInvocationID.x, i = gl_GlobalInvocationID.x;
    uint side = 0;

    part[0][t] = i < n ? values[i] : 0;
    barrier();
    for (uint distance = 1; distance < BLOCK; distance *= 2) {
        part[1 - side][t] = t >= distance ? part[side][t] + part[side][t - distance] : part[side][t];
        side = 1 - side;
        barrier();
    }
    if (i < n)
        sums[i] = part[side][t];
}
