/* SPDX-License-Identifier: Apache-2.0 */
/* PTX text through the pipeline up to one pass; the dump after that pass must contain certain lines and must not contain others.
 * Expectations are from the PTX ISA (the meaning of the instruction) and from each pass's first comment (its Out). */
#include "cuttle/ptx2spv.h"

#include "spirv_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD ".version 7.8\n.target sm_75\n.address_size 64\n"
#define ENTRY "\n.visible .entry k(.param .u64 p, .param .u32 n)\n{\n"
#define REGS ".reg .pred %p<8>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<16>;\n.reg .f32 %f<8>;\n.reg .b16 %rs<8>;\n"
#define ARGUMENTS "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\n"

struct run {
    enum ptx2spv_status status;
    char *dump;
    char messages[2048];
    struct ptx2spv_kernel_info info;
};

static void keep_message(void *user, const struct ptx2spv_diagnostic *diagnostic)
{
    struct run *run = user;
    const size_t used = strlen(run->messages);

    snprintf(run->messages + used, sizeof run->messages - used, "%s\n", diagnostic->text);
}

static void keep_dump(void *user, const char *pass, const char *text)
{
    struct run *run = user;

    (void)pass;
    free(run->dump);
    run->dump = strdup(text);
    assert_non_null(run->dump);
}

static struct ptx2spv_target full_target(void)
{
    struct ptx2spv_target target;

    memset(&target, 0, sizeof target);
    target.subgroup_size = 32;
    target.push_constant_bytes = 256;
    target.shared_bytes = 48 << 10;
    target.max_block_threads = 1024;
    target.float64 = target.float16 = target.int64 = target.int16 = target.int8 = 1;
    target.storage8 = target.storage16 = 1;
    target.atomic_int64_global = 1;
    target.memory_model_device_scope = 1;
    target.exact_div32 = target.exact_div64 = target.exact_fma32 = target.exact_fma64 = 1;
    target.exact_sqrt32 = target.exact_sqrt64 = 1;
    return target;
}

/* Compiles the first kernel and records messages and the dump; finish with free(run->dump). */
static void compile(const char *text, const char *pass, const struct ptx2spv_target *target, struct run *run)
{
    const struct ptx2spv_options options = {.on_diagnostic = keep_message, .on_dump = keep_dump, .user = run, .dump = pass};
    struct ptx2spv_module *module;
    struct ptx2spv_kernel kernel;

    memset(run, 0, sizeof *run);
    run->status = ptx2spv_module_create(text, strlen(text), &options, &module);
    if (run->status != PTX2SPV_OK)
        return;
    run->status = ptx2spv_kernel_compile(module, 0, target, &options, &kernel);
    if (run->status == PTX2SPV_OK) {
        keep_ptx(text);
        run->info = kernel.info;
        ptx2spv_kernel_finish(&kernel);
    }
    ptx2spv_module_destroy(module);
}

struct row {
    const char *name, *pass, *text;
    const char *has[6], *has_not[6]; /* up to the first NULL */
};

static void check_rows(const struct row *rows, size_t n)
{
    const struct ptx2spv_target target = full_target();

    for (size_t i = 0; i < n; i++) {
        struct run run;

        compile(rows[i].text, rows[i].pass, &target, &run);
        if (run.status != PTX2SPV_OK || !run.dump)
            fail_msg("%s: %s\n%s", rows[i].name, ptx2spv_status_string(run.status), run.messages);
        for (size_t j = 0; j < 6 && rows[i].has[j]; j++)
            if (!strstr(run.dump, rows[i].has[j]))
                fail_msg("%s: no \"%s\" in\n%s", rows[i].name, rows[i].has[j], run.dump);
        for (size_t j = 0; j < 6 && rows[i].has_not[j]; j++)
            if (strstr(run.dump, rows[i].has_not[j]))
                fail_msg("%s: \"%s\" in\n%s", rows[i].name, rows[i].has_not[j], run.dump);
        free(run.dump);
    }
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof *(rows))

/* ---- inline, promote ---- */

#define ADD_ONE                                                                                                                            \
    ".func (.param .b32 result) add_one(.param .b32 x)\n{\n.reg .b32 %r<4>;\n"                                                             \
    "ld.param.u32 %r1, [x];\nadd.s32 %r2, %r1, 1;\nst.param.b32 [result], %r2;\nret;\n}\n"
#define CALL_ADD_ONE(to, from)                                                                                                             \
    "{ .param .b32 a; st.param.b32 [a], " from ";\n.param .b32 b;\ncall.uni (b), add_one, (a);\n"                                          \
    "ld.param.b32 " to ", [b]; }\n"

/* A function with another signature, and a call through %rd2 with the signature of add_one. */
#define TWO_WORDS ".func (.param .b64 result) two_words(.param .b32 x)\n{\nst.param.b64 [result], 5;\nret;\n}\n"
#define CALL_BY_ADDRESS(before)                                                                                                            \
    "P: .callprototype (.param .b32 _) _ (.param .b32 _);\n{ .param .b32 a; st.param.b32 [a], %r1;\n.param .b32 b;\n" before               \
    "call (b), %rd2, (a), P;\nld.param.b32 %r2, [b]; }\n"

static void test_inline(void **state)
{
    static const struct row rows[] = {
        {"a call is removed, its objects are bound",
         "inline",
         HEAD ADD_ONE ENTRY REGS ARGUMENTS CALL_ADD_ONE("%r2", "%r1") "st.global.u32 [%rd1], %r2;\nret;\n}\n",
         {"same as"},
         {"call"}},
        {"parameters of calls become registers",
         "promote",
         HEAD ADD_ONE ENTRY REGS ARGUMENTS CALL_ADD_ONE("%r2", "%r1") "st.global.u32 [%rd1], %r2;\nret;\n}\n",
         {"in registers"},
         {"load.local", "store.local"}},
        {"two calls are two instances, and fold to one sum",
         "simplify",
         HEAD ADD_ONE ENTRY REGS ARGUMENTS CALL_ADD_ONE("%r2", "%r1") CALL_ADD_ONE("%r3", "%r2") "st.global.u32 [%rd1], %r3;\nret;\n}\n",
         {"const 0x2"},
         {"const 0x1\n"}},
        {"the opposite of a float comparison is one, true of NaN",
         "simplify",
         HEAD ENTRY REGS ARGUMENTS "ld.global.f32 %f1, [%rd1];\nsetp.lt.f32 %p1, %f1, 0f3F800000;\n"
                                   "not.pred %p2, %p1;\n@%p2 st.global.u32 [%rd1], %r1;\nret;\n}\n",
         {"fcmp.geu"},
         {" not"}},
        {"exit in a function ends the thread",
         "inline",
         HEAD ".func leave()\n{\nexit;\n}\n" ENTRY REGS ARGUMENTS "call leave;\nst.global.u32 [%rd1], %r1;\nret;\n}\n",
         {"exit"},
         {"store", "call"}},
        {"a call by address chooses among the functions that fit",
         "inline",
         HEAD ADD_ONE TWO_WORDS ENTRY REGS ARGUMENTS
         "mov.u64 %rd2, add_one;\nmov.u64 %rd3, two_words;\nld.global.u64 %rd2, [%rd1];\n" CALL_BY_ADDRESS(
             "") "st.global.u32 [%rd1], %r2;\nret;\n}\n",
         {"switch", "const 0x4600000000000001", "atom", "const 0x1\n"},
         {"call", "const 0x5\n"}},
    };

    (void)state;
    CHECK_ROWS(rows);
}

