/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that check their accesses to memory (struct ptx2spv_check): which accesses need code for that, that the code is valid, and source places. What
 * it finds is tested on devices (tests/check). */
#include "cuttle/ptx2spv.h"

#include "spirv_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#define SPV_ENABLE_UTILITY_CODE
#include <spirv/unified1/spirv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct row {
    const char *name, *body;
    unsigned accesses; /* that cannot be decided when the kernel is compiled */
} rows[] = {
    {"no access", "", 0},
    {"a parameter", "ld.param.u32 n,[in];", 0},
    {"a load", "ld.global.u32 n,[o];", 1},
    {"a load and a store", "ld.global.u32 n,[o]; st.global.u32 [o+4],n;", 2},
    {"an atomic", "atom.global.add.u32 n,[o],1;", 1},
    {"a vector", "ld.global.v4.u32 {m,t,n,t},[o];", 1},
    {"a byte", "ld.global.u8 n,[o];", 1},
    {"a variable", "st.global.u32 [v+8],n;", 0},
    {"before all variables", "st.global.u32 [v+-8],n;", 1},
    {"across its end", "st.global.u64 [v+12],o;", 1},
    {"a variable by index", "mov.u64 o,v; mul.wide.u32 a,t,4; add.u64 o,o,a; st.global.u32 [o],n;", 1},
    {"a constant", "ld.const.u32 n,[c];", 0},
    {"a write to it", "mov.u64 o,c; st.global.u32 [o],n;", 1},
    {"shared memory", "st.shared.u32 [s+4],n;", 0},
    {"misaligned there", "st.shared.u32 [s+5],n;", 1},
    {"shared memory by index", "mov.u32 n,s; add.u32 n,n,t; st.shared.u8 [n],t;", 1},
    {"dynamic shared memory", "st.shared.u32 [d],n;", 1},
    {"a generic address", "cvta.shared.u64 a,s; setp.eq.u32 p,t,0; @p mov.u64 a,o; st.u32 [a],n;", 1},
    {"a generic address in one space", "mov.u64 a,s; cvta.shared.u64 a,a; st.u32 [a],n;", 1},
    {"a pointer from memory", "ld.global.u64 a,[o]; ld.global.u32 n,[a];", 2},
    {"a loop that moves a pointer", "L: ld.global.u32 n,[o]; add.u64 o,o,4; setp.ne.u32 p,n,0; @p bra L;", 1},
    {"behind a barrier", "bar.sync 0; st.global.u32 [o],n; bar.sync 0; st.global.u32 [o],n;", 2},
    {"all lanes", "vote.sync.any.pred p,p,-1; shfl.sync.idx.b32 n,n,0,31,-1;", 0},
    {"some lanes", "shfl.sync.idx.b32 n,n,0,31,1; bar.warp.sync t;", 2},
    {"a function of the system",
     "{ .param .b64 q; .param .b64 z; st.param.b64 [q],o; st.param.b64 [z],o;"
     ".param .b32 y; call (y), vprintf, (q,z); }",
     0},
};

static const char head[] =
    ".version 7.4\n.target sm_70\n.address_size 64\n"
    ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
    ".global .align 8 .b32 v[4];\n.const .align 4 .b32 c[4];\n.shared .align 4 .b32 s[4];\n.extern .shared .align 4 .b32 d[];\n"
    ".visible .entry k(.param .u64 out, .param .u32 in, .param .u64 last)\n{\n"
    ".reg .pred p; .reg .b32 n, m, t; .reg .b64 o, a; ld.param.u64 o,[out]; mov.u32 t,%tid.x; mov.u32 n,t;\n";

static struct ptx2spv_target make_target(enum ptx2spv_dialect dialect)
{
    return (struct ptx2spv_target){
        .dialect = dialect,
        .warp_form = PTX2SPV_WARP_COLLECTIVE,
        .subgroup_size = 8,
        .push_constant_bytes = 128,
        .shared_bytes = 32768,
        .max_block_threads = 1024,
        .int64 = 1,
        .int16 = 1,
        .int8 = 1,
        .storage8 = 1,
        .storage16 = 1,
        .memory_model_device_scope = 1,
        .shared_explicit_layout = 1,
    };
}

static struct ptx2spv_module *make_module(const char *body)
{
    struct ptx2spv_module *module;
    char text[4096];

    assert_true(snprintf(text, sizeof text, "%s%s\nst.shared.u32 [s],n; ret;\n}\n", head, body) < (int)sizeof text);
    assert_int_equal(ptx2spv_module_create(text, strlen(text), NULL, &module), PTX2SPV_OK);
    return module;
}

