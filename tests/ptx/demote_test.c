/* SPDX-License-Identifier: Apache-2.0 */
/* Registers that the pass ssa keeps in the thread's frame: a kernel in which each of many edges into a loop's head writes registers of its
 * own computes what the same program computes in C. */
#include "cuttle/ptx2spv.h"
#include "spirv_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { TARGETS = 800, ROUNDS = 3000, PARAM = 0x10000 };

static char *make_ptx(void)
{
    char *text = malloc(TARGETS * 512 + 4096), *at = text;

    assert_non_null(text);
    at += sprintf(at,
                  ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .u64 %%rd1, %%w<%d>;\n"
                  ".reg .u32 %%i, %%n, %%r, %%v<%d>;\n.reg .u16 %%s<%d>;\n.reg .pred %%p, %%q<%d>;\nld.param.u64 %%rd1, [p];\n",
                  TARGETS, TARGETS, TARGETS, TARGETS);
    at += sprintf(at, "mov.u32 %%i, 1;\nmov.u32 %%n, 0;\n");
    for (int t = 0; t < TARGETS; t++)
        at += sprintf(at, "mov.u32 %%v%d, %d;\nmov.u64 %%w%d, %d;\nmov.u16 %%s%d, %d;\nsetp.eq.u32 %%q%d, %%n, 1;\n", t, t, t, 3 * t, t, t,
                      t);
    for (int t = 0; t < TARGETS; t++)
        at += sprintf(at, t ? ", T%d" : "L: .branchtargets T%d", t);
    at += sprintf(at,
                  ";\nLOOP:\nsetp.eq.u32 %%p, %%n, %d;\n@%%p bra DONE;\nadd.u32 %%n, %%n, 1;\nmad.lo.u32 %%i, %%i, 1103515245, 12345;\n"
                  "shr.u32 %%r, %%i, 8;\nrem.u32 %%r, %%r, %d;\nbrx.idx %%r, L;\n",
                  ROUNDS, TARGETS);
    for (int t = 0; t < TARGETS; t++)
        at += sprintf(at,
                      "T%d:\nmad.lo.u32 %%v%d, %%v%d, 5, %%i;\nadd.u64 %%w%d, %%w%d, 4294967299;\nadd.u16 %%s%d, %%s%d, 40000;\nnot.pred "
                      "%%q%d, %%q%d;\nbra LOOP;\n",
                      t, t, t, t, t, t, t, t, t);
    at += sprintf(at, "DONE:\n");
    for (int t = 0; t < TARGETS; t++)
        at += sprintf(
            at,
            "st.global.u32 [%%rd1+%d], %%v%d;\nst.global.u64 [%%rd1+%d], %%w%d;\ncvt.u32.u16 %%r, %%s%d;\n@%%q%d add.u32 %%r, %%r, 65536;\n"
            "st.global.u32 [%%rd1+%d], %%r;\n",
            16 * t, t, 16 * t + 8, t, t, t, 16 * t + 4);
    sprintf(at, "ret;\n}\n");
    return text;
}

struct result {
    uint32_t v, h;
    uint64_t w;
};

static void compute(struct result *out)
{
    uint32_t i = 1;

    for (uint32_t t = 0; t < TARGETS; t++)
        out[t] = (struct result){.v = t, .h = t, .w = 3 * t};
    for (int n = 0; n < ROUNDS; n++) {
        struct result *x;

        i = i * 1103515245u + 12345;
        x = &out[(i >> 8) % TARGETS];
        x->v = x->v * 5 + i;
        x->w += 4294967299;
        x->h = (x->h & ~0xffffu) ^ 0x10000 ^ ((x->h + 40000) & 0xffff);
    }
}

static void test_registers_in_the_frame(void **state)
{
    static struct result wanted[TARGETS], found[TARGETS];
    static const uint32_t spec[PTX2SPV_SPEC_COUNT] = {1, 1, 1, 1, 1, 0};
    const struct ptx2spv_target target = {.dialect = PTX2SPV_VULKAN,
                                          .push_constant_bytes = 128,
                                          .shared_bytes = 32768,
                                          .subgroup_size = 32,
                                          .max_block_threads = 1024,
                                          .int64 = 1,
                                          .int16 = 1,
                                          .int8 = 1,
                                          .storage8 = 1,
                                          .storage16 = 1};
    const struct spirv_range range = {PARAM, sizeof found, found};
    unsigned char push[PTX2SPV_PARAMS_OFFSET + sizeof(uint64_t)] = {0};
    struct spirv_run run = {.threads = 1,
                            .subgroup_lanes = 32,
                            .spec = spec,
                            .push = push,
                            .push_bytes = sizeof push,
                            .ranges = &range,
                            .n_ranges = 1,
                            .quiet_limit = 1u << 24,
                            .unwritten = UINT64_C(0xdeadbeefdeadbeef)};
    char *text = make_ptx();
    struct ptx2spv_module *module;
    struct ptx2spv_kernel kernel;

    (void)state;
    memcpy(push + PTX2SPV_PARAMS_OFFSET, &(uint64_t){PARAM}, sizeof(uint64_t));
    compute(wanted);
    assert_int_equal(ptx2spv_module_create(text, strlen(text), NULL, &module), PTX2SPV_OK);
    assert_int_equal(ptx2spv_kernel_compile(module, 0, &target, NULL, &kernel), PTX2SPV_OK);
    assert_true(kernel.info.local_bytes > 0); /* otherwise this test tests nothing */
    assert_valid_spirv(kernel.words, kernel.n_words);
    if (spirv_run(kernel.words, kernel.n_words, &run) != SPIRV_RETURNED)
        fail_msg("%s", run.message);
    assert_memory_equal(found, wanted, sizeof found);
    ptx2spv_kernel_finish(&kernel);
    ptx2spv_module_destroy(module);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_registers_in_the_frame)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
