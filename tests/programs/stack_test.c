/* SPDX-License-Identifier: Apache-2.0 */
/* alloca, stacksave and stackrestore (PTX ISA, "Stack Manipulation Instructions"): each thread keeps a list of blocks of different sizes on its
 * stack, calls a function that has a stack, too, and takes memory back. What is too large ends the kernel with an error. Usage:
 * stack_test [arrays]; with `arrays`: large arrays in local memory instead. Validation layers take 20 s for these. */
#include "../api/api_test.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { BLOCKS = 3, THREADS = 64, NODES = 9, WORDS = 4 };

static const char ptx[] =
    ".version 7.3\n.target sm_52\n.address_size 64\n"
    /* Fills n words of a block of its own and returns their sum. */
    ".func (.param .b32 sum) filled(.param .b32 n, .param .b32 value)\n{\n"
    "    .reg .pred %p;\n    .reg .b32 %r<6>;\n    .reg .b64 %d<5>;\n"
    "    ld.param.u32 %r1, [n];\n    ld.param.u32 %r2, [value];\n    mul.wide.u32 %d1, %r1, 4;\n    alloca.u64 %d2, %d1;\n"
    "    mov.u32 %r3, 0;\n    mov.u32 %r4, 0;\n"
    "fill:\n"
    "    mul.wide.u32 %d3, %r3, 4;\n    add.u64 %d3, %d2, %d3;\n    st.local.u32 [%d3], %r2;\n    add.u32 %r3, %r3, 1;\n"
    "    setp.lt.u32 %p, %r3, %r1;\n    @%p bra fill;\n"
    "    mov.u32 %r3, 0;\n"
    "sum_up:\n"
    "    mul.wide.u32 %d3, %r3, 4;\n    add.u64 %d3, %d2, %d3;\n    ld.local.u32 %r5, [%d3];\n    add.u32 %r4, %r4, %r5;\n"
    "    add.u32 %r3, %r3, 1;\n    setp.lt.u32 %p, %r3, %r1;\n    @%p bra sum_up;\n"
    "    st.param.b32 [sum], %r4;\n    ret;\n}\n"
    /* Node i of the list has thread % 5 + i bytes, at least 16, and starts with the generic address of the one before and a value. */
    ".visible .entry lists(.param .u64 out, .param .u32 n)\n{\n"
    "    .reg .pred %p;\n    .reg .b32 %r<12>;\n    .reg .b64 %d<12>;\n"
    "    ld.param.u64 %d1, [out];\n    ld.param.u32 %r1, [n];\n"
    "    mov.u32 %r2, %tid.x;\n    mov.u32 %r3, %ctaid.x;\n    mov.u32 %r4, %ntid.x;\n    mad.lo.u32 %r2, %r3, %r4, %r2;\n"
    "    mul.wide.u32 %d2, %r2, 16;\n    add.u64 %d1, %d1, %d2;\n"
    "    stacksave.u64 %d9;\n    mov.u64 %d3, 0;\n    mov.u32 %r5, 0;\n    mov.u32 %r10, 0;\n    rem.u32 %r6, %r2, 5;\n"
    "add_node:\n"
    "    add.u32 %r7, %r6, %r5;\n    add.u32 %r7, %r7, 16;\n    cvt.u64.u32 %d4, %r7;\n    alloca.u64 %d5, %d4, 32;\n"
    "    cvt.u32.u64 %r8, %d5;\n    and.b32 %r8, %r8, 31;\n    or.b32 %r10, %r10, %r8;\n" /* 0 if all are aligned */
    "    st.local.u64 [%d5], %d3;\n    mad.lo.u32 %r8, %r2, 31, %r5;\n    st.local.u32 [%d5+8], %r8;\n    cvta.local.u64 %d3, %d5;\n"
    "    stacksave.u64 %d6;\n    alloca.u64 %d7, 8;\n    st.local.u64 [%d7], %d3;\n    ld.local.u64 %d8, [%d7];\n"
    "    setp.ne.u64 %p, %d8, %d3;\n    selp.u32 %r8, 32, 0, %p;\n    or.b32 %r10, %r10, %r8;\n    stackrestore.u64 %d6;\n"
    "    add.u32 %r5, %r5, 1;\n    setp.lt.u32 %p, %r5, %r1;\n    @%p bra add_node;\n"
    "    {\n    .param .b32 sum;\n    .param .b32 count;\n    .param .b32 value;\n    add.u32 %r8, %r6, 1;\n    st.param.b32 [count], "
    "%r8;\n"
    "    st.param.b32 [value], %r2;\n    call (sum), filled, (count, value);\n    ld.param.b32 %r9, [sum];\n    }\n"
    "    mov.u32 %r11, 0;\n"
    "next:\n"
    "    ld.u32 %r8, [%d3+8];\n    mad.lo.u32 %r11, %r11, 7, %r8;\n    ld.u64 %d3, [%d3];\n    setp.ne.u64 %p, %d3, 0;\n    @%p bra next;\n"
    "    stackrestore.u64 %d9;\n    stacksave.u64 %d6;\n    setp.ne.u64 %p, %d6, %d9;\n    selp.u32 %r8, 64, 0, %p;\n    or.b32 %r10, "
    "%r10, %r8;\n"
    "    alloca.u64 %d7, 0;\n    setp.ne.u64 %p, %d7, %d9;\n    selp.u32 %r8, 128, 0, %p;\n    or.b32 %r10, %r10, %r8;\n"
    "    st.global.u32 [%d1], %r11;\n    st.global.u32 [%d1+4], %r9;\n    st.global.u32 [%d1+8], %r10;\n    ret;\n}\n"
    ".visible .entry large(.param .u64 out, .param .u64 n)\n{\n"
    "    .reg .b32 %r<2>;\n    .reg .b64 %d<4>;\n"
    "    ld.param.u64 %d1, [out];\n    ld.param.u64 %d2, [n];\n    alloca.u64 %d3, %d2;\n    st.local.u32 [%d3], 5;\n"
    "    ld.local.u32 %r1, [%d3];\n    st.global.u32 [%d1], %r1;\n    ret;\n}\n";

