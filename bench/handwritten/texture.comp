// SPDX-License-Identifier: Apache-2.0
// Each invocation fetches the 16 texels at and right below its own, and stores their sum.
#version 450
layout(local_size_x = 32, local_size_y = 8) in;
layout(std430, binding = 1) writeonly buffer Target { float target[]; };
layout(binding = 2) uniform sampler2D image; // coordinates in texels
layout(push_constant) uniform Scalars { uint n; float x; };

void main()
{
    const uvec2 own = gl_GlobalInvocationID.xy;
    const vec2 at = vec2(own) + x;
    float sum = 0;

    for (int row = 0; row < 4; row++)
        for (int column = 0; column < 4; column++)
            sum += textureLod(image, at + vec2(column, row), 0).x;
    target[own.y * n + own.x] = sum;
}
