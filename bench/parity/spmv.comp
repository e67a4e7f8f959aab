// SPDX-License-Identifier: Apache-2.0
// A sparse matrix (compressed rows) times a vector; an invocation for each row.
#version 450
layout(local_size_x = 256) in;
layout(std430, binding = 0) readonly buffer Starts { uint starts[]; };
layout(std430, binding = 1) readonly buffer Columns { uint columns[]; };
layout(std430, binding = 2) readonly buffer Values { float values[]; };
layout(std430, binding = 3) readonly buffer X { float x[]; };
layout(std430, binding = 4) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Scalars { uint n; float unused; };

void main()
{
    const uint row = gl_GlobalInvocationID.x;
    float sum = 0.0;

    if (row >= n)
        return;
    for (uint i = starts[row]; i < starts[row + 1]; i++)
        sum = fma(values[i], x[columns[i]], sum);
    y[row] = sum;
}