static void test_promote(void **state)
{
    static const struct row rows[] = {
        {"cells of different sizes",
         "promote",
         HEAD ENTRY REGS ".local .align 8 .b8 a[16];\n" ARGUMENTS
                         "st.local.u32 [a], %r1;\nst.local.u8 [a+4], %r1;\nst.local.u64 [a+8], %rd1;\nld.local.s8 %r2, [a+4];\n"
                         "ld.local.u64 %rd2, [a+8];\nst.global.u32 [%rd2], %r2;\nret;\n}\n",
         {"in registers", "ext.s8"},
         {".local.", "localaddr"}},
        {"partly overlapping accesses stay in memory",
         "promote",
         HEAD ENTRY REGS ".local .align 8 .b8 a[8];\n" ARGUMENTS
                         "st.local.u64 [a], %rd1;\nld.local.u32 %r2, [a+4];\nst.global.u32 [%rd1], %r2;\nret;\n}\n",
         {"load.local.u32 [local 1+4]", "store.local.u64 [local 1]"},
         {"in registers"}},
        {"an object whose address is taken stays in memory",
         "promote",
         HEAD ENTRY REGS ".local .align 4 .b8 a[64];\n" ARGUMENTS
                         "mov.u64 %rd2, a;\nmul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd2, %rd3;\nst.local.u32 [%rd4], %r1;\n"
                         "ld.local.u32 %r2, [a+4];\nst.global.u32 [%rd1], %r2;\nret;\n}\n",
         {"localaddr", "[local 1+4]"},
         {"in registers"}},
    };

    (void)state;
    CHECK_ROWS(rows);
}

/* ---- layout ---- */

static void test_layout(void **state)
{
    static const struct row rows[] = {
        {"objects lie at their alignment; only those in use",
         "layout",
         HEAD ".shared .align 4 .b8 unused[400];\n.shared .align 1 .b8 first[3];\n.shared .align 16 .b8 second[32];\n" ENTRY REGS ARGUMENTS
              "st.shared.u8 [first], %r1;\nst.shared.u32 [second+4], %r1;\nret;\n}\n",
         {"shared first, 3 bytes, at 0", "shared second, 32 bytes, at 16"},
         {"unused", "sharedaddr"}},
        {"dynamic arrays share one address after the static part",
         "layout",
         HEAD ".extern .shared .align 16 .b8 dyn[];\n.extern .shared .align 4 .b32 dyn2[];\n" ENTRY REGS
              ".shared .align 4 .b8 fixed[20];\n" ARGUMENTS
              "st.shared.u32 [fixed], %r1;\nst.shared.u32 [dyn], %r1;\nst.shared.u32 [dyn2+4], %r1;\nret;\n}\n",
         {"shared fixed, 20 bytes, at 0", "shared dyn, 0 bytes, at 32", "shared dyn2, 0 bytes, at 32"},
         {NULL}},
        {"the frame",
         "layout",
         HEAD ENTRY REGS ".local .align 1 .b8 a[5];\n.local .align 8 .b8 b[8];\n" ARGUMENTS
                         "mov.u64 %rd2, a;\nmov.u64 %rd3, b;\nst.local.u8 [%rd2+1], %r1;\nst.local.u64 [%rd3], %rd1;\nret;\n}\n",
         {"a, 5 bytes, align 1, at 0", "b, 8 bytes, align 8, at 8"},
         {"localaddr"}},
    };
    const struct ptx2spv_target target = full_target();
    struct run run;

    (void)state;
    CHECK_ROWS(rows);
    compile(rows[1].text, "layout", &target, &run);
    assert_int_equal(run.info.static_shared_bytes, 20);
    assert_int_equal(run.info.dynamic_shared_offset, 32);
    assert_true(run.info.uses_dynamic_shared);
    assert_int_equal(run.info.local_bytes, 0);
    free(run.dump);
    compile(rows[2].text, "layout", &target, &run);
    assert_int_equal(run.info.local_bytes, 16);
    assert_false(run.info.uses_dynamic_shared);
    free(run.dump);
}

/* ---- make_reducible ---- */

static void test_make_reducible(void **state)
{
    static const struct row rows[] = {
        {"a small second entry is split: no selector",
         "make_reducible",
         HEAD ENTRY REGS ARGUMENTS
         "setp.gt.s32 %p1, %r1, 3;\nmov.u32 %r2, 0;\n@%p1 bra MID;\nTOP: add.s32 %r2, %r2, 1;\n"
         "MID: add.s32 %r2, %r2, 2;\nsetp.lt.s32 %p2, %r2, %r1;\n@%p2 bra TOP;\nst.global.u32 [%rd1], %r2;\nret;\n}\n",
         {"cbr"},
         {"switch"}},
        {"with a barrier inside, a dispatching block",
         "make_reducible",
         HEAD ENTRY REGS ARGUMENTS
         "setp.gt.s32 %p1, %r1, 3;\nmov.u32 %r2, 0;\n@%p1 bra MID;\nTOP: add.s32 %r2, %r2, 1;\nbar.sync 0;\n"
         "MID: add.s32 %r2, %r2, 2;\nbar.sync 0;\nsetp.lt.s32 %p2, %r2, %r1;\n@%p2 bra TOP;\nst.global.u32 [%rd1], %r2;\nret;\n}\n",
         {"switch"},
         {NULL}},
    };

    (void)state;
    CHECK_ROWS(rows);
}

/* ---- ssa, simplify ---- */

