/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs through the target-independent passes: the events are the same before and after each pass, and the verifier reports
 * nothing. Dominators, loops and reducibility are compared with their definitions. */
#include "ir_machine.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define N_GRAPHS 1500
#define SEED UINT64_C(0x9e3779b97f4a7c15)

struct step {
    const char *name;
    enum ct_pass_result (*run)(struct ct_fn *fn);
    uint32_t gives;
};

static void check_step(struct bench *bench, const struct step *step, const struct trace *wanted)
{
    struct trace found;

    if (bench->fn->props & CT_PROP_SSA)
        ct_fn_compute_defs(bench->fn);
    assert_int_not_equal(step->run(bench->fn), CT_PASS_FAILED);
    bench->fn->props |= step->gives;
    bench->fn->last_pass = step->name;
    if (!ct_fn_verify(bench->fn))
        fail_msg("after %s: %s\n%s", step->name, bench->diagnostics, ct_fn_dump(bench->fn, &bench->compilation.arena));
    ct_arena_reset(&bench->compilation.scratch);
    run_ir(bench->fn, &found);
    assert_same_trace(wanted, &found);
}

static const struct step graph_steps[] = {
    {"make_reducible", ct_pass_make_reducible, CT_PROP_REDUCIBLE},
    {"ssa", ct_pass_ssa, CT_PROP_SSA},
    {"simplify", ct_pass_simplify, 0},
    {"jump_threading", ct_pass_jump_threading, 0},
    {"cleanup", ct_pass_cleanup, 0},
};

static const struct step frame_steps[] = {
    {"promote", ct_pass_promote, 0},
    {"layout", ct_pass_layout, CT_PROP_LAID_OUT},
    {"ssa", ct_pass_ssa, CT_PROP_SSA},
    {"simplify", ct_pass_simplify, 0},
};

static void run_steps(struct bench *bench, const struct step *steps, size_t n)
{
    struct trace wanted;

    assert_true(ct_fn_verify(bench->fn));
    run_ir(bench->fn, &wanted);
    for (size_t i = 0; i < n; i++)
        check_step(bench, &steps[i], &wanted);
}
#define RUN_STEPS(bench, steps) run_steps(bench, steps, sizeof(steps) / sizeof *(steps))

static void test_random_graphs(void **state)
{
    uint64_t random = SEED;

    (void)state;
    for (int i = 0; i < N_GRAPHS; i++) {
        struct bench bench;

        bench_init(&bench);
        build_random(&bench, &random, 1 + random_below(&random, 24));
        RUN_STEPS(&bench, graph_steps);
        bench_finish(&bench);
    }
}

static void test_random_straight_code(void **state)
{
    uint64_t random = SEED + 1;

    (void)state;
    for (int i = 0; i < N_GRAPHS; i++) {
        struct bench bench;

        bench_init(&bench);
        build_random_straight(&bench, &random, 5 + random_below(&random, 60));
        RUN_STEPS(&bench, graph_steps);
        bench_finish(&bench);
    }
}

/* make_reducible turns large graphs of all shapes into reducible ones; both dispatch and splitting occur here. */
static void test_large_irreducible_graphs(void **state)
{
    uint64_t random = SEED + 2;

    (void)state;
    for (int i = 0; i < 30; i++) {
        struct bench bench;

        bench_init(&bench);
        build_random(&bench, &random, 150 + random_below(&random, 100));
        RUN_STEPS(&bench, graph_steps);
        bench_finish(&bench);
    }
}

/* Blocks whose condition is known are removed; there must have been some. */
static void test_random_conditions(void **state)
{
    uint64_t random = SEED + 6;
    uint32_t n_taken = 0;

    (void)state;
    for (int i = 0; i < N_GRAPHS; i++) {
        struct trace wanted;
        struct bench bench;

        bench_init(&bench);
        build_random_branches(&bench, &random, 2 + random_below(&random, 16));
        run_ir(bench.fn, &wanted);
        for (size_t s = 0; s < sizeof graph_steps / sizeof *graph_steps; s++) {
            const uint32_t before = bench.fn->blocks.n;

            check_step(&bench, &graph_steps[s], &wanted);
            n_taken += graph_steps[s].run == ct_pass_jump_threading && bench.fn->blocks.n < before;
        }
        bench_finish(&bench);
    }
    assert_true(n_taken > N_GRAPHS / 4);
}

