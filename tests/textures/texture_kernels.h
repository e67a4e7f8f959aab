/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that fetch: thread i takes place i and stores the four results. */
#ifndef CUTTLE_TEXTURE_KERNELS_H
#define CUTTLE_TEXTURE_KERNELS_H

#include "api_test.h"

struct place { /* of a fetch */
    float x, y, z, level;
    int32_t layer, offset[3];
};

/* A kernel whose instruction has the results f0 to f3, the object d0, and x, y, z, l (level) and r0 (layer). */
#define FETCH_KERNEL(name, instruction)                                                                                                    \
    ".visible .entry " name "(.param .u64 object, .param .u64 places, .param .u64 results, .param .u32 n)\n"                               \
    "{\n"                                                                                                                                  \
    "    .reg .pred p;\n"                                                                                                                  \
    "    .reg .b32 r<8>;\n"                                                                                                                \
    "    .reg .f32 f<4>, x, y, z, l;\n"                                                                                                    \
    "    .reg .b64 d<8>;\n"                                                                                                                \
    "    ld.param.u64 d0, [object];\n"                                                                                                     \
    "    ld.param.u64 d1, [places];\n"                                                                                                     \
    "    ld.param.u64 d2, [results];\n"                                                                                                    \
    "    ld.param.u32 r1, [n];\n"                                                                                                          \
    "    mov.u32 r2, %ctaid.x;\n"                                                                                                          \
    "    mov.u32 r3, %ntid.x;\n"                                                                                                           \
    "    mov.u32 r4, %tid.x;\n"                                                                                                            \
    "    mad.lo.u32 r2, r2, r3, r4;\n"                                                                                                     \
    "    setp.ge.u32 p, r2, r1;\n"                                                                                                         \
    "    @p bra done;\n"                                                                                                                   \
    "    mul.wide.u32 d3, r2, 32;\n"                                                                                                       \
    "    add.u64 d1, d1, d3;\n"                                                                                                            \
    "    ld.global.v4.f32 {x, y, z, l}, [d1];\n"                                                                                           \
    "    ld.global.u32 r0, [d1+16];\n"                                                                                                     \
    "    " instruction "\n"                                                                                                                \
    "    mul.wide.u32 d3, r2, 16;\n"                                                                                                       \
    "    add.u64 d2, d2, d3;\n"                                                                                                            \
    "    st.global.v4.f32 [d2], {f0, f1, f2, f3};\n"                                                                                       \
    "done:\n"                                                                                                                              \
    "    ret;\n"                                                                                                                           \
    "}\n"
#define FETCH(geometry, place) FETCH_KERNEL("fetch_" geometry, "tex." geometry ".v4.f32.f32 {f0,f1,f2,f3},[d0," place "];")
#define FETCH_LEVEL(geometry, place) FETCH_KERNEL("level_" geometry, "tex.level." geometry ".v4.f32.f32 {f0,f1,f2,f3},[d0," place "],l;")
#define FETCH_TEXEL(geometry, convert, place)                                                                                              \
    FETCH_KERNEL("texel_" geometry, convert "tex." geometry ".v4.f32.s32 {f0,f1,f2,f3},[d0," place "];")
/* With the offset of the place in r5, r6 and r7. */
#define FETCH_OFFSET(name, instruction)                                                                                                    \
    FETCH_KERNEL(name, "ld.global.u32 r5,[d1+20];ld.global.u32 r6,[d1+24];ld.global.u32 r7,[d1+28];" instruction)