static void print(void *user, const struct ptx2spv_diagnostic *diagnostic)
{
    (void)user;
    print_message("%s\n", diagnostic->text);
}

static void compile(const char *name, const struct ptx2spv_module *module, enum ptx2spv_dialect dialect,
                    const struct ptx2spv_options *options, struct ptx2spv_kernel *out)
{
    const struct ptx2spv_target target = make_target(dialect);

    if (ptx2spv_kernel_compile(module, 0, &target, options, out) != PTX2SPV_OK)
        fail_msg("%s: not compiled", name);
    assert_valid_spirv(out->words, out->n_words);
}

static void test_accesses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct ptx2spv_options options = {.on_diagnostic = print, .check = true};
        struct ptx2spv_module *module = make_module(rows[i].body);
        const unsigned sites = rows[i].accesses ? 1 + PTX2SPV_CHECK_FAULTS * rows[i].accesses : 0;

        for (int dialect = PTX2SPV_VULKAN; dialect <= PTX2SPV_OPENCL; dialect++) {
            struct ptx2spv_kernel kernel;

            compile(rows[i].name, module, (enum ptx2spv_dialect)dialect, &options, &kernel);
            if (kernel.info.check_sites != sites || !kernel.info.check_param_offset != !sites)
                fail_msg("%s: %u sites", rows[i].name, kernel.info.check_sites);
            ptx2spv_kernel_finish(&kernel);
        }
        ptx2spv_module_destroy(module);
    }
}

/* Kernels that access shared memory by weak or volatile loads and stores, and synchronize by nothing but whole barriers. */
static void test_races(void **state)
{
    static const struct {
        const char *name, *body;
        bool possible;
    } cases[] = {
        {"stores", "", true},
        {"bytes and vectors", "ld.shared.u8 m,[s+3]; st.shared.v4.u32 [s],{n,m,t,n};", true},
        {"a loop with barriers", "L: ld.shared.u32 n,[s]; bar.sync 0; add.u32 t,t,1; setp.lt.u32 p,t,99; @p bra L;", true},
        {"a barrier with a reduction", "setp.eq.u32 p,t,0; bar.red.or.pred p,0,p; @p st.shared.u32 [s+4],n;", true},
        {"warp instructions", "shfl.sync.idx.b32 n,n,0,31,-1; bar.warp.sync t;", true},
        {"an addition", "red.shared.add.u32 [s],1;", true},
        {"a lock", "atom.shared.cas.b32 n,[s],0,1;", false},
        {"volatile accesses", "st.volatile.shared.u32 [s],n;", true},
        {"a flag", "st.relaxed.cta.shared.u32 [s],n;", false},
        {"a barrier of some threads", "bar.sync 1,64;", false},
        {"the size of shared memory", "mov.u32 n,%dynamic_smem_size;", false},
    };
    const struct ptx2spv_options options = {.on_diagnostic = print, .check = true, .check_races = true};

    (void)state;
    for (size_t i = 0; i < 2 * (sizeof cases / sizeof *cases); i++) {
        struct ptx2spv_module *module = make_module(cases[i / 2].body);
        struct ptx2spv_kernel kernel;

        compile(cases[i / 2].name, module, i % 2 ? PTX2SPV_VULKAN : PTX2SPV_OPENCL, &options, &kernel);
        if (kernel.info.checks_races != cases[i / 2].possible)
            fail_msg("%s: %u", cases[i / 2].name, kernel.info.checks_races);
        ptx2spv_kernel_finish(&kernel);
        ptx2spv_module_destroy(module);
    }
}

/* A table in local memory, and a store to it that is not known to be within. */
#define LOCAL_TABLE "{ .local .align 16 .b32 l[4]; .reg .b64 b; mul.wide.u32 b,t,4; mov.u64 a,l; add.u64 a,a,b; st.local.u32 [a],n; "

