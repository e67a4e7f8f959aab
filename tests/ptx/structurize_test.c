/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs through structurize and emit: spirv-val accepts every module, and executing the SPIR-V stores the same as executing the
 * graph in register form. Simple graphs get a simple structure. */
#include "spirv_machine.h"
#include "ptx2spv/ir/structure.h"

#include <setjmp.h>
#include <spirv/unified1/spirv.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#ifdef SANITIZED
#define N_GRAPHS 100
#else
#define N_GRAPHS 400
#endif
#define SEED UINT64_C(0x2545f4914f6cdd1d)

static const struct ptx2spv_target target = {
    .dialect = PTX2SPV_VULKAN,
    .push_constant_bytes = 128,
    .shared_bytes = 32768,
    .max_block_threads = 1024,
    .int64 = 1,
    .int16 = 1,
    .int8 = 1,
    .storage8 = 1,
    .storage16 = 1,
    .float64 = 1,
};

/* Sequences as soon as there can be any. */
static enum ct_pass_result structurize_as_sequences(struct ct_fn *fn)
{
    return ct_structurize_within(fn, (struct ct_structure_limits){.scopes = 1, .depth = 2, .part_depth = 2});
}

static void run_pass(struct bench *bench, enum ct_pass_result (*pass)(struct ct_fn *), uint32_t gives)
{
    if (bench->fn->props & CT_PROP_SSA)
        ct_fn_compute_defs(bench->fn);
    if (pass(bench->fn) == CT_PASS_FAILED)
        fail_msg("%s", bench->diagnostics);
    bench->fn->props |= gives;
    if (!ct_fn_verify(bench->fn))
        fail_msg("%s\n%s", bench->diagnostics, ct_fn_dump(bench->fn, &bench->compilation.arena));
}

static void make_ssa(struct bench *bench)
{
    bench->fn->target = &target;
    run_pass(bench, ct_pass_make_reducible, CT_PROP_REDUCIBLE | CT_PROP_CALLS_INLINED | CT_PROP_LAID_OUT);
    run_pass(bench, ct_pass_ssa, CT_PROP_SSA | CT_PROP_SPACES | CT_PROP_LOWERED);
}

/* From SSA to words. */
static struct ptx2spv_kernel emit(struct bench *bench, enum ct_pass_result (*structurize)(struct ct_fn *))
{
    struct ptx2spv_kernel kernel = {0};

    run_pass(bench, structurize, CT_PROP_STRUCTURED);
    if (ct_emit_spirv(bench->fn, &kernel) != PTX2SPV_OK)
        fail_msg("%s", bench->diagnostics);
    return kernel;
}

/* The guarantees of ir.h on a tree. */
static void check_tree(struct ct_fn *fn)
{
    for (const struct ct_node *node = fn->body; node; node = ct_node_next(node)) {
        const struct ct_node *region = node->parent, *loop = node->parent;

        while (region && !ct_node_is_region(region))
            region = region->parent;
        while (loop && loop->kind != CT_NODE_LOOP)
            loop = loop->parent;
        if (ct_node_is_jump(node))
            assert_null(node->next);
        if (node->kind == CT_NODE_BREAK)
            assert_true(node->region == region || node->region == loop);
        if (node->kind == CT_NODE_CONTINUE)
            assert_ptr_equal(node->region, loop);
    }
}

static void test_random_graphs(void **state)
{
    uint64_t random = SEED;
    unsigned n_selectors = 0, n_scopes = 0, n_loops = 0, n_guards = 0;

    (void)state;
    for (int i = 0; i < N_GRAPHS; i++) {
        struct trace wanted, found;
        struct bench bench;

        bench_init(&bench);
        build_random(&bench, &random, 1 + random_below(&random, 30));
        run_ir(bench.fn, &wanted);
        make_ssa(&bench);
        run_pass(&bench, ct_pass_simplify, 0); /* without it, phis are seldom used together with the values that replace them */
        const struct ptx2spv_kernel kernel = emit(&bench, i % 2 ? structurize_as_sequences : ct_pass_structurize);
        check_tree(bench.fn);
        assert_valid_spirv(kernel.words, kernel.n_words);
        run_spirv(kernel.words, kernel.n_words, &found);
        assert_same_trace(&wanted, &found);
        n_selectors += bench.fn->n_selectors;
        n_scopes += count_spirv(kernel.words, kernel.n_words, SpvOpSwitch);
        n_loops += count_spirv(kernel.words, kernel.n_words, SpvOpLoopMerge);
        n_guards += count_spirv(kernel.words, kernel.n_words, SpvOpULessThanEqual);
        bench_finish(&bench);
    }
    /* Not all graphs were simple. */
    assert_true(n_selectors > N_GRAPHS / 20 && n_scopes > N_GRAPHS / 2 && n_loops > N_GRAPHS / 2 && n_guards > N_GRAPHS);
}