#define X "cvt.rmi.s32.f32 r5,x;"
#define XY X "cvt.rmi.s32.f32 r6,y;"
#define XYZ XY "cvt.rmi.s32.f32 r7,z;"
/* clang-format off */
#define TEXTURE_KERNELS \
    ".version 6.4\n.target sm_70\n.address_size 64\n" \
    FETCH("1d", "{x}") FETCH("2d", "{x,y}") FETCH("3d", "{x,y,z,z}") FETCH("a1d", "{r0,x}") FETCH("a2d", "{r0,x,y,y}") \
    FETCH("cube", "{x,y,z,z}") FETCH("acube", "{r0,x,y,z}") \
    FETCH_LEVEL("1d", "{x}") FETCH_LEVEL("2d", "{x,y}") FETCH_LEVEL("3d", "{x,y,z,z}") FETCH_LEVEL("a2d", "{r0,x,y,y}") \
    FETCH_LEVEL("cube", "{x,y,z,z}") \
    FETCH_TEXEL("1d", X, "{r5}") FETCH_TEXEL("2d", XY, "{r5,r6}") FETCH_TEXEL("3d", XYZ, "{r5,r6,r7,r7}") \
    FETCH_TEXEL("a1d", X, "{r0,r5}") FETCH_TEXEL("a2d", XY, "{r0,r5,r6,r6}") \
    FETCH_KERNEL("gather", "tld4.g.2d.v4.f32.f32 {f0,f1,f2,f3},[d0,{x,y}];") \
    FETCH_KERNEL("grad_2d", "tex.grad.2d.v4.f32.f32 {f0,f1,f2,f3},[d0,{x,y}],{z,0f00000000},{0f00000000,z};") \
    FETCH_KERNEL("sizes", "txq.width.b32 r5,[d0];txq.height.b32 r6,[d0];txq.depth.b32 r7,[d0];" \
                          "mov.b32 f0,r5;mov.b32 f1,r6;mov.b32 f2,r7;mov.f32 f3,0f00000000;") \
    FETCH_OFFSET("offset_1d", "tex.1d.v4.f32.f32 {f0,f1,f2,f3},[d0,{x}],{r5};") \
    FETCH_OFFSET("offset_2d", "tex.2d.v4.f32.f32 {f0,f1,f2,f3},[d0,{x,y}],{r5,r6};") \
    FETCH_OFFSET("offset_3d", "tex.3d.v4.f32.f32 {f0,f1,f2,f3},[d0,{x,y,z,z}],{r5,r6,r7,r7};") \
    FETCH_OFFSET("offset_a1d", "tex.a1d.v4.f32.f32 {f0,f1,f2,f3},[d0,{r0,x}],{r5};") \
    FETCH_OFFSET("offset_a2d", "tex.a2d.v4.f32.f32 {f0,f1,f2,f3},[d0,{r0,x,y,y}],{r5,r6};") \
    FETCH_OFFSET("offset_level_2d", "tex.level.2d.v4.f32.f32 {f0,f1,f2,f3},[d0,{x,y}],l,{r5,r6};") \
    FETCH_OFFSET("offset_level_3d", "tex.level.3d.v4.f32.f32 {f0,f1,f2,f3},[d0,{x,y,z,z}],l,{r5,r6,r7,r7};") \
    FETCH_OFFSET("offset_gather", "tld4.g.2d.v4.f32.f32 {f0,f1,f2,f3},[d0,{x,y}],{r5,r6};") \
    FETCH_KERNEL("offset_texel", XY "tex.2d.v4.f32.s32 {f0,f1,f2,f3},[d0,{r5,r6}],{-3,2};") \
    FETCH_KERNEL("offset_grad", "tex.grad.2d.v4.f32.f32 {f0,f1,f2,f3},[d0,{x,y}],{z,0f00000000},{0f00000000,z},{1,-2};") \
    FETCH_KERNEL("depth_2d", "tex.2d.v4.f32.f32 {f0,f1,f2,f3},[d0,{x,y}],z;") \
    FETCH_KERNEL("depth_level_2d", "tex.level.2d.v4.f32.f32 {f0,f1,f2,f3},[d0,{x,y}],l,{0,0},z;") \
    FETCH_KERNEL("depth_gather", "tld4.g.2d.v4.f32.f32 {f0,f1,f2,f3},[d0,{x,y}],z;") \
    FETCH_KERNEL("pairs_2d", "tex.2d.v2.f16x2.f32 {r5,r6},[d0,{x,y}];mov.b32 f0,r5;mov.b32 f1,r6;mov.f32 f2,f0;mov.f32 f3,f1;") \
    FETCH_KERNEL("halves_2d", ".reg .b16 h<4>;tex.2d.v4.f16.f32 {h0,h1,h2,h3},[d0,{x,y}];" \
                              "mov.b32 f0,{h0,h1};mov.b32 f1,{h2,h3};mov.f32 f2,f0;mov.f32 f3,f1;") \
    FETCH_KERNEL("texel_pairs", XY "tex.2d.v2.f16x2.s32 {r5,r6},[d0,{r5,r6}];mov.b32 f0,r5;mov.b32 f1,r6;mov.f32 f2,f0;mov.f32 f3,f1;") \
    FETCH_KERNEL("texel_level", XY "cvt.rni.s32.f32 r7,l;tex.level.2d.v4.f32.s32 {f0,f1,f2,f3},[d0,{r5,r6}],r7;") \
    FETCH_KERNEL("texel_level_a2d", XY "cvt.rni.s32.f32 r7,l;tex.level.a2d.v4.f32.s32 {f0,f1,f2,f3},[d0,{r0,r5,r6,r6}],r7;") \
    FETCH_KERNEL("texel_level_3d", XYZ "cvt.rni.s32.f32 r4,l;tex.level.3d.v4.f32.s32 {f0,f1,f2,f3},[d0,{r5,r6,r7,r7}],r4;") \
    FETCH_KERNEL("samples", XY "tex.2dms.v4.f32.s32 {f0,f1,f2,f3},[d0,{r0,r5,r6,r6}];") \
    FETCH_KERNEL("objects", "and.b32 r5,r2,3;mul.wide.u32 d4,r5,8;add.u64 d4,d4,d0;ld.global.u64 d5,[d4];" \
                            "tex.2d.v4.f32.f32 {f0,f1,f2,f3},[d5,{x,y}];")
