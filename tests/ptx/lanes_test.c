/* SPDX-License-Identifier: Apache-2.0 */
/* Warps on subgroups of any size: the kernels of tests/programs/warps_rows.c, as SPIR-V, executed by an interpreter with subgroups of 4 to
 * 128 lanes (spirv_group.c), are compared with host C. The devices available for tests have 4, 8, 16 and 32 lanes; AMD's have 64, some
 * phones' 128.
 *
 * The native form is tested where a subgroup holds one, two or four warps, with barriers as GPUs have them; the collective forms for
 * every size, with barriers as SPIR-V has them. Each row runs with one thread count and one order of threads, which differ for each size
 * and form; with an argument, it runs with all counts and with that number of orders. */
#include "spirv_machine.h"

#include "../programs/warps_rows.h"
#include "cuttle/ptx2spv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

enum form { NATIVE, COLLECTIVE, PREDICATED, RESUMED };

#define ROWS_MAX 64
#define IN_ADDRESS UINT64_C(0x7f1000000000)
#define OUT_ADDRESS UINT64_C(0x7f2000000000)

struct lanes_case {
    enum form form;
    uint32_t lanes;
};

static unsigned orders; /* 0: the short form of the test */
/* The last kernel of each row and form: the collective forms are the same for every size. */
static struct {
    struct ptx2spv_kernel kernel;
    uint32_t lanes;
} kept[ROWS_MAX][RESUMED + 1];

static void compile(const struct warps_row *row, const struct lanes_case *c, struct ptx2spv_kernel *out)
{
    static const uint8_t sync_forms[] = {
        [NATIVE] = PTX2SPV_SYNC_CHEAPEST,
        [COLLECTIVE] = PTX2SPV_SYNC_CHEAPEST,
        [PREDICATED] = PTX2SPV_SYNC_PREDICATED,
        [RESUMED] = PTX2SPV_SYNC_RESUMED,
    };
    const struct ptx2spv_target target = {
        .dialect = PTX2SPV_VULKAN,
        .warp_form = c->form == NATIVE ? PTX2SPV_WARP_NATIVE : PTX2SPV_WARP_COLLECTIVE,
        .subgroup_size = c->lanes,
        .push_constant_bytes = 128,
        .shared_bytes = 32768,
        .max_block_threads = 1024,
        .int64 = 1,
        .memory_model_device_scope = 1,
        .maximal_reconvergence = 1,
        .sync_form = sync_forms[c->form],
        .lockstep = (row->flags & WARPS_LOCKSTEP) != 0,
    };
    struct ptx2spv_module *module;
    char text[WARPS_PTX_BYTES];

    warps_make_ptx(text, sizeof text, row);
    assert_int_equal(ptx2spv_module_create(text, strlen(text), NULL, &module), PTX2SPV_OK);
    if (ptx2spv_kernel_compile(module, 0, &target, NULL, out) != PTX2SPV_OK)
        fail_msg("%s does not compile", row->name);
    ptx2spv_module_destroy(module);
}

static const struct ptx2spv_kernel *kernel_of(size_t row, const struct lanes_case *c)
{
    const bool is_kept = kept[row][c->form].lanes && (c->form != NATIVE || kept[row][c->form].lanes == c->lanes);

    if (!is_kept) {
        ptx2spv_kernel_finish(&kept[row][c->form].kernel);
        compile(&warps_rows[row], c, &kept[row][c->form].kernel);
        kept[row][c->form].lanes = c->lanes;
    }
    return &kept[row][c->form].kernel;
}

static int finish_kernels(void **state)
{
    (void)state;
    for (size_t row = 0; row < warps_row_count; row++)
        for (unsigned form = 0; form <= RESUMED; form++)
            ptx2spv_kernel_finish(&kept[row][form].kernel);
    return 0;
}

struct outcome {
    enum spirv_end end;
    uint32_t out[WARPS_THREADS_MAX];
    char message[256];
};

static void interpret(const struct ptx2spv_kernel *kernel, uint32_t lanes, enum spirv_barriers barriers, struct warps_block *block,
                      uint32_t schedule, struct outcome *out)
{
    const uint32_t spec[PTX2SPV_SPEC_COUNT] = {block->threads, block->threads, 1, 1, (kernel->info.static_shared_bytes + 3) / 4, 0};
    const struct {
        struct ptx2spv_system_block system;
        uint64_t out, in;
        uint32_t count;
    } push = {.system.nctaid = {1, 1, 1}, .out = OUT_ADDRESS, .in = IN_ADDRESS, .count = block->n};
    const struct spirv_range ranges[] = {{IN_ADDRESS, sizeof block->in, block->in}, {OUT_ADDRESS, sizeof out->out, out->out}};
    struct spirv_run run = {
        .threads = block->threads,
        .subgroup_lanes = lanes,
        .spec = spec,
        .push = &push,
        .push_bytes = sizeof push,
        .ranges = ranges,
        .n_ranges = 2,
        .barriers = barriers,
        .schedule = schedule,
        .unwritten = UINT64_C(0x9e3779b97f4a7c15),
        .quiet_limit = 300000,
    };

    memset(out, 0, sizeof *out);
    out->end = spirv_run(kernel->words, kernel->n_words, &run);
    memcpy(out->message, run.message, sizeof out->message);
}

