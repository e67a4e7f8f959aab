// SPDX-License-Identifier: Apache-2.0
// Accelerations of n bodies (x, y, z, mass) by each other's gravity: tiles of bodies in shared memory.
#version 450
#define BLOCK 256
layout(local_size_x = BLOCK) in;
layout(std430, binding = 0) readonly buffer Bodies { vec4 bodies[]; };
layout(std430, binding = 1) writeonly buffer Accelerations { float accelerations[]; };
layout(push_constant) uniform Scalars { uint n; float softening; };

shared vec4 tile[BLOCK];

void main()
{
    const uint i = gl_GlobalInvocationID.x;
    const vec3 me = bodies[i].xyz;
    vec3 a = vec3(0.0);

    for (uint first = 0; first < n; first += BLOCK) {
        tile[gl_LocalInvocationID.x] = bodies[first + gl_LocalInvocationID.x];
        barrier();
        for (uint j = 0; j < BLOCK; j++) {
            const vec4 other = tile[j];
            const vec3 d = other.xyz - me;
            const float r = inversesqrt(fma(d.x, d.x, fma(d.y, d.y, fma(d.z, d.z, softening))));
            const float s = other.w * r * r * r;

            a = fma(d, vec3(s), a);
        }
        barrier();
    }
    accelerations[3 * i] = a.x;
    accelerations[3 * i + 1] = a.y;
    accelerations[3 * i + 2] = a.z;
}
