// SPDX-License-Identifier: Apache-2.0
// How often each byte occurs.
#version 450
#define BLOCK 256
layout(local_size_x = BLOCK) in;
layout(std430, binding = 0) readonly buffer Words { uint words[]; };
layout(std430, binding = 1) buffer Counts { uint counts[]; };
layout(push_constant) uniform Scalars { uint n; float x; };

shared uint bins[256];

void main()
{
    const uint t = gl_LocalInvocationID.x;

    bins[t] = 0;
    barrier();
    for (uint i = gl_WorkGroupID.x * BLOCK + t; i < n; i += gl_NumWorkGroups.x * BLOCK) {
        const uint word = words[i];

        atomicAdd(bins[word & 255], 1);
        atomicAdd(bins[word >> 8 & 255], 1);
        atomicAdd(bins[word >> 16 & 255], 1);
        atomicAdd(bins[word >> 24], 1);
    }
    barrier();
    atomicAdd(counts[t], bins[t]);
}
