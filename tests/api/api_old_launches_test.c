/* SPDX-License-Identifier: Apache-2.0 */
/* The launch functions of CUDA 2, which NVIDIA's driver still supports. */
#include "loaded_module.h"

#include "api_kernels.h"

/* The calls are deprecated, and the header declares them so. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* out[0] = f + 1 */
#define PTX_FLOAT                                                                                                                          \
    ".visible .entry next(.param .u64 out, .param .f32 f)\n"                                                                               \
    "{\n"                                                                                                                                  \
    "    .reg .f32 %f1;\n"                                                                                                                 \
    "    .reg .b64 %d1;\n"                                                                                                                 \
    "    ld.param.u64 %d1, [out];\n"                                                                                                       \
    "    ld.param.f32 %f1, [f];\n"                                                                                                         \
    "    add.f32 %f1, %f1, 0f3F800000;\n"                                                                                                  \
    "    st.global.f32 [%d1], %f1;\n"                                                                                                      \
    "    ret;\n"                                                                                                                           \
    "}\n"

static const char ptx[] = PTX_HEADER PTX_RAMP PTX_NOTHING PTX_DYNAMIC PTX_BOUNDED PTX_WHERE PTX_FLOAT;

static int load(void **state)
{
    return load_module(state, ptx, 4096);
}

static void check_ramp(uint32_t a, uint32_t count)
{
    uint32_t words[1024];

    ok(cuMemcpyDtoH(words, out, 4096)); /* waits for the kernel */
    for (uint32_t i = 0; i < 1024; i++)
        assert_int_equal(words[i], i < count ? a + i : 5);
    ok(cuMemsetD32(out, 5, 1024));
}

static void set_up_ramp(CUfunction ramp, uint32_t a, uint32_t count)
{
    ok(cuMemsetD32(out, 5, 1024));
    ok(cuFuncSetBlockShape(ramp, 64, 1, 1));
    ok(cuParamSetSize(ramp, 16));
    ok(cuParamSetv(ramp, 0, &out, sizeof out));
    ok(cuParamSeti(ramp, 8, a));
    ok(cuParamSeti(ramp, 12, count));
}

static void a_function_is_set_up_and_launched(void **state)
{
    CUfunction ramp = get("ramp");

    (void)state;
    set_up_ramp(ramp, 100, 1000);
    ok(cuLaunch(ramp));
    check_ramp(100, 64);
    ok(cuLaunchGrid(ramp, 16, 1));
    check_ramp(100, 1000);
    ok(cuParamSeti(ramp, 8, 7)); /* the rest is unchanged */
    ok(cuLaunchGrid(ramp, 16, 1));
    check_ramp(7, 1000);
}

static void grids_have_two_dimensions(void **state)
{
    CUfunction where = get("where");
    uint32_t words[12];

    (void)state;
    ok(cuFuncSetBlockShape(where, 3, 2, 4));
    ok(cuParamSetSize(where, 8));
    ok(cuParamSetv(where, 0, &out, 8));
    ok(cuLaunchGrid(where, 5, 6));
    ok(cuMemcpyDtoH(words, out, sizeof words));
    assert_true(words[0] == 5 && words[1] == 6 && words[2] == 1 && words[3] == 3 && words[4] == 2 && words[5] == 4);
    assert_true(words[6] == 4 && words[7] == 5 && words[8] == 0);
}

static void floats_are_parameters_too(void **state)
{
    CUfunction next = get("next");
    float got = 0;

    (void)state;
    ok(cuFuncSetBlockShape(next, 1, 1, 1));
    ok(cuParamSetSize(next, 12));
    ok(cuParamSetv(next, 0, &out, 8));
    ok(cuParamSetf(next, 8, 2.5f));
    ok(cuLaunch(next));
    ok(cuMemcpyDtoH(&got, out, sizeof got));
    assert_true(got == 3.5f);
}

