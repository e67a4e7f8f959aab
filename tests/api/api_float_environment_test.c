/* SPDX-License-Identifier: Apache-2.0 */
/* A program that uses flush-to-zero and another rounding mode, as audio programs and taichi do: the results of kernels are not affected
 * (PTX ISA, "Floating Point Instructions": subnormals are supported unless an instruction has .ftz), and the program keeps its environment.
 * The environment is set before cuInit, since the threads of a CPU device inherit it when they are created. */
#include "api_test.h"

#include <fenv.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Sums and products whose results are subnormal or ties, and a constant that a compiler has to round. */
static const char ptx[] = ".version 6.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry k(.param .u64 data)\n{\n.reg .b64 %p;\n.reg .f64 %d<6>;\n.reg .f32 %f<6>;\n"
                          "ld.param.u64 %p, [data];\nld.global.f64 %d1, [%p];\nld.global.f64 %d2, [%p+8];\nadd.f64 %d3, %d1, %d1;\n"
                          "st.global.f64 [%p+16], %d3;\nmul.f64 %d3, %d2, 0d3fe0000000000000;\nst.global.f64 [%p+24], %d3;\n"
                          "mov.f64 %d3, 0d0000000000000003;\nadd.f64 %d3, %d3, %d3;\nst.global.f64 [%p+32], %d3;\n"
                          "mov.f64 %d4, 0.1;\nst.global.f64 [%p+40], %d4;\n"
                          "ld.global.f32 %f1, [%p+48];\nadd.f32 %f2, %f1, %f1;\nst.global.f32 [%p+52], %f2;\nret;\n}\n";

enum { WORDS = 7 };
static const uint64_t data[WORDS] = {5, UINT64_C(0x0010000000000001), 0, 0, 0, 0, 7};
/* 5 units of the smallest subnormal doubled; the smallest normal number and a unit halved (a tie, to even); 6 units; 0.1 to nearest; 14. */
static const uint64_t wanted[WORDS] = {
    5, UINT64_C(0x0010000000000001), 10, UINT64_C(0x0008000000000000), 6, UINT64_C(0x3fb999999999999a), UINT64_C(0x0000000e00000007)};

static void set_unusual_environment(void)
{
    assert_int_equal(fesetround(FE_UPWARD), 0);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040); /* flush-to-zero and denormals-are-zero */
#endif
}

static void check_environment(const char *where)
{
    if (fegetround() != FE_UPWARD)
        fail_msg("after %s the rounding mode has changed", where);
#if defined(__x86_64__)
    if ((_mm_getcsr() & 0x8040) != 0x8040)
        fail_msg("after %s subnormals are not flushed any more", where);
#endif
}

static void run_kernel(void)
{
    uint64_t found[WORDS];
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr memory;
    void *params[] = {&memory};

    ok(cuMemAlloc(&memory, sizeof data));
    ok(cuMemcpyHtoD(memory, data, sizeof data)); /* before the first launch: some drivers start threads here */
    ok(cuModuleLoadData(&module, ptx));
    check_environment("cuModuleLoadData");
    ok(cuModuleGetFunction(&kernel, module, "k"));
    ok(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    check_environment("cuLaunchKernel");
    ok(cuMemcpyDtoH(found, memory, sizeof found));
    check_environment("cuMemcpyDtoH");
    for (unsigned i = 0; i < WORDS; i++)
        if (found[i] != wanted[i])
            fail_msg("word %u is %016llx and not %016llx", i, (unsigned long long)found[i], (unsigned long long)wanted[i]);
    ok(cuModuleUnload(module));
    ok(cuMemFree(memory));
}

static void test_kernels_compute_as_ever(void **state)
{
    (void)state;
    check_environment("cuInit");
    run_kernel();
}

/* Host functions run in a thread of the library. NVIDIA's inherits the environment of the thread that called cuInit, ours does not. */
static void CUDA_CB take_environment(void *user)
{
    *(int *)user = fegetround();
}

static void test_host_functions_have_the_default_environment(void **state)
{
    int found = -1;

    (void)state;
    if (!on_cuttle())
        skip();
    ok(cuLaunchHostFunc(NULL, take_environment, &found));
    ok(cuStreamSynchronize(NULL));
    assert_int_equal(found, FE_TONEAREST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_compute_as_ever),
        cmocka_unit_test(test_host_functions_have_the_default_environment),
    };

    set_unusual_environment();
    return cmocka_run_group_tests(tests, with_context, without_context);
}
