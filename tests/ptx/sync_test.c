/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels pass their synchronization points in one order, and which must be cut at them. A kernel must be cut if PTX brings
 * together threads that are at different points, or in different iterations of a loop; the reason is stated with each kernel. What the
 * forms compute is tested by programs.warps and by random kernels. */
#include "cuttle/ptx2spv.h"

#include "spirv_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

/* Recognized by the work-group memory: the resumed form stores for each thread where it waits, and for which lanes, or for each warp how many
 * lanes have arrived, if the masks are full. */
enum form { IN_ORDER, RESUMED_BY_LANES, RESUMED_BY_COUNTS };

static const struct {
    const char *name;
    enum form form;
    const char *body;
} rows[] = {
    {"the whole block", IN_ORDER, "shfl.sync.idx.b32 r1,r0,0,31,-1;"},
    {"if, some warps", IN_ORDER,
     "setp.lt.u32 p,t,32; @!p bra OUT; shfl.sync.bfly.b32 r1,r0,1,31,-1; shfl.sync.bfly.b32 r1,r1,2,31,-1; OUT:"},
    {"if and else of different kinds", IN_ORDER,
     "setp.lt.u32 p,t,32; @p bra THEN; shfl.sync.up.b32 r1,r0,1,0,-1; bra OUT; THEN: shfl.sync.down.b32 r1,r0,1,31,-1; OUT:"},
    {"if and else of one kind: lanes of both meet", RESUMED_BY_COUNTS,
     "setp.lt.u32 p,t,32; @p bra THEN; shfl.sync.idx.b32 r1,r0,1,31,-1; bra OUT; THEN: shfl.sync.idx.b32 r1,r0,2,31,-1; OUT:"},
    {"one if after another: a lane of the first synchronizes with one of the second", RESUMED_BY_COUNTS,
     "setp.lt.u32 p,t,32; @!p bra A; shfl.sync.idx.b32 r1,r0,1,31,-1; A: setp.lt.u32 p,t,64; @!p bra B;"
     "shfl.sync.idx.b32 r1,r0,2,31,-1; B:"},
    {"one if after another, a barrier between", IN_ORDER,
     "setp.lt.u32 p,t,32; @!p bra A; shfl.sync.idx.b32 r1,r0,1,31,-1; A: bar.sync 0; setp.lt.u32 p,t,64; @!p bra B;"
     "shfl.sync.idx.b32 r1,r0,2,31,-1; B:"},
    {"rounds that differ", IN_ORDER, "L: shfl.sync.idx.b32 r0,r0,1,31,-1; sub.u32 t,t,32; setp.gt.s32 p,t,0; @p bra L; mov.u32 r1,r0;"},
    {"rounds without a point: a lane may be behind", RESUMED_BY_COUNTS,
     "L: and.b32 r2,t,32; setp.eq.u32 p,r2,0; @p bra N; shfl.sync.idx.b32 r0,r0,1,31,-1; N: sub.u32 t,t,1; setp.gt.s32 p,t,0; @p bra L;"
     "mov.u32 r1,r0;"},
    {"such rounds, kept apart by a barrier", IN_ORDER,
     "mov.u32 r3,0; L: and.b32 r2,t,32; setp.eq.u32 p,r2,0; @p bra N; shfl.sync.idx.b32 r0,r0,1,31,-1; N: bar.sync 0; add.u32 r3,r3,1;"
     "setp.lt.u32 p,r3,n; @p bra L; mov.u32 r1,r0;"},
    {"a loop in a loop: the inner one's next round or the outer one's", RESUMED_BY_COUNTS,
     "mov.u32 r3,t; L: mov.u32 r2,t; I: shfl.sync.idx.b32 r0,r0,1,31,-1; sub.u32 r2,r2,32; setp.gt.s32 p,r2,0; @p bra I; sub.u32 r3,r3,32;"
     "setp.gt.s32 p,r3,0; @p bra L; mov.u32 r1,r0;"},
    {"a loop in a loop, with a vote between", IN_ORDER,
     "mov.u32 r3,t; L: mov.u32 r2,t; I: shfl.sync.idx.b32 r0,r0,1,31,-1; sub.u32 r2,r2,32; setp.gt.s32 p,r2,0; @p bra I; sub.u32 r3,r3,32;"
     "setp.gt.s32 p,r3,0; vote.sync.any.pred q,p,-1; @q bra L; mov.u32 r1,r0;"},
    {"a mask from a ballot, used once", IN_ORDER,
     "setp.lt.u32 p,t,20; vote.sync.ballot.b32 r2,p,-1; @!p bra OUT; shfl.sync.bfly.b32 r1,r0,1,31,r2;"
     "shfl.sync.bfly.b32 r1,r1,2,31,r2; OUT:"},
    {"a mask that changes between two shuffles: others may be at the first", RESUMED_BY_LANES,
     "setp.lt.u32 p,t,20; @!p bra OUT; activemask.b32 r2; shfl.sync.bfly.b32 r1,r0,1,31,r2; and.b32 r2,r2,255;"
     "shfl.sync.bfly.b32 r1,r1,2,31,r2; OUT:"},
    {"after an early exit", IN_ORDER,
     "setp.ge.u32 p,t,n; @p ret; shfl.sync.idx.b32 r1,r0,1,31,-1; bar.sync 0; shfl.sync.idx.b32 r1,r1,2,31,-1;"},
    {"one barrier in two branches: it may be any warp that meets any", RESUMED_BY_COUNTS,
     "setp.lt.u32 p,t,32; @p bra THEN; bar.sync 0; bra OUT; THEN: bar.sync 0; OUT: shfl.sync.idx.b32 r1,r0,1,31,-1;"},
    {"barriers of some warps", RESUMED_BY_COUNTS, "bar.sync 1,64; shfl.sync.idx.b32 r1,r0,1,31,-1;"},
    {"a loop that waits for another thread", RESUMED_BY_COUNTS,
     "W: ld.volatile.global.u32 r2,[o]; setp.eq.u32 p,r2,0; @p bra W; shfl.sync.idx.b32 r1,r0,1,31,-1;"},
    {"a loop entered at two places", RESUMED_BY_COUNTS,
     "setp.lt.u32 p,t,32; @p bra B; A: shfl.sync.idx.b32 r0,r0,1,31,-1; B: shfl.sync.bfly.b32 r0,r0,1,31,-1; sub.u32 t,t,32;"
     "setp.gt.s32 p,t,0; @p bra A; mov.u32 r1,r0;"},
};

