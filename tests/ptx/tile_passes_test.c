/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that work on tiles in shared memory, on devices with native warps: the passes async_copies, lane_values and address_constants, and arrivals at
 * mbarriers, which lanes make together. Kernels are executed by the interpreter (spirv_group.c) in several orders of threads and compared with the host; dumps show what the passes did. */
#include "spirv_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 64, STEPS_MAX = 9, WORDS = 4 /* of a copy */, ORDERS = 12 };
#define IN_ADDRESS UINT64_C(0x7f1000000000)
#define OUT_ADDRESS UINT64_C(0x7f2000000000)
#define OP_SHUFFLE 345u /* OpGroupNonUniformShuffle */

/* ---- compiling and running ---- */

struct kernel {
    struct ptx2spv_kernel compiled;
    char *dump; /* the IR after one pass */
};

static void keep_dump(void *user, const char *pass, const char *text)
{
    struct kernel *kernel = user;

    (void)pass;
    free(kernel->dump);
    kernel->dump = strdup(text);
}

static void compile(const char *text, const char *pass, struct kernel *out)
{
    const struct ptx2spv_target target = {
        .dialect = PTX2SPV_VULKAN,
        .warp_form = PTX2SPV_WARP_NATIVE,
        .subgroup_size = 32,
        .push_constant_bytes = 128,
        .shared_bytes = 32768,
        .max_block_threads = 1024,
        .int64 = 1,
        .int16 = 1,
        .atomic_int64_shared = 1,
        .memory_model_device_scope = 1,
        .maximal_reconvergence = 1,
        .shared_explicit_layout = 1,
        .shared_explicit_layout16 = 1,
    };
    const struct ptx2spv_options options = {.on_dump = keep_dump, .user = out, .dump = pass};
    struct ptx2spv_module *module;

    *out = (struct kernel){0};
    assert_int_equal(ptx2spv_module_create(text, strlen(text), NULL, &module), PTX2SPV_OK);
    if (ptx2spv_kernel_compile(module, 0, &target, &options, &out->compiled) != PTX2SPV_OK)
        fail_msg("it does not compile:\n%s", text);
    ptx2spv_module_destroy(module);
    assert_non_null(out->dump);
}

static void finish(struct kernel *kernel)
{
    ptx2spv_kernel_finish(&kernel->compiled);
    free(kernel->dump);
}

struct memory {
    uint32_t in[(STEPS_MAX + 1) * THREADS * WORDS], out[THREADS * WORDS];
};

static void interpret(const struct kernel *kernel, struct memory *memory, uint32_t steps, const uint32_t block[3], uint32_t schedule)
{
    const uint32_t spec[PTX2SPV_SPEC_COUNT] = {THREADS, block[0], block[1], block[2], (kernel->compiled.info.static_shared_bytes + 3) / 4,
                                               0};
    const struct {
        struct ptx2spv_system_block system;
        uint64_t in, out;
        uint32_t steps;
    } push = {.system.nctaid = {1, 1, 1}, .in = IN_ADDRESS, .out = OUT_ADDRESS, .steps = steps};
    const struct spirv_range ranges[] = {{IN_ADDRESS, sizeof memory->in, memory->in}, {OUT_ADDRESS, sizeof memory->out, memory->out}};
    struct spirv_run run = {
        .threads = THREADS,
        .subgroup_lanes = 32,
        .spec = spec,
        .push = &push,
        .push_bytes = sizeof push,
        .ranges = ranges,
        .n_ranges = 2,
        .barriers = SPIRV_BARRIERS_OF_GPU,
        .schedule = schedule,
        .unwritten = UINT64_C(0x9e3779b97f4a7c15),
    };

    if (spirv_run(kernel->compiled.words, kernel->compiled.n_words, &run) != SPIRV_RETURNED)
        fail_msg("%u steps, order %u: %s", steps, schedule, run.message);
}

static void fill(struct memory *memory)
{
    uint32_t state = 1;

    memset(memory, 0, sizeof *memory);
    for (size_t i = 0; i < sizeof memory->in / sizeof *memory->in; i++)
        memory->in[i] = state = state * 1664525 + 1013904223;
}

