/* SPDX-License-Identifier: Apache-2.0 */
/* Compilation with the n-th allocation failing, for n = 1, 2, ..: the compiler reports the failure, leaks nothing (checked by a
 * sanitizer build), and succeeds as soon as none fails. */
#include "cuttle/ptx2spv.h"
#include "../failing_allocations.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static const char text[] =
    ".version 7.8\n.target sm_75\n.address_size 64\n.global .align 4 .u32 g[4] = {1, 2};\n.shared .align 4 .b8 s[64];\n"
    ".func (.param .b32 r) f(.param .b32 x)\n{\n.reg .b32 %r<4>;\nld.param.u32 %r1, [x];\nadd.s32 %r2, %r1, 1;\nst.param.b32 [r], "
    "%r2;\nret;\n}\n"
    ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n.reg .pred %p<4>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<4>;\n.reg .f32 %f<4>;\n"
    "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\nmov.u32 %r2, %tid.x;\nst.shared.u32 [s], %r2;\nbar.sync 0;\n"
    "TOP: { .param .b32 a; st.param.b32 [a], %r2;\n.param .b32 b;\ncall.uni (b), f, (a);\nld.param.b32 %r2, [b]; }\n"
    "setp.lt.s32 %p1, %r2, %r1;\n@%p1 bra TOP;\nld.global.f32 %f1, [%rd1];\ndiv.rn.f32 %f2, %f1, %f1;\nst.global.f32 [%rd1], "
    "%f2;\nret;\n}\n";

static enum ptx2spv_status compile(void)
{
    struct ptx2spv_target target;
    struct ptx2spv_module *module = NULL;
    struct ptx2spv_kernel kernel = {0};
    enum ptx2spv_status status;

    memset(&target, 0, sizeof target);
    target.push_constant_bytes = 256;
    target.shared_bytes = 48 << 10;
    target.max_block_threads = 1024;
    target.float64 = target.int64 = target.int16 = target.int8 = target.storage8 = target.storage16 = 1;
    status = ptx2spv_module_create(text, sizeof text - 1, NULL, &module);
    if (status != PTX2SPV_OK) {
        assert_null(module);
        return status;
    }
    status = ptx2spv_kernel_compile(module, 0, &target, NULL, &kernel);
    if (status != PTX2SPV_OK)
        assert_null(kernel.words);
    ptx2spv_kernel_finish(&kernel);
    ptx2spv_module_destroy(module);
    return status;
}

/* Links two texts and a library's text; after a failure, further calls fail too. */
static enum ptx2spv_status link_texts(void)
{
    static const char caller[] = ".version 7.8\n.target sm_75\n.extern .func f();\n.extern .global .u32 v;\n.global .u64 p = v;\n"
                                 ".visible .entry k() { call f; ret; }\n",
                      function[] = ".version 7.8\n.target sm_75\n.visible .func f() { ret; }\n",
                      variable[] = ".version 7.8\n.target sm_75\n.visible .global .u32 v = 1;\n";
    const struct ptx2spv_input inputs[] = {
        {caller, sizeof caller, "caller", false},
        {function, sizeof function, "function", true},
        {variable, sizeof variable, NULL, false},
    };
    struct ptx2spv_linker *linker = NULL;
    struct ptx2spv_module *module = NULL;
    enum ptx2spv_status status = ptx2spv_linker_create(&linker), first = status;

    if (status != PTX2SPV_OK)
        return status;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        status = ptx2spv_linker_add(linker, &inputs[i], NULL);
        first = first == PTX2SPV_OK ? status : first;
        assert_int_equal(status, first);
    }
    status = ptx2spv_linker_finish(linker, NULL, &module);
    if (first != PTX2SPV_OK)
        assert_int_equal(status, first);
    assert_true((module != NULL) == (status == PTX2SPV_OK));
    ptx2spv_module_destroy(module);
    ptx2spv_linker_destroy(linker);
    return status;
}

/* Returns the number of allocations. */
static long fail_each_once(enum ptx2spv_status (*work)(void))
{
    enum ptx2spv_status status = PTX2SPV_OUT_OF_MEMORY;
    long n = 0;

    allocations_left = -1;
    assert_int_equal(work(), PTX2SPV_OK);
    for (; status == PTX2SPV_OUT_OF_MEMORY && n < 10000; n++) {
        allocations_left = n;
        status = work();
    }
    allocations_left = -1;
    assert_int_equal(status, PTX2SPV_OK);
    return n;
}

static void test_each_allocation_fails_once(void **state)
{
    (void)state;
    assert_true(fail_each_once(compile) > 5); /* several allocations did fail */
}

static void test_linking_without_memory(void **state)
{
    (void)state;
    assert_true(fail_each_once(link_texts) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_allocation_fails_once), cmocka_unit_test(test_linking_without_memory)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