static void test_ssa(void **state)
{
    static const struct row rows[] = {
        {"a loop's counter is a phi; a register that stays is not",
         "ssa",
         HEAD ENTRY REGS ARGUMENTS
         "mov.u32 %r2, 0;\nmov.u32 %r3, 5;\nTOP: add.s32 %r2, %r2, %r3;\nsetp.lt.s32 %p1, %r2, %r1;\n@%p1 bra TOP;\n"
         "st.global.u32 [%rd1], %r2;\nret;\n}\n",
         {"phi"},
         {"copy", "undef"}},
        {"a register that was never written", "ssa", HEAD ENTRY REGS ARGUMENTS "st.global.u32 [%rd1], %r9;\nret;\n}\n", {"undef"}, {NULL}},
    };

    (void)state;
    CHECK_ROWS(rows);
}

static void test_simplify(void **state)
{
    static const struct row rows[] = {
        {"constants fold through",
         "simplify",
         HEAD ENTRY REGS ARGUMENTS "mov.u32 %r2, 6;\nmul.lo.s32 %r3, %r2, 7;\nsub.s32 %r4, %r3, 2;\nst.global.u32 [%rd1], %r4;\nret;\n}\n",
         {"const 0x28"},
         {"mul", "sub", "const 0x6\n"}},
        {"a constant part of an address is folded into the access",
         "simplify",
         HEAD ENTRY REGS ARGUMENTS "add.s64 %rd2, %rd1, 40;\nst.global.u32 [%rd2+8], %r1;\nret;\n}\n",
         {"+48]"},
         {"add"}},
        {"a branch that is known is no branch",
         "simplify",
         HEAD ENTRY REGS ARGUMENTS "mov.u32 %r2, 3;\nsetp.gt.s32 %p1, %r2, 1;\n@%p1 bra YES;\nst.global.u32 [%rd1+8], %r1;\n"
                                   "YES: st.global.u32 [%rd1+4], %r2;\nret;\n}\n",
         {"+4]"},
         {"cbr", "+8]"}},
        {"equal expressions are computed once",
         "simplify",
         HEAD ENTRY REGS ARGUMENTS "mul.lo.s32 %r2, %r1, %r1;\nmul.lo.s32 %r3, %r1, %r1;\nsub.s32 %r4, %r2, %r3;\n"
                                   "st.global.u32 [%rd1], %r4;\nret;\n}\n",
         {"const 0x0"},
         {"mul", "sub"}},
        {"division by zero is left to lower",
         "simplify",
         HEAD ENTRY REGS ARGUMENTS "mov.u32 %r2, 0;\ndiv.u32 %r3, 5, %r2;\nst.global.u32 [%rd1], %r3;\nret;\n}\n",
         {"div.u32"},
         {NULL}},
        {"volatile loads stay, other unused ones are removed",
         "simplify",
         HEAD ENTRY REGS ARGUMENTS "ld.volatile.global.u32 %r2, [%rd1];\nld.global.u16 %rs1, [%rd1+4];\nret;\n}\n",
         {"volatile"},
         {"u16"}},
    };

    (void)state;
    CHECK_ROWS(rows);
}

/* ---- cleanup, structurize ---- */

/* Lanes are kept in step at volatile accesses to shared memory, and at all accesses to it for targets below sm_70 ("Independent Thread
 * Scheduling"). */
static void test_warp_synchronous(void **state)
{
#define SHARED_WORDS ".shared .align 4 .b32 s[64];\n"
#define HEAD_OF_SM60 ".version 7.8\n.target sm_60\n.address_size 64\n"
    static const struct row rows[] = {
        {"a volatile load after a volatile store",
         "warp_synchronous",
         HEAD ENTRY REGS SHARED_WORDS "st.volatile.shared.u32 [s], 1;\nld.volatile.shared.u32 %r2, [s+4];\nret;\n}\n",
         {"store.shared.volatile", "converge", "load.shared.volatile"},
         {NULL}},
        {"a volatile store after a volatile load",
         "warp_synchronous",
         HEAD ENTRY REGS SHARED_WORDS "ld.volatile.shared.u32 %r2, [s+4];\nst.volatile.shared.u32 [s], %r2;\nret;\n}\n",
         {"load.shared.volatile", "converge", "store.shared.volatile"},
         {NULL}},
        {"a barrier does it",
         "warp_synchronous",
         HEAD ENTRY REGS SHARED_WORDS "st.volatile.shared.u32 [s], 1;\nbar.warp.sync -1;\nld.volatile.shared.u32 %r2, [s+4];\nbar.sync 0;\n"
                                      "st.volatile.shared.u32 [s], %r2;\nret;\n}\n",
         {"warpsync", "load", "barrier"},
         {"converge"}},
        {"loads pass loads",
         "warp_synchronous",
         HEAD ENTRY REGS SHARED_WORDS "ld.volatile.shared.u32 %r2, [s+4];\nld.volatile.shared.u32 %r3, [s];\nret;\n}\n",
         {"load"},
         {"converge"}},
        {"plain accesses are the program's own business from sm_70 on",
         "warp_synchronous",
         HEAD ENTRY REGS SHARED_WORDS "st.shared.u32 [s], 1;\nld.shared.u32 %r2, [s+4];\nret;\n}\n",
         {"store", "load"},
         {"converge"}},
        {"also in a program that prints, whatever the target of the texts that the compiler adds to it",
         "warp_synchronous",
         HEAD ".extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 values);\n" ENTRY REGS SHARED_WORDS
              "st.shared.u32 [s], 1;\nld.shared.u32 %r2, [s+4];\n"
              "{ .param .b64 format; .param .b64 values; .param .b32 result;\n"
              "st.param.b64 [format], %rd1;\nst.param.b64 [values], %rd1;\n"
              "call.uni (result), vprintf, (format, values);\n}\nret;\n}\n",
         {"store", "load"},
         {"converge"}},
        {"and below they are not",
         "warp_synchronous",
         HEAD_OF_SM60 ENTRY REGS SHARED_WORDS "st.shared.u32 [s], 1;\nld.shared.u32 %r2, [s+4];\nret;\n}\n",
         {"store", "converge", "load"},
         {NULL}},
        {"atomic operations of a kind need no order among themselves",
         "warp_synchronous",
         HEAD_OF_SM60 ENTRY REGS SHARED_WORDS "red.shared.add.u32 [s], 1;\nred.shared.add.u32 [s+4], 1;\nret;\n}\n",
         {"atom"},
         {"converge"}},
        {"but loads follow them",
         "warp_synchronous",
         HEAD_OF_SM60 ENTRY REGS SHARED_WORDS "red.shared.add.u32 [s], 1;\nld.shared.u32 %r2, [s+4];\nret;\n}\n",
         {"atom", "converge", "load"},
         {NULL}},
        {"global memory is no shared memory",
         "warp_synchronous",
         HEAD_OF_SM60 ENTRY REGS ARGUMENTS "st.volatile.global.u32 [%rd1], 1;\nld.volatile.global.u32 %r2, [%rd1+4];\n"
                                           "st.volatile.u32 [%rd1], %r2;\nld.volatile.u32 %r2, [%rd1+4];\nret;\n}\n",
         {"store", "load"},
         {"converge"}},
        {"the next round of a loop",
         "warp_synchronous",
         HEAD ENTRY REGS SHARED_WORDS "mov.u32 %r1, 0;\nTOP: ld.volatile.shared.u32 %r2, [s+4];\nadd.u32 %r1, %r1, %r2;\n"
                                      "setp.lt.u32 %p1, %r1, 9;\n@%p1 bra TOP;\nst.volatile.shared.u32 [s], %r1;\nret;\n}\n",
         {"load", "cbr", "converge", "store"},
         {NULL}},
    };

    (void)state;
    CHECK_ROWS(rows);
}