/* ---- simple graphs: the tree has only the nodes that the control flow needs ---- */

/* Edges of a graph: "0:12" is block 0 with successors 1 and 2; a block that is not named returns. Each block contains a store, so that
 * it is more than a return. */
static void build_graph(struct bench *bench, const char *const *edges, uint32_t n_blocks)
{
    struct ct_cursor at = {.fn = bench->fn};
    struct ct_block *blocks[10];

    for (uint32_t b = 0; b < n_blocks; b++)
        blocks[b] = ct_block_create(bench->fn);
    for (uint32_t b = 0; b < n_blocks; b++) {
        struct ct_block *succs[10];
        uint32_t n = 0;
        ct_value address, predicate;
        struct ct_insn *store;

        for (const char *const *edge = edges; *edge; edge++)
            for (const char *to = **edge == (char)('0' + b) ? *edge + 2 : ""; *to; to++)
                succs[n++] = blocks[*to - '0'];
        at.block = blocks[b];
        address = ct_emit_const(&at, CT_W_64, 4096 + b);
        store = ct_emit_insn(&at, CT_OP_STORE, PTX_U64, 0, 2);
        store->space = CT_SPACE_GLOBAL;
        store->operands[0] = store->operands[1] = address;
        predicate = ct_emit_compare(&at, CT_OP_ICMP, PTX_U64, PTX_EQ, address, address);
        if (n == 2)
            ct_emit_insn(&at, CT_OP_CBR, PTX_NONE, 0, 1)->operands[0] = predicate;
        else
            ct_emit_insn(&at, n ? CT_OP_BR : CT_OP_RET, PTX_NONE, 0, 0);
        ct_block_set_succs(bench->fn, blocks[b], n, succs);
    }
}

static const struct {
    const char *name;
    const char *edges[10];
    uint32_t n_blocks;
    unsigned ifs, scopes, loops, selectors;
} plain[] = {
    {"if", {"0:12", "1:2"}, 3, 1, 0, 0, 0},
    {"if else", {"0:12", "1:3", "2:3"}, 4, 1, 0, 0, 0},
    {"two ifs in turn", {"0:12", "1:2", "2:34", "3:4"}, 5, 2, 0, 0, 0},
    {"if in if", {"0:14", "1:23", "2:3", "3:4"}, 5, 2, 0, 0, 0},
    {"both arms return", {"0:12"}, 3, 1, 0, 0, 0},
    {"while", {"0:1", "1:23", "2:1"}, 4, 1, 0, 1, 0},
    {"do while", {"0:1", "1:12"}, 3, 1, 0, 1, 0},
    {"loop in loop", {"0:1", "1:2", "2:23", "3:14"}, 5, 2, 0, 2, 0},
    {"loop with continue", {"0:1", "1:23", "2:1", "3:14"}, 5, 2, 0, 1, 0},
    {"loop with two exits to one place", {"0:1", "1:24", "2:34", "3:1"}, 5, 2, 0, 1, 0},
    /* b && c ? 3 : 4, then 5: one arm is reached from two blocks */
    {"short circuit", {"0:14", "1:34", "3:5", "4:5"}, 6, 2, 1, 0, 0},
    /* the inner loop is left to the end of the outer one */
    {"break of two loops", {"0:1", "1:25", "2:34", "3:25", "4:1"}, 6, 3, 0, 2, 1},
};

static unsigned count_nodes(const struct ct_fn *fn, enum ct_node_kind kind)
{
    unsigned n = 0;

    for (const struct ct_node *node = fn->body; node; node = ct_node_next(node))
        n += node->kind == kind;
    return n;
}