/* With check_written each access that may lead to a shadow has two reports, those of refused accesses and of what was not written. */
static void test_written(void **state)
{
    static const struct {
        const char *name, *body;
        unsigned reports;
        bool shared; /* shared memory has a shadow */
    } cases[] = {
        {"a load", "ld.global.u32 n,[o]; st.shared.u32 [s+4],n;", 2, false},
        {"a store", "st.global.u32 [o],n;", 1, false},
        {"an addition", "red.global.add.u32 [o],1;", 2, false},
        {"an exchange", "atom.global.exch.b32 n,[o],1;", 1, false},
        {"a vector", "ld.global.v4.u32 {m,t,n,t},[o];", 2, false},
        {"a variable", "ld.global.u32 n,[v+8];", 0, false},
        {"shared memory", "ld.shared.u32 n,[s+4];", 1, true},
        {"its size", "ld.shared.u32 n,[s+4]; mov.u32 m,%total_smem_size; add.u32 n,n,m;", 0, false},
        {"a generic store", "setp.eq.u32 p,t,0; cvta.shared.u64 a,s; @p mov.u64 a,o; st.u32 [a],n; ld.shared.u32 n,[s+4];", 1, true},
        {"a matrix in shared memory",
         "mov.u32 m,s; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {n},[m]; stmatrix.sync.aligned.m8n8.x1.shared.b16 [m],{n}; ld.shared.u32 "
         "n,[s+4];",
         0, false},
        {"local memory", LOCAL_TABLE "ld.local.u32 n,[l+4]; add.u32 n,n,1; st.global.u32 [o],n; }", 3, false},
        {"local memory that is stored elsewhere", LOCAL_TABLE "ld.local.u32 n,[l+4]; st.global.u32 [o],n; }", 3, false},
        {"local memory that is copied", LOCAL_TABLE "ld.local.u32 m,[l+4]; st.local.u32 [l+8],m; }", 1, false},
        {"local memory that is chosen", LOCAL_TABLE "ld.local.u32 m,[l+4]; setp.eq.u32 p,t,0; selp.u32 m,m,t,p; st.global.u32 [o],m; }", 2,
         false},
        {"a pointer that cannot lead there", LOCAL_TABLE "ld.global.u64 b,[o]; st.u32 [b],n; ld.local.u32 n,[l+4]; st.global.u32 [o],n; }",
         6, false},
        {"a pointer that may lead there",
         LOCAL_TABLE "ld.global.u64 b,[o]; cvta.local.u64 a,a; setp.eq.u32 p,t,0; @p mov.u64 a,b; st.u32 [a],n; ld.local.u32 n,[l+4]; "
                     "st.global.u32 [o],n; }",
         5, false},
    };
    const struct ptx2spv_options options = {.on_diagnostic = print, .check = true, .check_written = true};

    (void)state;
    for (size_t i = 0; i < 2 * (sizeof cases / sizeof *cases); i++) {
        struct ptx2spv_module *module = make_module(cases[i / 2].body);
        const unsigned sites = cases[i / 2].reports ? 1 + PTX2SPV_CHECK_FAULTS * cases[i / 2].reports : 0;
        struct ptx2spv_kernel kernel;

        compile(cases[i / 2].name, module, i % 2 ? PTX2SPV_VULKAN : PTX2SPV_OPENCL, &options, &kernel);
        if (kernel.info.checks_written != cases[i / 2].shared || kernel.info.check_sites != sites)
            fail_msg("%s: %u, %u sites", cases[i / 2].name, kernel.info.checks_written, kernel.info.check_sites);
        ptx2spv_kernel_finish(&kernel);
        ptx2spv_module_destroy(module);
    }
}

