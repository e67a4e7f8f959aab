/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface references (Driver API: Texture Reference Management, Surface Reference Management): their settings and errors, and what kernels
 * read and write by them after each change. */
#include "api_test.h"

#include <pthread.h>
#include <string.h>

/* A thread per texel: `line` fetches texel tid of a line, `plane` at (tid + 0.5, 0.5), and `handle` the same by the reference's handle in a register;
 * `store` writes tid + 1000 to the surface; `second` reads another reference. */
#define READ(name, instruction)                                                                                                            \
    ".visible .entry " name "(.param .u64 out)\n{\n"                                                                                       \
    ".reg .f32 %f<8>;\n.reg .b32 %r<4>;\n.reg .b64 %d<5>;\n"                                                                               \
    "ld.param.u64 %d1, [out];\nmov.u32 %r1, %tid.x;\ncvt.rn.f32.u32 %f1, %r1;\nadd.f32 %f1, %f1, 0f3F000000;\nmov.f32 %f2, "               \
    "0f3F000000;\n" instruction "\nmul.wide.u32 %d2, %r1, 4;\nadd.u64 %d3, %d1, %d2;\nst.global.f32 [%d3], %f3;\nret;\n}\n"
#define IS(type, bit) "istypep." type " %p, %d2;\n@%p or.b32 %r1, %r1, " #bit ";\n"
#define TYPES(handle, a, b, c) handle "\n" IS("texref", a) IS("samplerref", b) IS("surfref", c)
#define RESULT "{%f3, %f4, %f5, %f6}"
static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
                          ".global .texref tex;\n.global .texref other;\n.global .surfref surf;\n.global .u32 word;\n"
                          ".global .texref initialized = {addr_mode_0 = clamp_to_border, filter_mode = linear};\n" //
    READ("line", "tex.1d.v4.f32.s32 " RESULT ", [tex, {%r1}];")                                                    //
    READ("plane", "tex.2d.v4.f32.f32 " RESULT ", [tex, {%f1, %f2}];")                                              //
    READ("handle", "mov.u64 %d4, tex;\ntex.2d.v4.f32.f32 " RESULT ", [%d4, {%f1, %f2}];")                          //
    READ("second", "tex.1d.v4.f32.s32 " RESULT ", [other, {%r1}];")                                                //
    ".visible .entry store()\n{\n.reg .b32 %r<5>;\nmov.u32 %r1, %tid.x;\nshl.b32 %r2, %r1, 2;\nadd.u32 %r3, %r1, 1000;\nmov.u32 %r4, 0;\n"
    "sust.b.2d.b32.trap [surf, {%r2, %r4}], %r3;\nret;\n}\n"
    /* a bit for each question: is tex one of textures, of samplers, of surfaces? the same of surf, and of the handle of an object */
    ".visible .entry types(.param .u64 out, .param .u64 object)\n{\n.reg .pred %p;\n.reg .b32 %r<3>;\n.reg .b64 %d<3>;\n"
    "ld.param.u64 %d1, [out];\nmov.u32 %r1, 0;\n" TYPES("mov.u64 %d2, tex;", 1, 2, 4) TYPES("mov.u64 %d2, surf;", 8, 16, 32)
        TYPES("ld.param.u64 %d2, [object];", 64, 128, 256) "st.global.u32 [%d1], %r1;\nret;\n}\n";

enum { TEXELS = 32, BYTES = TEXELS * 4 };

static CUmodule module;
static CUtexref tex, other;
static CUsurfref surf;
static CUdeviceptr in, out;
static CUarray array;

/* ---- what kernels see ---- */

static void launch(const char *name)
{
    CUfunction function;
    void *params[] = {&out};

    ok(cuModuleGetFunction(&function, module, name));
    ok(cuLaunchKernel(function, 1, 1, 1, TEXELS, 1, 1, 0, NULL, params, NULL));
}

