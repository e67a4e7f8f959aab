/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that kernels do not write to, of which a device may have another copy that textures read (CUTTLE_TEXTURES=tiled): fetches see every copy into
 * the array that is before them in stream order. */
#include "texture_kernels.h"

#include <stdbool.h>

#define SIDE 8u
#define SLICES 3u

static CUarray make_array(unsigned flags)
{
    const CUDA_ARRAY3D_DESCRIPTOR desc = {SIDE, SIDE, SLICES, CU_AD_FORMAT_FLOAT, 1, flags};
    CUarray array;

    ok(cuArray3DCreate(&array, &desc));
    return array;
}

static CUDA_MEMCPY3D copy_of(CUarray array, const float *from)
{
    return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = from,
                           .srcPitch = SIDE * sizeof *from,
                           .srcHeight = SIDE,
                           .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                           .dstArray = array,
                           .WidthInBytes = SIDE * sizeof *from,
                           .Height = SIDE,
                           .Depth = SLICES};
}

/* Texel (x, y, z) is base + 64 z + 8 y + x. */
static void count_from(float base, float *out)
{
    for (unsigned i = 0; i < SIDE * SIDE * SLICES; i++)
        out[i] = base + (float)i;
}

static void write_all(CUarray array, float base)
{
    float texels[SIDE * SIDE * SLICES];
    const CUDA_MEMCPY3D copy = copy_of(array, texels);

    count_from(base, texels);
    ok(cuMemcpy3D(&copy));
}

/* The last texel, in a stream. */
static float fetch_last(const char *kernel, CUtexObject object, CUstream stream)
{
    const struct place place = {.x = SIDE - 0.5f, .y = SIDE - 0.5f, .z = SLICES - 0.5f, .layer = SLICES - 1};
    uint32_t n = 1;
    void *params[] = {&object, &texture_places, &texture_results, &n};
    CUfunction function;
    float texel[4];

    ok(cuModuleGetFunction(&function, texture_module, kernel));
    ok(cuMemcpyHtoD(texture_places, &place, sizeof place));
    ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
    ok(cuStreamSynchronize(stream));
    ok(cuMemcpyDtoH(texel, texture_results, sizeof texel));
    return texel[0];
}

#define LAST (SIDE * SIDE * SLICES - 1) /* the last texel of an array that counts from 0 */

static void later_copies_are_seen(void **state)
{
    static const struct {
        const char *kernel;
        unsigned flags;
    } shapes[] = {{"fetch_3d", 0}, {"fetch_a2d", CUDA_ARRAY3D_LAYERED}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        CUarray array = make_array(shapes[i].flags), other = make_array(shapes[i].flags);
        const CUtexObject object = point_texture_of(array);
        CUDA_MEMCPY3D between = copy_of(array, NULL);

        write_all(array, 0);
        assert_true(fetch_last(shapes[i].kernel, object, NULL) == LAST);
        assert_true(fetch_last(shapes[i].kernel, object, NULL) == LAST);
        write_all(array, 1000);
        assert_true(fetch_last(shapes[i].kernel, object, NULL) == 1000 + LAST);
        write_all(other, 3000);
        between.srcMemoryType = CU_MEMORYTYPE_ARRAY;
        between.srcArray = other;
        between.srcZ = between.dstZ = SLICES - 1;
        between.Depth = 1;
        ok(cuMemcpy3D(&between));
        assert_true(fetch_last(shapes[i].kernel, object, NULL) == 3000 + LAST);
        ok(cuTexObjectDestroy(object));
        ok(cuArrayDestroy(array));
        ok(cuArrayDestroy(other));
    }
}

/* A copy waits in one stream while another one launches; it must not count as seen. */
static void pending_copies_are_seen_later(void **state)
{
    CUarray array = make_array(0);
    const CUtexObject object = point_texture_of(array);
    CUstream writer, reader;
    CUDA_MEMCPY3D copy;
    CUdeviceptr address;
    uint32_t *gate;
    float *texels;

    (void)state;
    ok(cuMemHostAlloc((void **)&gate, sizeof *gate, CU_MEMHOSTALLOC_DEVICEMAP));
    ok(cuMemHostAlloc((void **)&texels, sizeof *texels * (LAST + 1), 0));
    ok(cuMemHostGetDevicePointer(&address, gate, 0));
    ok(cuStreamCreate(&writer, CU_STREAM_NON_BLOCKING));
    ok(cuStreamCreate(&reader, CU_STREAM_NON_BLOCKING));
    write_all(array, 0);
    assert_true(fetch_last("fetch_3d", object, reader) == LAST);
    for (uint32_t round = 1; round <= 3; round++) {
        copy = copy_of(array, texels);
        count_from((float)round * 1000, texels);
        ok(cuStreamWaitValue32(writer, address, round, CU_STREAM_WAIT_VALUE_GEQ));
        ok(cuMemcpy3DAsync(&copy, writer));
        assert_true(fetch_last("fetch_3d", object, reader) == (float)(round - 1) * 1000 + LAST);
        __atomic_store_n(gate, round, __ATOMIC_RELEASE);
        ok(cuStreamSynchronize(writer));
        assert_true(fetch_last("fetch_3d", object, reader) == (float)round * 1000 + LAST);
        assert_true(fetch_last("fetch_3d", object, reader) == (float)round * 1000 + LAST);
    }
    ok(cuStreamDestroy(writer));
    ok(cuStreamDestroy(reader));
    ok(cuTexObjectDestroy(object));
    ok(cuArrayDestroy(array));
    ok(cuMemFreeHost(gate));
    ok(cuMemFreeHost(texels));
}

