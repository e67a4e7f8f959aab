/* SPDX-License-Identifier: Apache-2.0 */
/* Modules that load eagerly (CUDA C++ Programming Guide, "Lazy Loading": CUDA_MODULE_LOADING). */
#include "api_test.h"

#include "api_kernels.h"

static void expect_loaded(CUfunction function)
{
    CUfunctionLoadingState state;

    ok(cuFuncIsLoaded(&state, function));
    assert_int_equal(state, CU_FUNCTION_LOADING_STATE_LOADED);
}

static void the_mode_is_returned(void **unused)
{
    CUmoduleLoadingMode mode;

    (void)unused;
    ok(cuModuleGetLoadingMode(&mode));
    assert_int_equal(mode, CU_MODULE_EAGER_LOADING);
}

static void kernels_are_there_at_once(void **unused)
{
    CUfunction functions[2];
    CUmodule module;

    (void)unused;
    ok(cuModuleLoadData(&module, PTX_HEADER PTX_RAMP PTX_NOTHING));
    ok(cuModuleEnumerateFunctions(functions, 2, module));
    expect_loaded(functions[0]);
    expect_loaded(functions[1]);
    ok(cuModuleUnload(module));
}

static void those_of_libraries_with_their_module(void **unused)
{
    CUlibrary library;
    CUfunction function;
    CUmodule module;

    (void)unused;
    ok(cuLibraryLoadData(&library, PTX_HEADER PTX_RAMP PTX_NOTHING, NULL, NULL, 0, NULL, NULL, 0));
    ok(cuLibraryGetModule(&module, library));
    ok(cuModuleGetFunction(&function, module, "ramp"));
    expect_loaded(function);
    ok(cuLibraryUnload(library));
}

/* NVIDIA's driver can compile what we reject. */
static void a_kernel_that_fails_leaves_the_others_alone(void **unused)
{
    static const char text[] =
        PTX_HEADER ".visible .entry fails()\n{\n    .reg .b32 %r1;\n    mov.u32 %r1, %pm0;\n    ret;\n}\n" PTX_NOTHING;
    CUfunction fails, nothing;
    CUmodule module;

    (void)unused;
    if (!on_cuttle())
        return;
    ok(cuModuleLoadData(&module, text));
    ok(cuModuleGetFunction(&fails, module, "fails"));
    ok(cuModuleGetFunction(&nothing, module, "nothing"));
    expect_loaded(nothing);
    gives(CUDA_ERROR_NOT_SUPPORTED, cuLaunchKernel(fails, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    ok(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    ok(cuCtxSynchronize());
    ok(cuModuleUnload(module));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mode_is_returned),
        cmocka_unit_test(kernels_are_there_at_once),
        cmocka_unit_test(those_of_libraries_with_their_module),
        cmocka_unit_test(a_kernel_that_fails_leaves_the_others_alone),
    };

    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    return cmocka_run_group_tests(tests, with_context, without_context);
}
