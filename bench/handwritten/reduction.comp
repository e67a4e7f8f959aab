// SPDX-License-Identifier: Apache-2.0
// Each block adds 256 partial sums in a tree in shared memory.
#version 450
#define BLOCK 256
layout(local_size_x = BLOCK) in;
layout(std430, binding = 0) readonly buffer Values { float values[]; };
layout(std430, binding = 1) writeonly buffer Sums { float block_sums[]; };
layout(push_constant) uniform Scalars { uint n; float x; };

shared float partial[BLOCK];

void main()
{
    const uint t = gl_LocalInvocationID.x;
    float sum = 0.0;

    for (uint i = gl_WorkGroupID.x * BLOCK + t; i < n; i += gl_NumWorkGroups.x * BLOCK)
        sum += values[i];
    partial[t] = sum;
    barrier();
    for (uint width = BLOCK / 2; width > 0; width /= 2) {
        if (t < width)
            partial[t] += partial[t + width];
        barrier();
    }
    if (t == 0)
        block_sums[gl_WorkGroupID.x] = partial[0];
}