#define HEAD                                                                                                                               \
    ".version 8.7\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 pin, .param .u64 pout, .param .u32 psteps)\n{\n"         \
    ".reg .b64 in, out, from; .reg .b32 t, steps, step, to, stage, sum, at, x, y, w<8>; .reg .pred p, q;\n"                                \
    ".shared .align 16 .b8 tiles[8192];\n"                                                                                                 \
    "ld.param.u64 in, [pin]; ld.param.u64 out, [pout]; ld.param.u32 steps, [psteps]; mov.u32 t, %tid.x;\n"
#define STORE_SUM "mad.wide.u32 out, t, 4, out; st.global.u32 [out], sum; ret;\n}\n"

/* ---- async_copies ---- */

/* Each thread adds what its neighbour has copied, step by step. */
static uint32_t sum_of_neighbour(const struct memory *memory, uint32_t steps, unsigned thread)
{
    const unsigned neighbour = (thread + 1) % THREADS;
    uint32_t sum = 0;

    for (uint32_t step = 0; step < steps; step++)
        for (unsigned word = 0; word < WORDS; word++)
            sum += memory->in[(step * THREADS + neighbour) * WORDS + word];
    return sum;
}

#define COPY "cp.async.cg.shared.global [to], [from], 16;\n"
#define SUM_NEIGHBOUR                                                                                                                      \
    "add.u32 x, t, 1; and.b32 x, x, 63; mad.lo.u32 x, x, 16, at; ld.shared.v4.u32 {w0, w1, w2, w3}, [x];\n"                                \
    "add.u32 sum, sum, w0; add.u32 sum, sum, w1; add.u32 sum, sum, w2; add.u32 sum, sum, w3;\n"
/* The place of a step's tile, of `stages`, in `to` and `from`. */
#define PLACE(step, stages)                                                                                                                \
    "rem.u32 stage, " step ", " stages "; mad.lo.u32 to, stage, 1024, at; mad.lo.u32 to, t, 16, to;\n"                                     \
    "mul.lo.u32 x, " step ", 1024; mad.lo.u32 x, t, 16, x; cvt.u64.u32 from, x; add.u64 from, from, in;\n"

static const struct copy_row {
    const char *name, *text;
    bool is_moved; /* the store of the loop leaves the block of the load */
} copy_rows[] = {
    {"two stages, a branch around the copy",
     HEAD "mov.u32 at, tiles; mov.u32 sum, 0; mov.u32 step, 0;\n" PLACE("step", "2") COPY
     "cp.async.commit_group;\n"
     "LOOP: cp.async.wait_group 0; bar.sync 0;\nadd.u32 y, step, 1; setp.ge.u32 p, y, steps; @p bra NONE;\n" PLACE("y", "2") COPY
     "NONE: cp.async.commit_group;\nrem.u32 stage, step, 2; mov.u32 at, tiles; mad.lo.u32 at, stage, 1024, at;\n" SUM_NEIGHBOUR
     "mov.u32 at, tiles; mov.u32 step, y; setp.lt.u32 p, step, steps; @p bra LOOP;\n" STORE_SUM,
     true},
    {"two stages, a predicate, and registers that change behind the copy",
     HEAD "mov.u32 at, tiles; mov.u32 sum, 0; mov.u32 step, 0;\n" PLACE("step", "2") COPY
     "cp.async.commit_group;\n"
     "LOOP: cp.async.wait_all; bar.sync 0;\nadd.u32 y, step, 1; setp.lt.u32 p, y, steps;\n" PLACE(
         "y", "2") "@p " COPY "mov.u32 to, 0; mov.u64 from, 0;\ncp.async.commit_group;\nrem.u32 stage, step, 2; mov.u32 at, tiles; "
                   "mad.lo.u32 at, stage, 1024, "
                   "at;\n" SUM_NEIGHBOUR "mov.u32 at, tiles; mov.u32 step, y; setp.lt.u32 p, step, steps; @p bra LOOP;\n" STORE_SUM,
     true},
    {"three stages, waits that leave a group",
     HEAD "mov.u32 at, tiles; mov.u32 sum, 0; mov.u32 step, 0;\n" PLACE("0", "3") COPY
     "cp.async.commit_group;\nsetp.lt.u32 p, 1, steps;\n" PLACE(
         "1", "3") "@p " COPY "cp.async.commit_group;\n"
                   "LOOP: cp.async.wait_group 1; bar.sync 0;\nadd.u32 y, step, 2; setp.lt.u32 p, y, steps; @!p bra NONE;\n" PLACE("y", "3")
                       COPY
     "NONE: cp.async.commit_group;\nrem.u32 stage, step, 3; mov.u32 at, tiles; mad.lo.u32 at, stage, 1024, at;\n" SUM_NEIGHBOUR
     "mov.u32 at, tiles; add.u32 step, step, 1; setp.lt.u32 p, step, steps; @p bra LOOP;\n" STORE_SUM,
     true},
    {"one stage, the wait follows the copy",
     HEAD "mov.u32 sum, 0; mov.u32 step, 0;\nLOOP: mov.u32 at, tiles;\n" PLACE("step", "1") COPY
     "cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;\n" SUM_NEIGHBOUR
     "bar.sync 0; add.u32 step, step, 1; setp.lt.u32 p, step, steps; @p bra LOOP;\n" STORE_SUM,
     false},
    {"a loop that only copies, to all eight stages; a loop behind the wait",
     HEAD "mov.u32 sum, 0; mov.u32 step, 0; min.u32 y, steps, 8;\nLOOP: mov.u32 at, tiles;\n" PLACE("step", "8") COPY
     "add.u32 step, step, 1; setp.lt.u32 p, step, y; @p bra LOOP;\ncp.async.wait_all; bar.sync 0; mov.u32 step, 0;\n"
     "ADD: mov.u32 at, tiles; mad.lo.u32 at, step, 1024, at;\n" SUM_NEIGHBOUR
     "add.u32 step, step, 1; setp.lt.u32 p, step, y; @p bra ADD;\n" STORE_SUM,
     false},
};