/* The parameters from which addresses of stores are computed; n: n_params of struct ptx2spv_stored. */
static void test_stored(void **state)
{
    static const struct {
        const char *name, *body;
        uint32_t n, offset, to_variables;
    } cases[] = {
        {"a load", "ld.global.u32 n,[o];", 0, 0, 0},
        {"an atomic", "atom.global.add.u32 n,[o],1;", 0, 0, 0},
        {"a variable", "mov.u64 o,v; mul.wide.u32 a,t,4; add.u64 o,o,a; st.global.u32 [o],n;", 0, 0, 1},
        {"shared memory", "mov.u32 n,s; add.u32 n,n,t; st.shared.u8 [n],t;", 0, 0, 0},
        {"the first parameter, twice", "mul.wide.u32 a,t,4; add.u64 a,o,a; st.global.u32 [a],n; st.global.u32 [o+4],n;", 1, 0, 0},
        {"the second one", "ld.param.u64 a,[last]; ld.global.u32 n,[o]; st.u32 [a],n;", 1, 16, 0},
        {"a pointer from memory", "ld.global.u64 a,[o]; st.global.u32 [a],n;", PTX2SPV_STORED_PARAMS + 1, 0, 0},
        {"and another store", "st.global.u32 [o],n; ld.global.u64 a,[o]; st.global.u32 [a],n;", PTX2SPV_STORED_PARAMS + 1, 0, 0},
        {"a choice", "ld.param.u64 a,[last]; setp.eq.u32 p,t,0; @p mov.u64 o,a; st.global.u32 [o],n;", PTX2SPV_STORED_PARAMS + 1, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct ptx2spv_options options = {.check = true, .check_blocks = true};
        struct ptx2spv_module *module = make_module(cases[i].body);
        struct ptx2spv_kernel kernel;

        compile(cases[i].name, module, PTX2SPV_VULKAN, &options, &kernel);
        assert_int_equal(kernel.info.check_stored.to_variables, cases[i].to_variables);
        if (kernel.info.check_stored.n_params != cases[i].n || (cases[i].n == 1 && kernel.info.check_stored.params[0] != cases[i].offset))
            fail_msg("%s: %u, %u", cases[i].name, kernel.info.check_stored.n_params, kernel.info.check_stored.params[0]);
        ptx2spv_kernel_finish(&kernel);
        ptx2spv_module_destroy(module);
    }
}

/* Barriers of whole blocks which not all threads are known to reach together. */
static void test_barriers(void **state)
{
    static const struct {
        const char *name, *body;
        bool checked;
    } cases[] = {
        {"no barrier", "", false},
        {"one that all reach", "bar.sync 0;", false},
        {"a condition for the block", "mov.u32 m,%ctaid.x; setp.eq.u32 p,m,0; @p bar.sync 0;", false},
        {"a condition for threads", "setp.eq.u32 p,t,0; @p bar.sync 0;", true},
        {"behind the end of some", "setp.eq.u32 p,t,0; @p ret; bar.sync 0;", true},
        {"a part of the block elsewhere", "setp.eq.u32 p,t,0; @p bar.sync 0; bar.sync 1,32;", false},
        {"the size of shared memory", "mov.u32 n,%total_smem_size; setp.eq.u32 p,t,0; @p bar.sync 0;", false},
    };
    const struct ptx2spv_options options = {.on_diagnostic = print, .check = true};

    (void)state;
    for (size_t i = 0; i < 2 * (sizeof cases / sizeof *cases); i++) {
        struct ptx2spv_module *module = make_module(cases[i / 2].body);
        struct ptx2spv_kernel kernel;

        compile(cases[i / 2].name, module, i % 2 ? PTX2SPV_VULKAN : PTX2SPV_OPENCL, &options, &kernel);
        if (kernel.info.checks_barriers != cases[i / 2].checked || (kernel.info.check_thread_bytes != 0) != cases[i / 2].checked)
            fail_msg("%s: %u", cases[i / 2].name, kernel.info.checks_barriers);
        ptx2spv_kernel_finish(&kernel);
        ptx2spv_module_destroy(module);
    }
}

/* Whether the address of each load of a vector is computed from the number of the thread. *n: how many such loads there are. */
static bool vector_loads_vary(const struct ptx2spv_kernel *kernel, unsigned *n)
{
    enum { HEADER_WORDS = 5, BOUND = 3 };
    const uint32_t *words = kernel->words;
    bool *varies = calloc(words[BOUND], 1), *is_vector = calloc(words[BOUND], 1), all = true;

    assert_non_null(varies);
    assert_non_null(is_vector);
    *n = 0;
    for (size_t at = HEADER_WORDS; at < kernel->n_words; at += words[at] >> SpvWordCountShift) {
        const uint32_t *insn = words + at;
        const SpvOp op = (SpvOp)(insn[0] & SpvOpCodeMask);
        const uint32_t operands_end = op == SpvOpLoad ? 4 : insn[0] >> SpvWordCountShift;
        bool has_result, has_type;

        SpvHasResultAndType(op, &has_result, &has_type);
        if (op == SpvOpDecorate && insn[2] == SpvDecorationBuiltIn)
            varies[insn[1]] |= insn[3] == SpvBuiltInLocalInvocationIndex || insn[3] == SpvBuiltInLocalInvocationId;
        if (op == SpvOpTypeVector)
            is_vector[insn[1]] = true;
        if (!has_type || op == SpvOpVariable || op == SpvOpConstant)
            continue;
        for (uint32_t i = 3; i < operands_end; i++)
            varies[insn[2]] |= insn[i] < words[BOUND] && varies[insn[i]];
        if (op == SpvOpLoad && is_vector[insn[1]]) {
            (*n)++;
            all &= varies[insn[2]];
        }
    }
    free(varies);
    free(is_vector);
    return all;
}

/* The program's accesses have the same address in all threads. That from which a check loads must vary (ct_check_varying_zero). */
static void test_varying_addresses(void **state)
{
    static const struct {
        const char *name, *body;
        struct ptx2spv_options options;
    } cases[] = {
        {"marks of shared memory", "ld.shared.u32 n,[s+4];", {.check = true, .check_races = true}},
        {"marks of global memory", "ld.global.u32 n,[o]; st.global.u32 [o],n;", {.check = true, .check_blocks = true}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ptx2spv_module *module = make_module(cases[i].body);
        struct ptx2spv_kernel kernel;
        unsigned n;

        compile(cases[i].name, module, PTX2SPV_VULKAN, &cases[i].options, &kernel);
        if (!vector_loads_vary(&kernel, &n) || !n)
            fail_msg("%s: %u vectors are loaded, not all of them from addresses that vary", cases[i].name, n);
        ptx2spv_kernel_finish(&kernel);
        ptx2spv_module_destroy(module);
    }
}

static void test_cooperative_ones(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct ptx2spv_options options = {.on_diagnostic = print, .check = true, .cooperative = true, .clusters = i % 2};
        struct ptx2spv_module *module = make_module(rows[i].body);
        struct ptx2spv_kernel kernel;

        compile(rows[i].name, module, PTX2SPV_VULKAN, &options, &kernel);
        ptx2spv_kernel_finish(&kernel);
        ptx2spv_module_destroy(module);
    }
}

/* Without the option there is nothing of it. */
static void test_no_check(void **state)
{
    struct ptx2spv_module *module = make_module("ld.global.u32 n,[o]; st.global.u32 [o+4],n;");
    struct ptx2spv_kernel kernel;

    (void)state;
    compile("no check", module, PTX2SPV_VULKAN, NULL, &kernel);
    assert_int_equal(kernel.info.check_sites, 0);
    assert_int_equal(kernel.info.check_param_offset, 0);
    assert_int_equal(kernel.info.param_bytes, 24);
    ptx2spv_kernel_finish(&kernel);
    ptx2spv_module_destroy(module);
}

/* PTX ISA, "Debugging Directives: .loc": with the example of inlined functions given there. */
static const char places_text[] = ".version 7.4\n.target sm_70\n.address_size 64\n"
                                  ".visible .entry first()\n{\n.loc 1 1 1\nret;\n}\n" /* lines 4 to 8 */
                                  ".visible .entry k()\n{\n"
                                  "ret;\n"                                                   /* 11 */
                                  "\t.loc 1 5 2\nret;\n"                                     /* 13 */
                                  ".loc 2 6 3, function_name $i, inlined_at 1 5 2\nret;\n"   /* 15 */
                                  ".loc 2 7 4, function_name $i+4, inlined_at 2 6 3\nret;\n" /* 17 */
                                  "}\n.file 1 \"a.cu\"\n.file 2 \"/b/c.cuh\", 1, 2\n"
                                  ".section .debug_str\n{\n$i:\n.b8 111,110,101\n.b8 0\n.b8 116,119,111,0\n}\n";

static void test_places(void **state)
{
    static const struct {
        const char *name;
        unsigned line, n;
        struct ptx2spv_place places[3];
    } cases[] = {
        {"no .loc in this function", 11, 0, {{"", "", 0, 0}}},
        {"the first function", 7, 1, {{"a.cu", "", 1, 1}}},
        {"a .loc", 13, 1, {{"a.cu", "", 5, 2}}},
        {"an inlined function", 15, 2, {{"/b/c.cuh", "one", 6, 3}, {"a.cu", "", 5, 2}}},
        {"one that is inlined in it", 17, 3, {{"/b/c.cuh", "two", 7, 4}, {"/b/c.cuh", "one", 6, 3}, {"a.cu", "", 5, 2}}},
    };
    struct ptx2spv_place places[PTX2SPV_PLACES_MAX];
    struct ptx2spv_module *module;

    (void)state;
    assert_int_equal(ptx2spv_module_create(places_text, sizeof places_text, NULL, &module), PTX2SPV_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const unsigned n = ptx2spv_module_places(module, 0, cases[i].line, places);

        if (n != cases[i].n)
            fail_msg("%s: %u places", cases[i].name, n);
        for (unsigned p = 0; p < n; p++)
            if (strcmp(places[p].file, cases[i].places[p].file) || strcmp(places[p].function, cases[i].places[p].function) ||
                places[p].line != cases[i].places[p].line || places[p].column != cases[i].places[p].column)
                fail_msg("%s: place %u is %s:%u:%u in %s", cases[i].name, p, places[p].file, places[p].line, places[p].column,
                         places[p].function);
    }
    assert_int_equal(ptx2spv_module_places(module, 1, 13, places), 0); /* no such input */
    ptx2spv_module_destroy(module);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accesses),
        cmocka_unit_test(test_races),
        cmocka_unit_test(test_written),
        cmocka_unit_test(test_stored),
        cmocka_unit_test(test_barriers),
        cmocka_unit_test(test_cooperative_ones),
        cmocka_unit_test(test_varying_addresses),
        cmocka_unit_test(test_no_check),
        cmocka_unit_test(test_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