/* Before one lane reads alone what others may have stored, the lanes wait for each other. */
static void test_lone_readers(void **state)
{
#define FIRST_ALONE "mov.u32 %r1, %tid.x;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra NEXT;\n"
    static const struct row rows[] = {
        {"thread 0 loads behind a store",
         "lone_readers",
         HEAD ENTRY REGS ARGUMENTS "st.global.u32 [%rd1], 1;\n" FIRST_ALONE
                                   "ld.global.u32 %r2, [%rd1+4];\nst.global.u32 [%rd1], %r2;\nNEXT: ret;\n}\n",
         {"store", "converge", "cbr", "load.global"},
         {NULL}},
        {"the last lane, by its number in the warp",
         "lone_readers",
         HEAD ENTRY REGS SHARED_WORDS
         "mov.u32 %r1, %tid.x;\nand.b32 %r1, %r1, 31;\nmov.u32 %r3, %tid.x;\nand.b32 %r3, %r3, 31;\nst.shared.u32 [s], 1;\n"
         "setp.eq.u32 %p1, %r3, 31;\n@!%p1 bra NEXT;\nld.shared.u32 %r2, [s+4];\nst.shared.u32 [s], %r2;\nNEXT: ret;\n}\n",
         {"store", "converge", "cbr", "load.shared"},
         {NULL}},
        {"in the next round of a loop",
         "lone_readers",
         HEAD ENTRY REGS ARGUMENTS
         "mov.u32 %r3, 0;\nTOP: " FIRST_ALONE "ld.global.u32 %r2, [%rd1+4];\nst.global.u32 [%rd1+8], %r2;\n"
         "NEXT: st.global.u32 [%rd1], 1;\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, 9;\n@%p2 bra TOP;\nret;\n}\n",
         {"converge", "cbr", "load.global", "store"},
         {NULL}},
        {"not without a store before it",
         "lone_readers",
         HEAD ENTRY REGS ARGUMENTS FIRST_ALONE "ld.global.u32 %r2, [%rd1+4];\nst.global.u32 [%rd1], %r2;\nNEXT: ret;\n}\n",
         {"load"},
         {"converge"}},
        {"nor behind a barrier",
         "lone_readers",
         HEAD ENTRY REGS ARGUMENTS "st.global.u32 [%rd1], 1;\nbar.sync 0;\n" FIRST_ALONE
                                   "ld.global.u32 %r2, [%rd1+4];\nst.global.u32 [%rd1], %r2;\nNEXT: ret;\n}\n",
         {"barrier", "load"},
         {"converge"}},
        {"nor for another memory, or for what does not change",
         "lone_readers",
         HEAD ENTRY REGS SHARED_WORDS ARGUMENTS
         "st.shared.u32 [s], 1;\n" FIRST_ALONE
         "ld.global.u32 %r2, [%rd1+4];\nst.global.u32 [%rd1], %r2;\nld.global.nc.u32 %r2, [%rd1+8];\nNEXT: ret;\n}\n",
         {"store", "load"},
         {"converge"}},
        {"nor where a row of the block goes",
         "lone_readers",
         HEAD ENTRY REGS ARGUMENTS "st.global.u32 [%rd1], 1;\nmov.u32 %r1, %tid.y;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra NEXT;\n"
                                   "ld.global.u32 %r2, [%rd1+4];\nst.global.u32 [%rd1], %r2;\nNEXT: ret;\n}\n",
         {"store", "load"},
         {"converge"}},
        {"nor where many lanes go",
         "lone_readers",
         HEAD ENTRY REGS ARGUMENTS "st.global.u32 [%rd1], 1;\nmov.u32 %r1, %tid.x;\nsetp.ge.u32 %p1, %r1, 16;\n@%p1 bra NEXT;\n"
                                   "ld.global.u32 %r2, [%rd1+4];\nst.global.u32 [%rd1], %r2;\nNEXT: ret;\n}\n",
         {"store", "load"},
         {"converge"}},
        {"nor where data decides",
         "lone_readers",
         HEAD ENTRY REGS ARGUMENTS "ld.global.u32 %r1, [%rd1];\nst.global.u32 [%rd1], 1;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra NEXT;\n"
                                   "ld.global.u32 %r2, [%rd1+4];\nst.global.u32 [%rd1], %r2;\nNEXT: ret;\n}\n",
         {"store", "load"},
         {"converge"}},
    };

    (void)state;
    CHECK_ROWS(rows);
}

static void test_empty_blocks(void **state)
{
    static const struct row rows[] = {
        {"exits of a loop by a block that only jumps on are plain breaks",
         "structurize",
         HEAD ENTRY REGS ARGUMENTS "mov.u32 %r2, 0;\nTOP: setp.ge.u32 %p1, %r2, %r1;\n@%p1 bra DONE;\nld.global.u32 %r3, [%rd1];\n"
                                   "setp.eq.u32 %p2, %r3, 0;\n@%p2 bra EDGE;\nadd.u32 %r2, %r2, 3;\nbra TOP;\nEDGE: bra NEXT;\n"
                                   "NEXT: bra DONE;\nDONE: st.global.u32 [%rd1], %r2;\nret;\n}\n",
         {"loop", "break"},
         {"set ", "scope"}},
        {"two ways to one place are no branch",
         "cleanup",
         HEAD ENTRY REGS ARGUMENTS "setp.eq.u32 %p1, %r1, 0;\n@%p1 bra A;\nbra B;\nA: bra C;\nB: bra C;\n"
                                   "C: st.global.u32 [%rd1], %r1;\nret;\n}\n",
         {"store"},
         {"br", "icmp"}},
        {"ways that carry different values stay apart",
         "cleanup",
         HEAD ENTRY REGS ARGUMENTS "setp.eq.u32 %p1, %r1, 0;\nmov.u32 %r2, 7;\n@%p1 bra C;\nmov.u32 %r2, 9;\n"
                                   "C: st.global.u32 [%rd1], %r2;\nret;\n}\n",
         {"cbr", "= phi b", "const 0x7", "const 0x9"},
         {NULL}},
    };

    (void)state;
    CHECK_ROWS(rows);
}