/* Runs a kernel and checks that thread i fetched first + step * i, and nothing but zeros from thread n on. */
static void fetches(const char *name, float first, float step, unsigned n)
{
    float got[TEXELS];

    ok(cuMemsetD8(out, 0xff, BYTES));
    launch(name);
    ok(cuMemcpyDtoH(got, out, BYTES));
    for (unsigned i = 0; i < TEXELS; i++)
        if (got[i] != (i < n ? first + step * (float)i : 0.0f)) {
            print_error("%s: thread %u fetched %g\n", name, i, (double)got[i]);
            fail();
        }
}

/* Texel x of each row is first + x. */
static CUarray make_array(float first)
{
    const CUDA_ARRAY_DESCRIPTOR desc = {.Width = TEXELS, .Height = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    float texels[4 * TEXELS];
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = texels,
                          .srcPitch = BYTES,
                          .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                          .WidthInBytes = BYTES,
                          .Height = 4};
    CUarray made;

    for (int i = 0; i < 4 * TEXELS; i++)
        texels[i] = first + (float)(i % TEXELS);
    ok(cuArrayCreate(&made, &desc));
    copy.dstArray = made;
    ok(cuMemcpy2D(&copy));
    return made;
}

static void test_nothing_bound_reads_zeros(void **state)
{
    (void)state;
    fetches("second", 0, 0, 0);
}

/* As on an H200, objects have no type. */
static void test_types(void **state)
{
    const CUDA_TEXTURE_DESC texture = {.filterMode = CU_TR_FILTER_MODE_POINT};
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    const CUDA_ARRAY3D_DESCRIPTOR desc = {4, 4, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST};
    CUtexObject object;
    CUfunction function;
    CUarray writable;
    void *params[] = {&out, &object};
    uint32_t types;

    (void)state;
    ok(cuArray3DCreate(&writable, &desc));
    resource.res.array.hArray = writable;
    ok(cuTexObjectCreate(&object, &resource, &texture, NULL));
    ok(cuTexRefSetArray(tex, writable, CU_TRSA_OVERRIDE_FORMAT));
    ok(cuSurfRefSetArray(surf, writable, 0));
    ok(cuModuleGetFunction(&function, module, "types"));
    ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    ok(cuMemcpyDtoH(&types, out, sizeof types));
    assert_int_equal(types, 1 | 32);
    ok(cuTexObjectDestroy(object));
    ok(cuArrayDestroy(writable));
}

static void test_linear_memory(void **state)
{
    size_t offset = 77;
    CUdeviceptr address;

    (void)state;
    ok(cuTexRefSetFormat(tex, CU_AD_FORMAT_FLOAT, 1));
    ok(cuTexRefSetAddress(&offset, tex, in, BYTES));
    assert_int_equal(offset, 0);
    fetches("line", 100, 1, TEXELS);
    /* The texture begins at an aligned address and ends where the bytes do. */
    ok(cuTexRefSetAddress(&offset, tex, in + 16, 64));
    assert_int_equal(offset, 16);
    ok(cuTexRefGetAddress(&address, tex));
    assert_true(address == in);
    fetches("line", 100, 1, 20);
    ok(cuTexRefSetAddress(NULL, tex, in, BYTES));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddress(NULL, tex, in + 16, 64));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddress(&offset, tex, in, (size_t)1 << 40));
    fetches("line", 100, 1, TEXELS);
}

