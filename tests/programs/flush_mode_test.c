/* SPDX-License-Identifier: Apache-2.0 */
/* .ftz in kernels in which the device may flush by itself, since all operations have it, and in kernels in which it may not
 * (ptx2spv/exact/flush_mode.c). The expected values are the host's, whose operands and results are flushed where the instruction says so. */
#include "../float_bits.h"
#include "../splitmix.h"

#include <cuda.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define ok(call) assert_int_equal(call, CUDA_SUCCESS)

enum { N = 8192, BLOCK = 128, TEXT = 4096 };

/* ---- the rows: r = f(a, b, c), the bits of an f32 or an integer ---- */

static uint64_t sum_flushed(float a, float b, float c)
{
    (void)c;
    return bits_of_f32(flushed(flushed(a) + flushed(b)));
}

static uint64_t chain_flushed(float a, float b, float c)
{
    const float sum = flushed(flushed(a) - flushed(b));

    return bits_of_f32(flushed(fmaf(sum, flushed(c), flushed(a))));
}

static uint64_t least_flushed(float a, float b, float c)
{
    const float x = flushed(a), y = flushed(b), least = x < y || (x == y && signbit(x)) ? x : y;

    (void)c;
    return bits_of_f32(least);
}

static uint64_t signs_flushed(float a, float b, float c)
{
    return bits_of_f32(flushed(flushed(-a) + fabsf(flushed(b)))) ^ bits_of_f32(flushed(-c));
}

static uint64_t less_flushed(float a, float b, float c)
{
    return flushed(a) < flushed(b) ? bits_of_f32(c) : 7;
}

static uint64_t quotient_flushed(float a, float b, float c)
{
    (void)c;
    return bits_of_f32(flushed(flushed(a) / flushed(b)));
}

/* Moves, selections and negations of the sign bit keep what they get. */
static uint64_t moved(float a, float b, float c)
{
    return bits_of_f32(-a) ^ bits_of_f32(flushed(flushed(b) * flushed(c)));
}

static uint64_t converted(float a, float b, float c)
{
    const int x = (int)fmaxf(-1000, fminf(1000, floorf(a))); /* -1 for a negative subnormal */

    (void)c;
    return (uint32_t)x ^ bits_of_f32(flushed(flushed(b) + flushed(b)));
}

static uint64_t tangent_kept(float a, float b, float c)
{
    const uint64_t bits = bits_of_f32(a);

    (void)c;
    return (fabsf(a) < 0x1p-20f ? bits : 0) ^ bits_of_f32(flushed(flushed(b) + flushed(b)));
}

static uint64_t sum_kept(float a, float b, float c)
{
    return bits_of_f32(a + b) ^ bits_of_f32(flushed(flushed(b) * flushed(c)));
}

static uint64_t comparison_kept(float a, float b, float c)
{
    return (a < b) ^ bits_of_f32(flushed(flushed(b) * flushed(c)));
}

static uint64_t wide_kept(float a, float b, float c)
{
    const double x = f64_of(bits_of_f32(a)), y = f64_of(bits_of_f32(b)); /* subnormal f64 */

    return (uint32_t)bits_of_f64(x + y) ^ bits_of_f32(flushed(flushed(b) + flushed(c)));
}

static uint64_t widened(float a, float b, float c)
{
    return (uint32_t)(bits_of_f64((double)a) >> 32) ^ bits_of_f32(flushed(flushed(b) + flushed(c)));
}