/* ---- addrspace ---- */

#define TAGGED "mov.u64 %rd2, s;\ncvta.shared.u64 %rd3, %rd2;\n"
#define SHARED_OBJECT ".shared .align 4 .b8 s[256];\n"

static void test_addrspace(void **state)
{
    static const struct row rows[] = {
        {"no tag is made: everything is global",
         "addrspace",
         HEAD ENTRY REGS ARGUMENTS
         "ld.global.u64 %rd2, [%rd1];\nst.u32 [%rd2], %r1;\nld.u32 %r2, [%rd1];\nst.u32 [%rd1+4], %r2;\nret;\n}\n",
         {"store.global.u32", "load.global.u32"},
         {"generic"}},
        {"a shared address with an index",
         "addrspace",
         HEAD ENTRY REGS SHARED_OBJECT ARGUMENTS TAGGED
         "mul.wide.u32 %rd4, %r1, 4;\nadd.s64 %rd5, %rd3, %rd4;\nst.u32 [%rd5+4], %r1;\nret;\n}\n",
         {"store.shared.u32"},
         {"generic"}},
        {"a local address",
         "addrspace",
         HEAD ENTRY REGS
         ".local .align 4 .b8 a[64];\n" ARGUMENTS
         "mov.u64 %rd2, a;\ncvta.local.u64 %rd3, %rd2;\nmul.wide.u32 %rd4, %r1, 4;\nadd.s64 %rd5, %rd3, %rd4;\nst.u32 [%rd5], %r1;\n"
         "ld.u32 %r2, [%rd5];\nst.u32 [%rd1], %r2;\nret;\n}\n",
         {"store.local.u32", "load.local.u32", "store.global.u32"},
         {"generic"}},
        {"round a loop, by an optimistic flow",
         "addrspace",
         HEAD ENTRY REGS SHARED_OBJECT ARGUMENTS TAGGED
         "mov.u64 %rd6, %rd3;\nmov.u32 %r2, 0;\nTOP: st.u32 [%rd6], %r2;\nadd.s64 %rd6, %rd6, 4;\n"
         "add.s32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, %r1;\n@%p1 bra TOP;\nret;\n}\n",
         {"store.shared.u32"},
         {"generic"}},
        {"either space: decided when it runs",
         "addrspace",
         HEAD ENTRY REGS SHARED_OBJECT ARGUMENTS TAGGED
         "setp.eq.u32 %p1, %r1, 0;\nselp.b64 %rd6, %rd3, %rd1, %p1;\nst.u32 [%rd6], %r1;\nret;\n}\n",
         {"store.generic.u32"},
         {NULL}},
        {"a shared address in memory taints loads, not parameters",
         "addrspace",
         HEAD ENTRY REGS SHARED_OBJECT ARGUMENTS TAGGED
         "st.global.u64 [%rd1], %rd3;\nld.global.u64 %rd7, [%rd1+8];\nst.u32 [%rd7], %r1;\nst.u16 [%rd1+16], %r1;\nret;\n}\n",
         {"store.generic.u32", "store.global.u16"},
         {NULL}},
        {"null and a shared address",
         "addrspace",
         HEAD ENTRY REGS SHARED_OBJECT ARGUMENTS TAGGED
         "setp.eq.u32 %p1, %r1, 0;\nselp.b64 %rd6, %rd3, 0, %p1;\nst.u32 [%rd6], %r1;\nret;\n}\n",
         {"store.shared.u32"},
         {"generic"}},
    };

    (void)state;
    CHECK_ROWS(rows);
}

/* ---- errors ---- */

/* ---- indices ---- */

#define POSITION "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\nmov.u32 %r5, %ctaid.y;\nmov.u32 %r6, %tid.y;\n"
#define INDEX "mad.lo.s32 %r7, %r2, %r3, %r4;\n"
#define STORE "st.global.u32 [%rd3], %r1;\nret;\n}\n"

/* Whether the code is for launches of at most 2^31 threads in x only: whether an index is computed in 64 bits. */
static void test_indices(void **state)
{
    static const struct {
        const char *name, *body;
        bool is_index;
    } rows[] = {
        {"multiple, signed", INDEX "mul.wide.s32 %rd2, %r7, 4;\nadd.s64 %rd3, %rd1, %rd2;\n", true},
        {"multiple, unsigned", INDEX "mul.wide.u32 %rd2, %r7, 4;\nadd.s64 %rd3, %rd2, %rd1;\n", true},
        {"extension", INDEX "cvt.u64.u32 %rd2, %r7;\nadd.s64 %rd3, %rd1, %rd2;\n", true},
        {"other order", "mad.lo.u32 %r7, %r3, %r2, %r4;\nmul.wide.s32 %rd2, %r7, 8;\nadd.s64 %rd3, %rd1, %rd2;\n", true},
        {"product and sum", "mul.lo.s32 %r8, %r2, %r3;\nadd.s32 %r7, %r4, %r8;\ncvt.s64.s32 %rd2, %r7;\nadd.s64 %rd3, %rd1, %rd2;\n", true},
        {"comparison with an argument", INDEX "setp.ge.s32 %p1, %r7, %r1;\n@%p1 ret;\nmov.u64 %rd3, %rd1;\n", true},
        {"comparison with what is no argument",
         INDEX "ld.global.u32 %r8, [%rd1];\nsetp.ge.s32 %p1, %r7, %r8;\n@%p1 ret;\nmov.u64 %rd3, %rd1;\n", false},
        {"equality", INDEX "setp.eq.s32 %p1, %r7, %r1;\n@%p1 ret;\nmov.u64 %rd3, %rd1;\n", false},
        {"another dimension of the thread", "mad.lo.s32 %r7, %r2, %r3, %r6;\nmul.wide.s32 %rd2, %r7, 4;\nadd.s64 %rd3, %rd1, %rd2;\n",
         false},
        {"another dimension of the block", "mad.lo.s32 %r7, %r5, %r3, %r4;\nmul.wide.s32 %rd2, %r7, 4;\nadd.s64 %rd3, %rd1, %rd2;\n",
         false},
        {"another factor", "mad.lo.s32 %r7, %r2, %r1, %r4;\nmul.wide.s32 %rd2, %r7, 4;\nadd.s64 %rd3, %rd1, %rd2;\n", false},
        {"a further term", INDEX "add.s32 %r7, %r7, %r1;\nmul.wide.s32 %rd2, %r7, 4;\nadd.s64 %rd3, %rd1, %rd2;\n", false},
    };
    struct ptx2spv_target target = full_target();

    (void)state;
    target.dialect = PTX2SPV_OPENCL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (unsigned vectorizes = 0; vectorizes < 2; vectorizes++) {
            struct run run;
            char text[2048];

            snprintf(text, sizeof text, "%s%s%s", HEAD ENTRY REGS ARGUMENTS POSITION, rows[i].body, STORE);
            target.vectorizes = (uint8_t)vectorizes;
            compile(text, "indices", &target, &run);
            if (run.status != PTX2SPV_OK || !run.dump)
                fail_msg("%s: %s\n%s", rows[i].name, ptx2spv_status_string(run.status), run.messages);
            if (run.info.limits_grid != (vectorizes && rows[i].is_index) || (strstr(run.dump, "tid.x.64") != NULL) != run.info.limits_grid)
                fail_msg("%s:\n%s", rows[i].name, run.dump);
            free(run.dump);
        }
}

