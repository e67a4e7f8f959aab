/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses through a parameter and an index, which may be compiled with offsets of 32 bits (passes/offsets.c; CUTTLE_OFFSETS=short): in all
 * forms of addresses, with indices of both signs, and in ranges of addresses that need more than 32 bits. */
#include <cuda.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#define ok(call) assert_int_equal(call, CUDA_SUCCESS)

enum { WORDS = 4096, MIDDLE = 2048, TEXT = 2048 };
#define GIB (UINT64_C(1) << 30)
#define ANY INT32_MIN

/* r = the word at p[i], or other things about it. p: the address in the middle, i and j: s32, w: i in 64 bits, q: a place with the address. */
static const struct row {
    const char *name, *body;
    int32_t least; /* value of i */
} rows[] = {
    {"signed", "mul.wide.s32 %d, %i, 4; add.s64 %a, %p, %d; ld.global.u32 %r, [%a];", ANY},
    {"signed, constant in front", "mul.wide.s32 %d, %i, 4; add.s64 %a, %p, %d; add.s64 %a, %a, -16; ld.global.u32 %r, [%a+16];", ANY},
    {"large constants", "mul.wide.s32 %d, %i, 4; add.s64 %a, %p, %d; add.s64 %a, %a, 1048576; ld.global.u32 %r, [%a+-1048576];", ANY},
    {"extended, shifted", "cvt.s64.s32 %d, %i; shl.b64 %d, %d, 2; add.s64 %a, %d, %p; ld.global.u32 %r, [%a];", ANY},
    {"64 bits", "mul.lo.s64 %d, %w, 4; add.s64 %a, %p, %d; ld.global.u32 %r, [%a];", ANY},
    {"two terms",
     "mul.wide.s32 %d, %j, 4; add.s64 %a, %p, %d; sub.s32 %k, %i, %j; mul.wide.s32 %d, %k, 4; add.s64 %a, %a, %d; ld.global.u32 %r, [%a];",
     ANY},
    {"a loaded pointer", "ld.global.u64 %a, [%q]; mul.wide.s32 %d, %i, 4; add.s64 %a, %a, %d; ld.global.u32 %r, [%a];", ANY},
    {"a distance as the parameter", "ld.global.u64 %a, [%q]; add.s64 %a, %a, %v; ld.global.u32 %r, [%a];", ANY},
    {"stored", "mul.wide.s32 %d, %i, 4; add.s64 %a, %p, %d; ld.global.u32 %r, [%a]; st.global.u32 [%a], %r; ld.global.u32 %r, [%a];", ANY},
    {"atomic", "mul.wide.s32 %d, %i, 4; add.s64 %a, %p, %d; atom.global.add.u32 %r, [%a], 0;", ANY},
    {"moved by a loop",
     "mul.wide.s32 %d, %i, 4; add.s64 %a, %p, %d; add.s64 %a, %a, -40; mov.u32 %k, 10;\n"
     "L: add.s64 %a, %a, 4; sub.s32 %k, %k, 1; setp.ne.s32 %x, %k, 0; ld.global.u32 %r, [%a]; @%x bra L;",
     ANY},
    {"moved by loops in a loop",
     "mul.wide.s32 %d, %i, 4; add.s64 %a, %p, %d; add.s64 %a, %a, -64; mov.u32 %k, 4;\n"
     "L: mov.u64 %b, %a; mov.u32 %n, 4;\n"
     "M: ld.global.u32 %r, [%b+4]; add.s64 %b, %b, 4; sub.s32 %n, %n, 1; setp.ne.s32 %x, %n, 0; @%x bra M;\n"
     "add.s64 %a, %a, 16; sub.s32 %k, %k, 1; setp.ne.s32 %x, %k, 0; @%x bra L;",
     ANY},
    {"one of two",
     "mul.wide.s32 %d, %i, 4; add.s64 %a, %p, %d; setp.lt.s32 %x, %j, 0; @%x bra L; ld.global.u32 %r, [%p];\n"
     "add.s64 %a, %a, 8; add.s64 %a, %a, -8; bra M;\nL: mul.wide.s32 %d, %j, 4; add.s64 %a, %p, %d; sub.s32 %k, %i, %j; mul.wide.s32 %d, "
     "%k, 4;"
     " add.s64 %a, %a, %d;\nM: ld.global.u32 %r, [%a];",
     ANY},
    {"unsigned", "mul.wide.u32 %d, %i, 4; add.s64 %a, %p, %d; ld.global.u32 %r, [%a];", 0},
    {"neighbours",
     "mul.wide.s32 %d, %i, 4; add.s64 %a, %p, %d; ld.global.u32 %r, [%a]; add.s32 %k, %i, 1; mul.wide.s32 %d, %k, 4; add.s64 %a, %p, %d;\n"
     "ld.global.u32 %n, [%a]; sub.u32 %n, %n, %r; add.s32 %k, %i, 2; mul.wide.s32 %d, %k, 4; add.s64 %a, %p, %d; ld.global.u32 %k, "
     "[%a+-4];\n"
     "sub.u32 %r, %k, %n;",
     ANY},
    {"neighbours, the last one first",
     "add.s32 %k, %i, 2; mul.wide.s32 %d, %k, 4; add.s64 %a, %p, %d; ld.global.u32 %n, [%a]; add.s32 %k, %i, 1; mul.wide.s32 %d, %k, 4;\n"
     "add.s64 %a, %p, %d; ld.global.u32 %k, [%a]; sub.u32 %n, %n, %k; mul.wide.s32 %d, %i, 4; add.s64 %a, %p, %d; ld.global.u32 %r, [%a];\n"
     "xor.b32 %r, %r, %n; xor.b32 %r, %r, %n;",
     ANY},
    {"unsigned neighbours, the last one first",
     "add.s32 %k, %i, 2; mul.wide.u32 %d, %k, 4; add.s64 %a, %p, %d; ld.global.u32 %n, [%a]; add.s32 %k, %i, 1; mul.wide.u32 %d, %k, 4;\n"
     "add.s64 %a, %p, %d; ld.global.u32 %k, [%a]; sub.u32 %n, %n, %k; mul.wide.u32 %d, %i, 4; add.s64 %a, %p, %d; ld.global.u32 %r, [%a];\n"
     "xor.b32 %r, %r, %n; xor.b32 %r, %r, %n;",
     0},
    {"a neighbour behind a branch",
     "add.s32 %k, %i, 1; mul.wide.s32 %d, %k, 4; add.s64 %a, %p, %d; ld.global.u32 %n, [%a]; setp.gt.s32 %x, %j, 2000000000; mov.u32 %r, "
     "0; @%x bra L;\n"
     "mul.wide.s32 %d, %i, 4; add.s64 %a, %p, %d; ld.global.u32 %r, [%a]; add.s32 %k, %i, 2; mul.wide.s32 %d, %k, 4; add.s64 %a, %p, %d;\n"
     "ld.global.u32 %k, [%a]; sub.u32 %k, %k, %n; add.u32 %r, %r, %k; sub.u32 %r, %r, %k; L:",
     ANY},
    {"neighbours in a loop, and indices that it advances alike",
     "sub.s32 %j, %i, 12; mov.u32 %k, 0; sub.s32 %n, %i, 11; sub.s32 %m, %i, 24;\n"
     "L: mul.wide.s32 %d, %j, 4; add.s64 %a, %p, %d; ld.global.u32 %r, [%a+8]; mul.wide.s32 %d, %n, 4; add.s64 %a, %p, %d;\n"
     "ld.global.u32 %s, [%a+4]; sub.u32 %s, %s, %r; mul.wide.s32 %d, %m, 4; add.s64 %a, %p, %d; ld.global.u32 %t, [%a+16]; sub.u32 %t, %t, "
     "%r;\n"
     "or.b32 %s, %s, %t; add.s32 %j, %j, 2; add.s32 %n, %n, 2; add.s32 %m, %m, 4; add.s32 %k, %k, 1; setp.lt.s32 %x, %k, 6; @%x bra L;\n"
     "add.u32 %r, %r, %s;",
     ANY},
    {"indices that a loop counts down",
     "add.s32 %j, %i, 4; mov.u32 %k, 2; add.s32 %m, %i, 8;\n"
     "L: add.s32 %j, %j, -2; add.s32 %m, %m, -4; add.s32 %k, %k, -1; mul.wide.s32 %d, %j, 4; add.s64 %a, %p, %d; ld.global.u32 %r, [%a];\n"
     "mul.wide.s32 %d, %m, 4; add.s64 %a, %p, %d; ld.global.u32 %t, [%a]; sub.u32 %t, %t, %r; add.u32 %r, %r, %t; setp.ne.s32 %x, %k, 0; "
     "@%x "
     "bra L;",
     ANY},
    {"rows of a picture",
     "ld.global.u32 %m, [%q]; mad.lo.s32 %k, %m, %j, %i; add.s32 %n, %m, 2; mad.lo.s32 %n, %n, %j, %i; sub.s32 %n, %n, %k;\n"
     "shl.b32 %k, %j, 1; sub.s32 %n, %n, %k; add.s32 %k, %n, %i; mul.wide.s32 %d, %k, 4; add.s64 %a, %p, %d; ld.global.u32 %r, [%a];",
     ANY},
    {"bytes of a word",
     "mul.wide.s32 %d, %i, 4; add.s64 %a, %p, %d; ld.global.u32 %n, [%a]; shl.b32 %k, %n, 2; and.b32 %r, %k, 1020; shr.u32 %r, %r, 2;\n"
     "shr.u32 %k, %n, 6; and.b32 %k, %k, 1020; shl.b32 %k, %k, 6; or.b32 %r, %r, %k; shr.u32 %k, %n, 12; and.b32 %k, %k, 4080;\n"
     "shl.b32 %k, %k, 12; or.b32 %r, %r, %k; shr.u32 %k, %n, 22; and.b32 %k, %k, 1020; shl.b32 %k, %k, 22; or.b32 %r, %r, %k;",
     ANY},
    {"unsigned, behind", "add.s32 %k, %i, 1; mul.wide.u32 %d, %k, 4; add.s64 %a, %p, %d; ld.global.u32 %r, [%a+-4];", 0},
    {"unsigned, before the parameter", "add.s32 %k, %i, 511; mul.wide.u32 %d, %k, 4; add.s64 %a, %p, %d; ld.global.u32 %r, [%a+-2044];",
     -511},
    {"unsigned, far before the parameter",
     "add.s32 %k, %i, 2048; mul.wide.u32 %d, %k, 4; add.s64 %a, %p, %d; add.s64 %a, %a, -8192; ld.global.u32 %r, [%a];", -2048},
    {"unsigned neighbours before the parameter",
     "add.s32 %k, %i, 400; mul.wide.u32 %d, %k, 4; add.s64 %a, %p, %d; ld.global.u32 %n, [%a+-1592]; ld.global.u32 %r, [%a+-1600];\n"
     "ld.global.u32 %m, [%a+-1596]; xor.b32 %n, %n, %m; xor.b32 %r, %r, %n; xor.b32 %r, %r, %n;",
     -400},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

struct bench {
    CUmodule modules[N_ROWS];
    CUfunction kernels[N_ROWS];
    CUdeviceptr place, result;
};

static void compile(struct bench *bench)
{
    static char text[TEXT];

    for (int i = 0; i < N_ROWS; i++) {
        snprintf(text, sizeof text,
                 ".version 7.0\n.target sm_70\n.address_size 64\n"
                 ".visible .entry k(.param .u64 p, .param .u64 q, .param .u64 v, .param .u64 to, .param .u32 i, .param .u32 j)\n{\n"
                 "  .reg .b64 %%p, %%q, %%v, %%to, %%a, %%b, %%d, %%w;\n  .reg .b32 %%i, %%j, %%k, %%m, %%n, %%r, %%s, %%t;\n  .reg .pred "
                 "%%x;\n  "
                 "ld.param.u64 %%p, [p];\n  "
                 "ld.param.u64 %%q, [q];\n"
                 "  ld.param.u64 %%v, [v];\n  ld.param.u64 %%to, [to];\n  ld.param.u32 %%i, [i];\n  ld.param.u32 %%j, [j];\n  cvt.s64.s32 "
                 "%%w, %%i;\n"
                 "  %s\n  st.global.u32 [%%to], %%r;\n  ret;\n}\n",
                 rows[i].body);
        ok(cuModuleLoadData(&bench->modules[i], text));
        ok(cuModuleGetFunction(&bench->kernels[i], bench->modules[i], "k"));
    }
    ok(cuMemAlloc(&bench->place, sizeof(uint64_t)));
    ok(cuMemAlloc(&bench->result, sizeof(uint32_t)));
}

/* All rows read the word `index` words after `p`, which is `want`. */
static void read_words(const struct bench *bench, CUdeviceptr p, int32_t index, uint32_t want)
{
    for (int i = 0; i < N_ROWS; i++) {
        CUdeviceptr q = bench->place, to = bench->result;
        int64_t distance = 4 * (int64_t)index;
        int32_t other = -index / 2 + 5;
        uint32_t found = ~want;

        if (index < rows[i].least)
            continue;
        ok(cuMemcpyHtoD(q, &p, sizeof p));
        ok(cuMemcpyHtoD(to, &found, sizeof found));
        ok(cuLaunchKernel(bench->kernels[i], 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&p, &q, &distance, &to, &index, &other}, NULL));
        ok(cuMemcpyDtoH(&found, to, sizeof found));
        if (found != want)
            fail_msg("%s, index %d: %u instead of %u", rows[i].name, index, found, want);
    }
}