/* The format may come after the address, and may change. */
static void test_formats_of_bound_memory(void **state)
{
    const CUDA_ARRAY_DESCRIPTOR desc = {.Width = 8, .Height = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    float got[TEXELS];

    (void)state;
    ok(cuTexRefSetFormat(tex, CU_AD_FORMAT_FLOAT, 1));
    ok(cuTexRefSetAddress(NULL, tex, in, BYTES));
    for (int channels = 4; channels; channels /= 2) {
        ok(cuTexRefSetFormat(tex, CU_AD_FORMAT_FLOAT, channels));
        fetches("line", 100, (float)channels, TEXELS / (unsigned)channels);
    }
    ok(cuTexRefSetAddress2D(tex, &desc, in, 64));
    ok(cuTexRefSetFormat(tex, CU_AD_FORMAT_FLOAT, 2));
    launch("plane");
    ok(cuMemcpyDtoH(got, out, BYTES));
    for (int i = 0; i < 8; i++)
        assert_true(got[i] == 100 + 2 * (float)i);
    ok(cuTexRefSetFormat(tex, CU_AD_FORMAT_FLOAT, 1));
}

static void test_rows_of_linear_memory(void **state)
{
    const CUDA_ARRAY_DESCRIPTOR desc = {.Width = 8, .Height = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    float got[TEXELS];

    (void)state;
    ok(cuTexRefSetAddress2D(tex, &desc, in, 64));
    ok(cuTexRefSetAddressMode(tex, 0, CU_TR_ADDRESS_MODE_CLAMP));
    launch("plane");
    ok(cuMemcpyDtoH(got, out, BYTES));
    for (int i = 0; i < TEXELS; i++)
        assert_true(got[i] == 100 + (float)(i < 7 ? i : 7));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddress2D(tex, &desc, in + 16, 64));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddress2D(tex, &desc, in, 16));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddress2D(tex, NULL, in, 64));
    ok(cuTexRefSetAddress2D(tex, &desc, 0, 64));
}

static void test_arrays(void **state)
{
    CUarray second = make_array(500), got = NULL;
    CUdeviceptr address;

    (void)state;
    ok(cuTexRefSetArray(tex, array, CU_TRSA_OVERRIDE_FORMAT));
    ok(cuTexRefGetArray(&got, tex));
    assert_ptr_equal(got, array);
    gives(CUDA_ERROR_INVALID_VALUE, cuTexRefGetAddress(&address, tex));
    fetches("plane", 200, 1, TEXELS);
    fetches("handle", 200, 1, TEXELS);
    ok(cuTexRefSetArray(tex, second, 0));
    fetches("plane", 500, 1, TEXELS);
    fetches("handle", 500, 1, TEXELS);
    ok(cuTexRefSetArray(tex, array, CU_TRSA_OVERRIDE_FORMAT));
    fetches("plane", 200, 1, TEXELS);
    ok(cuArrayDestroy(second));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexRefSetArray(tex, array, 2));
    gives(CUDA_ERROR_INVALID_HANDLE, cuTexRefSetArray(tex, NULL, CU_TRSA_OVERRIDE_FORMAT));
}

/* Work in flight reads what was bound when it was launched. */
static void test_a_change_leaves_earlier_launches_alone(void **state)
{
    CUarray second = make_array(500);
    float got[TEXELS];

    (void)state;
    for (int round = 0; round < 20; round++) {
        ok(cuTexRefSetArray(tex, array, CU_TRSA_OVERRIDE_FORMAT));
        launch("plane");
        ok(cuMemcpyDtoDAsync(in + 4096, out, BYTES, NULL));
        ok(cuTexRefSetArray(tex, second, CU_TRSA_OVERRIDE_FORMAT));
        launch("plane");
        ok(cuMemcpyDtoH(got, in + 4096, BYTES));
        assert_true(got[3] == 203);
        ok(cuMemcpyDtoH(got, out, BYTES));
        assert_true(got[3] == 503);
    }
    ok(cuTexRefSetArray(tex, array, CU_TRSA_OVERRIDE_FORMAT));
    ok(cuCtxSynchronize());
    ok(cuArrayDestroy(second));
}