static CUfunction function_of(const char *name)
{
    CUfunction function;
    CUmodule module;

    ok(cuModuleLoadData(&module, ptx));
    ok(cuModuleGetFunction(&function, module, name));
    return function;
}

static void test_lists(void **state)
{
    static uint32_t found[BLOCKS * THREADS][WORDS];
    const CUfunction lists = function_of("lists");
    unsigned n = NODES;
    CUdeviceptr out;
    void *params[] = {&out, &n};

    (void)state;
    ok(cuMemAlloc(&out, sizeof found));
    ok(cuLaunchKernel(lists, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
    ok(cuMemcpyDtoH(found, out, sizeof found));
    for (uint32_t i = 0; i < BLOCKS * THREADS; i++) {
        uint32_t sum = 0;

        for (uint32_t node = NODES; node-- > 0;)
            sum = sum * 7 + i * 31 + node;
        assert_int_equal(found[i][0], sum);
        assert_int_equal(found[i][1], (i % 5 + 1) * i);
        assert_int_equal(found[i][2], 0);
    }
    ok(cuMemFree(out));
}

static CUresult allocate(uint64_t size_bytes, uint32_t *found)
{
    const CUfunction large = function_of("large");
    CUdeviceptr out;
    void *params[] = {&out, &size_bytes};
    CUresult result;

    ok(cuMemAlloc(&out, sizeof *found));
    ok(cuLaunchKernel(large, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    result = cuMemcpyDtoH(found, out, sizeof *found);
    if (result == CUDA_SUCCESS)
        ok(cuMemFree(out));
    return result;
}

/* A context is unusable after an error, so each size has its own. On NVIDIA's driver only addresses outside of local memory are errors, so the
 * largest sizes are not. */
static void test_overflow(void **state)
{
    static const uint64_t too_large[] = {UINT64_MAX, 0x100000004, UINT64_C(1) << 31, 1 << 20};
    CUdevice device;
    CUcontext context;
    uint32_t found = 0;

    (void)state;
    ok(allocate(512, &found));
    assert_int_equal(found, 5);
    ok(cuDeviceGet(&device, 0));
    for (size_t i = on_cuttle() ? 0 : COUNT(too_large) - 1; i < COUNT(too_large); i++) {
        ok(create_context(&context, device));
        assert_int_equal(allocate(too_large[i], &found), CUDA_ERROR_ILLEGAL_ADDRESS);
        ok(cuCtxDestroy(context));
    }
}

/* Each thread fills an array of its own; then it reads the word whose number is its own. */
static void test_large_arrays(void **state)
{
    enum { LARGE_THREADS = 1024 };
    static const unsigned sizes[] = {4096, 64 << 10, 256 << 10};
    static uint32_t found[LARGE_THREADS];
    CUdeviceptr out;
    void *params[] = {&out};

    (void)state;
    ok(cuMemAlloc(&out, sizeof found));
    for (size_t i = 0; i < COUNT(sizes); i++) {
        char text[2048];
        CUfunction kernel;
        CUmodule module;
        CUresult result;

        snprintf(
            text, sizeof text,
            ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry fills(.param .u64 out)\n{\n"
            "    .local .align 4 .b8 words[%u];\n    .reg .pred %%p;\n    .reg .b32 %%r<4>;\n    .reg .b64 %%d<5>;\n"
            "    ld.param.u64 %%d1, [out];\n    mov.u32 %%r1, %%tid.x;\n    mul.wide.u32 %%d2, %%r1, 4;\n    add.u64 %%d1, %%d1, %%d2;\n"
            "    mov.u64 %%d3, words;\n    add.u64 %%d4, %%d3, %%d2;\n    mov.u32 %%r2, 0;\n"
            "fill:\n    mad.lo.u32 %%r3, %%r1, 3, %%r2;\n    st.local.u32 [%%d3], %%r3;\n    add.u64 %%d3, %%d3, 4;\n    add.u32 %%r2, "
            "%%r2, 1;\n"
            "    setp.lt.u32 %%p, %%r2, %u;\n    @%%p bra fill;\n    ld.local.u32 %%r3, [%%d4];\n    st.global.u32 [%%d1], %%r3;\n    "
            "ret;\n}\n",
            sizes[i], sizes[i] / 4);
        ok(cuModuleLoadData(&module, text));
        ok(cuModuleGetFunction(&kernel, module, "fills"));
        result = cuLaunchKernel(kernel, 1, 1, 1, LARGE_THREADS, 1, 1, 0, NULL, params, NULL);
        if (result != CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES || i == 0) { /* what a device's driver compiles may be less */
            ok(result);
            ok(cuMemcpyDtoH(found, out, sizeof found));
            for (uint32_t t = 0; t < LARGE_THREADS; t++)
                assert_int_equal(found[t], t * 4);
        }
        ok(cuModuleUnload(module));
    }
    ok(cuMemFree(out));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_overflow),
    };
    const struct CMUnitTest arrays[] = {cmocka_unit_test(test_large_arrays)};

    if (argc == 2 && !strcmp(argv[1], "arrays"))
        return cmocka_run_group_tests(arrays, with_context, without_context);
    return cmocka_run_group_tests(tests, with_context, without_context);
}
