/* SPDX-License-Identifier: Apache-2.0 */
/* The library runs in the application's process: state of the process that it and the drivers below it must not change. */
#include "api_test.h"

#include <signal.h>
#include <stdbool.h>

#define THREADS 64

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGPIPE};
#define N_SIGNALS (sizeof signals / sizeof *signals)

/* quotient[i] = dividend / divisor, for each kind of integer division. */
static const char divisions[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
                                ".visible .entry divide(.param .u64 out, .param .u32 dividend, .param .u32 divisor)\n"
                                "{\n"
                                "    .reg .b32 %r<8>;\n"
                                "    .reg .b64 %d<9>;\n"
                                "    ld.param.u64 %d1, [out];\n"
                                "    ld.param.u32 %r1, [dividend];\n"
                                "    ld.param.u32 %r2, [divisor];\n"
                                "    mov.u32 %r3, %tid.x;\n"
                                "    add.u32 %r1, %r1, %r3;\n"
                                "    cvt.u64.u32 %d2, %r1;\n"
                                "    cvt.u64.u32 %d3, %r2;\n"
                                "    div.u32 %r4, %r1, %r2;\n"
                                "    div.s32 %r5, %r1, %r2;\n"
                                "    rem.u32 %r6, %r1, %r2;\n"
                                "    rem.s32 %r7, %r1, %r2;\n"
                                "    div.u64 %d4, %d2, %d3;\n"
                                "    div.s64 %d5, %d2, %d3;\n"
                                "    rem.u64 %d6, %d2, %d3;\n"
                                "    rem.s64 %d7, %d2, %d3;\n"
                                "    add.u32 %r4, %r4, %r5;\n"
                                "    add.u32 %r4, %r4, %r6;\n"
                                "    add.u32 %r4, %r4, %r7;\n"
                                "    cvt.u64.u32 %d8, %r4;\n"
                                "    add.u64 %d8, %d8, %d4;\n"
                                "    add.u64 %d8, %d8, %d5;\n"
                                "    add.u64 %d8, %d8, %d6;\n"
                                "    add.u64 %d8, %d8, %d7;\n"
                                "    mul.wide.u32 %d2, %r3, 8;\n"
                                "    add.u64 %d1, %d1, %d2;\n"
                                "    st.global.u64 [%d1], %d8;\n"
                                "    ret;\n"
                                "}\n"
                                ".visible .entry nothing()\n{\n    ret;\n}\n";

static volatile sig_atomic_t last_signal;
static bool still_handled[N_SIGNALS];

static void on_signal(int number)
{
    last_signal = number;
}

static void divide(uint32_t dividend, uint32_t divisor, uint64_t out[THREADS])
{
    CUmodule module;
    CUfunction function;
    CUdeviceptr memory;
    void *params[] = {&memory, &dividend, &divisor};

    ok(cuModuleLoadData(&module, divisions));
    ok(cuModuleGetFunction(&function, module, "divide"));
    ok(cuMemAlloc(&memory, THREADS * sizeof *out));
    ok(cuLaunchKernel(function, 1, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
    ok(cuMemcpyDtoH(out, memory, THREADS * sizeof *out));
    ok(cuMemFree(memory));
    ok(cuModuleUnload(module));
}

static void kernels_divide(void **state)
{
    uint64_t got[THREADS];

    (void)state;
    divide(100, 7, got);
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(got[i], 4 * ((100 + i) / 7) + 4 * ((100 + i) % 7));
}

/* CUDA reports no error for either, and the results are undefined; on a CPU both raise a signal. */
static void undefined_divisions_do_no_harm(void **state)
{
    uint64_t got[THREADS];

    (void)state;
    divide(1, 0, got);
    divide(0x80000000u, 0xffffffffu, got); /* thread 0: the least number by -1 */
    kernels_divide(state);
}

/* Makes the first CUDA calls of the process after the application has installed its handlers, and then raises the signals. Not within a
 * test, since cmocka installs handlers of its own there. Returns false if there is no device, which the fixture reports. */
static bool start_with_handlers(void)
{
    void *state;
    CUmodule module;
    CUfunction function;
    bool started;

    for (size_t i = 0; i < N_SIGNALS; i++)
        signal(signals[i], on_signal);
    started = with_context(&state) == 0 && cuModuleLoadData(&module, divisions) == CUDA_SUCCESS &&
              cuModuleGetFunction(&function, module, "nothing") == CUDA_SUCCESS &&
              cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS;
    for (size_t i = 0; i < N_SIGNALS; i++) {
        last_signal = 0;
        raise(signals[i]);
        still_handled[i] = last_signal == signals[i];
        signal(signals[i], SIG_DFL);
    }
    return started;
}

static void handlers_of_the_application_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SIGNALS; i++) {
        if (!still_handled[i])
            fail_msg("the application's handler of signal %d was not called", signals[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_divide),
        cmocka_unit_test(undefined_divisions_do_no_harm),
        cmocka_unit_test(handlers_of_the_application_stay),
    };

    if (!start_with_handlers())
        return EXIT_FAILURE;
    return cmocka_run_group_tests_name("process", tests, with_context, without_context);
}