/* Loops end when they did before: a test at the head of a loop says nothing about the next iteration, whatever a test before the loop says. */
static void test_random_loops(void **state)
{
    uint64_t random = SEED + 8;

    (void)state;
    for (int i = 0; i < N_GRAPHS; i++) {
        struct trace wanted;
        struct bench bench;

        bench_init(&bench);
        build_random_loops(&bench, &random, 1 + random_below(&random, 3));
        run_ir(bench.fn, &wanted);
        assert_int_not_equal(wanted.end, TRACE_GAVE_UP); /* so no pass may make it give up */
        RUN_STEPS(&bench, graph_steps);
        bench_finish(&bench);
    }
}

static uint32_t n_rematerialized;

/* As if the target had hardly any registers. */
static enum ct_pass_result rematerialize(struct ct_fn *fn)
{
    static const struct ptx2spv_target target = {.register_words = 2};
    enum ct_pass_result result;

    fn->target = &target;
    fn->registers = UINT32_MAX;
    result = ct_pass_rematerialize(fn);
    n_rematerialized += result == CT_PASS_CHANGED;
    return result;
}

static const struct step kept_steps[] = {
    {"make_reducible", ct_pass_make_reducible, CT_PROP_REDUCIBLE},
    {"ssa", ct_pass_ssa, CT_PROP_SSA},
    {"rematerialize", rematerialize, 0},
};

/* Values are computed again in loops, some of them; simplification would fold them. */
static void test_random_kept(void **state)
{
    uint64_t random = SEED + 7;

    (void)state;
    for (int i = 0; i < N_GRAPHS; i++) {
        struct bench bench;

        bench_init(&bench);
        build_random_kept(&bench, &random, 3 + random_below(&random, 6));
        RUN_STEPS(&bench, kept_steps);
        bench_finish(&bench);
    }
    assert_true(n_rematerialized > N_GRAPHS / 4);
}

/* Objects become registers, or get an offset; both kinds must have occurred. */
static void test_random_locals(void **state)
{
    uint64_t random = SEED + 5;
    uint32_t promoted = 0, placed = 0;

    (void)state;
    for (int i = 0; i < N_GRAPHS; i++) {
        struct bench bench;

        bench_init(&bench);
        build_random_locals(&bench, &random, 1 + random_below(&random, 60));
        RUN_STEPS(&bench, frame_steps);
        for (uint32_t l = 0; l < bench.fn->locals.n; l++)
            promoted += bench.fn->locals.v[l].promoted;
        placed += bench.fn->local_bytes > 0;
        bench_finish(&bench);
    }
    assert_true(promoted > N_GRAPHS / 4 && placed > N_GRAPHS / 4);
}

/* ---- analyses ---- */

/* Whether `to` can be reached from the entry without passing `without`. */
static bool reaches(const struct ct_fn *fn, const struct ct_block *to, const struct ct_block *without)
{
    bool seen[256] = {false};
    const struct ct_block *work[256];
    uint32_t n = 0;

    if (fn->blocks.v[0] != without) {
        work[n++] = fn->blocks.v[0];
        seen[0] = true;
    }
    while (n) {
        const struct ct_block *block = work[--n];

        if (block == to)
            return true;
        for (uint32_t s = 0; s < block->n_succs; s++)
            if (block->succs[s] != without && !seen[block->succs[s]->id]) {
                seen[block->succs[s]->id] = true;
                work[n++] = block->succs[s];
            }
    }
    return false;
}

static void test_dominators(void **state)
{
    uint64_t random = SEED + 3;

    (void)state;
    for (int i = 0; i < 300; i++) {
        struct bench bench;

        bench_init(&bench);
        build_random(&bench, &random, 1 + random_below(&random, 20));
        ct_fn_remove_unreachable(bench.fn);
        ct_fn_compute_dominators(bench.fn);
        for (uint32_t a = 0; a < bench.fn->blocks.n; a++)
            for (uint32_t b = 0; b < bench.fn->blocks.n; b++) {
                const struct ct_block *ba = bench.fn->blocks.v[a], *bb = bench.fn->blocks.v[b];

                assert_int_equal(ct_block_dominates(ba, bb), a == b || !reaches(bench.fn, bb, ba));
            }
        bench_finish(&bench);
    }
}

/* The natural loop of a header: all blocks that reach one of its back edges without passing it. */
static void find_natural_loop(const struct ct_fn *fn, const struct ct_block *header, bool *inside)
{
    bool grown = true;

    for (uint32_t p = 0; p < header->preds.n; p++)
        if (ct_block_dominates(header, header->preds.v[p]))
            inside[header->id] = inside[header->preds.v[p]->id] = true;
    while (grown) {
        grown = false;
        for (uint32_t b = 0; b < fn->blocks.n; b++) {
            const struct ct_block *block = fn->blocks.v[b];

            for (uint32_t p = 0; inside[b] && block != header && p < block->preds.n; p++)
                if (!inside[block->preds.v[p]->id])
                    grown = inside[block->preds.v[p]->id] = true;
        }
    }
}