static void test_filters_and_coordinates(void **state)
{
    (void)state;
    ok(cuTexRefSetArray(tex, array, CU_TRSA_OVERRIDE_FORMAT));
    ok(cuTexRefSetFilterMode(tex, CU_TR_FILTER_MODE_LINEAR));
    fetches("plane", 200, 1, TEXELS); /* at the centres of texels */
    ok(cuTexRefSetFlags(tex, CU_TRSF_NORMALIZED_COORDINATES));
    ok(cuTexRefSetFilterMode(tex, CU_TR_FILTER_MODE_POINT));
    ok(cuTexRefSetAddressMode(tex, 0, CU_TR_ADDRESS_MODE_WRAP));
    ok(cuTexRefSetAddressMode(tex, 1, CU_TR_ADDRESS_MODE_CLAMP));
    fetches("plane", 200 + TEXELS / 2, 0, TEXELS); /* x = tid + 0.5 wraps to the middle */
    ok(cuTexRefSetFlags(tex, 0));
    ok(cuTexRefSetAddressMode(tex, 0, CU_TR_ADDRESS_MODE_CLAMP));
    fetches("plane", 200, 1, TEXELS);
}

static void test_surfaces(void **state)
{
    const CUDA_ARRAY3D_DESCRIPTOR desc = {
        .Width = TEXELS, .Height = 4, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1, .Flags = CUDA_ARRAY3D_SURFACE_LDST};
    uint32_t got[TEXELS] = {0};
    CUDA_MEMCPY2D copy = {
        .srcMemoryType = CU_MEMORYTYPE_ARRAY, .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = got, .WidthInBytes = BYTES, .Height = 1};
    CUarray target, bound = NULL;

    (void)state;
    ok(cuArray3DCreate(&target, &desc));
    gives(CUDA_ERROR_INVALID_HANDLE, cuSurfRefSetArray(surf, NULL, 0));
    ok(cuSurfRefSetArray(surf, target, 0));
    ok(cuSurfRefGetArray(&bound, surf));
    assert_ptr_equal(bound, target);
    launch("store");
    copy.srcArray = target;
    ok(cuMemcpy2D(&copy));
    for (uint32_t i = 0; i < TEXELS; i++)
        assert_int_equal(got[i], 1000 + i);
    ok(cuArrayDestroy(target));
}

/* ---- settings ---- */

static void test_look_up(void **state)
{
    CUtexref again = NULL;
    CUsurfref surface;
    CUdeviceptr address;
    size_t size;

    (void)state;
    ok(cuModuleGetTexRef(&again, module, "tex"));
    assert_ptr_equal(again, tex);
    ok(cuModuleGetTexRef(&again, module, "initialized"));
    gives(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&again, module, "none"));
    gives(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&again, module, "surf"));
    gives(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&again, module, "word"));
    gives(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&again, module, "line"));
    gives(CUDA_ERROR_INVALID_VALUE, cuModuleGetTexRef(NULL, module, "tex"));
    gives(CUDA_ERROR_INVALID_VALUE, cuModuleGetTexRef(&again, module, NULL));
    gives(CUDA_ERROR_NOT_FOUND, cuModuleGetSurfRef(&surface, module, "tex"));
    gives(CUDA_ERROR_INVALID_VALUE, cuModuleGetGlobal(&address, &size, module, "tex"));
    gives(CUDA_ERROR_INVALID_VALUE, cuModuleGetGlobal(&address, &size, module, "surf"));
}