/* A graph that copies into the array and fetches, executed with other texels each time. */
static void graphs_copy_and_fetch(void **state)
{
    CUarray array = make_array(0);
    CUtexObject object = point_texture_of(array);
    const struct place place = {.x = SIDE - 0.5f, .y = SIDE - 0.5f, .z = SLICES - 0.5f};
    uint32_t n = 1;
    void *params[] = {&object, &texture_places, &texture_results, &n};
    float texels[LAST + 1], texel[4];
    const CUDA_MEMCPY3D copy = copy_of(array, texels);
    CUDA_KERNEL_NODE_PARAMS kernel = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
    CUgraphNode first, second;
    CUcontext context;
    CUgraphExec exec;
    CUgraph graph;

    (void)state;
    ok(cuCtxGetCurrent(&context));
    ok(cuMemcpyHtoD(texture_places, &place, sizeof place));
    ok(cuModuleGetFunction(&kernel.func, texture_module, "fetch_3d"));
    kernel.kernelParams = params;
    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphAddMemcpyNode(&first, graph, NULL, 0, &copy, context));
    ok(cuGraphAddKernelNode(&second, graph, &first, 1, &kernel));
    ok(cuGraphInstantiate(&exec, graph, 0));
    for (unsigned round = 0; round < 3; round++) {
        count_from(500 * (float)round, texels);
        ok(cuGraphLaunch(exec, NULL));
        ok(cuStreamSynchronize(NULL));
        ok(cuMemcpyDtoH(texel, texture_results, sizeof texel));
        assert_true(texel[0] == 500 * (float)round + LAST);
    }
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuTexObjectDestroy(object));
    ok(cuArrayDestroy(array));
}

static const char store[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                            ".visible .entry store(.param .u64 s, .param .f32 value)\n{\n.reg .f32 f; .reg .b32 r<4>; .reg .b64 d;\n"
                            "ld.param.u64 d,[s]; ld.param.f32 f,[value]; mov.u32 r0,28; mov.u32 r1,7; mov.u32 r2,2;\n"
                            "sust.b.3d.b32.trap [d,{r0,r1,r2,r2}],{f}; ret;\n}\n";

/* NVIDIA's driver has surfaces of arrays with CUDA_ARRAY3D_SURFACE_LDST only. */
static void surfaces_are_seen(void **state)
{
    CUarray array = make_array(on_cuttle() ? 0 : CUDA_ARRAY3D_SURFACE_LDST);
    const CUtexObject object = point_texture_of(array);
    const CUDA_RESOURCE_DESC resource = of_array(array);
    CUsurfObject surface;
    CUfunction function;
    CUmodule module;
    float value = 1;
    void *params[] = {&surface, &value};

    (void)state;
    write_all(array, 0);
    assert_true(fetch_last("fetch_3d", object, NULL) == LAST);
    ok(cuModuleLoadData(&module, store));
    ok(cuModuleGetFunction(&function, module, "store"));
    ok(cuSurfObjectCreate(&surface, &resource));
    for (; value < 4; value++) {
        ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
        assert_true(fetch_last("fetch_3d", object, NULL) == value);
    }
    ok(cuSurfObjectDestroy(surface));
    ok(cuTexObjectDestroy(object));
    ok(cuModuleUnload(module));
    ok(cuArrayDestroy(array));
}

/* The array goes before its object; others are read meanwhile. */
static void objects_outlive_their_arrays(void **state)
{
    CUarray array = make_array(0), other = make_array(0);
    const CUtexObject object = point_texture_of(array), kept = point_texture_of(other);

    (void)state;
    write_all(array, 0);
    write_all(other, 100);
    assert_true(fetch_last("fetch_3d", object, NULL) == LAST);
    ok(cuArrayDestroy(array));
    assert_true(fetch_last("fetch_3d", kept, NULL) == 100 + LAST);
    ok(cuTexObjectDestroy(object));
    assert_true(fetch_last("fetch_3d", kept, NULL) == 100 + LAST);
    ok(cuTexObjectDestroy(kept));
    ok(cuArrayDestroy(other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_copies_are_seen), cmocka_unit_test(pending_copies_are_seen_later), cmocka_unit_test(graphs_copy_and_fetch),
        cmocka_unit_test(surfaces_are_seen),     cmocka_unit_test(objects_outlive_their_arrays),
    };

    return cmocka_run_group_tests_name("tiled", tests, textures_set_up, textures_tear_down);
}
