/* SPDX-License-Identifier: Apache-2.0 */
/* The number of a thread in its grid, ctaid.x * ntid.x + tid.x, is a sum of 32 bits: widened, multiplied and compared it is what that sum
 * is, also in grids of more than 2^31 threads, for which it is negative as a signed number. */
#include <cuda.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#define ok(call) assert_int_equal(call, CUDA_SUCCESS)

enum { CHECKED_BLOCKS = 2, MOST_THREADS = 1024 };

/* Of each thread of the last blocks. */
struct record {
    uint64_t product_u32, product_s32, extended_u32, extended_s32;
    uint64_t comparisons;
};

#define COMPARE(text, bit) "    setp." text ";\n    selp.u32 %r9, " bit ", 0, %p;\n    or.b32 %r8, %r8, %r9;\n"

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry indices(.param .u64 out, .param .u32 n, .param .u32 first_block)\n{\n"
    "    .reg .pred %p;\n    .reg .b32 %r<12>;\n    .reg .b64 %d<12>;\n"
    "    ld.param.u64 %d0, [out];\n    ld.param.u32 %r0, [n];\n    ld.param.u32 %r1, [first_block];\n"
    "    mov.u32 %r2, %ctaid.x;\n    mov.u32 %r3, %ntid.x;\n    mov.u32 %r4, %tid.x;\n    setp.lt.u32 %p, %r2, %r1;\n    @%p bra OUT;\n"
    "    mad.lo.s32 %r5, %r2, %r3, %r4;\n    sub.u32 %r6, %r2, %r1;\n    mad.lo.u32 %r7, %r6, %r3, %r4;\n"
    "    mul.wide.u32 %d1, %r7, 40;\n    add.u64 %d0, %d0, %d1;\n"
    "    mul.wide.u32 %d2, %r5, 12;\n    mul.wide.s32 %d3, %r5, -3;\n    cvt.u64.u32 %d4, %r5;\n    cvt.s64.s32 %d5, %r5;\n"
    "    mov.u32 %r8, 0;\n" COMPARE("lt.u32 %p, %r5, %r0", "1") COMPARE("le.u32 %p, %r5, %r0", "2") COMPARE(
        "gt.u32 %p, %r5, %r0", "4") COMPARE("ge.u32 %p, %r5, %r0",
                                            "8") COMPARE("lt.s32 %p, %r5, %r0",
                                                         "16") COMPARE("le.s32 %p, %r5, %r0",
                                                                       "32") COMPARE("gt.s32 %p, %r5, %r0",
                                                                                     "64") COMPARE("ge.s32 %p, %r5, %r0", "128")
        COMPARE("lt.u32 %p, %r0, %r5", "256") COMPARE("ge.s32 %p, %r0, %r5", "512") COMPARE("eq.u32 %p, %r5, %r0", "1024") COMPARE(
            "gt.s32 %p, %r5, 100",
            "2048") "    cvt.u64.u32 %d6, %r8;\n"
                    "    st.global.u64 [%d0], %d2;\n    st.global.u64 [%d0+8], %d3;\n    st.global.u64 [%d0+16], %d4;\n    st.global.u64 "
                    "[%d0+24], %d5;\n"
                    "    st.global.u64 [%d0+32], %d6;\n"
                    "OUT:\n    ret;\n}\n"
                    /* out[i] = in[i] * 3 + i, if i is below n: what is adjacent may be loaded and stored as vectors. */
                    ".visible .entry triple(.param .u64 out, .param .u64 in, .param .u32 n)\n{\n"
                    "    .reg .pred %p;\n    .reg .b32 %r<8>;\n    .reg .b64 %d<4>;\n"
                    "    ld.param.u64 %d0, [out];\n    ld.param.u64 %d1, [in];\n    ld.param.u32 %r0, [n];\n"
                    "    mov.u32 %r1, %ntid.x;\n    mov.u32 %r2, %ctaid.x;\n    mov.u32 %r3, %tid.x;\n    mad.lo.s32 %r4, %r1, %r2, %r3;\n"
                    "    setp.ge.s32 %p, %r4, %r0;\n    @%p bra OUT;\n"
                    "    mul.wide.s32 %d2, %r4, 4;\n    add.s64 %d1, %d2, %d1;\n    add.s64 %d0, %d0, %d2;\n    ld.global.u32 %r5, [%d1];\n"
                    "    mad.lo.u32 %r6, %r5, 3, %r4;\n    st.global.u32 [%d0], %r6;\n"
                    "OUT:\n    ret;\n}\n";

static CUmodule module;

static CUfunction get(const char *name)
{
    CUfunction function;

    ok(cuModuleGetFunction(&function, module, name));
    return function;
}

static struct record expected(uint32_t i, uint32_t n)
{
    const int32_t s = (int32_t)i, m = (int32_t)n;
    const bool comparisons[] = {i<n, i <= n, i> n, i >= n, s<m, s <= m, s> m, s >= m, n < i, m >= s, i == n, s > 100};
    struct record record = {UINT64_C(12) * i, (uint64_t)(INT64_C(-3) * s), i, (uint64_t)(int64_t)s, 0};

    for (unsigned bit = 0; bit < sizeof comparisons / sizeof *comparisons; bit++)
        record.comparisons |= (uint64_t)comparisons[bit] << bit;
    return record;
}

static void check(unsigned blocks, unsigned threads, uint32_t n)
{
    static struct record found[CHECKED_BLOCKS * MOST_THREADS];
    unsigned first_block = blocks > CHECKED_BLOCKS ? blocks - CHECKED_BLOCKS : 0;
    CUdeviceptr out;
    void *params[] = {&out, &n, &first_block};

    ok(cuMemAlloc(&out, sizeof found));
    ok(cuLaunchKernel(get("indices"), blocks, 1, 1, threads, 1, 1, 0, NULL, params, NULL));
    ok(cuMemcpyDtoH(found, out, sizeof found));
    for (unsigned t = 0; t < (blocks - first_block) * threads; t++) {
        const struct record wanted = expected(first_block * threads + t, n);

        if (memcmp(&wanted, &found[t], sizeof wanted) != 0)
            fail_msg("%u blocks, n = %#x, i = %#x: %#llx %#llx %#llx %#llx %#llx", blocks, n, first_block * threads + t,
                     (unsigned long long)found[t].product_u32, (unsigned long long)found[t].product_s32,
                     (unsigned long long)found[t].extended_u32, (unsigned long long)found[t].extended_s32,
                     (unsigned long long)found[t].comparisons);
    }
    ok(cuMemFree(out));
}

static void test_small_grids(void **state)
{
    static const uint32_t bounds[] = {0, 1, 63, 64, 100, 101, 127, 128, 129, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};

    (void)state;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        check(2, 64, bounds[i]);
        check(1, 60, bounds[i]);
        check(7, 40, bounds[i]);
    }
}

