/* SPDX-License-Identifier: Apache-2.0 */
/* Planted faults: each kernel does one thing that PTX leaves undefined, and the oracle must report what and where; next to it is a
 * kernel that differs only in what makes it correct. Bodies may use the registers of `prologue`: %t thread, %l lane, %v = in[%t], %s = 4
 * * %t. */
#include "test_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>

#define THREADS 64

static const char prologue[] =
    ".version 7.8\n.target sm_80\n.address_size 64\n"
    ".const .u32 fixed = 1;\n"
    ".func forever()\n{\n    call forever;\n    ret;\n}\n"
    ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 count)\n{\n"
    "    .reg .pred %p, %q;\n    .reg .b32 %t, %l, %v, %s, %a, %b, %m;\n    .reg .b64 %in, %out, %d, %e;\n"
    "    .shared .align 4 .b8 words[256];\n    .shared .u32 flag;\n    .local .align 4 .b8 mine[16];\n"
    "    ld.param.u64 %in, [in];\n    ld.param.u64 %out, [out];\n    mov.u32 %t, %tid.x;\n    mov.u32 %l, %laneid;\n"
    "    shl.b32 %s, %t, 2;\n    cvt.u64.u32 %d, %s;\n    add.u64 %in, %in, %d;\n    add.u64 %d, %out, %d;\n"
    "    ld.global.u32 %v, [%in];\n    mov.u32 %b, words;\n    add.u32 %a, %b, %s;\n    setp.eq.u32 %p, %t, 0;\n";

static const struct fault {
    const char *name, *body;
    enum oracle_status want;
    const char *at; /* the instruction that must be named */
} faults[] = {
    /* ---- races ---- */
    {"a neighbour's word without a barrier", "st.shared.u32 [%a], %v; xor.b32 %m, %s, 4; add.u32 %m, %m, %b; ld.shared.u32 %v, [%m];",
     ORACLE_RACE, "shared"},
    {"a neighbour's word after a barrier",
     "st.shared.u32 [%a], %v; bar.sync 0; xor.b32 %m, %s, 4; add.u32 %m, %m, %b; ld.shared.u32 %v, [%m];", ORACLE_OK, ""},
    {"a neighbour's word after bar.warp.sync",
     "st.shared.u32 [%a], %v; bar.warp.sync -1; xor.b32 %m, %s, 4; add.u32 %m, %m, %b; ld.shared.u32 %v, [%m];", ORACLE_OK, ""},
    {"another warp's word after bar.warp.sync",
     "st.shared.u32 [%a], %v; bar.warp.sync -1; xor.b32 %m, %s, 128; add.u32 %m, %m, %b; ld.shared.u32 %v, [%m];", ORACLE_RACE,
     "ld.shared.u32"},
    {"a neighbour's word after a shuffle, which orders nothing",
     "st.shared.u32 [%a], %v; shfl.sync.bfly.b32 %v, %v, 1, 31, -1; xor.b32 %m, %s, 4; add.u32 %m, %m, %b; ld.shared.u32 %v, [%m];",
     ORACLE_RACE, "ld.shared.u32"},
    {"the next round's write before the last one's reads are done",
     "st.shared.u32 [%a], %v; bar.sync 0; xor.b32 %m, %s, 4; add.u32 %m, %m, %b; ld.shared.u32 %v, [%m]; st.shared.u32 [%a], %v;",
     ORACLE_RACE, "shared"},
    {"the next round's write after a barrier",
     "st.shared.u32 [%a], %v; bar.sync 0; xor.b32 %m, %s, 4; add.u32 %m, %m, %b; ld.shared.u32 %v, [%m]; bar.sync 0; st.shared.u32 [%a], "
     "%v;",
     ORACLE_OK, ""},
    {"all threads write one word", "st.shared.u32 [flag], 1;", ORACLE_RACE, "st.shared.u32"},
    {"all threads write one word of global memory", "st.global.u32 [%out], 1;", ORACLE_RACE, "st.global.u32"},
    {"overlap of one byte",
     "add.u64 %e, %d, 3; st.global.u8 [%e], %v; @!%p st.global.u8 [%d], %v; sub.u64 %e, %d, 1; @!%p st.global.u8 [%e], %v;", ORACLE_RACE,
     "st.global.u8"},
    {"atomics on one word", "atom.shared.add.u32 %m, [flag], 1;", ORACLE_OK, ""},
    {"a weak read beside atomics", "atom.shared.add.u32 %m, [flag], 1; ld.shared.u32 %v, [flag];", ORACLE_RACE, "shared"},
    {"a weak read after atomics and a barrier", "atom.shared.add.u32 %m, [flag], 1; bar.sync 0; ld.shared.u32 %v, [flag];", ORACLE_OK, ""},
    {"a message without a fence",
     "@%p st.volatile.shared.u32 [flag], 0; bar.sync 0; @!%p bra W; st.shared.u32 [words], %v; st.volatile.shared.u32 [flag], 1; bra D;\n"
     "W: ld.volatile.shared.u32 %m, [flag]; setp.eq.u32 %q, %m, 0; @%q bra W; ld.shared.u32 %v, [words];\nD:",
     ORACLE_RACE, "ld.shared.u32"},
    {"a message by release and acquire",
     "@%p st.volatile.shared.u32 [flag], 0; bar.sync 0; @!%p bra W; st.shared.u32 [words], %v; st.release.cta.shared.u32 [flag], 1; bra "
     "D;\n"
     "W: ld.acquire.cta.shared.u32 %m, [flag]; setp.eq.u32 %q, %m, 0; @%q bra W; ld.shared.u32 %v, [words];\nD:",
     ORACLE_OK, ""},
    /* ---- barriers ---- */
    {"one aligned barrier at two places of a warp",
     "setp.lt.u32 %q, %l, 7; @%q bra A; bar.sync 0; bra D;\nA: bar.sync 0;\nD:", ORACLE_DIVERGENT_BARRIER, "bar.sync"},
    {"one unaligned barrier at two places of a warp",
     "setp.lt.u32 %q, %l, 7; @%q bra A; barrier.sync 0; bra D;\nA: barrier.sync 0;\nD:", ORACLE_OK, ""},
    {"two places of two warps", "setp.lt.u32 %q, %t, 32; @%q bra A; bar.sync 0; bra D;\nA: bar.sync 0;\nD:", ORACLE_OK, ""},
    {"a barrier that one warp leaves out", "setp.lt.u32 %q, %t, 32; @%q bra D; bar.sync 0;\nD: bar.sync 1;", ORACLE_DEADLOCK, "bar.sync"},
    {"a barrier that some lanes leave out for another", "setp.lt.u32 %q, %l, 7; @%q bra D; barrier.sync 0;\nD: barrier.sync 1;",
     ORACLE_DEADLOCK, "barrier.sync"},
    {"a barrier that exited threads need not reach", "setp.lt.u32 %q, %t, 40; @%q exit; bar.sync 0;", ORACLE_OK, ""},
    {"different counts for one barrier",
     "setp.lt.u32 %q, %t, 32; @%q bra A; bar.sync 1, 64; bra D;\nA: bar.arrive 1, 96;\nD:", ORACLE_UNDEFINED, "bar.sync"},
    {"a count that is no multiple of a warp", "mov.u32 %m, 48; bar.sync 1, %m;", ORACLE_UNDEFINED, "bar.sync"},
    {"a barrier beyond the last", "mov.u32 %m, 16; bar.sync %m;", ORACLE_UNDEFINED, "bar.sync"},
    /* ---- warps ---- */
    {"a lane outside of its mask", "shfl.sync.bfly.b32 %v, %v, 1, 31, 0xff;", ORACLE_UNDEFINED, "shfl.sync.bfly.b32"},
    {"a mask with lanes that took another branch", "setp.lt.u32 %q, %l, 7; @%q bra D; bar.warp.sync -1;\nD: bar.warp.sync 0x7f;",
     ORACLE_UNDEFINED, "bar.warp.sync"},
    {"two masks for one meeting",
     "setp.lt.u32 %q, %l, 7; mov.u32 %m, -1; @%q mov.u32 %m, 0x7fffffff; shfl.sync.bfly.b32 %v, %v, 1, 31, %m;", ORACLE_DEADLOCK,
     "shfl.sync.bfly.b32"},
    {"two instructions for one meeting",
     "setp.lt.u32 %q, %l, 7; @%q bra A; shfl.sync.bfly.b32 %v, %v, 1, 31, -1; bra D;\n"
     "A: shfl.sync.up.b32 %v, %v, 1, 0, -1;\nD:",
     ORACLE_DEADLOCK, "shfl.sync"},
    {"a mask of lanes that have left", "setp.lt.u32 %q, %l, 7; @%q exit; bar.warp.sync -1;", ORACLE_OK, ""},
    /* ---- memory ---- */
    {"beyond the end of global memory", "ld.global.u32 %v, [%in+256];", ORACLE_OUT_OF_BOUNDS, "ld.global.u32"},
    {"the last word of global memory", "@!%p bra D; ld.global.u32 %v, [%in+252];\nD:", ORACLE_OK, ""},
    {"a store to memory that is only read", "st.global.u32 [%in], %v;", ORACLE_OUT_OF_BOUNDS, "st.global.u32"},
    {"beyond the end of a shared array", "ld.shared.u32 %v, [%a+256];", ORACLE_OUT_OF_BOUNDS, "ld.shared.u32"},
    {"from one shared array into the next", "ld.shared.u32 %v, [words+254];", ORACLE_MISALIGNED, "ld.shared.u32"},
    {"beyond the end of a local array", "ld.local.u32 %v, [mine+16];", ORACLE_OUT_OF_BOUNDS, "ld.local.u32"},
    {"a store to a constant", "mov.u64 %e, fixed; st.u32 [%e], %v;", ORACLE_OUT_OF_BOUNDS, "st.u32"},
    {"a null pointer", "mov.u64 %e, 0; ld.u32 %v, [%e];", ORACLE_OUT_OF_BOUNDS, "ld.u32"},
    {"an address that is not aligned", "ld.global.u32 %v, [%in+2];", ORACLE_MISALIGNED, "ld.global.u32"},
    {"a vector that is aligned as its elements only", "ld.global.v2.u32 {%v, %m}, [%in+4];", ORACLE_MISALIGNED, "ld.global.v2.u32"},
    /* ---- flow ---- */
    {"an endless loop", "L: bra L;", ORACLE_STEP_LIMIT, "bra"},
    {"endless recursion", "call forever;", ORACLE_CALL_DEPTH, "call"},
    {"a target beyond the list", "T: .branchtargets A, B; brx.idx 2, T;\nA: ret;\nB: ret;", ORACLE_UNDEFINED, "brx.idx"},
    {"a trap", "@%p trap;", ORACLE_TRAP, "trap"},
    {"division by zero", "div.u32 %v, %v, 0;", ORACLE_UNDEFINED, "div.u32"},
    {"an instruction that is not known", "prefetch.global.L1 [%in]; discard.global.L2 [%out], 128;", ORACLE_UNSUPPORTED,
     "discard.global.L2"},
};

static void run_fault(const struct fault *fault, uint32_t blocks, bool find_grid_races, struct oracle_result *result)
{
    static struct {
        uint32_t in[THREADS], behind[THREADS], out[THREADS]; /* behind: outside of every range for accesses that are out of bounds */
    } memory;
    char text[8192];
    const struct test_run run = {.text = text,
                                 .kernel = "k",
                                 .blocks = blocks,
                                 .threads = THREADS,
                                 .in = memory.in,
                                 .out = memory.out,
                                 .n_in = THREADS,
                                 .n_out = THREADS,
                                 .step_limit = 100000,
                                 .find_grid_races = find_grid_races};

    for (unsigned i = 0; i < THREADS; i++)
        memory.in[i] = i * 7;
    snprintf(text, sizeof text, "%s    %s\n    ret;\n}\n", prologue, fault->body);
    test_run(&run, result);
}

static void planted(void **state)
{
    unsigned wrong = 0;

    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct oracle_result result;

        run_fault(&faults[i], 1, false, &result);
        if (result.status == faults[i].want && strstr(result.message, faults[i].at))
            continue;
        print_error("%s: want %s, got %s: %s\n", faults[i].name, oracle_status_name(faults[i].want), oracle_status_name(result.status),
                    result.message);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

/* Every block of a grid executes this: it is correct within each block. */
static void between_blocks(void **state)
{
    static const struct fault same_word = {"", "st.global.u32 [%d], %v;", ORACLE_RACE, ""};
    static const struct fault atomic = {"", "red.global.add.u32 [%d], %v;", ORACLE_OK, ""};
    struct oracle_result result;

    (void)state;
    run_fault(&same_word, 2, false, &result);
    assert_int_equal(result.status, ORACLE_OK);
    run_fault(&same_word, 2, true, &result);
    assert_int_equal(result.status, ORACLE_RACE);
    run_fault(&atomic, 2, true, &result);
    assert_int_equal(result.status, ORACLE_OK);
}

/* The line of the planted instruction must be reported. */
static void lines(void **state)
{
    static const struct fault fault = {"", "\n\ntrap;", ORACLE_TRAP, ""};
    struct oracle_result result;
    unsigned line = 3;

    (void)state;
    for (const char *at = prologue; *at; at++)
        line += *at == '\n';
    run_fault(&fault, 1, false, &result);
    assert_int_equal(result.status, ORACLE_TRAP);
    assert_int_equal(result.line, line);
}

static void launches(void **state)
{
    static uint32_t in[THREADS], out[THREADS];
    struct oracle_result result;
    struct test_run run = {.text = "not PTX", .kernel = "k", .threads = 32, .in = in, .out = out};

    (void)state;
    assert_int_equal(test_run(&run, &result), ORACLE_BAD_MODULE);
    run.text = ".version 7.8\n.target sm_80\n.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 c) { ret; }\n";
    assert_int_equal(test_run(&run, &result), ORACLE_OK);
    run.kernel = "other";
    assert_int_equal(test_run(&run, &result), ORACLE_BAD_LAUNCH);
    run.kernel = "k";
    run.threads = 1025;
    assert_int_equal(test_run(&run, &result), ORACLE_BAD_LAUNCH);
    run.threads = 1;
    run.text = ".version 7.8\n.target sm_80\n.visible .entry k(.param .u64 a[4]) { ret; }\n";
    assert_int_equal(test_run(&run, &result), ORACLE_BAD_LAUNCH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planted),
        cmocka_unit_test(between_blocks),
        cmocka_unit_test(lines),
        cmocka_unit_test(launches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
