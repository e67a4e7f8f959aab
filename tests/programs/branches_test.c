/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions that no device has, in branches: a kernel that does not get there works; one that does fails, with ILLEGAL_INSTRUCTION; one
 * that cannot avoid them is refused. */
#include "../api/api_test.h"

#define HEAD ".version 8.1\n.target sm_90a\n.address_size 64\n"
#define BEGIN                                                                                                                              \
    ".visible .entry k(.param .u64 out, .param .u32 way)\n{\n    .reg .pred %p;\n    .reg .b32 %r<9>;\n    .reg .b64 %d<9>;\n"             \
    "    .reg .f32 %f<4>;\n"                                                                                                               \
    "    ld.param.u64 %d1, [out];\n    ld.param.u32 %r1, [way];\n    setp.ne.u32 %p, %r1, 0;\n    mov.u32 %r2, 7;\n"
#define END "    st.global.u32 [%d1], %r2;\n    ret;\n}\n"

static const struct {
    const char *name, *ptx;
} rows[] = {
    {"multimem", HEAD BEGIN "    @!%p bra over;\n    multimem.ld_reduce.relaxed.sys.global.add.u32 %r2, [%d1];\nover:\n" END},
    {"multimem under a guard", HEAD BEGIN "    @%p multimem.red.relaxed.sys.global.add.u32 [%d1], %r2;\n" END},
    {"wgmma", HEAD BEGIN "    @!%p bra over;\n    wgmma.fence.sync.aligned;\n    wgmma.commit_group.sync.aligned;\nover:\n" END},
    {"a register under a guard", HEAD BEGIN "    @%p mov.u32 %r2, %pm0;\n" END},
    {"one of several ways",
     HEAD BEGIN "    setp.eq.u32 %p, %r1, 1;\n    @%p bra one;\n    setp.eq.u32 %p, %r1, 2;\n    @%p bra two;\n    bra over;\n"
                "one:\n    mov.u32 %r2, %pm1;\n    bra over;\ntwo:\n    mov.u32 %r2, 9;\nover:\n" END},
    {"in a function",
     HEAD ".func (.param .b32 result) f(.param .b32 way)\n{\n    .reg .pred %p;\n    .reg .b32 %r<3>;\n    ld.param.u32 %r1, [way];\n"
          "    setp.eq.u32 %p, %r1, 0;\n    mov.u32 %r2, 7;\n    @%p bra over;\n    mov.u32 %r2, %pm2;\nover:\n"
          "    st.param.b32 [result], %r2;\n    ret;\n}\n" BEGIN "    call (%r2), f, (%r1);\n" END},
};

static const struct {
    const char *name, *ptx;
} refused[] = {
    {"straight", HEAD BEGIN "    mov.u32 %r2, %pm0;\n" END},
    {"in every way", HEAD BEGIN "    @%p bra other;\n    mov.u32 %r2, %pm0;\n    bra over;\nother:\n    mov.u32 %r2, %pm1;\nover:\n" END},
    {"in a loop that is entered", HEAD BEGIN "more:\n    mov.u32 %r2, %pm0;\n    @%p bra more;\n" END},
    {"in a function that is called",
     HEAD ".func f()\n{\n    .reg .b64 %d;\n    mov.u64 %d, 0;\n    wgmma.fence.sync.aligned;\n    ret;\n}\n" BEGIN "    call f;\n" END},
};

static CUresult launch(CUfunction kernel, CUdeviceptr out, uint32_t way)
{
    void *params[] = {&out, &way};
    CUresult r = cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);

    return r == CUDA_SUCCESS ? cuCtxSynchronize() : r;
}

static void test_branches(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUcontext context;
        CUmodule module;
        CUfunction kernel;
        CUdeviceptr out;
        uint32_t found = 0;

        print_message("%s\n", rows[i].name);
        ok(create_context(&context, 0));
        ok(cuModuleLoadData(&module, rows[i].ptx));
        ok(cuModuleGetFunction(&kernel, module, "k"));
        ok(cuMemAlloc(&out, sizeof found));
        ok(launch(kernel, out, 0));
        ok(cuMemcpyDtoH(&found, out, sizeof found));
        assert_int_equal(found, 7);
        gives(CUDA_ERROR_ILLEGAL_INSTRUCTION, launch(kernel, out, 1));
        gives(CUDA_ERROR_ILLEGAL_INSTRUCTION, cuMemcpyDtoH(&found, out, sizeof found)); /* the context cannot be used any more */
        ok(cuCtxDestroy(context));
    }
}

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        CUmodule module;
        CUfunction kernel;

        print_message("%s\n", refused[i].name);
        ok(cuModuleLoadData(&module, refused[i].ptx));
        ok(cuModuleGetFunction(&kernel, module, "k"));
        gives(CUDA_ERROR_NOT_SUPPORTED, launch(kernel, 0, 0));
        ok(cuModuleUnload(module));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_refusals),
    };

    if (!on_cuttle())
        return 0; /* an sm_90a has these instructions */
    return cmocka_run_group_tests(tests, with_context, without_context);
}