/* The indices of the last block of the second grid are negative as signed numbers. */
static void test_large_grids(void **state)
{
    (void)state;
    check(1u << 21, 1024, 0x7fffffff);
    check((1u << 21) + 1, 1024, 0x80000200);
}

static void test_adjacent_elements(void **state)
{
    enum { N = 1000 };
    static uint32_t in[N], found[N + 24];
    CUdeviceptr d_in, d_out;
    unsigned n = N;
    void *params[] = {&d_out, &d_in, &n};

    (void)state;
    for (unsigned i = 0; i < N; i++)
        in[i] = i * 7919;
    ok(cuMemAlloc(&d_in, sizeof in));
    ok(cuMemAlloc(&d_out, sizeof found));
    ok(cuMemcpyHtoD(d_in, in, sizeof in));
    ok(cuMemsetD32(d_out, 5, N + 24));
    ok(cuLaunchKernel(get("triple"), 16, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
    ok(cuMemcpyDtoH(found, d_out, sizeof found));
    for (unsigned i = 0; i < N + 24; i++)
        assert_int_equal(found[i], i < N ? 3 * in[i] + i : 5);
    ok(cuMemFree(d_in));
    ok(cuMemFree(d_out));
}

static int begin(void **state)
{
    CUcontext context;
    CUdevice device;

    (void)state;
    return cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS || cuCtxCreate(&context, NULL, 0, device) != CUDA_SUCCESS ||
           cuModuleLoadData(&module, ptx) != CUDA_SUCCESS;
}

static int end(void **state)
{
    CUcontext context;

    (void)state;
    return cuModuleUnload(module) != CUDA_SUCCESS || cuCtxGetCurrent(&context) != CUDA_SUCCESS || cuCtxDestroy(context) != CUDA_SUCCESS;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_small_grids), cmocka_unit_test(test_adjacent_elements),
                                       cmocka_unit_test(test_large_grids)};

    return cmocka_run_group_tests(tests, begin, end);
}
