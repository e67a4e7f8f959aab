// SPDX-License-Identifier: Apache-2.0
// A point's six neighbours in a volume of n x n x n; each invocation goes through a column.
#version 450
layout(local_size_x = 32, local_size_y = 8) in;
layout(std430, binding = 0) readonly buffer From { float from[]; };
layout(std430, binding = 1) writeonly buffer To { float to[]; };
layout(push_constant) uniform Scalars { uint n; float x; };

void main()
{
    const uint column = gl_GlobalInvocationID.x, row = gl_GlobalInvocationID.y;

    if (column < 1 || row < 1 || column >= n - 1 || row >= n - 1)
        return;
    uint at = row * n + column;
    float below = from[at], own = from[at + n * n];

    for (uint plane = 1; plane < n - 1; plane++) {
        at += n * n;
        const float above = from[at + n * n];
        const float around = from[at - 1] + from[at + 1] + from[at - n] + from[at + n];

        to[at] = fma(around + below + above, x, own);
        below = own;
        own = above;
    }
}