/* Whether there is no store to shared memory between the last load of a copy and the end of its block. */
static bool is_store_moved(const char *dump)
{
    const char *load = dump, *end, *store;

    for (const char *next = dump; (next = strstr(next, "load.global")); next++)
        load = next;
    end = strstr(load, "\nb");
    store = strstr(load, "store.shared");
    return !store || (end && store > end);
}

static void test_async_copies(void **state)
{
    static const uint32_t line[] = {THREADS, 1, 1};
    static struct memory memory;

    (void)state;
    for (size_t i = 0; i < sizeof copy_rows / sizeof *copy_rows; i++) {
        struct kernel kernel;

        compile(copy_rows[i].text, "async_copies", &kernel);
        assert_null(strstr(kernel.dump, "asyncwait"));
        if (is_store_moved(kernel.dump) != copy_rows[i].is_moved)
            fail_msg("%s: the store is %smoved:\n%s", copy_rows[i].name, copy_rows[i].is_moved ? "not " : "", kernel.dump);
        for (uint32_t run = 0; run < ORDERS; run++) {
            const uint32_t steps = 1 + run % 8;

            fill(&memory);
            interpret(&kernel, &memory, steps, line, run * 7);
            for (unsigned t = 0; t < THREADS; t++)
                if (memory.out[t] != sum_of_neighbour(&memory, steps, t))
                    fail_msg("%s: %u steps, thread %u: 0x%x instead of 0x%x", copy_rows[i].name, steps, t, memory.out[t],
                             sum_of_neighbour(&memory, steps, t));
        }
        finish(&kernel);
    }
}

/* ---- lane_values and address_constants ---- */

/* Shared memory has the words of `in`; each warp adds the words that ldmatrix gives it for row addresses that are multiples of 16. */
#define FILL_TILES                                                                                                                         \
    "mov.u32 at, tiles; mov.u32 x, %tid.y; mov.u32 y, %ntid.x; mad.lo.u32 t, x, y, t; mov.u32 step, 0;\n"                                  \
    "FILL: mad.lo.u32 x, step, 64, t; mul.wide.u32 from, x, 4; add.u64 from, from, in; ld.global.u32 w0, [from];\n"                        \
    "shl.b32 x, x, 2; add.u32 x, x, at; st.shared.u32 [x], w0;\n"                                                                          \
    "add.u32 step, step, 1; setp.lt.u32 p, step, 32; @p bra FILL;\nbar.sync 0; mov.u32 sum, 0;\n"