/* The loop reads %r4, which is computed from the thread's number before it. */
#define KEPT(computed, body)                                                                                                               \
    HEAD ENTRY REGS ARGUMENTS "mov.u32 %r2, %tid.x;\nmov.u32 %r5, 0;\n" computed "LOOP:\n" body                                            \
                              "add.s32 %r5, %r5, %r4;\nst.global.u32 [%rd1], %r5;\n"                                                       \
                              "setp.lt.s32 %p1, %r5, %r1;\n@%p1 bra LOOP;\nst.global.u32 [%rd1+4], %r4;\nret;\n}\n"
#define FOUR "st.global.u32 [%rd1+8], %r5;\nst.global.u32 [%rd1+12], %r5;\nst.global.u32 [%rd1+16], %r5;\nst.global.u32 [%rd1+20], %r5;\n"
#define SIXTEEN FOUR FOUR FOUR FOUR
#define MORE "mul.lo.s32 %r3, %r3, %r2;\n"
#define FIVE_MORE MORE MORE MORE MORE MORE

static void test_rematerialize(void **state)
{
    static const struct {
        const char *name, *text;
        unsigned words;
        bool in_loop;
    } rows[] = {
        {"few registers", KEPT("shr.u32 %r4, %r2, 4;\n", SIXTEEN), 2, true},
        {"several operations", KEPT("mul.lo.s32 %r3, %r2, 272;\nadd.s32 %r3, %r3, %r1;\nshr.u32 %r4, %r3, 4;\n", SIXTEEN SIXTEEN), 2, true},
        {"many registers", KEPT("shr.u32 %r4, %r2, 4;\n", SIXTEEN), 0, false},
        {"enough registers", KEPT("shr.u32 %r4, %r2, 4;\n", SIXTEEN), 64, false},
        {"from memory", KEPT("ld.global.u32 %r3, [%rd1];\nshr.u32 %r4, %r3, 4;\n", SIXTEEN), 2, false},
        {"a short loop", KEPT("shr.u32 %r4, %r2, 4;\n", ""), 2, false},
        {"too many operations",
         KEPT("add.s32 %r3, %r2, 1;\n" FIVE_MORE FIVE_MORE MORE MORE "shr.u32 %r4, %r3, 4;\n",
              SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN),
         2, false},
    };
    struct ptx2spv_target target = full_target();

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *loop, *end;
        struct run run;

        target.register_words = rows[i].words;
        compile(rows[i].text, "rematerialize", &target, &run);
        if (run.status != PTX2SPV_OK || !run.dump)
            fail_msg("%s: %s\n%s", rows[i].name, ptx2spv_status_string(run.status), run.messages);
        loop = strstr(run.dump, "= phi");
        end = loop ? strstr(loop, "cbr") : NULL;
        if (!end || (strstr(loop, "= shr.u32") && strstr(loop, "= shr.u32") < end) != rows[i].in_loop)
            fail_msg("%s:\n%s", rows[i].name, run.dump);
        if (rows[i].in_loop && memmem(run.dump, (size_t)(loop - run.dump), "= shr", 5))
            fail_msg("%s: it is computed before the loop, too\n%s", rows[i].name, run.dump);
        free(run.dump);
    }
}

/* Pipelines of kernels for which this is 0 may have subgroups of any size. */
static void test_uses_subgroups(void **state)
{
    static const struct {
        const char *name, *body;
        bool uses_subgroups;
    } rows[] = {
        {"a sum", "add.u32 %r2, %r1, 1;\nst.global.u32 [%rd1], %r2;\n", false},
        {"a barrier", "st.global.u32 [%rd1], %r1;\nbar.sync 0;\n", false},
        {"the lane's number", "mov.u32 %r2, %laneid;\nst.global.u32 [%rd1], %r2;\n", false},
        {"a shuffle", "shfl.sync.idx.b32 %r2, %r1, 3, 31, -1;\nst.global.u32 [%rd1], %r2;\n", true},
        {"a vote", "setp.eq.u32 %p1, %r1, 1;\nvote.sync.ballot.b32 %r2, %p1, -1;\nst.global.u32 [%rd1], %r2;\n", true},
        {"a barrier of a warp", "st.global.u32 [%rd1], %r1;\nbar.warp.sync -1;\n", true},
        {"active lanes", "activemask.b32 %r2;\nst.global.u32 [%rd1], %r2;\n", true},
    };
    struct ptx2spv_target target = full_target();

    (void)state;
    target.warp_form = PTX2SPV_WARP_NATIVE;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct run run;
        char text[2048];

        snprintf(text, sizeof text, "%s%sret;\n}\n", HEAD ENTRY REGS ARGUMENTS, rows[i].body);
        compile(text, "cleanup", &target, &run);
        if (run.status != PTX2SPV_OK)
            fail_msg("%s: %s\n%s", rows[i].name, ptx2spv_status_string(run.status), run.messages);
        if (run.info.uses_subgroups != rows[i].uses_subgroups)
            fail_msg("%s: %d\n%s", rows[i].name, run.info.uses_subgroups, run.dump);
        free(run.dump);
    }
}