static void compile(const char *body, enum ptx2spv_sync_form form, enum ptx2spv_dialect dialect, bool cooperative,
                    struct ptx2spv_kernel *out)
{
    const struct ptx2spv_target target = {
        .dialect = dialect,
        .warp_form = PTX2SPV_WARP_COLLECTIVE,
        .subgroup_size = 8,
        .push_constant_bytes = 128,
        .shared_bytes = 32768,
        .max_block_threads = 1024,
        .int64 = 1,
        .memory_model_device_scope = 1,
        .sync_form = form,
    };
    const struct ptx2spv_options options = {.cooperative = cooperative};
    struct ptx2spv_module *module;
    char text[2048];

    assert_true(snprintf(text, sizeof text,
                         ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u32 in)\n{\n"
                         ".reg .pred p, q; .reg .b32 r<8>, t, n; .reg .b64 o; ld.param.u64 o,[out]; ld.param.u32 n,[in]; mov.u32 t,%%tid.x;"
                         "mov.u32 r0,t; mov.u32 r1,t;\n%s\nst.global.u32 [o],r1; ret;\n}\n",
                         body) < (int)sizeof text);
    assert_int_equal(ptx2spv_module_create(text, strlen(text), &options, &module), PTX2SPV_OK);
    assert_int_equal(ptx2spv_kernel_compile(module, 0, &target, &options, out), PTX2SPV_OK);
    ptx2spv_module_destroy(module);
}

static enum form form_of(const struct ptx2spv_kernel *kernel, uint32_t in_order_bytes)
{
    if (kernel->info.exchange_thread_bytes > 4)
        return RESUMED_BY_LANES;
    return kernel->info.exchange_bytes > in_order_bytes ? RESUMED_BY_COUNTS : IN_ORDER;
}

static void test_the_form(void **state)
{
    uint32_t in_order_bytes = 0; /* the first row's */

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ptx2spv_kernel kernel;

        compile(rows[i].body, PTX2SPV_SYNC_CHEAPEST, PTX2SPV_VULKAN, false, &kernel);
        in_order_bytes = i ? in_order_bytes : kernel.info.exchange_bytes;
        if (form_of(&kernel, in_order_bytes) != rows[i].form)
            fail_msg("%s: %u bytes, and %u a thread", rows[i].name, kernel.info.exchange_bytes, kernel.info.exchange_thread_bytes);
        ptx2spv_kernel_finish(&kernel);
    }
}

/* Every form of every row, in both dialects. */
static void test_the_code_is_valid(void **state)
{
    (void)state;
    for (size_t i = 0; i < 6 * (sizeof rows / sizeof *rows); i++) {
        struct ptx2spv_kernel kernel;

        compile(rows[i / 6].body, (enum ptx2spv_sync_form)(i % 3), i % 2 ? PTX2SPV_VULKAN : PTX2SPV_OPENCL, false, &kernel);
        assert_valid_spirv(kernel.words, kernel.n_words);
        ptx2spv_kernel_finish(&kernel);
    }
}

/* Kernels of cooperative launches have one more parameter, and save state between dispatches if a loop waits; every form is valid. */
static void test_cooperative_ones(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * (sizeof rows / sizeof *rows); i++) {
        struct ptx2spv_kernel kernel;

        compile(rows[i / 2].body, PTX2SPV_SYNC_CHEAPEST, i % 2 ? PTX2SPV_VULKAN : PTX2SPV_OPENCL, true, &kernel);
        assert_int_equal(kernel.info.grid_param_offset, 16); /* behind 8 and 4 bytes, aligned to 8 */
        assert_int_equal(kernel.info.param_bytes, 24);
        if ((kernel.info.grid_thread_words > 0) != (strstr(rows[i / 2].body, "ld.volatile") != NULL))
            fail_msg("%s: %u words of state a thread", rows[i / 2].name, kernel.info.grid_thread_words);
        assert_valid_spirv(kernel.words, kernel.n_words);
        ptx2spv_kernel_finish(&kernel);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_form),
        cmocka_unit_test(test_the_code_is_valid),
        cmocka_unit_test(test_cooperative_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
