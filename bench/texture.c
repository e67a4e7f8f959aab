/* SPDX-License-Identifier: Apache-2.0 */
/* The speed of texture fetches and surface stores, in 10^9 texels per second: run it with each driver library in turn (bench/README.md).
 *   bench_texture [SIDE [NAME]]
 * Each thread of SIDE x SIDE fetches the 16 texels at and right below its own, and stores their sum; or stores one texel of a surface. The arrays
 * contain ones, so the sums are checked. */
#include "launch_time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FETCHES = 16, BLOCK_X = 32, BLOCK_Y = 8, LAYERS = 4 };

static const struct kind {
    const char *name;
    const char *instruction; /* %f0, %f1: coordinates of the texel; %r0, %r1: the same as integers; %f2: the depth; %r2: the layer */
    unsigned depth;          /* slices; 0: a plane */
    unsigned array_flags;
    CUarray_format format;
    unsigned channels;
    CUfilter_mode filter;
    const char *offset; /* added to the coordinates, a hexadecimal float: 0.5 or 0.3 */
} kinds[] = {
    {"2D point, f32", "tex.2d.v4.f32.f32 {%f4,%f5,%f6,%f7}, [%d1, {%f0,%f1}];", 0, 0, CU_AD_FORMAT_FLOAT, 1, CU_TR_FILTER_MODE_POINT,
     "0f3F000000"},
    {"2D linear, f32", "tex.2d.v4.f32.f32 {%f4,%f5,%f6,%f7}, [%d1, {%f0,%f1}];", 0, 0, CU_AD_FORMAT_FLOAT, 1, CU_TR_FILTER_MODE_LINEAR,
     "0f3E99999A"},
    {"2D point, u8x4", "tex.2d.v4.f32.f32 {%f4,%f5,%f6,%f7}, [%d1, {%f0,%f1}];", 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4,
     CU_TR_FILTER_MODE_POINT, "0f3F000000"},
    {"2D linear, u8x4", "tex.2d.v4.f32.f32 {%f4,%f5,%f6,%f7}, [%d1, {%f0,%f1}];", 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4,
     CU_TR_FILTER_MODE_LINEAR, "0f3E99999A"},
    {"2D linear, f32x4", "tex.2d.v4.f32.f32 {%f4,%f5,%f6,%f7}, [%d1, {%f0,%f1}];", 0, 0, CU_AD_FORMAT_FLOAT, 4, CU_TR_FILTER_MODE_LINEAR,
     "0f3E99999A"},
    {"3D linear, f32", "tex.3d.v4.f32.f32 {%f4,%f5,%f6,%f7}, [%d1, {%f0,%f1,%f2,%f2}];", LAYERS, 0, CU_AD_FORMAT_FLOAT, 1,
     CU_TR_FILTER_MODE_LINEAR, "0f3E99999A"},
    {"layered point, f32", "tex.a2d.v4.f32.f32 {%f4,%f5,%f6,%f7}, [%d1, {%r2,%f0,%f1,%f1}];", LAYERS, CUDA_ARRAY3D_LAYERED,
     CU_AD_FORMAT_FLOAT, 1, CU_TR_FILTER_MODE_POINT, "0f3F000000"},
    {"surface store, b32", NULL, 0, CUDA_ARRAY3D_SURFACE_LDST, CU_AD_FORMAT_FLOAT, 1, CU_TR_FILTER_MODE_POINT, NULL},
};

static size_t begin_kernel(char *out, size_t size)
{
    return (size_t)snprintf(out, size,
                            ".version 6.4\n.target sm_70\n.address_size 64\n"
                            ".visible .entry k(.param .u64 p, .param .u64 object, .param .u32 side)\n{\n"
                            ".reg .f32 %%f<9>;\n.reg .b32 %%r<9>;\n.reg .b64 %%d<4>;\n"
                            "ld.param.u64 %%d0, [p];\nld.param.u64 %%d1, [object];\nld.param.u32 %%r3, [side];\n"
                            "mov.u32 %%r4, %%ctaid.x;\nmov.u32 %%r5, %%tid.x;\nmad.lo.u32 %%r0, %%r4, %d, %%r5;\n"
                            "mov.u32 %%r4, %%ctaid.y;\nmov.u32 %%r5, %%tid.y;\nmad.lo.u32 %%r1, %%r4, %d, %%r5;\n",
                            BLOCK_X, BLOCK_Y);
}

static void write_fetches(const struct kind *kind, char *out, size_t size)
{
    size_t n = begin_kernel(out, size);

    n += (size_t)snprintf(out + n, size - n,
                          "mad.lo.u32 %%r4, %%r1, %%r3, %%r0;\nmul.wide.u32 %%d2, %%r4, 4;\nadd.u64 %%d3, %%d0, %%d2;\n"
                          "cvt.rn.f32.u32 %%f0, %%r0;\nadd.f32 %%f0, %%f0, %s;\ncvt.rn.f32.u32 %%f1, %%r1;\nadd.f32 %%f1, %%f1, %s;\n"
                          "and.b32 %%r2, %%r1, %d;\ncvt.rn.f32.u32 %%f2, %%r2;\nadd.f32 %%f2, %%f2, %s;\nmov.f32 %%f3, 0f00000000;\n",
                          kind->offset, kind->offset, LAYERS - 1, kind->offset);
    for (int i = 0; i < FETCHES; i++) {
        n += (size_t)snprintf(out + n, size - n, "%s\nadd.f32 %%f3, %%f3, %%f4;\n", kind->instruction);
        n += (size_t)snprintf(out + n, size - n,
                              i % 4 == 3 ? "add.f32 %%f1, %%f1, 0f3F800000;\nsub.f32 %%f0, %%f0, 0f40400000;\n"
                                         : "add.f32 %%f0, %%f0, 0f3F800000;\n");
    }
    snprintf(out + n, size - n, "st.global.f32 [%%d3], %%f3;\nret;\n}\n");
}