static void test_defaults(void **state)
{
    float bias = 9, low = 9, high = 9, border[4] = {9, 9, 9, 9};
    CUfilter_mode filter = 9, levels = 9;
    CUarray_format format = 99;
    int anisotropy = 9, channels = 9;
    unsigned flags = 9;
    CUaddress_mode mode;
    CUtexref fresh;
    CUmipmappedArray mipmap;

    (void)state;
    ok(cuModuleGetTexRef(&fresh, module, "initialized"));
    for (int i = 0; i < 3; i++) {
        ok(cuTexRefGetAddressMode(&mode, fresh, i));
        assert_int_equal(mode, CU_TR_ADDRESS_MODE_CLAMP);
    }
    ok(cuTexRefGetFilterMode(&filter, fresh));
    ok(cuTexRefGetMipmapFilterMode(&levels, fresh));
    ok(cuTexRefGetMipmapLevelBias(&bias, fresh));
    ok(cuTexRefGetMipmapLevelClamp(&low, &high, fresh));
    ok(cuTexRefGetMaxAnisotropy(&anisotropy, fresh));
    ok(cuTexRefGetBorderColor(border, fresh));
    ok(cuTexRefGetFlags(&flags, fresh));
    ok(cuTexRefGetFormat(&format, &channels, fresh));
    assert_true(filter == CU_TR_FILTER_MODE_POINT && levels == CU_TR_FILTER_MODE_POINT && bias == 0 && low == 0 && high == 0);
    assert_true(anisotropy == 0 && border[0] == 0 && border[3] == 0 && flags == 0 && format == CU_AD_FORMAT_FLOAT && channels == 1);
    gives(CUDA_ERROR_INVALID_VALUE, cuTexRefGetMipmappedArray(&mipmap, fresh));
}

static void test_settings_are_read_back(void **state)
{
    float border[4] = {1, 2, 3, 4}, bias, low, high;
    CUaddress_mode mode;
    CUfilter_mode filter;
    int anisotropy;
    unsigned flags;

    (void)state;
    ok(cuTexRefSetAddressMode(other, 2, CU_TR_ADDRESS_MODE_BORDER));
    ok(cuTexRefGetAddressMode(&mode, other, 2));
    assert_int_equal(mode, CU_TR_ADDRESS_MODE_BORDER);
    ok(cuTexRefSetFilterMode(other, CU_TR_FILTER_MODE_LINEAR));
    ok(cuTexRefGetFilterMode(&filter, other));
    assert_int_equal(filter, CU_TR_FILTER_MODE_LINEAR);
    ok(cuTexRefSetMipmapLevelBias(other, 1.5f));
    ok(cuTexRefSetMipmapLevelClamp(other, 1, 3));
    ok(cuTexRefGetMipmapLevelBias(&bias, other));
    ok(cuTexRefGetMipmapLevelClamp(&low, &high, other));
    assert_true(bias == 1.5f && low == 1 && high == 3);
    ok(cuTexRefSetMaxAnisotropy(other, 16));
    ok(cuTexRefGetMaxAnisotropy(&anisotropy, other));
    assert_int_equal(anisotropy, 16);
    ok(cuTexRefSetBorderColor(other, border));
    memset(border, 0, sizeof border);
    ok(cuTexRefGetBorderColor(border, other));
    assert_true(border[0] == 1 && border[3] == 4);
    ok(cuTexRefSetFlags(other, CU_TRSF_READ_AS_INTEGER));
    ok(cuTexRefGetFlags(&flags, other));
    assert_int_equal(flags, CU_TRSF_READ_AS_INTEGER);
}

static void test_errors(void **state)
{
    CUaddress_mode mode;
    unsigned flags;
    float border[4];

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuTexRefSetFormat(other, CU_AD_FORMAT_FLOAT, 3));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexRefSetFlags(other, 0x40));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddressMode(other, 3, CU_TR_ADDRESS_MODE_WRAP));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddressMode(other, -1, CU_TR_ADDRESS_MODE_WRAP));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexRefSetMipmapFilterMode(other, (CUfilter_mode)7));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexRefSetBorderColor(other, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexRefGetAddressMode(NULL, other, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexRefGetAddressMode(&mode, other, 3));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexRefGetFlags(NULL, other));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexRefGetMipmapLevelClamp(NULL, border, other));
    ok(cuTexRefGetFormat(NULL, NULL, other));
    gives(CUDA_ERROR_INVALID_HANDLE, cuTexRefSetFlags(NULL, 0));
    gives(CUDA_ERROR_INVALID_HANDLE, cuTexRefGetFlags(&flags, NULL));
    gives(CUDA_ERROR_INVALID_HANDLE, cuTexRefSetArray(NULL, array, CU_TRSA_OVERRIDE_FORMAT));
}