static void read_array(const struct bench *bench)
{
    static uint32_t words[WORDS];
    CUdeviceptr array;

    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = 7 * i + 1;
    ok(cuMemAlloc(&array, sizeof words));
    ok(cuMemcpyHtoD(array, words, sizeof words));
    for (int32_t i = -MIDDLE; i < WORDS - MIDDLE; i += 511)
        read_words(bench, array + 4 * MIDDLE, i, words[MIDDLE + i]);
    ok(cuMemFree(array));
}

/* The word at `offset` of a range of 6 GiB, read from its middle. */
static void read_range(const struct bench *bench, CUdeviceptr range, uint64_t offset, size_t piece_bytes, const CUmemAllocationProp *prop)
{
    const CUmemAccessDesc access = {.location = prop->location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const CUdeviceptr at = range + offset;
    const uint32_t word = (uint32_t)(offset / 3);
    CUmemGenericAllocationHandle piece;

    ok(cuMemCreate(&piece, piece_bytes, prop, 0));
    ok(cuMemMap(at, piece_bytes, 0, piece, 0));
    ok(cuMemSetAccess(at, piece_bytes, &access, 1));
    ok(cuMemcpyHtoD(at, &word, sizeof word));
    read_words(bench, range + 3 * GIB, (int32_t)(((int64_t)offset - (int64_t)(3 * GIB)) / 4), word);
    ok(cuMemUnmap(at, piece_bytes));
    ok(cuMemRelease(piece));
}

static void test_arrays_and_ranges(void **unused)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    static struct bench bench;
    CUdeviceptr range;
    CUcontext context;
    size_t granule;

    (void)unused;
    ok(cuInit(0));
    ok(cuCtxCreate(&context, NULL, 0, 0));
    compile(&bench);
    read_array(&bench);
    ok(cuMemGetAllocationGranularity(&granule, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    ok(cuMemAddressReserve(&range, 6 * GIB, 0, 0, 0));
    for (uint64_t offset = 0; offset < 6 * GIB; offset += GIB)
        read_range(&bench, range, offset, granule, &prop);
    read_array(&bench);
    ok(cuMemAddressFree(range, 6 * GIB));
    for (int i = 0; i < N_ROWS; i++)
        ok(cuModuleUnload(bench.modules[i]));
    ok(cuMemFree(bench.place));
    ok(cuMemFree(bench.result));
    ok(cuCtxDestroy(context));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_arrays_and_ranges)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
