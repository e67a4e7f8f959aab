/* SPDX-License-Identifier: Apache-2.0 */
/* fma.rn.f32 whose single rounding matters keeps it where others become a product and a sum (exact/residuals.c; CUTTLE_MATH=split). The
 * expected values are the host's, computed with fmaf, or, for the rows that are no residuals, with a product and a sum.
 *
 *   residuals_test [split]   split: run with CUTTLE_MATH=split; else all rows are computed with fmaf */
#include "../float_bits.h"

#include <cuda.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define ok(call) assert_int_equal(call, CUDA_SUCCESS)

enum { N = 4096, BLOCK = 128, TEXT = 4096 };

static bool splits; /* the device splits what is no residual */

static float ordinary(float a, float b, float c)
{
    return splits ? a * b + c : fmaf(a, b, c);
}

/* ---- the rows: r = f(a, b, c, d), all of them positive ---- */

static float product(float a, float b, float c, float d)
{
    (void)c, (void)d;
    return fmaf(a, b, -(a * b));
}

static float masked_product(float a, float b, float c, float d)
{
    const float p = f32_of(bits_of_f32(a * b) & 0xfffff000u);

    (void)c, (void)d;
    return fmaf(b, -a, p);
}

static float remainder_of_quotient(float a, float b, float c, float d)
{
    (void)c, (void)d;
    return fmaf(-(a / b), b, a);
}

static float remainder_of_root(float a, float b, float c, float d)
{
    const float s = sqrtf(a);

    (void)b, (void)c, (void)d;
    return fmaf(-s, s, a);
}

static float newton(float a, float b, float c, float d)
{
    const float y = 1 / b, e = fmaf(-b, y, 1);

    (void)a, (void)c, (void)d;
    return fmaf(y, e, y) - y + e;
}

static float goldschmidt(float a, float b, float c, float d)
{
    const float y = 1 / sqrtf(a), g = a * y, h = 0.5f * y;

    (void)b, (void)c, (void)d;
    return fmaf(-h, g, 0.5f);
}

static float reduced_argument(float a, float b, float c, float d)
{
    const float k = rintf(a * 0x1.45f306p-1f);

    (void)b, (void)c, (void)d;
    return fmaf(k, -0x1.777a5cp-24f, fmaf(k, -0x1.921fb4p+0f, a));
}

static float multiple(float a, float b, float c, float d)
{
    const float t = a * 0x1.715476p+0f + 12582912.0f, n = t - 12582912.0f;

    (void)b, (void)c, (void)d;
    return fmaf(a, 0x1.4ae0cp-26f, fmaf(a, 0x1.715476p+0f, -n));
}

static float corrected_quotient(float a, float b, float c, float d)
{
    const float q = f32_of(bits_of_f32(a / b) ^ 0x5555), r = fmaf(-q, b, a);

    (void)c, (void)d;
    return fmaf(r, 1 / b, q);
}

static float difference_of_products(float a, float b, float c, float d)
{
    const float w = c * d, e = fmaf(-c, d, w);

    return fmaf(a, b, -w) + e;
}

static float double_double(float a, float b, float c, float d)
{
    const float p = a * b, e = fmaf(a, b, -p);

    (void)d;
    return fmaf(a, c * 0x1p-24f, e);
}

static float plain(float a, float b, float c, float d)
{
    (void)d;
    return ordinary(a, b, c);
}

static float polynomial(float a, float b, float c, float d)
{
    return ordinary(ordinary(ordinary(a, b, c), b, d), b, 0x1.8p-3f);
}

static float polynomial_of_inverse(float a, float b, float c, float d)
{
    const float y = 1 / b;

    (void)d;
    return ordinary(ordinary(a, y, c), y, -0x1.cp+0f);
}

static float shared_product(float a, float b, float c, float d)
{
    return ordinary(a, b, c) + a * b + d;
}