static void check_loops(const struct ct_fn *fn)
{
    uint32_t depth[512] = {0}, size_of_loop[512] = {0};
    static bool inside[512][512];

    assert_true(fn->blocks.n <= 512);
    memset(inside, 0, sizeof inside);
    for (uint32_t h = 0; h < fn->blocks.n; h++) {
        find_natural_loop(fn, fn->blocks.v[h], inside[h]);
        for (uint32_t b = 0; b < fn->blocks.n; b++) {
            depth[b] += inside[h][b];
            size_of_loop[h] += inside[h][b];
        }
    }
    for (uint32_t b = 0; b < fn->blocks.n; b++) {
        const struct ct_block *head = fn->blocks.v[b]->loop_head;

        assert_int_equal(fn->blocks.v[b]->loop_depth, depth[b]);
        assert_int_equal(head != NULL, depth[b] > 0);
        for (uint32_t h = 0; head && h < fn->blocks.n; h++)
            if (inside[h][b])
                assert_true(inside[head->id][b] && size_of_loop[head->id] <= size_of_loop[h]);
    }
}

static void test_loops(void **state)
{
    uint64_t random = SEED + 4;

    (void)state;
    for (int i = 0; i < 300; i++) {
        struct bench bench;

        bench_init(&bench);
        build_random(&bench, &random, 1 + random_below(&random, 20));
        assert_int_not_equal(ct_pass_make_reducible(bench.fn), CT_PASS_FAILED);
        ct_fn_compute_loops(bench.fn);
        check_loops(bench.fn);
        bench_finish(&bench);
    }
}

/* ---- the verifier finds planted faults ---- */

/* b0: c = const; p = c == c; cbr p, b1, b2   b1: x = c + c; br b3   b2: y = c - c; br b3   b3: z = phi x, y; store; ret */
static void build_diamond(struct bench *bench, struct ct_block **b)
{
    struct ct_fn *fn = bench->fn;
    struct ct_cursor at = {.fn = fn};
    struct ct_insn *insn;
    ct_value c, p, x, y, a;

    for (int i = 0; i < 4; i++)
        b[i] = ct_block_create(fn);
    at.block = b[0];
    c = ct_emit_const(&at, CT_W_32, 7);
    a = ct_emit_const(&at, CT_W_64, 0);
    p = ct_emit_compare(&at, CT_OP_ICMP, PTX_U32, PTX_EQ, c, c);
    ct_emit_insn(&at, CT_OP_CBR, PTX_NONE, 0, 1)->operands[0] = p;
    ct_block_set_succs(fn, b[0], 2, (struct ct_block *[]){b[1], b[2]});
    at.block = b[1];
    x = ct_emit2(&at, CT_OP_ADD, PTX_U32, CT_W_32, c, c);
    ct_emit_insn(&at, CT_OP_BR, PTX_NONE, 0, 0);
    ct_block_set_succs(fn, b[1], 1, &b[3]);
    at.block = b[2];
    y = ct_emit2(&at, CT_OP_SUB, PTX_U32, CT_W_32, c, c);
    ct_emit_insn(&at, CT_OP_BR, PTX_NONE, 0, 0);
    ct_block_set_succs(fn, b[2], 1, &b[3]);
    at.block = b[3];
    ct_fn_compute_preds(fn);
    c = ct_emit2(&at, CT_OP_PHI, PTX_NONE, CT_W_32, x, y);
    insn = ct_emit_insn(&at, CT_OP_STORE, PTX_U32, 0, 2);
    insn->space = CT_SPACE_GLOBAL;
    insn->operands[0] = a;
    insn->operands[1] = c;
    ct_emit_insn(&at, CT_OP_RET, PTX_NONE, 0, 0);
    fn->props |= CT_PROP_SSA | CT_PROP_REDUCIBLE;
}

static void no_fault(struct ct_fn *fn, struct ct_block **b)
{
    (void)fn;
    (void)b;
}

static void use_before_definition(struct ct_fn *fn, struct ct_block **b)
{
    (void)fn;
    b[1]->first->operands[0] = b[2]->first->results[0];
}

static void wrong_width(struct ct_fn *fn, struct ct_block **b)
{
    (void)fn;
    b[1]->first->operands[0] = b[0]->first->next->results[0];
}

static void second_definition(struct ct_fn *fn, struct ct_block **b)
{
    (void)fn;
    b[2]->first->results[0] = b[1]->first->results[0];
}