static void test_plain_graphs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        struct bench bench;

        bench_init(&bench);
        build_graph(&bench, plain[i].edges, plain[i].n_blocks);
        make_ssa(&bench);
        const struct ptx2spv_kernel kernel = emit(&bench, ct_pass_structurize);
        assert_valid_spirv(kernel.words, kernel.n_words);
        if (count_nodes(bench.fn, CT_NODE_IF) != plain[i].ifs || count_nodes(bench.fn, CT_NODE_SCOPE) != plain[i].scopes ||
            count_nodes(bench.fn, CT_NODE_LOOP) != plain[i].loops || bench.fn->n_selectors != plain[i].selectors)
            fail_msg("%s:\n%s", plain[i].name, ct_fn_dump(bench.fn, &bench.compilation.arena));
        bench_finish(&bench);
    }
}

/* ---- values ---- */

static ct_value emit_add_one(struct ct_cursor *at, ct_value to)
{
    struct ct_insn *insn;
    const ct_value one = ct_emit_const(at, CT_W_64, 1);

    insn = ct_emit_insn(at, CT_OP_ADD, PTX_U64, 1, 2);
    insn->results[0] = insn->operands[0] = to;
    insn->operands[1] = one;
    return to;
}

/* do { last = count; count++; } while (count != 10); store last: the value of a phi in the last iteration, not the next value. */
static void test_phi_used_behind_its_loop(void **state)
{
    struct trace found;
    struct bench bench;
    struct ct_block *blocks[3];

    (void)state;
    bench_init(&bench);
    struct ct_cursor at = {.fn = bench.fn};
    const ct_value count = ct_value_create(bench.fn, CT_W_64), last = ct_value_create(bench.fn, CT_W_64);
    for (uint32_t b = 0; b < 3; b++)
        blocks[b] = ct_block_create(bench.fn);
    at.block = blocks[0];
    ct_emit_insn(&at, CT_OP_CONST, PTX_B64, 1, 0)->results[0] = count;
    ct_emit_insn(&at, CT_OP_BR, PTX_NONE, 0, 0);
    ct_block_set_succs(bench.fn, blocks[0], 1, &blocks[1]);
    at.block = blocks[1];
    struct ct_insn *copy = ct_emit_insn(&at, CT_OP_COPY, PTX_B64, 1, 1);
    copy->results[0] = last;
    copy->operands[0] = count;
    emit_add_one(&at, count);
    const ct_value again = ct_emit_compare(&at, CT_OP_ICMP, PTX_U64, PTX_NE, count, ct_emit_const(&at, CT_W_64, 10));
    ct_emit_insn(&at, CT_OP_CBR, PTX_NONE, 0, 1)->operands[0] = again;
    ct_block_set_succs(bench.fn, blocks[1], 2, &blocks[1]);
    at.block = blocks[2];
    struct ct_insn *store = ct_emit_insn(&at, CT_OP_STORE, PTX_U64, 0, 2);
    store->space = CT_SPACE_GLOBAL;
    store->operands[0] = store->operands[1] = last;
    ct_emit_insn(&at, CT_OP_RET, PTX_NONE, 0, 0);

    make_ssa(&bench);
    run_pass(&bench, ct_pass_simplify, 0);
    const struct ptx2spv_kernel kernel = emit(&bench, ct_pass_structurize);
    assert_valid_spirv(kernel.words, kernel.n_words);
    run_spirv(kernel.words, kernel.n_words, &found);
    assert_int_equal(found.n, 1);
    assert_int_equal(found.events[0].value, 9);
    bench_finish(&bench);
}

/* ---- size ---- */

/* A block whose terminator goes to these successors, by a constant predicate if there are two. */
static void end_block(struct bench *bench, struct ct_cursor *at, uint32_t n, uint32_t first, uint32_t second)
{
    struct ct_block *succs[2] = {bench->fn->blocks.v[first], bench->fn->blocks.v[second]};
    const ct_value one = ct_emit_const(at, CT_W_PRED, 1);

    if (n == 2)
        ct_emit_insn(at, CT_OP_CBR, PTX_NONE, 0, 1)->operands[0] = one;
    else
        ct_emit_insn(at, n ? CT_OP_BR : CT_OP_RET, PTX_NONE, 0, 0);
    ct_block_set_succs(bench->fn, at->block, n, succs);
}

