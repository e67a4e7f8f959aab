/* SPDX-License-Identifier: Apache-2.0 */
/* PTX as different compilers write it, executed on the device. Each file in forms/ has a kernel `form`; this file computes what its 32
 * threads must write. Runs in the folder that contains forms/. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cuda.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 32, X = 0x12345 };

/* ---- what thread t writes, given x ---- */

static uint32_t old_order(uint32_t t, uint32_t x)
{
    return 0x7f + 3 + (t > 15) + x; /* `set` returns all ones, which are negated */
}

static uint32_t names(uint32_t t, uint32_t x)
{
    return x + 100 + 20 + (t < 16 ? 0 : 3);
}

static uint32_t common(uint32_t t, uint32_t x)
{
    return x + t;
}

static uint32_t layout(uint32_t t, uint32_t x)
{
    return x * t + 1;
}

static uint32_t debugging(uint32_t t, uint32_t x)
{
    return x * t;
}

static uint32_t prototypes(uint32_t t, uint32_t x)
{
    return t & 1 ? x + t + 1000 : 2 * (x + t);
}

/* The halves of x are exchanged twice. */
static uint32_t vectors(uint32_t t, uint32_t x)
{
    return 15 + x + t;
}

static uint32_t isa90(uint32_t t, uint32_t x)
{
    return x + (t < 31 ? t + 1 : 31);
}

/* Elements selected by t, by the low bits of t, and beyond the ends of 32 bits; what is added is in the order of the text. */
static uint32_t elements(uint32_t t, uint32_t x)
{
    return 30 * t + 30 + 1000 * (t % 4 + 1) + x + t + 7 * t + 4 * t + 0xfffffffc + 20 + 12 + (t & 1 ? t + 1 : 2 * t);
}

static const struct row {
    const char *name;
    uint32_t (*expected)(uint32_t t, uint32_t x);
} rows[] = {
    {"old_order", old_order},   {"names", names},     {"common", common}, {"layout", layout},     {"debugging", debugging},
    {"prototypes", prototypes}, {"vectors", vectors}, {"isa90", isa90},   {"elements", elements},
};

static void run_file(const struct row *row, uint32_t *out)
{
    uint32_t x = X;
    CUdeviceptr memory;
    CUfunction form;
    CUmodule module;
    char path[1024];
    void *params[] = {&memory, &x};

    snprintf(path, sizeof path, "forms/%s.ptx", row->name);
    assert_int_equal(cuModuleLoad(&module, path), CUDA_SUCCESS);
    assert_int_equal(cuModuleGetFunction(&form, module, "form"), CUDA_SUCCESS);
    assert_int_equal(cuMemAlloc(&memory, THREADS * sizeof *out), CUDA_SUCCESS);
    assert_int_equal(cuMemsetD8(memory, 0xee, THREADS * sizeof *out), CUDA_SUCCESS);
    assert_int_equal(cuLaunchKernel(form, 1, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL), CUDA_SUCCESS);
    assert_int_equal(cuMemcpyDtoH(out, memory, THREADS * sizeof *out), CUDA_SUCCESS);
    assert_int_equal(cuMemFree(memory), CUDA_SUCCESS);
    assert_int_equal(cuModuleUnload(module), CUDA_SUCCESS);
}

static void a_form(void **state)
{
    const struct row *row = *state;
    uint32_t out[THREADS];

    run_file(row, out);
    for (uint32_t t = 0; t < THREADS; t++)
        if (out[t] != row->expected(t, X))
            fail_msg("thread %u wrote 0x%x, not 0x%x", t, out[t], row->expected(t, X));
}

static int begin(void **state)
{
    static CUcontext context;

    *state = context;
    if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS)
        return -1;
    return cuCtxSetCurrent(context) == CUDA_SUCCESS ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    return cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS ? 0 : -1;
}

int main(void)
{
    struct CMUnitTest tests[sizeof rows / sizeof *rows];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        tests[i] = (struct CMUnitTest){.name = rows[i].name, .test_func = a_form, .initial_state = (void *)&rows[i]};
    return cmocka_run_group_tests_name("forms of PTX", tests, begin, end);
}
