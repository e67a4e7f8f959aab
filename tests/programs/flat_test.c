/* SPDX-License-Identifier: Apache-2.0 */
/* Long flat code computes what it says. Nested as deep as it is long, it would crash Mesa's llvmpipe (80 levels). */
#include "../flat_code.h"

#include <cuda.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#define ok(call) assert_int_equal(call, CUDA_SUCCESS)

enum { STEPS = 100, THREADS = 64, WARP = 32, M = 1, UNTOUCHED = 12345 };

/* ---- what a thread computes ---- */

static uint32_t after_exits(enum flat_code_kind kind, uint32_t t)
{
    int32_t key = (int32_t)(3 * t + M);
    uint32_t r = 0;

    for (;;) {
        for (uint32_t i = 0; i < STEPS; i++) {
            r = 3 * r + t;
            if (key != (int32_t)i)
                continue;
            if (kind == FLAT_RETURNS)
                return UNTOUCHED;
            if (kind == FLAT_REVERSE)
                return r + i * (i + 1) / 2;
            return kind == FLAT_WORK ? r + 7 : r;
        }
        if (kind == FLAT_REVERSE)
            return r + STEPS * (STEPS - 1) / 2;
        if (kind != FLAT_LOOP)
            return r;
        r++;
        key -= 2;
        if (key < 0)
            return r;
    }
}

static void compute_exits(enum flat_code_kind kind, uint32_t *r)
{
    for (uint32_t t = 0; t < THREADS; t++)
        r[t] = after_exits(kind, t);
}

static void compute_shuffles(uint32_t *r)
{
    for (uint32_t i = 0; i < STEPS; i++)
        for (uint32_t t = 0; t < THREADS; t++) { /* in ascending order: r[t + 1] is still the old one */
            const bool shuffled = ((t / WARP + i) & M) != 0 && t % WARP != WARP - 1;

            r[t] = (shuffled ? r[t + 1] : r[t]) + t;
        }
}

static void compute(enum flat_code_kind kind, uint32_t *r)
{
    for (uint32_t t = 0; t < THREADS; t++)
        r[t] = kind == FLAT_POLLS ? 5 * THREADS : 0;
    if (kind == FLAT_SHUFFLES)
        compute_shuffles(r);
    else if (kind != FLAT_POLLS)
        compute_exits(kind, r);
}

/* ---- what the device computes ---- */

static void run(enum flat_code_kind kind, uint32_t *out)
{
    char *text = flat_code_text(kind, kind == FLAT_POLLS ? THREADS : STEPS); /* each thread lets the others pass one polling loop */
    unsigned m = M;
    CUdeviceptr results, flags;
    CUmodule module;
    CUfunction kernel;

    ok(cuModuleLoadData(&module, text));
    ok(cuModuleGetFunction(&kernel, module, "k"));
    ok(cuMemAlloc(&results, THREADS * sizeof *out));
    ok(cuMemAlloc(&flags, STEPS * sizeof *out));
    ok(cuMemsetD32(results, UNTOUCHED, THREADS));
    ok(cuMemsetD32(flags, 0, STEPS));
    ok(cuLaunchKernel(kernel, 1, 1, 1, THREADS, 1, 1, 0, NULL, (void *[]){&results, &flags, &m}, NULL));
    ok(cuMemcpyDtoH(out, results, THREADS * sizeof *out));
    ok(cuMemFree(results));
    ok(cuMemFree(flags));
    ok(cuModuleUnload(module));
    free(text);
}

static void test_results(void **state)
{
    CUdevice device;
    CUcontext context;

    (void)state;
    ok(cuInit(0));
    ok(cuDeviceGet(&device, 0));
    ok(cuDevicePrimaryCtxRetain(&context, device));
    ok(cuCtxSetCurrent(context));
    for (enum flat_code_kind kind = 0; kind < FLAT_CODES; kind++) {
        uint32_t wanted[THREADS], found[THREADS];

        compute(kind, wanted);
        run(kind, found);
        for (uint32_t t = 0; t < THREADS; t++)
            if (found[t] != wanted[t])
                fail_msg("%s: thread %u has %u, not %u", flat_codes[kind].name, t, found[t], wanted[t]);
    }
    ok(cuDevicePrimaryCtxRelease(device));
}

int main(void)
{
    unsetenv("CUTTLE_PTX_DIR"); /* the judges limit spilled registers, of which hundreds of polling loops in a row need many */
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_results)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