static void missing_terminator(struct ct_fn *fn, struct ct_block **b)
{
    (void)fn;
    ct_insn_remove(b[1]->last);
}

static void missing_phi_operand(struct ct_fn *fn, struct ct_block **b)
{
    (void)fn;
    b[3]->first->n_operands = 1;
}

static void phi_behind_code(struct ct_fn *fn, struct ct_block **b)
{
    struct ct_insn *phi = b[3]->first, *store = phi->next;

    (void)fn;
    ct_insn_remove(store);
    ct_insn_insert_before(phi, store);
}

static void lost_predecessor(struct ct_fn *fn, struct ct_block **b)
{
    (void)fn;
    b[3]->preds.v[0] = b[0];
}

static void wrong_successor_count(struct ct_fn *fn, struct ct_block **b)
{
    (void)fn;
    b[0]->n_succs = 1;
}

static void call_left(struct ct_fn *fn, struct ct_block **b)
{
    ct_insn_insert_before(b[3]->last, ct_insn_create(fn, CT_OP_CALL, PTX_NONE, 0, 0));
    fn->props |= CT_PROP_CALLS_INLINED;
}

static void rich_operation_left(struct ct_fn *fn, struct ct_block **b)
{
    b[1]->first->op = CT_OP_DIV;
    fn->props |= CT_PROP_LOWERED;
}

static void second_entry_of_loop(struct ct_fn *fn, struct ct_block **b)
{
    fn->props &= ~(uint32_t)CT_PROP_SSA;
    ct_block_set_succs(fn, b[1], 1, &b[2]);
    ct_block_set_succs(fn, b[2], 1, &b[1]);
}

static void stale_dominators(struct ct_fn *fn, struct ct_block **b)
{
    ct_fn_compute_dominators(fn);
    b[3]->idom = b[1];
}

static void no_address(struct ct_fn *fn, struct ct_block **b)
{
    (void)fn;
    b[3]->first->next->operands[0] = CT_NO_VALUE;
}

static void broken_list(struct ct_fn *fn, struct ct_block **b)
{
    (void)fn;
    b[3]->last->prev = NULL;
}

static const struct {
    const char *name;
    void (*plant)(struct ct_fn *fn, struct ct_block **b);
    const char *wanted; /* in the message; NULL: no fault */
} faults[] = {
    {"none", no_fault, NULL},
    {"a use that its definition does not reach", use_before_definition, "does not dominate this use"},
    {"a wrong width", wrong_width, "64 bits"},
    {"two definitions", second_definition, "two definitions"},
    {"no terminator", missing_terminator, "no terminator"},
    {"a phi with an operand too few", missing_phi_operand, "1 operands for 2 predecessors"},
    {"a phi after other instructions", phi_behind_code, "head of the block"},
    {"a wrong predecessor", lost_predecessor, "has no edge to this block"},
    {"a wrong number of successors", wrong_successor_count, "1 successors"},
    {"a call after inlining", call_left, "a call after inlining"},
    {"a rich operation after lowering", rich_operation_left, "a rich operation after lowering"},
    {"a loop with two entries", second_entry_of_loop, "not reducible"},
    {"stale dominators", stale_dominators, "stale dominators"},
    {"an access without address", no_address, "no address"},
    {"a broken list", broken_list, "broken list"},
};

static void test_planted_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct ct_block *b[4];
        struct bench bench;

        bench_init(&bench);
        build_diamond(&bench, b);
        faults[i].plant(bench.fn, b);
        if (ct_fn_verify(bench.fn) != !faults[i].wanted)
            fail_msg("%s: the verifier says %s", faults[i].name, faults[i].wanted ? "nothing" : bench.diagnostics);
        if (faults[i].wanted && !strstr(bench.diagnostics, faults[i].wanted))
            fail_msg("%s: the verifier says \"%s\"", faults[i].name, bench.diagnostics);
        assert_int_equal(bench.compilation.status, faults[i].wanted ? PTX2SPV_INTERNAL : PTX2SPV_OK);
        bench_finish(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_graphs),  cmocka_unit_test(test_random_straight_code), cmocka_unit_test(test_large_irreducible_graphs),
        cmocka_unit_test(test_random_locals),  cmocka_unit_test(test_random_kept),          cmocka_unit_test(test_dominators),
        cmocka_unit_test(test_loops),          cmocka_unit_test(test_random_conditions),    cmocka_unit_test(test_random_loops),
        cmocka_unit_test(test_planted_faults),
    };

    if (setjmp(bench_exhausted))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
