/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of mma, which the compiler builds together (build_mma.c): registers have the same bits as when a barrier follows each instruction.
 * The first argument selects runs by a part of their names. */
#include "../api/api_test.h"

#include <string.h>

enum { WARPS = 2, LANES = 32, THREADS = WARPS * LANES, REGISTERS = 64, RUN_MAX = 12, OPERANDS = 4 };

struct run { /* of each instruction the first registers of D, A, B and C, which have the number of registers that the form says */
    const char *name, *form;
    uint8_t counts[OPERANDS];
    uint8_t n, first[RUN_MAX][OPERANDS];
};

#define F32_F16 "m16n8k16.row.col.f32.f16.f16.f32", {4, 4, 2, 4}
#define F16_F16 "m16n8k16.row.col.f16.f16.f16.f16", {2, 4, 2, 2}
#define S32_S8 "m16n8k32.row.col.satfinite.s32.s8.s8.s32", {4, 4, 2, 4}
#define TWO_BY_FOUR                                                                                                                        \
    8,                                                                                                                                     \
    {                                                                                                                                      \
        {16, 0, 8, 16}, {20, 0, 10, 20}, {24, 0, 12, 24}, {28, 0, 14, 28}, {32, 4, 8, 32}, {36, 4, 10, 36}, {40, 4, 12, 40},               \
            {44, 4, 14, 44}                                                                                                                \
    }

static const struct run runs[] = {
    {"shared factors, f16", F32_F16, TWO_BY_FOUR},
    {"shared factors, s8", S32_S8, TWO_BY_FOUR},
    {"D is C of the next", F32_F16, 4, {{16, 0, 8, 16}, {16, 4, 10, 16}, {20, 0, 10, 20}, {20, 4, 8, 16}}},
    {"D is in A of the next", F16_F16, 3, {{16, 0, 8, 20}, {2, 0, 10, 22}, {18, 0, 8, 24}}},
    {"D is B of the next", F16_F16, 3, {{16, 0, 8, 20}, {8, 0, 10, 22}, {18, 4, 8, 24}}},
    {"D is C of the one before", F32_F16, 2, {{16, 0, 8, 20}, {20, 4, 8, 24}}},
    {"D is in A of the one before", F16_F16, 2, {{16, 0, 8, 20}, {0, 4, 8, 22}}},
    {"two have one D", F32_F16, 3, {{16, 0, 8, 20}, {16, 4, 8, 24}, {18, 0, 10, 28}}},
    {"A is B of another", F32_F16, 3, {{16, 0, 4, 20}, {24, 4, 0, 28}, {32, 0, 2, 36}}},
    {"A overlaps another", F32_F16, 3, {{16, 0, 8, 16}, {20, 2, 9, 20}, {24, 1, 8, 24}}},
    {"no shared factors",
     F32_F16,
     8,
     {{32, 0, 4, 32},
      {36, 6, 10, 36},
      {40, 12, 16, 40},
      {44, 18, 22, 44},
      {48, 24, 28, 48},
      {52, 1, 5, 52},
      {56, 7, 11, 56},
      {60, 13, 17, 60}}},
    {"many",
     F16_F16,
     12,
     {{40, 0, 8, 40},
      {42, 0, 9, 42},
      {44, 0, 10, 44},
      {46, 0, 11, 46},
      {48, 0, 12, 48},
      {50, 0, 13, 50},
      {52, 0, 14, 52},
      {54, 0, 15, 54},
      {56, 0, 16, 56},
      {58, 0, 17, 58},
      {60, 0, 18, 60},
      {62, 0, 19, 62}}},
};

static const char *selection = "";

static void print_operand(FILE *text, unsigned first, unsigned n, const char *after)
{
    fputs("{", text);
    for (unsigned i = 0; i < n; i++)
        fprintf(text, "%sr%u", i ? "," : "", first + i);
    fprintf(text, "}%s", after);
}

static char *print_kernel(const struct run *run, const char *between)
{
    char *ptx;
    size_t length;
    FILE *text = open_memstream(&ptx, &length);

    fprintf(text,
            ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{.reg .b64 q;.reg .b32 t;.reg .b32 r<%u>;\n",
            REGISTERS);
    fprintf(text, "ld.param.u64 q,[p];mov.u32 t,%%tid.x;mad.wide.u32 q,t,%u,q;\n", 4 * REGISTERS);
    for (unsigned i = 0; i < REGISTERS; i++)
        fprintf(text, "ld.global.b32 r%u,[q+%u];\n", i, 4 * i);
    for (unsigned i = 0; i < run->n; i++) {
        fprintf(text, "mma.sync.aligned.%s ", run->form);
        for (unsigned o = 0; o < OPERANDS; o++)
            print_operand(text, run->first[i][o], run->counts[o], o + 1 < OPERANDS ? "," : ";\n");
        fputs(between, text);
    }
    for (unsigned i = 0; i < REGISTERS; i++)
        fprintf(text, "st.global.b32 [q+%u],r%u;\n", 4 * i, i);
    fputs("ret;}\n", text);
    fclose(text);
    return ptx;
}

static void execute(const struct run *run, const char *between, uint32_t out[THREADS][REGISTERS])
{
    const size_t size = sizeof(uint32_t[THREADS][REGISTERS]);
    char *ptx = print_kernel(run, between);
    CUdeviceptr place = 0;
    void *params[] = {&place};
    CUmodule module;
    CUfunction kernel;
    uint32_t state = 1;

    /* each half and each byte of a word is a number below 1 in the formats of floats, also those of C */
    for (unsigned thread = 0; thread < THREADS; thread++)
        for (unsigned i = 0; i < REGISTERS; i++)
            out[thread][i] = (state = state * 1664525 + 1013904223) >> 1 & 0x37b737b7;
    ok(cuModuleLoadData(&module, ptx));
    free(ptx);
    ok(cuModuleGetFunction(&kernel, module, "k"));
    ok(cuMemAlloc(&place, size));
    ok(cuMemcpyHtoD(place, out, size));
    ok(cuLaunchKernel(kernel, 1, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
    ok(cuMemcpyDtoH(out, place, size));
    ok(cuMemFree(place));
    ok(cuModuleUnload(module));
}

static void test_runs(void **state)
{
    static uint32_t together[THREADS][REGISTERS], apart[THREADS][REGISTERS];

    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        if (!strstr(runs[i].name, selection))
            continue;
        execute(&runs[i], "", together);
        execute(&runs[i], "bar.warp.sync 0xffffffff;\n", apart);
        for (unsigned thread = 0; thread < THREADS; thread++)
            for (unsigned r = 0; r < REGISTERS; r++)
                if (together[thread][r] != apart[thread][r])
                    fail_msg("%s: register %u of thread %u is %08x, not %08x", runs[i].name, r, thread, together[thread][r],
                             apart[thread][r]);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_runs)};

    selection = argc > 1 ? argv[1] : "";
    return cmocka_run_group_tests_name("matrix_runs", tests, with_context, without_context);
}