#define F32(x) "0f" x
static const struct row {
    const char *name, *body;
    float (*compute)(float a, float b, float c, float d);
} rows[] = {
    {"product", "mul.rn.f32 %t, %a, %b; neg.f32 %t, %t; fma.rn.f32 %r, %a, %b, %t;", product},
    {"masked product", "mul.rn.f32 %t, %a, %b; and.b32 %t, %t, 0xfffff000; neg.f32 %s, %a; fma.rn.f32 %r, %b, %s, %t;", masked_product},
    {"quotient", "div.rn.f32 %t, %a, %b; neg.f32 %t, %t; fma.rn.f32 %r, %t, %b, %a;", remainder_of_quotient},
    {"root", "sqrt.rn.f32 %t, %a; neg.f32 %s, %t; fma.rn.f32 %r, %s, %t, %a;", remainder_of_root},
    {"newton",
     "rcp.rn.f32 %t, %b; neg.f32 %s, %b; fma.rn.f32 %s, %s, %t, " F32("3F800000") "; fma.rn.f32 %r, %t, %s, %t;"
                                                                                  " sub.rn.f32 %r, %r, %t; add.rn.f32 %r, %r, %s;",
     newton},
    {"goldschmidt",
     "sqrt.rn.f32 %t, %a; rcp.rn.f32 %t, %t; mul.rn.f32 %s, %a, %t; mul.rn.f32 %t, %t, " F32(
         "3F000000") ";"
                     " neg.f32 %t, %t; fma.rn.f32 %r, %t, %s, " F32("3F000000") ";",
     goldschmidt},
    {"argument",
     "mul.rn.f32 %t, %a, " F32("3F22F983") "; cvt.rni.s32.f32 %i, %t; cvt.rn.f32.s32 %t, %i;"
                                           " fma.rn.f32 %r, %t, " F32("BFC90FDA") ", %a; fma.rn.f32 %r, %t, " F32("B3BBBD2E") ", %r;",
     reduced_argument},
    {"multiple",
     "mul.rn.f32 %t, %a, " F32("3FB8AA3B") "; add.rn.f32 %t, %t, " F32("4B400000") "; add.rn.f32 %t, %t, " F32(
         "CB400000") ";"
                     " neg.f32 %t, %t; fma.rn.f32 %r, %a, " F32("3FB8AA3B") ", %t; fma.rn.f32 %r, %a, " F32("32A57060") ", %r;",
     multiple},
    {"correction",
     "div.rn.f32 %t, %a, %b; xor.b32 %t, %t, 0x5555; neg.f32 %s, %t; fma.rn.f32 %s, %s, %b, %a; rcp.rn.f32 %r, %b;"
     " fma.rn.f32 %r, %s, %r, %t;",
     corrected_quotient},
    {"difference",
     "mul.rn.f32 %t, %c, %d; neg.f32 %s, %c; fma.rn.f32 %s, %s, %d, %t; neg.f32 %t, %t; fma.rn.f32 %r, %a, %b, %t;"
     " add.rn.f32 %r, %r, %s;",
     difference_of_products},
    {"double double",
     "mul.rn.f32 %t, %a, %b; neg.f32 %t, %t; fma.rn.f32 %s, %a, %b, %t; mul.rn.f32 %t, %c, " F32("33800000") ";"
                                                                                                             " fma.rn.f32 %r, %a, %t, %s;",
     double_double},
    {"no residual: plain", "fma.rn.f32 %r, %a, %b, %c;", plain},
    {"no residual: polynomial", "fma.rn.f32 %r, %a, %b, %c; fma.rn.f32 %r, %r, %b, %d; fma.rn.f32 %r, %r, %b, " F32("3E400000") ";",
     polynomial},
    {"no residual: polynomial of an inverse", "rcp.rn.f32 %t, %b; fma.rn.f32 %r, %a, %t, %c; fma.rn.f32 %r, %r, %t, " F32("BFE00000") ";",
     polynomial_of_inverse},
    {"no residual: shared product", "mul.rn.f32 %t, %a, %b; fma.rn.f32 %r, %a, %b, %c; add.rn.f32 %r, %r, %t; add.rn.f32 %r, %r, %d;",
     shared_product},
};

/* ---- running them ---- */

static void compile(const struct row *row, CUmodule *out_module, CUfunction *out)
{
    static char text[TEXT];

    snprintf(text, sizeof text,
             ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
             "  .reg .b64 %%in, %%out, %%o;\n  .reg .b32 %%i, %%j, %%k;\n  .reg .f32 %%a, %%b, %%c, %%d, %%r, %%s, %%t;\n"
             "  ld.param.u64 %%in, [in];\n  ld.param.u64 %%out, [out];\n  mov.u32 %%i, %%ctaid.x;\n  mov.u32 %%j, %%ntid.x;\n"
             "  mov.u32 %%k, %%tid.x;\n  mad.lo.u32 %%i, %%i, %%j, %%k;\n  mul.wide.u32 %%o, %%i, 16;\n  add.u64 %%in, %%in, %%o;\n"
             "  mul.wide.u32 %%o, %%i, 4;\n  add.u64 %%out, %%out, %%o;\n  ld.global.v4.f32 {%%a, %%b, %%c, %%d}, [%%in];\n"
             "  %s\n  st.global.f32 [%%out], %%r;\n  ret;\n}\n",
             row->body);
    ok(cuModuleLoadData(out_module, text));
    ok(cuModuleGetFunction(out, *out_module, "k"));
}

/* From 2^-8 up to 2^8; every fourth number has few bits. */
static float random_operand(uint64_t *state)
{
    uint32_t bits;

    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    bits = (uint32_t)(*state >> 32);
    bits = (119 + (bits >> 23 & 15)) << 23 | (bits & 0x7fffff);
    return f32_of((*state >> 20 & 3) == 0 ? bits & 0xffff0000 : bits);
}

static void run_row(const struct row *row)
{
    static float in[N][4], found[N];
    uint64_t state = 7;
    CUdeviceptr from, to;
    CUfunction kernel;
    CUmodule module;

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
        const float want = row->compute(in[i][0], in[i][1], in[i][2], in[i][3]);

        if (bits_of_f32(found[i]) != bits_of_f32(want) && !(found[i] == 0 && want == 0))
            fail_msg("%s of %a, %a, %a, %a: %a instead of %a", row->name, in[i][0], in[i][1], in[i][2], in[i][3], found[i], want);
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};

    splits = argc > 1 && !strcmp(argv[1], "split");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
