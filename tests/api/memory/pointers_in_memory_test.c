/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA pointer has the same value on the host and in kernels, however the device represents it: kernels can dereference pointers that the
 * host wrote, and the host can use pointers that kernels wrote. */
#include "seeds.h"

#define NODES 300

/* clang-format off */
static const char ptx[] =
    ".version 6.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 8 .u64 variable[4] = {11, 12, 13, 14};\n"
    ".visible .global .align 8 .u64 points = generic(variable) + 16;\n"
    /* out = {&variable[1], the contents of `points`, *points} */
    ".visible .entry where(.param .u64 out)\n"
    "{\n"
    "    .reg .b64 %d<6>;\n    ld.param.u64 %d1, [out];\n"
    "    mov.u64 %d2, variable;\n    cvta.global.u64 %d2, %d2;\n    add.u64 %d2, %d2, 8;\n    st.u64 [%d1], %d2;\n"
    "    ld.global.u64 %d3, [points];\n    st.u64 [%d1+8], %d3;\n"
    "    ld.u64 %d4, [%d3];\n    st.u64 [%d1+16], %d4;\n"
    "    ret;\n}\n"
    /* Follows {next, value} from `node` to the end: out = {sum of values, the last node, number of nodes} */
    ".visible .entry walk(.param .u64 node, .param .u64 out)\n"
    "{\n"
    "    .reg .pred %p;\n    .reg .b64 %d<8>;\n"
    "    ld.param.u64 %d1, [node];\n    ld.param.u64 %d2, [out];\n    mov.u64 %d3, 0;\n    mov.u64 %d6, 0;\n    mov.u64 %d7, 0;\n"
    "next:\n    ld.u64 %d4, [%d1+8];\n    add.u64 %d3, %d3, %d4;\n    add.u64 %d7, %d7, 1;\n    mov.u64 %d6, %d1;\n"
    "    ld.u64 %d1, [%d1];\n    setp.ne.u64 %p, %d1, 0;\n    @%p bra next;\n"
    "    st.global.u64 [%d2], %d3;\n    st.global.u64 [%d2+8], %d6;\n    st.global.u64 [%d2+16], %d7;\n"
    "    ret;\n}\n";
/* clang-format on */

struct node {
    uint64_t next, value;
};

static void run(const char *name, void **params)
{
    CUfunction function;
    CUmodule module;

    ok(cuModuleLoadData(&module, ptx));
    ok(cuModuleGetFunction(&function, module, name));
    ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    ok(cuCtxSynchronize());
    ok(cuModuleUnload(module));
}

/* PTX ISA, cvta, and initializers with generic(): the kernel's address of a variable is that of cuModuleGetGlobal. */
static void addresses_of_variables(void **state)
{
    uint64_t got[3], where[3];
    CUfunction function;
    CUdeviceptr variable, device;
    CUmodule module;

    (void)state;
    ok(cuMemAlloc(&device, sizeof got));
    ok(cuModuleLoadData(&module, ptx));
    ok(cuModuleGetGlobal(&variable, NULL, module, "variable"));
    ok(cuModuleGetFunction(&function, module, "where"));
    ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&device}, NULL));
    ok(cuMemcpyDtoH(got, device, sizeof got));
    memcpy(where, got, sizeof where);
    assert_int_equal(where[0], variable + 8);
    assert_int_equal(where[1], variable + 16);
    assert_int_equal(where[2], 13);
    ok(cuMemcpyDtoH(got, (CUdeviceptr)where[0], 8)); /* the host may access it */
    assert_int_equal(got[0], 12);
    ok(cuModuleUnload(module));
    ok(cuMemFree(device));
}

/* Nodes are in device memory, in host memory of CUDA and in registered memory in turn. */
static void a_list_through_all_memory(void **state)
{
    struct node nodes[NODES], *host, *registered = malloc(sizeof nodes);
    CUdeviceptr memory[3], place[NODES], out;
    uint64_t got[3], sum = 0;

    (void)state;
    ok(cuMemAlloc(&memory[0], sizeof nodes));
    ok(cuMemHostAlloc((void **)&host, sizeof nodes, CU_MEMHOSTALLOC_DEVICEMAP));
    ok(cuMemHostGetDevicePointer(&memory[1], host, 0));
    ok(cuMemHostRegister(registered, sizeof nodes, CU_MEMHOSTREGISTER_DEVICEMAP));
    ok(cuMemHostGetDevicePointer(&memory[2], registered, 0));
    ok(cuMemAlloc(&out, sizeof got));
    for (unsigned i = 0; i < NODES; i++)
        place[i] = memory[i % 3] + (i * 7 % NODES) * sizeof *nodes;
    for (unsigned i = 0; i < NODES; i++) {
        struct node node = {i + 1 < NODES ? place[i + 1] : 0, i * i};

        sum += i * i;
        ok(cuMemcpyHtoD(place[i], &node, sizeof node));
    }
    run("walk", (void *[]){&place[0], &out});
    ok(cuMemcpyDtoH(got, out, sizeof got));
    assert_int_equal(got[0], sum);
    assert_int_equal(got[1], place[NODES - 1]);
    assert_int_equal(got[2], NODES);
    ok(cuMemHostUnregister(registered));
    ok(cuMemFreeHost(host));
    ok(cuMemFree(memory[0]));
    ok(cuMemFree(out));
    free(registered);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_of_variables),
        cmocka_unit_test(a_list_through_all_memory),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
