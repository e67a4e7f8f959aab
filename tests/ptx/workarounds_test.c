/* SPDX-License-Identifier: Apache-2.0 */
/* Each workaround of the compiler: a kernel with the construct that the driver handles incorrectly is emitted differently if, and only if,
 * the target's mask contains the workaround's bit; the code is valid either way. That the results are then correct is shown by the tests
 * that the table of workarounds names. */
#include "spirv_check.h"

#include <cuttle/ptx2spv.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VULKAN                                                                                                                             \
    .dialect = PTX2SPV_VULKAN, .warp_form = PTX2SPV_WARP_COLLECTIVE, .subgroup_size = 8, .push_constant_bytes = 128,                       \
    .shared_bytes = 32768, .max_block_threads = 1024, .float64 = 1, .int64 = 1, .int16 = 1, .int8 = 1, .memory_model_device_scope = 1
#define OPENCL                                                                                                                             \
    .dialect = PTX2SPV_OPENCL, .warp_form = PTX2SPV_WARP_COLLECTIVE, .subgroup_size = 1, .shared_bytes = 32768, .max_block_threads = 1024, \
    .float64 = 1, .int64 = 1, .int16 = 1, .int8 = 1, .storage8 = 1, .storage16 = 1

static const struct ptx2spv_target vulkan = {VULKAN}, opencl = {OPENCL}, flushing = {OPENCL, .denorm_flush32 = 1},
                                   fused = {VULKAN, .exact_fma32 = 1}, clocks = {VULKAN, .shader_clock_device = 1},
                                   warps = {.dialect = PTX2SPV_OPENCL,
                                            .warp_form = PTX2SPV_WARP_NATIVE,
                                            .subgroup_size = 32,
                                            .threads_in_turn = 1,
                                            .shared_bytes = 32768,
                                            .max_block_threads = 1024,
                                            .float64 = 1,
                                            .int64 = 1,
                                            .int16 = 1,
                                            .int8 = 1,
                                            .storage8 = 1,
                                            .storage16 = 1};

/* For each workaround, a body with registers p<4> h<4> r<16> d<4> f<4>, and sh in shared memory. d0, r0, r1, f0 are initialized from
 * parameters. */
static const struct row {
    const struct ptx2spv_target *target;
    const char *body;
} rows[] = {
    [PTX2SPV_WORKAROUND_INDEX_COMPARISONS] =
        {&vulkan, "setp.lt.u32 p0,r0,r1; @!p0 bra E; setp.lt.s32 p1,r0,r1; selp.u32 r2,1,0,p1; st.global.u32 [d0],r2; E:"},
    [PTX2SPV_WORKAROUND_INDEX_SWAPPED_BYTES] =
        {&vulkan, "and.b32 r2,r0,255; shl.b32 r2,r2,8; shr.u32 r3,r0,8; and.b32 r3,r3,255; or.b32 r2,r2,r3; st.global.u32 [d0],r2;"},
    [PTX2SPV_WORKAROUND_INDEX_REVERSED_SIX_BYTES] =
        {&opencl, "mov.b64 d1,{r0,r1}; mov.b64 d2,0;"
                  "bfe.u64 d3,d1,0,8; shl.b64 d3,d3,40; or.b64 d2,d2,d3; bfe.u64 d3,d1,8,8; shl.b64 d3,d3,32; or.b64 d2,d2,d3;"
                  "bfe.u64 d3,d1,16,8; shl.b64 d3,d3,24; or.b64 d2,d2,d3; bfe.u64 d3,d1,24,8; shl.b64 d3,d3,16; or.b64 d2,d2,d3;"
                  "bfe.u64 d3,d1,32,8; shl.b64 d3,d3,8; or.b64 d2,d2,d3; bfe.u64 d3,d1,40,8; or.b64 d2,d2,d3; st.global.u64 [d0],d2;"},
    [PTX2SPV_WORKAROUND_INDEX_REPEATED_PRODUCTS] =
        {&vulkan, "mov.u32 r2,0; mov.u32 r4,0; L: mul.hi.u32 r3,r0,r1; add.u32 r2,r2,r3; add.u32 r4,r4,1; setp.lt.u32 p0,r4,r1;"
                  "ld.global.u32 r5,[d0]; add.u32 r2,r2,r5; @p0 bra L; st.global.u32 [d0],r2;"},
    [PTX2SPV_WORKAROUND_INDEX_CONSTANT_CHOICES] = {&vulkan,
                                                   "setp.lt.u32 p0,r0,r1; selp.b32 r2,0x3f800000,0x80000000,p0; st.global.u32 [d0],r2;"},
    [PTX2SPV_WORKAROUND_INDEX_TRUNCATED_CLOCK] = {&clocks, "mov.u64 d1,%clock64; st.global.u64 [d0],d1;"},
    /* because of the atomic, `slow-shared` leaves the shared memory where it is */
    [PTX2SPV_WORKAROUND_INDEX_HOISTED_LOADS] = {&vulkan,
                                                "atom.shared.add.u32 r3,[sh+4],1; ld.volatile.shared.u32 r2,[sh]; st.global.u32 [d0],r2;"},
    [PTX2SPV_WORKAROUND_INDEX_SLOW_SHARED] = {&vulkan,
                                              "st.shared.u32 [sh],r0; bar.sync 0; ld.shared.u32 r2,[sh+4]; st.global.u32 [d0],r2;"},
    [PTX2SPV_WORKAROUND_INDEX_IDLE_LOADS] = {&vulkan, "setp.eq.u64 p0,d0,0; @p0 bra E; ld.global.u32 r2,[d0]; st.global.u32 [d0+4],r2; E:"},
    [PTX2SPV_WORKAROUND_INDEX_CONSTANT_FACTORS] = {&fused, "fma.rn.f32 f1,0f3F99999A,0f3F4CCCCD,f0; st.global.f32 [d0],f1;"},
    [PTX2SPV_WORKAROUND_INDEX_LOST_SIGNS] =
        {&opencl, "neg.f32 f1,f0; bar.sync 0; add.f32 f2,f1,f0; st.global.f32 [d0],f2; st.global.f32 [d0+4],f1;"},
    [PTX2SPV_WORKAROUND_INDEX_PREDICATED_LOOPS] =
        {&opencl, "mov.u32 r2,%tid.x; mov.u32 r3,0; L: vote.sync.ballot.b32 r4,1,-1; add.u32 r3,r3,1; setp.lt.u32 p0,r3,r2; @p0 bra L;"
                  "st.global.u32 [d0],r4;"},
    [PTX2SPV_WORKAROUND_INDEX_SCATTERING_LOOPS] =
        {&warps, "mov.u32 r2,%tid.x; mov.u32 r3,0; L: add.u32 r3,r3,1; setp.eq.u32 p0,r3,r2; @p0 bra E; setp.lt.u32 p1,r3,7; @p1 bra L;"
                 "st.global.u32 [d0],r3; E: vote.sync.ballot.b32 r4,1,-1; st.global.u32 [d0+4],r4;"},
    [PTX2SPV_WORKAROUND_INDEX_VECTORIZED_STATES] = {&opencl, "mov.u32 r2,%tid.x; shfl.sync.idx.b32 r3,r2,0,31,-1; st.global.u32 [d0],r3;"},
    [PTX2SPV_WORKAROUND_INDEX_SECOND_STORES] = {&opencl,
                                                "st.global.u32 [d0],r0; setp.lt.u32 p0,r0,r1; @!p0 bra E; st.global.u32 [d0],r1; E:"},
    [PTX2SPV_WORKAROUND_INDEX_SPLIT_TAILS] = {&opencl, "setp.lt.u32 p0,r0,r1; @!p0 bra E; bar.sync 0; setp.lt.u32 p1,r1,7; "
                                                       "@p1 st.global.u32 [d0+4],r0; E: st.global.u32 [d0],r1;"},
    [PTX2SPV_WORKAROUND_INDEX_STORED_BOOLEANS] = {&opencl, "setp.lt.u32 p1,r0,r1; setp.lt.u32 p0,r1,7; @p0 bra E; setp.lt.u32 p1,r1,9; "
                                                           "E: @p1 st.global.u32 [d0],r1;"},
    [PTX2SPV_WORKAROUND_INDEX_LOGICAL_NOT] = {&opencl, "setp.lt.u32 p0,r0,r1; setp.lt.u32 p1,r1,7; and.pred p2,p0,p1; not.pred p2,p2; "
                                                       "xor.pred p3,p2,p0; and.pred p3,p3,p2; selp.u32 r2,1,0,p3; st.global.u32 [d0],r2;"},
    [PTX2SPV_WORKAROUND_INDEX_FLUSHED_INVERSE_ROOTS] = {&flushing, "rsqrt.approx.ftz.f32 f1,f0; st.global.f32 [d0],f1;"},
};
_Static_assert(sizeof rows / sizeof *rows == PTX2SPV_WORKAROUND_COUNT, "a row for each workaround");