/* clang-format on */

static CUmodule texture_module;
static CUdeviceptr texture_places, texture_results;
#define PLACES_MAX 2048u

static inline int textures_set_up(void **state)
{
    if (with_context(state) != 0 || cuModuleLoadData(&texture_module, TEXTURE_KERNELS) != CUDA_SUCCESS)
        return -1;
    return cuMemAlloc(&texture_places, PLACES_MAX * sizeof(struct place)) == CUDA_SUCCESS &&
                   cuMemAlloc(&texture_results, PLACES_MAX * 16) == CUDA_SUCCESS
               ? 0
               : -1;
}

static inline int textures_tear_down(void **state)
{
    return cuMemFree(texture_places) == CUDA_SUCCESS && cuMemFree(texture_results) == CUDA_SUCCESS &&
                   cuModuleUnload(texture_module) == CUDA_SUCCESS
               ? without_context(state)
               : -1;
}

/* Fetches at n places; each result has four words. */
static inline void fetch_by(CUmodule module, const char *kernel, unsigned long long object, const struct place *places, uint32_t n,
                            uint32_t *results)
{
    void *parameters[] = {&object, &texture_places, &texture_results, &n};
    CUfunction function;

    assert_true(n <= PLACES_MAX);
    ok(cuModuleGetFunction(&function, module, kernel));
    ok(cuMemcpyHtoD(texture_places, places, n * sizeof *places));
    ok(cuMemsetD32(texture_results, 0xdeadbeef, n * 4));
    ok(cuLaunchKernel(function, (n + 63) / 64, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL));
    ok(cuMemcpyDtoH(results, texture_results, n * 16));
}

static inline void fetch(const char *kernel, unsigned long long object, const struct place *places, uint32_t n, uint32_t *results)
{
    fetch_by(texture_module, kernel, object, places, n, results);
}

static inline CUDA_RESOURCE_DESC of_array(CUarray array)
{
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};

    resource.res.array.hArray = array;
    return resource;
}

/* Copies bytes to the beginning of an array's first row. */
static inline CUresult copy_to_row(CUarray array, const void *from, size_t bytes)
{
    const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                .srcHost = from,
                                .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                .dstArray = array,
                                .WidthInBytes = bytes,
                                .Height = 1};

    return cuMemcpy2D(&copy);
}

/* Point sampling with coordinates in texels, which are clamped. */
static const CUDA_TEXTURE_DESC point = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP},
                                        .filterMode = CU_TR_FILTER_MODE_POINT};

static inline CUtexObject point_texture_of(CUarray array)
{
    const CUDA_RESOURCE_DESC resource = of_array(array);
    CUtexObject object;

    ok(cuTexObjectCreate(&object, &resource, &point, NULL));
    return object;
}

#endif