/* n ifs, one after the other. */
static void build_chain(struct bench *bench, uint32_t n)
{
    struct ct_cursor at = {.fn = bench->fn};

    for (uint32_t b = 0; b <= 2 * n; b++)
        ct_block_create(bench->fn);
    for (uint32_t b = 0; b <= 2 * n; b++) {
        at.block = bench->fn->blocks.v[b];
        if (b == 2 * n)
            end_block(bench, &at, 0, 0, 0);
        else
            end_block(bench, &at, b % 2 ? 1 : 2, b + 1, b % 2 ? b + 1 : b + 2);
    }
}

static void test_long_chain_is_flat(void **state)
{
    struct bench bench;

    (void)state;
    bench_init(&bench);
    build_chain(&bench, 5000);
    make_ssa(&bench);
    emit(&bench, ct_pass_structurize);
    for (const struct ct_node *node = bench.fn->body; node; node = ct_node_next(node))
        assert_true(!node->parent || !node->parent->parent);
    bench_finish(&bench);
}

/* Nested ifs: block b opens one that ends at the mirrored block. */
static void build_nest(struct bench *bench, uint32_t depth)
{
    struct ct_cursor at = {.fn = bench->fn};

    for (uint32_t b = 0; b <= 2 * depth; b++)
        ct_block_create(bench->fn);
    for (uint32_t b = 0; b <= 2 * depth; b++) {
        at.block = bench->fn->blocks.v[b];
        if (b == 2 * depth)
            end_block(bench, &at, 0, 0, 0);
        else
            end_block(bench, &at, b < depth ? 2 : 1, b + 1, b < depth ? 2 * depth - b : b + 1);
    }
}

static uint32_t depth_of(const struct ct_fn *fn)
{
    uint32_t deepest = 0;

    for (const struct ct_node *node = fn->body; node; node = ct_node_next(node)) {
        uint32_t depth = 0;

        for (const struct ct_node *parent = node->parent; parent; parent = parent->parent)
            depth++;
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest;
}

/* Ifs are cut into sequences where they become too deep. */
static void test_deep_nest(void **state)
{
    struct bench bench;

    (void)state;
    bench_init(&bench);
    build_nest(&bench, 5000);
    make_ssa(&bench);
    const struct ptx2spv_kernel kernel = emit(&bench, ct_pass_structurize);
    assert_in_range(depth_of(bench.fn), 10, 80);
    assert_valid_spirv(kernel.words, kernel.n_words);
    bench_finish(&bench);
}

/* Nested loops: blocks 0 .. depth - 1 are headers, the others go back to the header with the mirrored number, or on. */
static void build_loops(struct bench *bench, uint32_t depth)
{
    struct ct_cursor at = {.fn = bench->fn};

    for (uint32_t b = 0; b <= 2 * depth + 1; b++)
        ct_block_create(bench->fn);
    for (uint32_t b = 0; b <= 2 * depth + 1; b++) {
        at.block = bench->fn->blocks.v[b];
        if (b == 2 * depth + 1)
            end_block(bench, &at, 0, 0, 0);
        else
            end_block(bench, &at, b <= depth ? 1 : 2, b + 1, b <= depth ? b + 1 : 2 * depth + 1 - b);
    }
}

static void test_deep_loops(void **state)
{
    static const struct {
        uint32_t depth;
        bool allowed;
    } rows[] = {{CT_NODE_DEPTH_MAX / 4, true}, {CT_NODE_DEPTH_MAX + 1, false}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench bench;

        bench_init(&bench);
        build_loops(&bench, rows[i].depth);
        make_ssa(&bench);
        assert_int_equal(ct_pass_structurize(bench.fn), rows[i].allowed ? CT_PASS_CHANGED : CT_PASS_FAILED);
        assert_int_equal(bench.compilation.status, rows[i].allowed ? PTX2SPV_OK : PTX2SPV_UNSUPPORTED);
        bench_finish(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_graphs),      cmocka_unit_test(test_plain_graphs), cmocka_unit_test(test_phi_used_behind_its_loop),
        cmocka_unit_test(test_long_chain_is_flat), cmocka_unit_test(test_deep_nest),    cmocka_unit_test(test_deep_loops),
    };

    if (setjmp(bench_exhausted))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