static void compile(const struct row *row, uint32_t workarounds, struct ptx2spv_kernel *out)
{
    static const char head[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                               ".visible .entry k(.param .u64 out, .param .u32 a, .param .u32 b, .param .f32 c)\n{\n"
                               ".reg .pred p<4>; .reg .b16 h<4>; .reg .b32 r<16>; .reg .b64 d<4>; .reg .f32 f<4>;\n"
                               ".shared .align 16 .b8 sh[64];\n"
                               "ld.param.u64 d0,[out]; ld.param.u32 r0,[a]; ld.param.u32 r1,[b]; ld.param.f32 f0,[c];\n";
    const struct ptx2spv_options options = {.shared_form = PTX2SPV_SHARED_AS_NEEDED};
    struct ptx2spv_target target = *row->target;
    struct ptx2spv_module *module;
    char text[4096], why[512];

    target.workarounds = workarounds;
    assert_true(snprintf(text, sizeof text, "%s%s\nret;\n}\n", head, row->body) < (int)sizeof text);
    assert_int_equal(ptx2spv_module_create(text, strlen(text), &options, &module), PTX2SPV_OK);
    assert_int_equal(ptx2spv_kernel_compile(module, 0, &target, &options, out), PTX2SPV_OK);
    ptx2spv_module_destroy(module);
    if (!spirv_check(out->words, out->n_words, why, sizeof why))
        fail_msg("%s", why);
}

static bool is_same(const struct ptx2spv_kernel *a, const struct ptx2spv_kernel *b)
{
    return a->n_words == b->n_words && !memcmp(a->words, b->words, a->n_words * sizeof *a->words);
}

static void test_mask_reaches_the_compiler(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PTX2SPV_WORKAROUND_COUNT; i++) {
        struct ptx2spv_kernel without, with, with_all, with_others;

        compile(&rows[i], 0, &without);
        compile(&rows[i], 1u << i, &with);
        compile(&rows[i], PTX2SPV_WORKAROUNDS, &with_all);
        compile(&rows[i], PTX2SPV_WORKAROUNDS & ~(1u << i), &with_others);
        if (is_same(&without, &with))
            fail_msg("workaround %u changes nothing", i);
        if (is_same(&with_all, &with_others))
            fail_msg("workaround %u changes nothing beside the others", i);
        ptx2spv_kernel_finish(&without);
        ptx2spv_kernel_finish(&with);
        ptx2spv_kernel_finish(&with_all);
        ptx2spv_kernel_finish(&with_others);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mask_reaches_the_compiler)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