static const struct row {
    const char *name, *ptx; /* of %a, %b, %c; %r has 32 bits, as have %x, %y, %z; %d and %e have 64 */
    uint64_t (*compute)(float a, float b, float c);
} rows[] = {
    {"sum", "add.ftz.f32 %r, %a, %b;", sum_flushed},
    {"chain", "sub.ftz.f32 %x, %a, %b; fma.rn.ftz.f32 %r, %x, %c, %a;", chain_flushed},
    {"minimum", "min.ftz.f32 %r, %a, %b;", least_flushed},
    {"signs", "neg.ftz.f32 %x, %a; abs.ftz.f32 %y, %b; add.ftz.f32 %x, %x, %y; neg.ftz.f32 %z, %c; xor.b32 %r, %x, %z;", signs_flushed},
    {"comparison", "setp.lt.ftz.f32 %p, %a, %b; selp.b32 %r, %c, 7, %p;", less_flushed},
    {"quotient", "div.rn.ftz.f32 %r, %a, %b;", quotient_flushed},
    {"moves", "neg.f32 %x, %a; mul.ftz.f32 %y, %b, %c; xor.b32 %r, %x, %y;", moved},
    {"conversion",
     "cvt.rmi.s32.f32 %x, %a; max.s32 %x, %x, -1000; min.s32 %x, %x, 1000; add.ftz.f32 %y, %b, %b; "
     "xor.b32 %r, %x, %y;",
     converted},
    {"hyperbolic tangent",
     "tanh.approx.f32 %x, %a; and.b32 %z, %a, 0x7fffffff; setp.lt.u32 %p, %z, 0x35800000; selp.b32 %x, %x, 0, %p; add.ftz.f32 %y, %b, %b; "
     "xor.b32 %r, %x, %y;",
     tangent_kept},
    {"sum without .ftz", "add.f32 %x, %a, %b; mul.ftz.f32 %y, %b, %c; xor.b32 %r, %x, %y;", sum_kept},
    {"comparison without .ftz", "setp.lt.f32 %p, %a, %b; selp.b32 %x, 1, 0, %p; mul.ftz.f32 %y, %b, %c; xor.b32 %r, %x, %y;",
     comparison_kept},
    {"sum of f64",
     "cvt.u64.u32 %d, %a; cvt.u64.u32 %e, %b; add.f64 %d, %d, %e; cvt.u32.u64 %x, %d; add.ftz.f32 %y, %b, %c; xor.b32 %r, %x, %y;",
     wide_kept},
    {"widening without .ftz", "cvt.f64.f32 %d, %a; shr.u64 %d, %d, 32; cvt.u32.u64 %x, %d; add.ftz.f32 %y, %b, %c; xor.b32 %r, %x, %y;",
     widened},
};

static void compile(const struct row *row, CUmodule *module, CUfunction *kernel)
{
    char text[TEXT];

    snprintf(
        text, sizeof text,
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 from, .param .u64 to)\n{\n"
        ".reg .pred %%p;\n.reg .b32 %%a, %%b, %%c, %%r, %%x, %%y, %%z, %%i, %%n, %%t;\n.reg .b64 %%from, %%to, %%at, %%d, %%e;\n"
        "ld.param.u64 %%from, [from];\nld.param.u64 %%to, [to];\nmov.u32 %%i, %%ctaid.x;\nmov.u32 %%n, %%ntid.x;\nmov.u32 %%t, %%tid.x;\n"
        "mad.lo.u32 %%i, %%i, %%n, %%t;\nmul.wide.u32 %%at, %%i, 16;\nadd.u64 %%from, %%from, %%at;\nmul.wide.u32 %%at, %%i, 4;\n"
        "add.u64 %%to, %%to, %%at;\nld.global.v4.b32 {%%a, %%b, %%c, %%r}, [%%from];\n%s\nst.global.b32 [%%to], %%r;\nret;\n}\n",
        row->ptx);
    ok(cuModuleLoadData(module, text));
    ok(cuModuleGetFunction(kernel, *module, "k"));
}

/* Zeros, subnormals, numbers near the least normal one, and ordinary numbers. */
static float random_operand(uint64_t *state)
{
    static const uint32_t exponents[] = {0, 0, 1, 1, 2, 24, 64, 103, 126, 127, 128, 150, 190, 252};
    const uint64_t x = splitmix_next(state);
    const uint32_t exponent = exponents[x % (sizeof exponents / sizeof *exponents)];
    const uint32_t fraction = x >> 60 & 1 ? (uint32_t)(x >> 8) & 0x7fffff : (uint32_t)(x >> 8) & 7;

    return f32_of((uint32_t)(x >> 61) << 31 | exponent << 23 | fraction);
}

static void run_row(const struct row *row)
{
    static float in[N][4];
    static uint32_t found[N];
    uint64_t state = 1;
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr from, to;

    for (int i = 0; i < N; i++)
        for (int k = 0; k < 4; k++)
            in[i][k] = random_operand(&state);
    compile(row, &module, &kernel);
    ok(cuMemAlloc(&from, sizeof in));
    ok(cuMemAlloc(&to, sizeof found));
    ok(cuMemcpyHtoD(from, in, sizeof in));
    ok(cuLaunchKernel(kernel, N / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, (void *[]){&from, &to}, NULL));
    ok(cuMemcpyDtoH(found, to, sizeof found));
    for (int i = 0; i < N; i++) {
        const uint32_t want = (uint32_t)row->compute(in[i][0], in[i][1], in[i][2]);

        if (found[i] != want && !(isnan(f32_of(found[i])) && isnan(f32_of(want))))
            fail_msg("%s of %a, %a, %a: %08x instead of %08x", row->name, in[i][0], in[i][1], in[i][2], found[i], want);
    }
    ok(cuMemFree(from));
    ok(cuMemFree(to));
    ok(cuModuleUnload(module));
}

static void test_rows(void **unused)
{
    CUcontext context;

    (void)unused;
    ok(cuInit(0));
    ok(cuCtxCreate(&context, NULL, 0, 0));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        run_row(&rows[i]);
    ok(cuCtxDestroy(context));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
