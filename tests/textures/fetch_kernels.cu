/* SPDX-License-Identifier: Apache-2.0 */
/* Every texture function of the CUDA C++ Programming Guide for texture objects: thread i fetches at place i and stores its four results.
 * fetch_kernels.nvcc.ptx is this file, compiled in this folder by
 *     nvcc -ptx -arch=compute_75 -o fetch_kernels.nvcc.ptx fetch_kernels.cu */
#include "compiled_places.h"

/* A kernel with the texture object t and the place p. */
#define FETCH(name, type, expression)                                                                                                      \
    extern "C" __global__ void name##_##type(cudaTextureObject_t t, unsigned n, const fetch_place *places, type *results)                  \
    {                                                                                                                                      \
        const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;                                                                          \
                                                                                                                                           \
        if (i < n) {                                                                                                                       \
            const fetch_place p = places[i];                                                                                               \
                                                                                                                                           \
            results[i] = expression;                                                                                                       \
        }                                                                                                                                  \
    }
#define FETCH_ALL(type)                                                                                                                    \
    FETCH(tex1Dfetch, type, tex1Dfetch<type>(t, (int)p.x))                                                                                 \
    FETCH(tex1D, type, tex1D<type>(t, p.x))                                                                                                \
    FETCH(tex2D, type, (tex2D<type>(t, p.x, p.y)))                                                                                         \
    FETCH(tex3D, type, (tex3D<type>(t, p.x, p.y, p.z)))                                                                                    \
    FETCH(tex1DLayered, type, (tex1DLayered<type>(t, p.x, p.layer)))                                                                       \
    FETCH(tex2DLayered, type, (tex2DLayered<type>(t, p.x, p.y, p.layer)))                                                                  \
    FETCH(texCubemap, type, (texCubemap<type>(t, p.x, p.y, p.z)))                                                                          \
    FETCH(texCubemapLayered, type, (texCubemapLayered<type>(t, p.x, p.y, p.z, p.layer)))                                                   \
    FETCH(tex1DLod, type, (tex1DLod<type>(t, p.x, p.level)))                                                                               \
    FETCH(tex2DLod, type, (tex2DLod<type>(t, p.x, p.y, p.level)))                                                                          \
    FETCH(tex3DLod, type, (tex3DLod<type>(t, p.x, p.y, p.z, p.level)))                                                                     \
    FETCH(tex1DLayeredLod, type, (tex1DLayeredLod<type>(t, p.x, p.layer, p.level)))                                                        \
    FETCH(tex2DLayeredLod, type, (tex2DLayeredLod<type>(t, p.x, p.y, p.layer, p.level)))                                                   \
    FETCH(texCubemapLod, type, (texCubemapLod<type>(t, p.x, p.y, p.z, p.level)))                                                           \
    FETCH(texCubemapLayeredLod, type, (texCubemapLayeredLod<type>(t, p.x, p.y, p.z, p.layer, p.level)))                                    \
    FETCH(tex2DGrad, type, (tex2DGrad<type>(t, p.x, p.y, make_float2(p.ddx[0], p.ddx[1]), make_float2(p.ddy[0], p.ddy[1]))))               \
    FETCH(tex2Dgather0, type, (tex2Dgather<type>(t, p.x, p.y, 0)))                                                                         \
    FETCH(tex2Dgather1, type, (tex2Dgather<type>(t, p.x, p.y, 1)))                                                                         \
    FETCH(tex2Dgather2, type, (tex2Dgather<type>(t, p.x, p.y, 2)))                                                                         \
    FETCH(tex2Dgather3, type, (tex2Dgather<type>(t, p.x, p.y, 3)))

FETCH_ALL(float4)
FETCH_ALL(int4)
FETCH_ALL(uint4)

/* Lane i takes object `layer` of its place, so that a warp uses several. */
extern "C" __global__ void tex2D_of_several_objects(const cudaTextureObject_t *objects, unsigned n, const fetch_place *places, float4 *results)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        results[i] = tex2D<float4>(objects[places[i].layer], places[i].x, places[i].y);
}

static __device__ unsigned query_width(cudaTextureObject_t t)
{
    unsigned value;

    asm volatile("txq.width.b32 %0, [%1];" : "=r"(value) : "l"(t));
    return value;
}

static __device__ unsigned query_height(cudaTextureObject_t t)
{
    unsigned value;

    asm volatile("txq.height.b32 %0, [%1];" : "=r"(value) : "l"(t));
    return value;
}

static __device__ unsigned query_depth(cudaTextureObject_t t)
{
    unsigned value;

    asm volatile("txq.depth.b32 %0, [%1];" : "=r"(value) : "l"(t));
    return value;
}

extern "C" __global__ void query_uint4(cudaTextureObject_t t, unsigned n, const fetch_place *places, uint4 *results)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        results[i] = make_uint4(query_width(t), query_height(t), query_depth(t), places[i].layer);
}

/* Memory that a texture of linear memory shows, written by its pointer. */
extern "C" __global__ void write_floats(float *to, unsigned n, float first)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        to[i] = first + i;
}