static void test_errors(void **state)
{
    static const struct {
        const char *name, *text, *wanted;
        enum ptx2spv_status status;
    } rows[] = {
        {"extern function", HEAD ".extern .func missing();\n" ENTRY "call missing;\nret;\n}\n", "missing", PTX2SPV_UNDEFINED},
        {"too much shared memory", HEAD ".shared .align 4 .b8 s[49156];\n" ENTRY REGS "st.shared.u32 [s], 1;\nret;\n}\n", "49156 bytes",
         PTX2SPV_TARGET_LACKS},
        {"a call through a register of no known kind", HEAD ENTRY REGS ARGUMENTS "call %rd1;\nret;\n}\n", "prototype", PTX2SPV_INVALID_PTX},
    };
    const struct ptx2spv_target target = full_target();

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct run run;

        compile(rows[i].text, NULL, &target, &run);
        if (run.status != rows[i].status || !strstr(run.messages, rows[i].wanted))
            fail_msg("%s: %s: %s", rows[i].name, ptx2spv_status_string(run.status), run.messages);
        free(run.dump);
    }
}

/* Functions that may call each other have one instance for all of these calls, and one more for the first call if it is only by address that they
 * may; others have one for each call. */
static void test_instances_of_recursive_functions(void **state)
{
#define FUNCTION(name, body) ".func (.param .b32 result) " name "(.param .b32 x)\n{\n" REGS "ld.param.u32 %r1, [x];\n" body "ret;\n}\n"
#define DECLARE(name) ".func (.param .b32 result) " name "(.param .b32 x);\n"
#define CALLS(name) "setp.ne.u32 %p1, %r1, 0;\n@%p1 call (%r2), " name ", (%r1);\n"
#define MARK "popc.b32 %r3, %r1;\nst.param.b32 [result], %r3;\n" /* there are as many of these as instances */
    static const struct {
        const char *name, *functions, *calls;
        unsigned n_instances;
    } rows[] = {
        {"none", FUNCTION("f", MARK), CALLS("f") CALLS("f"), 2},
        {"itself", DECLARE("f") FUNCTION("f", MARK CALLS("f") CALLS("f")), CALLS("f"), 1},
        {"from two places", DECLARE("f") FUNCTION("f", MARK CALLS("f")), CALLS("f") CALLS("f"), 2},
        {"each other", DECLARE("g") FUNCTION("f", MARK CALLS("g") CALLS("g")) FUNCTION("g", MARK CALLS("f")), CALLS("f"), 2},
        {"one in a cycle calls one that is not", DECLARE("f") FUNCTION("h", MARK) FUNCTION("f", MARK CALLS("h") CALLS("h") CALLS("f")),
         CALLS("f"), 3},
        {"by address in several places",
         DECLARE("f") DECLARE("g") FUNCTION("f", "mov.u64 %rd2, f;\nmov.u64 %rd2, g;\n" MARK
                                                 "{\n" CALL_BY_ADDRESS("") "}\n{\n" CALL_BY_ADDRESS("") "}\n") FUNCTION("g", MARK),
         "mov.u64 %rd2, f;\n" CALL_BY_ADDRESS(""), 8},
        {"by address", DECLARE("f") FUNCTION("f", "mov.u64 %rd2, f;\n" MARK CALL_BY_ADDRESS("")), "mov.u64 %rd2, f;\n" CALL_BY_ADDRESS(""),
         2},
    };
    const struct ptx2spv_target target = full_target();

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[4096];
        unsigned n = 0;
        struct run run;

        snprintf(text, sizeof text, "%s%s%s%s%s", HEAD, rows[i].functions, ENTRY REGS ARGUMENTS, rows[i].calls,
                 "st.global.u32 [%rd1], %r2;\nret;\n}\n");
        compile(text, "inline", &target, &run);
        if (run.status != PTX2SPV_OK || *run.messages)
            fail_msg("%s: %s: %s", rows[i].name, ptx2spv_status_string(run.status), run.messages);
        assert_null(strstr(run.dump, " call"));
        for (const char *at = run.dump; (at = strstr(at, "popc")) != NULL; at++)
            n++;
        if (n != rows[i].n_instances)
            fail_msg("%s: %u instances\n%s", rows[i].name, n, run.dump);
        free(run.dump);
    }
#undef FUNCTION
#undef DECLARE
#undef CALLS
#undef MARK
}

static void test_target_without_float64(void **state)
{
    static const char text[] = HEAD ENTRY ".reg .f64 %fd<4>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [p];\nld.global.f64 %fd1, [%rd1];\n"
                                          "add.f64 %fd2, %fd1, %fd1;\nst.global.f64 [%rd1], %fd2;\nret;\n}\n";
    struct ptx2spv_target target = full_target();
    struct run run;

    (void)state;
    compile(text, NULL, &target, &run);
    assert_int_equal(run.status, PTX2SPV_OK);
    target.float64 = 0;
    compile(text, "software64", &target, &run);
    assert_int_equal(run.status, PTX2SPV_OK);
    assert_non_null(strstr(run.dump, "argument")); /* the last dump is that of the subroutine for the sum */
    assert_null(strstr(run.dump, "f64"));
    free(run.dump);
}

/* f0 calls f1 twice, f1 calls f2 twice, ..: too many instances to be inlined. */
static void compile_calls_that_double(const char *innermost, struct run *run)
{
    const struct ptx2spv_target target = full_target();
    char text[8192] = HEAD;
    size_t used = strlen(text);

    used += (size_t)snprintf(text + used, sizeof text - used, ".func f40()\n{\n%sret;\n}\n", innermost);
    for (int i = 39; i >= 0; i--)
        used += (size_t)snprintf(text + used, sizeof text - used, ".func f%d()\n{\ncall f%d;\ncall f%d;\nret;\n}\n", i, i + 1, i + 1);
    snprintf(text + used, sizeof text - used, ENTRY "call f0;\nret;\n}\n");
    compile(text, NULL, &target, run);
}

/* Functions have one instance each, unless their threads synchronize, which must be reported, and soon. */
static void test_calls_that_double(void **state)
{
    struct run run;

    (void)state;
    compile_calls_that_double("", &run);
    assert_int_equal(run.status, PTX2SPV_OK);
    compile_calls_that_double("bar.sync 0;\n", &run);
    assert_int_equal(run.status, PTX2SPV_UNSUPPORTED);
    assert_non_null(strstr(run.messages, "more than can be inlined"));
}

