/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks of kernels over a time in which 32 bits of nanoseconds overflow: %globaltimer agrees with the host's clock, and %clock64
 * advances (PTX ISA, "Special Registers"). */
#include "api_test.h"

#include "api_kernels.h"

#include <time.h>

enum { OVERFLOW_MS = 4400 }; /* 2^32 ns are 4.29 s */

static const char text[] = PTX_HEADER ".visible .entry clocks(.param .u64 out)\n{\n    .reg .b64 %d<4>;\n"
                                      "    ld.param.u64 %d1, [out];\n    mov.u64 %d2, %globaltimer;\n    mov.u64 %d3, %clock64;\n"
                                      "    st.global.u64 [%d1], %d2;\n    st.global.u64 [%d1+8], %d3;\n    ret;\n}\n";

struct clocks {
    uint64_t timer, cycles;
    int64_t before, after; /* by the host */
};

static int64_t host_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static struct clocks read_clocks(CUfunction function, CUdeviceptr out)
{
    struct clocks clocks;
    void *params[] = {&out};

    clocks.before = host_ns();
    ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    ok(cuCtxSynchronize());
    clocks.after = host_ns();
    ok(cuMemcpyDtoH(&clocks, out, 16));
    return clocks;
}

/* A hundredth of the time is allowed, since the length of a device's tick is measured. */
static void test_time_does_not_overflow(void **state)
{
    const struct timespec pause = {OVERFLOW_MS / 1000, OVERFLOW_MS % 1000 * 1000000l};
    struct clocks first, second;
    CUfunction function;
    CUdeviceptr out;
    CUmodule module;
    int64_t elapsed;

    (void)state;
    ok(cuModuleLoadData(&module, text));
    ok(cuModuleGetFunction(&function, module, "clocks"));
    ok(cuMemAlloc(&out, 16));
    (void)read_clocks(function, out); /* compiles it */
    first = read_clocks(function, out);
    nanosleep(&pause, NULL);
    second = read_clocks(function, out);
    elapsed = (int64_t)(second.timer - first.timer);
    assert_true((double)elapsed >= 0.99 * (double)(second.before - first.after));
    assert_true((double)elapsed <= 1.01 * (double)(second.after - first.before));
    assert_true(second.cycles > first.cycles);
    ok(cuMemFree(out));
    ok(cuModuleUnload(module));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_does_not_overflow),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