static void shared_memory_is_set_up(void **state)
{
    CUfunction reverse = get("reverse");
    uint32_t words[64];

    (void)state;
    ok(cuFuncSetBlockShape(reverse, 64, 1, 1));
    ok(cuFuncSetSharedSize(reverse, 256));
    ok(cuParamSetSize(reverse, 8));
    ok(cuParamSetv(reverse, 0, &out, 8));
    ok(cuLaunch(reverse));
    ok(cuMemcpyDtoH(words, out, sizeof words));
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(words[i], 63 - i);
}

static void launches_in_a_stream(void **state)
{
    CUfunction ramp = get("ramp");
    CUstream stream;

    (void)state;
    set_up_ramp(ramp, 9, 64);
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuCtxSynchronize()); /* the stream does not wait for the memset */
    ok(cuLaunchGridAsync(ramp, 1, 1, stream));
    ok(cuParamSeti(ramp, 8, 1)); /* the launch has its own copy of the parameters */
    ok(cuStreamSynchronize(stream));
    check_ramp(9, 64);
    ok(cuStreamDestroy(stream));
}

/* A library's kernel can be used as a function. */
static void kernels_of_libraries(void **state)
{
    CUlibrary library;
    CUkernel kernel;

    (void)state;
    if (!on_cuttle())
        skip();
    ok(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    ok(cuLibraryGetKernel(&kernel, library, "ramp"));
    set_up_ramp((CUfunction)kernel, 3, 10);
    ok(cuLaunch((CUfunction)kernel));
    check_ramp(3, 10);
    ok(cuLibraryUnload(library));
}

static void what_is_wrong_is_refused(void **state)
{
    CUfunction ramp = get("ramp"), bounded = get("bounded");

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(ramp, 0, 1, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(ramp, 1, -1, 1));
    if (on_cuttle()) {                                             /* where the manual leaves the behaviour undefined, we return an error */
        gives(CUDA_ERROR_INVALID_VALUE, cuLaunch(get("nothing"))); /* no block shape has been set */
        gives(CUDA_ERROR_INVALID_VALUE, cuParamSetSize(ramp, 32));
        gives(CUDA_ERROR_INVALID_VALUE, cuParamSetv(ramp, 8, &out, 0xfffffff8u));
        gives(CUDA_ERROR_INVALID_VALUE, cuParamSeti(ramp, 16, 1));
        gives(CUDA_ERROR_INVALID_VALUE, cuParamSeti(ramp, -4, 1));
        gives(CUDA_ERROR_INVALID_VALUE, cuParamSetv(ramp, 0, NULL, 8));
        gives(CUDA_ERROR_INVALID_HANDLE, cuParamSeti(MADE_UP(CUfunction), 0, 1));
        gives(CUDA_ERROR_INVALID_HANDLE, cuFuncSetSharedSize(NULL, 0));
        gives(CUDA_ERROR_INVALID_HANDLE, cuLaunch(NULL));
        gives(CUDA_ERROR_INVALID_HANDLE, cuParamSetTexRef(ramp, CU_PARAM_TR_DEFAULT, NULL));
    }
    gives(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(bounded, 65, 1, 1)); /* .maxntid 64 */
    ok(cuFuncSetBlockShape(bounded, 64, 1, 1));
    ok(cuLaunch(bounded));
    gives(CUDA_ERROR_INVALID_VALUE, cuLaunchGrid(bounded, 0, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuLaunchGrid(bounded, 1, -1));
    ok(cuCtxSynchronize());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_is_set_up_and_launched),
        cmocka_unit_test(grids_have_two_dimensions),
        cmocka_unit_test(floats_are_parameters_too),
        cmocka_unit_test(shared_memory_is_set_up),
        cmocka_unit_test(launches_in_a_stream),
        cmocka_unit_test(kernels_of_libraries),
        cmocka_unit_test(what_is_wrong_is_refused),
    };

    return cmocka_run_group_tests_name("old launches", tests, load, unload_module);
}