static void write_store(char *out, size_t size)
{
    const size_t n = begin_kernel(out, size);

    snprintf(out + n, size - n,
             "shl.b32 %%r2, %%r0, 2;\nmov.b32 %%r4, 0f3F800000;\nsust.b.2d.b32.trap [%%d1, {%%r2,%%r1}], %%r4;\nret;\n}\n");
}

static unsigned texel_bytes(const struct kind *kind)
{
    return kind->channels * (kind->format == CU_AD_FORMAT_FLOAT ? 4 : 1);
}

/* An array full of ones. */
static CUarray make_array(const struct kind *kind, unsigned side)
{
    const CUDA_ARRAY3D_DESCRIPTOR desc = {side, side, kind->depth, kind->format, kind->channels, kind->array_flags};
    const unsigned slices = kind->depth ? kind->depth : 1, row = side * texel_bytes(kind);
    CUDA_MEMCPY3D copy = {
        .srcMemoryType = CU_MEMORYTYPE_HOST, .dstMemoryType = CU_MEMORYTYPE_ARRAY, .WidthInBytes = row, .Height = side, .Depth = 1};
    const float one = 1;
    char *plane = malloc((size_t)row * side);
    CUarray array;

    if (!plane)
        exit(1);
    memset(plane, 0xff, (size_t)row * side); /* 1 as a normalized integer */
    for (size_t i = 0; kind->format == CU_AD_FORMAT_FLOAT && i < (size_t)row * side; i += sizeof one)
        memcpy(plane + i, &one, sizeof one);
    CHECK(cuArray3DCreate(&array, &desc));
    copy.srcHost = plane;
    copy.srcPitch = row;
    copy.dstArray = array;
    for (copy.dstZ = 0; copy.dstZ < slices; copy.dstZ++)
        CHECK(cuMemcpy3D(&copy));
    free(plane);
    return array;
}

static unsigned long long make_object(const struct kind *kind, CUarray array)
{
    const CUDA_TEXTURE_DESC texture = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP},
                                       .filterMode = kind->filter};
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    unsigned long long object;

    resource.res.array.hArray = array;
    if (kind->instruction)
        CHECK(cuTexObjectCreate(&object, &resource, &texture, NULL));
    else
        CHECK(cuSurfObjectCreate(&object, &resource));
    return object;
}

/* The sum of the fetches, or what was stored. */
static float check(const struct kind *kind, CUarray array, CUdeviceptr sums, unsigned side)
{
    const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                                .srcArray = array,
                                .srcXInBytes = 4 * (side - 1),
                                .srcY = side - 1,
                                .dstMemoryType = CU_MEMORYTYPE_HOST,
                                .WidthInBytes = sizeof(float),
                                .Height = 1};
    CUDA_MEMCPY2D last = copy;
    float value = 0;

    last.dstHost = &value;
    if (kind->instruction)
        CHECK(cuMemcpyDtoH(&value, sums + 4 * ((CUdeviceptr)side * side - 1), sizeof value));
    else
        CHECK(cuMemcpy2D(&last));
    return value;
}

static bool measure(const struct kind *kind, unsigned side)
{
    static char text[16384];
    CUarray array = make_array(kind, side);
    unsigned long long object = make_object(kind, array);
    const unsigned fetches = kind->instruction ? FETCHES : 1;
    CUdeviceptr sums;
    CUmodule module;
    CUfunction function;
    void *params[] = {&sums, &object, &side};
    double ms;
    float value;

    if (kind->instruction)
        write_fetches(kind, text, sizeof text);
    else
        write_store(text, sizeof text);
    CHECK(cuMemAlloc(&sums, (size_t)4 * side * side));
    CHECK(cuModuleLoadData(&module, text));
    CHECK(cuModuleGetFunction(&function, module, "k"));
    ms = least_launch_ms(function, (unsigned[]){side / BLOCK_X, side / BLOCK_Y}, (unsigned[]){BLOCK_X, BLOCK_Y}, params);
    value = check(kind, array, sums, side);
    printf("%-20s %10.2f%s\n", kind->name, (double)side * side * fetches / ms * 1e-6, value == (float)fetches ? "" : "  WRONG");
    CHECK(kind->instruction ? cuTexObjectDestroy(object) : cuSurfObjectDestroy(object));
    CHECK(cuModuleUnload(module));
    CHECK(cuMemFree(sums));
    CHECK(cuArrayDestroy(array));
    return value == (float)fetches;
}

int main(int argc, char **argv)
{
    const unsigned side = argc > 1 ? (unsigned)atoi(argv[1]) / BLOCK_X * BLOCK_X : 1024;
    CUcontext context;
    CUdevice device;
    bool good = side > 0;

    device = example_open(&context);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && side; i++)
        if (argc < 3 || !strcmp(argv[2], kinds[i].name))
            good &= measure(&kinds[i], side);
    CHECK(cuDevicePrimaryCtxRelease(device));
    return !good;
}