#define ADD_MATRICES                                                                                                                       \
    "add.u32 sum, sum, w0; shl.b32 w1, w1, 1; add.u32 sum, sum, w1; shl.b32 w2, w2, 2; add.u32 sum, sum, w2; shl.b32 w3, w3, 3; "          \
    "add.u32 sum, sum, w3;\n"

static uint32_t sum_of_matrices(const struct memory *memory, const uint32_t *rows /* words, by lane of the warp */, unsigned lane)
{
    uint32_t sum = 0;

    for (unsigned matrix = 0; matrix < 4; matrix++)
        sum += memory->in[rows[8 * matrix + lane / 4] + lane % 4] << matrix;
    return sum;
}

static uint32_t row_by_lane(const struct memory *memory, uint32_t step, unsigned thread)
{
    (void)memory;
    return ((thread | 64) * 5 + step * 3 + thread / 32 * 7) % 512 * 4 % 2044;
}

static uint32_t row_from_memory(const struct memory *memory, uint32_t step, unsigned thread)
{
    return memory->in[thread] % 500 * 4 + step * 4;
}

static const struct lane_row {
    const char *name, *text;
    uint32_t (*row)(const struct memory *memory, uint32_t step, unsigned thread);
    bool is_computed; /* no shuffle is left */
} lane_rows[] = {
    {"rows by the thread's number, in a loop",
     HEAD FILL_TILES
     "or.b32 x, t, 64; mul.lo.u32 x, x, 5; shr.u32 y, t, 5; mad.lo.u32 x, y, 7, x; mov.u32 step, 0;\n"
     "LOOP: mad.lo.u32 y, step, 3, x; rem.u32 y, y, 512; shl.b32 y, y, 2; rem.u32 y, y, 2044; shl.b32 y, y, 2; add.u32 y, y, at;\n"
     "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {w0, w1, w2, w3}, [y];\n" ADD_MATRICES
     "add.u32 step, step, 1; setp.lt.u32 p, step, steps; @p bra LOOP;\n" STORE_SUM,
     row_by_lane, true},
    {"rows from memory",
     HEAD FILL_TILES "mul.wide.u32 from, t, 4; add.u64 from, from, in; ld.global.u32 x, [from]; rem.u32 x, x, 500; mov.u32 step, 0;\n"
                     "LOOP: add.u32 y, x, step; shl.b32 y, y, 4; add.u32 y, y, at;\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {w0, w1, w2, "
                     "w3}, [y];\n" ADD_MATRICES "add.u32 step, step, 1; setp.lt.u32 p, step, steps; @p bra LOOP;\n" STORE_SUM,
     row_from_memory, false},
};

static void check_lanes(const struct lane_row *row, const struct memory *memory, uint32_t steps)
{
    for (unsigned t = 0; t < THREADS; t++) {
        uint32_t want = 0;

        for (uint32_t step = 0; step < steps; step++) {
            uint32_t rows[32];

            for (unsigned lane = 0; lane < 32; lane++)
                rows[lane] = row->row(memory, step, t / 32 * 32 + lane);
            want += sum_of_matrices(memory, rows, t % 32);
        }
        if (memory->out[t] != want)
            fail_msg("%s: %u steps, thread %u: 0x%x instead of 0x%x", row->name, steps, t, memory->out[t], want);
    }
}

static void test_lane_values(void **state)
{
    static const uint32_t blocks[][3] = {{THREADS, 1, 1}, {16, 4, 1}};
    static struct memory memory;

    (void)state;
    for (size_t i = 0; i < sizeof lane_rows / sizeof *lane_rows; i++) {
        struct kernel kernel;

        compile(lane_rows[i].text, "lane_values", &kernel);
        assert_int_equal(count_spirv(kernel.compiled.words, kernel.compiled.n_words, OP_SHUFFLE) == 0, lane_rows[i].is_computed);
        for (uint32_t run = 0; run < ORDERS; run++) {
            fill(&memory);
            interpret(&kernel, &memory, 1 + run % 3, blocks[run % 2], run * 5);
            check_lanes(&lane_rows[i], &memory, 1 + run % 3);
        }
        finish(&kernel);
    }
}

