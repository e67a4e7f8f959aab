/* SPDX-License-Identifier: Apache-2.0 */
/* Every surface function of the CUDA C++ Programming Guide: thread i reads or writes element i of data at place i.
 * surface_kernels.nvcc.ptx is this file, compiled in this folder by
 *     nvcc -ptx -arch=compute_75 -o surface_kernels.nvcc.ptx surface_kernels.cu */
#include "compiled_places.h"

#define ELEMENT_1 unsigned char
#define ELEMENT_2 unsigned short
#define ELEMENT_4 unsigned
#define ELEMENT_8 uint2
#define ELEMENT_16 uint4

/* Kernels with the surface object s, the place p, and its x in bytes. */
#define SURFACE(geometry, bytes, ...)                                                                                                      \
    extern "C" __global__ void read_##geometry##_##bytes(cudaSurfaceObject_t s, unsigned n, const surface_place *places,                   \
                                                         ELEMENT_##bytes *data, surface_mode mode)                                         \
    {                                                                                                                                      \
        const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;                                                                          \
                                                                                                                                           \
        if (i < n) {                                                                                                                       \
            const surface_place p = places[i];                                                                                             \
            const int x = p.x * bytes;                                                                                                     \
                                                                                                                                           \
            if (mode == SURFACE_TRAP)                                                                                                      \
                data[i] = surf##geometry##read<ELEMENT_##bytes>(s, __VA_ARGS__, cudaBoundaryModeTrap);                                     \
            else if (mode == SURFACE_CLAMP)                                                                                                \
                data[i] = surf##geometry##read<ELEMENT_##bytes>(s, __VA_ARGS__, cudaBoundaryModeClamp);                                    \
            else                                                                                                                           \
                data[i] = surf##geometry##read<ELEMENT_##bytes>(s, __VA_ARGS__, cudaBoundaryModeZero);                                     \
        }                                                                                                                                  \
    }                                                                                                                                      \
    extern "C" __global__ void write_##geometry##_##bytes(cudaSurfaceObject_t s, unsigned n, const surface_place *places,                  \
                                                          const ELEMENT_##bytes *data, surface_mode mode)                                  \
    {                                                                                                                                      \
        const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;                                                                          \
                                                                                                                                           \
        if (i < n) {                                                                                                                       \
            const surface_place p = places[i];                                                                                             \
            const int x = p.x * bytes;                                                                                                     \
                                                                                                                                           \
            if (mode == SURFACE_TRAP)                                                                                                      \
                surf##geometry##write(data[i], s, __VA_ARGS__, cudaBoundaryModeTrap);                                                      \
            else if (mode == SURFACE_CLAMP)                                                                                                \
                surf##geometry##write(data[i], s, __VA_ARGS__, cudaBoundaryModeClamp);                                                     \
            else                                                                                                                           \
                surf##geometry##write(data[i], s, __VA_ARGS__, cudaBoundaryModeZero);                                                      \
        }                                                                                                                                  \
    }
#define SURFACE_ALL(bytes)                                                                                                                 \
    SURFACE(1D, bytes, x)                                                                                                                  \
    SURFACE(2D, bytes, x, p.y)                                                                                                             \
    SURFACE(3D, bytes, x, p.y, p.z)                                                                                                        \
    SURFACE(1DLayered, bytes, x, p.layer)                                                                                                  \
    SURFACE(2DLayered, bytes, x, p.y, p.layer)                                                                                             \
    SURFACE(Cubemap, bytes, x, p.y, p.layer)                                                                                               \
    SURFACE(CubemapLayered, bytes, x, p.y, p.layer)

SURFACE_ALL(1)
SURFACE_ALL(2)
SURFACE_ALL(4)
SURFACE_ALL(8)
SURFACE_ALL(16)

static __device__ unsigned query_width(cudaSurfaceObject_t s)
{
    unsigned value;

    asm volatile("suq.width.b32 %0, [%1];" : "=r"(value) : "l"(s));
    return value;
}

static __device__ unsigned query_height(cudaSurfaceObject_t s)
{
    unsigned value;

    asm volatile("suq.height.b32 %0, [%1];" : "=r"(value) : "l"(s));
    return value;
}

static __device__ unsigned query_depth(cudaSurfaceObject_t s)
{
    unsigned value;

    asm volatile("suq.depth.b32 %0, [%1];" : "=r"(value) : "l"(s));
    return value;
}

extern "C" __global__ void query_surface(cudaSurfaceObject_t s, unsigned *results)
{
    results[0] = query_width(s);
    results[1] = query_height(s);
    results[2] = query_depth(s);
}

/* A texture of the array that a surface writes. */
extern "C" __global__ void fetch_word(cudaTextureObject_t t, float x, float y, unsigned *result)
{
    *result = tex2D<unsigned>(t, x, y);
}