static void run(const struct warps_row *row, const struct lanes_case *c, const struct ptx2spv_kernel *kernel, struct warps_block *block,
                uint32_t schedule)
{
    struct outcome found;

    interpret(kernel, c->lanes, c->form == NATIVE ? SPIRV_BARRIERS_OF_GPU : SPIRV_BARRIERS_OF_ALL, block, schedule, &found);
    if (found.end != SPIRV_RETURNED)
        fail_msg("%s, %u threads, n = %u, order %u: %s", row->name, block->threads, block->n, schedule, found.message);
    for (uint32_t t = 0; t < WARPS_THREADS_MAX; t++)
        if (found.out[t] != block->out[t])
            fail_msg("%s, %u threads, n = %u, order %u, thread %u: 0x%x instead of 0x%x", row->name, block->threads, block->n, schedule, t,
                     found.out[t], block->out[t]);
}

static void run_row(size_t index, const struct lanes_case *c)
{
    /* full subgroups and others, of whole warps and of parts */
    static const uint32_t few[] = {80, 64, 96, 80}, many[] = {128, 80, 160, 64};
    const uint32_t *threads = c->lanes > 32 || orders ? many : few;
    const struct warps_row *row = &warps_rows[index];
    const unsigned first = (unsigned)index + c->lanes / 4 + (unsigned)c->form, n_runs = orders ? 4 * orders : 1;
    const struct ptx2spv_kernel *kernel = kernel_of(index, c);

    for (unsigned i = 0; i < n_runs; i++) {
        struct warps_block block;
        uint32_t size = threads[(first + i / 4) % 4];

        warps_fill(&block, (first + i) % 4, row->flags & WARPS_FULL && size % 32 ? 96 : size);
        row->expect(&block);
        run(row, c, kernel, &block, first * 7 + i / 4);
    }
}

/* With sanitizers each collective form of a row runs on two of the six sizes. */
static bool is_left_out(size_t row, const struct lanes_case *c)
{
#ifdef SANITIZED
    if (c->form != NATIVE && (row + (unsigned)__builtin_ctz(c->lanes)) % 3)
        return true;
#endif
    return warps_rows[row].flags & WARPS_GENERIC || (c->form == NATIVE && warps_rows[row].flags & WARPS_APART);
}

static void run_rows(void **state)
{
    const struct lanes_case *c = *state;

    assert_true(warps_row_count <= ROWS_MAX);
    for (size_t i = 0; i < warps_row_count; i++)
        if (!is_left_out(i, c))
            run_row(i, c);
}

/* The interpreter detects code that SPIR-V does not allow, and code for subgroups of another size. */
static void test_it_can_fail(void **state)
{
    static const struct {
        const char *name;
        uint32_t made_for, lanes;
        enum spirv_barriers barriers;
        enum spirv_end end;
    } cases[] = {
        {"barriers after early exits", 32, 32, SPIRV_BARRIERS_OF_ALL, SPIRV_WRONG}, /* some threads have ended */
        {"one barrier from two branches", 32, 32, SPIRV_BARRIERS_OF_ALL, SPIRV_WRONG},
        {"producer and consumer", 32, 64, SPIRV_BARRIERS_OF_GPU, SPIRV_GAVE_UP}, /* two warps of one subgroup wait for each other */
    };

    (void)state;
    for (size_t i = 0; i < warps_row_count; i++)
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            struct warps_block block;
            struct outcome found;

            if (strcmp(warps_rows[i].name, cases[k].name))
                continue;
            warps_fill(&block, 1, 128);
            interpret(kernel_of(i, &(struct lanes_case){NATIVE, cases[k].made_for}), cases[k].lanes, cases[k].barriers, &block, 0, &found);
            assert_int_equal(found.end, cases[k].end);
        }
}

int main(int argc, char **argv)
{
#define ROW(form, lanes)                                                                                                                   \
    {                                                                                                                                      \
        #form " of " #lanes, run_rows, NULL, NULL, &(struct lanes_case)                                                                    \
        {                                                                                                                                  \
            form, lanes                                                                                                                    \
        }                                                                                                                                  \
    }
#define ROWS(form) ROW(form, 4), ROW(form, 8), ROW(form, 16), ROW(form, 32), ROW(form, 64), ROW(form, 128)
    const struct CMUnitTest tests[] = {
        ROW(NATIVE, 32),
        ROW(NATIVE, 64),
        ROW(NATIVE, 128),
        ROWS(COLLECTIVE),
        ROWS(PREDICATED),
        ROWS(RESUMED),
        cmocka_unit_test(test_it_can_fail),
    };

    orders = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    return cmocka_run_group_tests(tests, NULL, finish_kernels);
}