/* ((t & 63 | 64) * 8 + (t & 3) + 1) * 4: the constant is (64 * 8 + 1) * 4. */
static void test_address_constants(void **state)
{
    static const char text[] =
        HEAD "mov.u32 sum, 0; and.b32 x, t, 63; or.b32 x, x, 64; mul.lo.u32 x, x, 8; and.b32 y, t, 3; add.u32 x, x, y; add.u32 x, x, 1;\n"
             "shl.b32 x, x, 2; mov.u32 at, tiles; add.u32 x, x, at; st.shared.u32 [x], t; ld.shared.u32 sum, [x];\n" STORE_SUM;
    static const uint32_t line[] = {THREADS, 1, 1};
    static struct memory memory;
    struct kernel kernel;

    (void)state;
    compile(text, "address_constants", &kernel);
    assert_non_null(strstr(kernel.dump, "+2052]"));
    fill(&memory);
    interpret(&kernel, &memory, 1, line, 0);
    for (unsigned t = 0; t < THREADS; t++)
        assert_int_equal(memory.out[t], t);
    finish(&kernel);
}

/* ---- arrivals ---- */

/* Each thread stores to its word, arrives at the barrier of its group, waits, and adds its neighbour's word; it also adds the pending count of the
 * state that it got, which is another one for each thread of the group. `group` computes y, the number of the group, and x, its size. */
#define ARRIVALS(group, instruction)                                                                                                       \
    HEAD ".reg .b64 state; .shared .align 8 .b64 barriers[2];\nmov.u32 at, tiles; mov.u32 sum, 0; mov.u32 step, 0;\n" group                \
         "mov.u32 stage, barriers; mad.lo.u32 stage, y, 8, stage; setp.ge.u32 q, t, 2; @q bra READY; mov.u32 to, barriers; "               \
         "mad.lo.u32 to, t, 8, to; mbarrier.init.shared.b64 [to], x;\nREADY: bar.sync 0; mad.lo.u32 to, t, 4, at;\n"                       \
         "LOOP: add.u32 y, t, step; st.shared.u32 [to], y;\n" instruction " state, [stage];\n"                                             \
         "WAIT: mbarrier.test_wait.shared.b64 p, [stage], state; @!p bra WAIT;\nbar.sync 0; mbarrier.pending_count.b64 y, state;\n"        \
         "add.u32 sum, sum, y; add.u32 x, t, 1; and.b32 x, x, 63; mad.lo.u32 x, x, 4, at; ld.shared.u32 y, [x]; mad.lo.u32 sum, y, 4096, " \
         "sum;\nbar.sync 0; add.u32 step, step, 1; setp.lt.u32 p, step, steps; @p bra LOOP;\n" STORE_SUM

static void test_arrivals(void **state)
{
    static const struct {
        const char *text;
        unsigned size; /* of a group */
    } rows[] = {{ARRIVALS("mov.u32 y, 0; mov.u32 x, 64;\n", "mbarrier.arrive.shared.b64"), 64},
                {ARRIVALS("shr.u32 y, t, 5; mov.u32 x, 32;\n", "mbarrier.arrive.shared.b64"), 32},
                {ARRIVALS("and.b32 y, t, 1; mov.u32 x, 32;\n", "mbarrier.arrive.shared.b64"), 32}};
    static const uint32_t line[] = {THREADS, 1, 1};
    static struct memory memory;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kernel kernel;

        compile(rows[i].text, "build", &kernel);
        for (uint32_t run = 0; run < ORDERS; run++) {
            const uint32_t steps = 1 + run % 3;
            uint32_t counts = 0;

            fill(&memory);
            interpret(&kernel, &memory, steps, line, run * 3);
            for (unsigned t = 0; t < THREADS; t++) {
                assert_int_equal(memory.out[t] / 4096, (t + 1) % THREADS * steps + steps * (steps - 1) / 2);
                counts += memory.out[t] % 4096;
            }
            assert_int_equal(counts, steps * (THREADS / rows[i].size) * rows[i].size * (rows[i].size + 1) / 2);
        }
        finish(&kernel);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_async_copies),
        cmocka_unit_test(test_lane_values),
        cmocka_unit_test(test_address_constants),
        cmocka_unit_test(test_arrivals),
    };

    return cmocka_run_group_tests_name("tile passes", tests, NULL, NULL);
}
