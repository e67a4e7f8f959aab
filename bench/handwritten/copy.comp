// SPDX-License-Identifier: Apache-2.0
#version 450
layout(local_size_x = 256) in;
layout(std430, binding = 0) readonly buffer Source { float source[]; };
layout(std430, binding = 1) writeonly buffer Target { float target[]; };
layout(push_constant) uniform Scalars { uint n; float x; };

void main()
{
    const uint i = gl_GlobalInvocationID.x;

    if (i < n)
        target[i] = source[i];
}