static void test_references_without_a_module(void **state)
{
    size_t offset;
    CUtexref own;

    (void)state;
    ok(cuTexRefCreate(&own));
    ok(cuTexRefSetFormat(own, CU_AD_FORMAT_FLOAT, 1));
    ok(cuTexRefSetAddress(&offset, own, in, BYTES));
    ok(cuTexRefDestroy(own));
}

/* NVIDIA's driver dereferences such handles. */
static void test_stale_handles(void **state)
{
    CUmodule unloaded;
    CUtexref stale;
    unsigned flags;

    (void)state;
    if (!on_cuttle())
        skip();
    ok(cuModuleLoadData(&unloaded, ptx));
    ok(cuModuleGetTexRef(&stale, unloaded, "tex"));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexRefDestroy(stale));
    ok(cuModuleUnload(unloaded));
    gives(CUDA_ERROR_INVALID_HANDLE, cuTexRefGetFlags(&flags, stale));
    ok(cuTexRefCreate(&stale));
    ok(cuTexRefDestroy(stale));
    gives(CUDA_ERROR_INVALID_HANDLE, cuTexRefDestroy(stale));
}

/* Threads that change a reference and launch: each launch sees one of the two arrays. */
static CUcontext context;
static CUarray choices[2];

static void *change_and_launch(void *unused)
{
    (void)unused;
    ok(cuCtxSetCurrent(context));
    for (int i = 0; i < 50; i++) {
        ok(cuTexRefSetArray(tex, choices[i % 2], CU_TRSA_OVERRIDE_FORMAT));
        launch("plane");
    }
    return NULL;
}

static void test_several_threads(void **state)
{
    pthread_t threads[3];
    float got[TEXELS];

    context = *state;
    choices[0] = array;
    choices[1] = make_array(500);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, change_and_launch, NULL), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    ok(cuMemcpyDtoH(got, out, BYTES));
    assert_true(got[3] == 203 || got[3] == 503);
    ok(cuTexRefSetArray(tex, array, CU_TRSA_OVERRIDE_FORMAT));
    ok(cuArrayDestroy(choices[1]));
}

static int set_up(void **state)
{
    float values[TEXELS];
    const int r = with_context(state);

    if (r)
        return r;
    for (int i = 0; i < TEXELS; i++)
        values[i] = 100 + (float)i;
    ok(cuModuleLoadData(&module, ptx));
    ok(cuModuleGetTexRef(&tex, module, "tex"));
    ok(cuModuleGetTexRef(&other, module, "other"));
    ok(cuModuleGetSurfRef(&surf, module, "surf"));
    ok(cuMemAlloc(&in, 8192));
    ok(cuMemAlloc(&out, BYTES));
    ok(cuMemcpyHtoD(in, values, sizeof values));
    array = make_array(200);
    return 0;
}

static int tear_down(void **state)
{
    ok(cuModuleUnload(module));
    ok(cuArrayDestroy(array));
    ok(cuMemFree(in));
    ok(cuMemFree(out));
    return without_context(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_look_up),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_nothing_bound_reads_zeros),
        cmocka_unit_test(test_linear_memory),
        cmocka_unit_test(test_formats_of_bound_memory),
        cmocka_unit_test(test_rows_of_linear_memory),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_a_change_leaves_earlier_launches_alone),
        cmocka_unit_test(test_filters_and_coordinates),
        cmocka_unit_test(test_surfaces),
        cmocka_unit_test(test_settings_are_read_back),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_references_without_a_module),
        cmocka_unit_test(test_stale_handles),
        cmocka_unit_test(test_several_threads),
        cmocka_unit_test(test_types),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
