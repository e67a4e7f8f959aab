/* SPDX-License-Identifier: Apache-2.0 */
/* In which spaces an address is (isspacep), and the number of a launch (%gridid). Expectations are those of an H100 with NVIDIA's driver. */
#include "../api/api_test.h"

static const char ptx[] =
    ".version 7.7\n.target sm_70\n.address_size 64\n"
    ".global .align 4 .u32 before;\n.const .align 4 .u32 constants[3] = {5, 6, 7};\n.global .align 4 .u32 variable = 3;\n"
    ".const .align 4 .u32 another = 9;\n.global .align 4 .u32 after;\n"
    /* Bit 5 * address + space, and the word at the address where it has one. */
    ".visible .entry spaces(.param .u64 out, .param .u64 memory, .param .u32 word)\n{\n"
    "    .shared .align 4 .b32 shared_word;\n    .local .align 4 .b32 local_word;\n"
    "    .reg .pred %p;\n    .reg .b32 %r<9>;\n    .reg .b64 %d<20>;\n"
    "    ld.param.u64 %d0, [out];\n"
    "    mov.u64 %d1, constants;\n    cvta.const.u64 %d1, %d1;\n    add.u64 %d1, %d1, 8;\n"
    "    mov.u64 %d2, another;\n    cvta.const.u64 %d2, %d2;\n"
    "    mov.u64 %d3, variable;\n    cvta.global.u64 %d3, %d3;\n"
    "    mov.u64 %d4, after;\n    cvta.global.u64 %d4, %d4;\n"
    "    ld.param.u64 %d5, [memory];\n"
    "    mov.u64 %d6, shared_word;\n    cvta.shared.u64 %d6, %d6;\n    mov.u32 %r1, 11;\n    st.u32 [%d6], %r1;\n"
    "    mov.u64 %d7, local_word;\n    cvta.local.u64 %d7, %d7;\n    mov.u32 %r1, 12;\n    st.u32 [%d7], %r1;\n"
    "    mov.b64 %d8, word;\n    cvta.param.u64 %d8, %d8;\n"
    "    mov.u64 %d9, 0;\n"
#define ASK(space, bit, to) "    isspacep." space " %p, " to ";\n    @%p or.b32 %r2, %r2, " bit ";\n"
#define ADDRESS(to, word)                                                                                                                  \
    "    mov.u32 %r2, 0;\n" ASK("const", "1", to) ASK("global", "2", to) ASK("shared", "4", to) ASK("local", "8", to)                      \
        ASK("param", "16", to) "    mov.u32 %r3, 0;\n" word "    st.global.v2.u32 [%d0], {%r2, %r3};\n    add.u64 %d0, %d0, 8;\n"
#define READ(to) ADDRESS(to, "    ld.u32 %r3, [" to "];\n")
    READ("%d1") READ("%d2") READ("%d3") READ("%d4") READ("%d5") READ("%d6") READ("%d7") READ("%d8") ADDRESS(
        "%d9",
        "") "    ret;\n}\n"
            /* A module without constants of a kernel without parameters needs nothing for either. */
            ".visible .entry number(.param .u64 out)\n{\n    .reg .b64 %d<3>;\n    ld.param.u64 %d1, [out];\n    mov.u64 %d2, %gridid;\n"
            "    st.global.u64 [%d1], %d2;\n    ret;\n}\n"
            ".global .align 8 .u64 numbered;\n"
            ".visible .entry number_alone()\n{\n    .reg .b64 %d<3>;\n    mov.u64 %d2, %gridid;\n    st.global.u64 [numbered], %d2;\n    "
            "ret;\n}\n";

enum { CONST = 1, GLOBAL = 2, SHARED = 4, LOCAL = 8, PARAM = 16 };

static CUmodule module;

static void test_spaces(void **state)
{
    static const struct {
        const char *name;
        uint32_t spaces, word;
    } rows[] = {
        {"a constant", CONST, 7},      {"another constant", CONST, 9}, {"a variable", GLOBAL, 3},   {"the last variable", GLOBAL, 0},
        {"memory", GLOBAL, 21},        {"shared memory", SHARED, 11},  {"local memory", LOCAL, 12}, {"a parameter", GLOBAL | PARAM, 33},
        {"a null pointer", GLOBAL, 0},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    uint32_t found[2 * ROWS], word = 33;
    CUdeviceptr out, memory;
    CUfunction kernel;
    void *params[] = {&out, &memory, &word};

    (void)state;
    ok(cuMemAlloc(&out, sizeof found));
    ok(cuMemAlloc(&memory, 4));
    ok(cuMemsetD32(memory, 21, 1));
    ok(cuModuleGetFunction(&kernel, module, "spaces"));
    ok(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    ok(cuMemcpyDtoH(found, out, sizeof found));
    for (uint32_t i = 0; i < ROWS; i++)
        if (found[2 * i] != rows[i].spaces || found[2 * i + 1] != rows[i].word)
            fail_msg("%s: spaces 0x%x instead of 0x%x, word %u instead of %u", rows[i].name, found[2 * i], rows[i].spaces, found[2 * i + 1],
                     rows[i].word);
    ok(cuMemFree(out));
    ok(cuMemFree(memory));
}

/* Consecutive launches have consecutive numbers. */
static void test_numbers(void **state)
{
    enum { LAUNCHES = 5 };
    uint64_t numbers[LAUNCHES], alone;
    CUdeviceptr out, variable;
    CUfunction kernel, without;
    size_t size;

    (void)state;
    ok(cuModuleGetFunction(&kernel, module, "number"));
    ok(cuModuleGetFunction(&without, module, "number_alone"));
    ok(cuModuleGetGlobal(&variable, &size, module, "numbered"));
    ok(cuMemAlloc(&out, sizeof numbers));
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        CUdeviceptr at = out + i * sizeof *numbers;
        void *params[] = {&at};

        ok(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    }
    ok(cuLaunchKernel(without, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    ok(cuMemcpyDtoH(numbers, out, sizeof numbers));
    ok(cuMemcpyDtoH(&alone, variable, sizeof alone));
    assert_true(numbers[0] > 0);
    for (uint32_t i = 1; i < LAUNCHES; i++)
        assert_int_equal(numbers[i], numbers[0] + i);
    assert_int_equal(alone, numbers[0] + LAUNCHES);
    ok(cuMemFree(out));
}

/* Each launch of a graph has a number of its own, too; with NVIDIA's driver (580) all launches of an executable graph have the same. */
static void test_numbers_in_graphs(void **state)
{
    enum { LAUNCHES = 3 };
    uint64_t last = 0, number;
    CUdeviceptr out;
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode node;
    CUDA_KERNEL_NODE_PARAMS launch = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
    void *params[] = {&out};

    (void)state;
    ok(cuModuleGetFunction(&launch.func, module, "number"));
    ok(cuMemAlloc(&out, sizeof number));
    launch.kernelParams = params;
    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphAddKernelNode(&node, graph, NULL, 0, &launch));
    ok(cuGraphInstantiate(&exec, graph, 0));
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        ok(cuGraphLaunch(exec, NULL));
        ok(cuMemcpyDtoH(&number, out, sizeof number));
        if (on_cuttle() ? number <= last : number < last)
            fail_msg("launch %u of a graph has the number %llu, an earlier one %llu", i, (unsigned long long)number,
                     (unsigned long long)last);
        last = number;
    }
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuMemFree(out));
}

static int load(void **state)
{
    return with_context(state) == 0 && cuModuleLoadData(&module, ptx) == CUDA_SUCCESS ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spaces),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_numbers_in_graphs),
    };

    return cmocka_run_group_tests(tests, load, NULL);
}
