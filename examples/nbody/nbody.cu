/* SPDX-License-Identifier: Apache-2.0 */
/* Gravity between n bodies, the accelerations of one step, in single and double precision: tiles of bodies in shared memory. n is a
 * multiple of the block size, 256 threads. Bodies are x, y, z, mass. */
#include "device.h"

#define BLOCK 256

template <typename real> struct alignas(16) body {
    real x, y, z, mass;
};

static __device__ __forceinline__ float inverse_sqrt(float a) { return rsqrtf(a); }
static __device__ __forceinline__ double inverse_sqrt(double a) { return 1.0 / sqrt(a); }
static __device__ __forceinline__ float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
static __device__ __forceinline__ double fused(double a, double b, double c) { return __fma_rn(a, b, c); }

template <typename real>
static __device__ __forceinline__ void accelerate(const body<real> *bodies, real *out, body<real> *tile, unsigned n, real softening)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    const body<real> me = bodies[i];
    real ax = 0, ay = 0, az = 0;

    for (unsigned first = 0; first < n; first += BLOCK) {
        tile[threadIdx.x] = bodies[first + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (unsigned j = 0; j < BLOCK; j++) {
            const real dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
            const real r = inverse_sqrt(fused(dx, dx, fused(dy, dy, fused(dz, dz, softening))));
            const real s = tile[j].mass * r * r * r;

            ax = fused(dx, s, ax);
            ay = fused(dy, s, ay);
            az = fused(dz, s, az);
        }
        __syncthreads();
    }
    out[3 * i] = ax;
    out[3 * i + 1] = ay;
    out[3 * i + 2] = az;
}

extern "C" __global__ void nbody_f32(const body<float> *bodies, float *accelerations, unsigned n, float softening)
{
    __shared__ body<float> tile[BLOCK];

    accelerate<float>(bodies, accelerations, tile, n, softening);
}

extern "C" __global__ void nbody_f64(const body<double> *bodies, double *accelerations, unsigned n, double softening)
{
    __shared__ body<double> tile[BLOCK];

    accelerate<double>(bodies, accelerations, tile, n, softening);
}