/* f calls itself 4,096 times at most, counting the kernel's call. */
static void test_many_recursive_calls(void **state)
{
    enum { MOST = 4096, MOST_OF_LINE = 16 };
    const struct ptx2spv_target target = full_target();
    char *text = malloc(MOST * MOST_OF_LINE + 1024);

    (void)state;
    assert_non_null(text);
    for (int calls = MOST - 1; calls <= MOST; calls++) {
        struct ptx2spv_module *module;
        struct ptx2spv_kernel kernel = {0};
        int used = sprintf(text, "%s",
                           HEAD ".func f()\n{\n.reg .pred %p;\n.reg .b32 %r;\nmov.u32 %r, %tid.x;\nsetp.eq.u32 %p, %r, 0;\n@%p ret;\n");

        for (int i = 0; i < calls; i++)
            used += sprintf(text + used, "call f;\n");
        sprintf(text + used, "%s", "ret;\n}\n" ENTRY "call f;\nret;\n}\n");
        assert_int_equal(ptx2spv_module_create(text, strlen(text), NULL, &module),
                         PTX2SPV_OK); /* the judges do not get it: it takes them minutes */
        assert_int_equal(ptx2spv_kernel_compile(module, 0, &target, NULL, &kernel), calls < MOST ? PTX2SPV_OK : PTX2SPV_UNSUPPORTED);
        ptx2spv_kernel_finish(&kernel);
        ptx2spv_module_destroy(module);
    }
    free(text);
}

/* Functions that a call by address may reach and that are too large together are not inlined: the call traps, and a warning says why. */
static void test_large_calls_by_address(void **state)
{
    enum { FUNCTIONS = 6, INSTRUCTIONS = 100000, MOST_OF_LINE = 24 };
    const struct ptx2spv_target target = full_target();
    char *text = malloc((size_t)FUNCTIONS * INSTRUCTIONS * MOST_OF_LINE + 8192);
    struct run run;
    int used;

    (void)state;
    assert_non_null(text);
    for (int functions = 1; functions <= FUNCTIONS; functions += FUNCTIONS - 1) {
        const bool is_large = functions == FUNCTIONS;

        used = sprintf(text, "%s", HEAD);
        for (int f = 0; f < functions; f++) {
            used += sprintf(text + used, ".func (.param .b32 result) f%d(.param .b32 x)\n{\n%sld.param.u32 %%r1, [x];\n", f, REGS);
            for (int i = 0; i < (is_large ? INSTRUCTIONS : 3); i++)
                used += sprintf(text + used, "xor.b32 %%r1, %%r1, %d;\n", f);
            used += sprintf(text + used, "st.param.b32 [result], %%r1;\nret;\n}\n");
        }
        used += sprintf(text + used, "%s", ENTRY REGS ARGUMENTS);
        for (int f = 0; f < functions; f++)
            used += sprintf(text + used, "mov.u64 %%rd2, f%d;\n", f);
        sprintf(text + used, "%s", CALL_BY_ADDRESS("") "st.global.u32 [%rd1], %r2;\nret;\n}\n");
        compile(text, "inline", &target, &run);
        assert_int_equal(run.status, PTX2SPV_OK);
        assert_int_equal(strstr(run.messages, "600018 instructions, more than the 500000 that are supported") != NULL, is_large);
        assert_non_null(run.dump);
        assert_null(strstr(run.dump, "call"));
        assert_int_equal(strstr(run.dump, "xor") == NULL, is_large);
        free(run.dump);
    }
    free(text);
}

/* A chain of calls that is much deeper than a recursive C function could handle. */
static void test_deep_calls(void **state)
{
    enum { DEPTH = 3000 };
    const struct ptx2spv_target target = full_target();
    char *text = malloc(64 * DEPTH + 1024);
    struct run run;
    int used;

    (void)state;
    assert_non_null(text);
    used = sprintf(text, HEAD ".func f%d()\n{\nret;\n}\n", DEPTH);
    for (int i = DEPTH - 1; i >= 0; i--)
        used += sprintf(text + used, ".func f%d()\n{\ncall f%d;\nret;\n}\n", i, i + 1);
    sprintf(text + used, ENTRY "call f0;\nret;\n}\n");
    compile(text, NULL, &target, &run);
    free(text);
    if (run.status != PTX2SPV_OK)
        fail_msg("%s", run.messages);
}

/* The cache of compiled kernels depends on it. Memory has different addresses each time, so a dependence on hashes of addresses would
 * show. */
static void test_same_input_same_bytes(void **state)
{
    static const char text[] = HEAD ADD_ONE ENTRY REGS SHARED_OBJECT
        ".shared .align 8 .b8 t[64];\n.local .align 4 .b8 a[64];\n" ARGUMENTS TAGGED CALL_ADD_ONE("%r2", "%r1")
            CALL_ADD_ONE("%r3", "%r2") "mov.u64 %rd4, a;\nmul.wide.u32 %rd5, %r1, 4;\nadd.s64 %rd6, %rd4, %rd5;\n"
                                       "st.local.u32 [%rd6], %r3;\nst.shared.u32 [t], %r3;\nTOP: add.s32 %r2, %r2, %r3;\nsetp.lt.s32 %p1, "
                                       "%r2, %r1;\n@%p1 bra TOP;\n"
                                       "st.u32 [%rd3], %r2;\nld.local.u32 %r4, [a];\nst.global.u32 [%rd1], %r4;\nret;\n}\n";
    const struct ptx2spv_target target = full_target();
    struct ptx2spv_module *modules[2];
    struct ptx2spv_kernel kernels[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ptx2spv_module_create(text, sizeof text - 1, NULL, &modules[i]), PTX2SPV_OK);
        assert_int_equal(ptx2spv_kernel_compile(modules[i], 0, &target, NULL, &kernels[i]), PTX2SPV_OK);
    }
    assert_int_equal(kernels[0].n_words, kernels[1].n_words);
    assert_memory_equal(kernels[0].words, kernels[1].words, kernels[0].n_words * sizeof *kernels[0].words);
    for (int i = 0; i < 2; i++) {
        ptx2spv_kernel_finish(&kernels[i]);
        ptx2spv_module_destroy(modules[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inline),
        cmocka_unit_test(test_promote),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_make_reducible),
        cmocka_unit_test(test_ssa),
        cmocka_unit_test(test_simplify),
        cmocka_unit_test(test_warp_synchronous),
        cmocka_unit_test(test_lone_readers),
        cmocka_unit_test(test_empty_blocks),
        cmocka_unit_test(test_addrspace),
        cmocka_unit_test(test_indices),
        cmocka_unit_test(test_rematerialize),
        cmocka_unit_test(test_uses_subgroups),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_instances_of_recursive_functions),
        cmocka_unit_test(test_many_recursive_calls),
        cmocka_unit_test(test_large_calls_by_address),
        cmocka_unit_test(test_target_without_float64),
        cmocka_unit_test(test_calls_that_double),
        cmocka_unit_test(test_deep_calls),
        cmocka_unit_test(test_same_input_same_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
