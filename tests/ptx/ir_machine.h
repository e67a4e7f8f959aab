/* SPDX-License-Identifier: Apache-2.0 */
/* An interpreter of the IR, in register form or SSA, without memory of other threads and without warps, so that tests can compare a
 * function before and after a pass. */
#ifndef TESTS_PTX_IR_MACHINE_H
#define TESTS_PTX_IR_MACHINE_H

#include "ptx2spv/ir/ir.h"

#include <setjmp.h>

/* The observable result of a run: the offset and value of each STORE, then how the run ended. */
struct event {
    uint64_t offset, value;
};
struct trace {
    struct event events[256];
    uint32_t n;
    enum { TRACE_RETURNED, TRACE_FULL, TRACE_GAVE_UP } end; /* GAVE_UP: too many blocks were executed without an event */
};

/* Executes the function. UNDEF and registers that were never written read as 0. Fails the test on operations that it does not implement. */
void run_ir(struct ct_fn *fn, struct trace *out);
/* The same on a machine that treats f32 subnormals as NVIDIA's Vulkan driver 580 does (measured on an H200): fused multiply-adds flush
 * their operands and results; comparisons, minima and widening flush their operands; sums, products and narrowing keep subnormals. */
void run_ir_flushing(struct ct_fn *fn, struct trace *out);
/* The result of that machine's fused multiply-add. */
float flushing_fma(float a, float b, float c);
/* The same on a machine whose roots, quotients and inverse roots of f32 have an error of `ulps` units in the last place, and whose f64 roots and
 * quotients are wrong except where refine_root.c has to use them: at the ends of the range, and for roots whose lower word is all ones. */
void run_ir_estimating(struct ct_fn *fn, int ulps, struct trace *out);
/* Emits a store of 32 or 64 bits, which is an event. */
void emit_event(struct ct_cursor *at, uint64_t offset, ct_value x);
/* Fails unless both traces have the same events; if the wanted run gave up, only the events that both have are compared. */
void assert_same_trace(const struct trace *wanted, const struct trace *found);

/* A compilation for a test. */
struct bench {
    struct ct_compilation compilation;
    struct ptx_function source;
    struct ct_fn *fn;
    unsigned n_diagnostics;
    char diagnostics[4096];
};
extern jmp_buf bench_exhausted; /* set by main: without memory the test program ends */
void bench_init(struct bench *bench);
void bench_finish(struct bench *bench);

/* Deterministic random numbers below a small limit. */
uint32_t random_below(uint64_t *state, uint32_t limit);

/* Fills bench->fn with a random graph of `n_blocks` in register form: integer operations on a few registers, stores, all kinds of
 * terminators. */
void build_random(struct bench *bench, uint64_t *random, uint32_t n_blocks);
/* The same with small blocks whose branches compare a few registers that hardly change, so that conditions are often known. */
void build_random_branches(struct bench *bench, uint64_t *random, uint32_t n_blocks);
/* Nested loops that count up to a number, tested at their heads, at their ends, before them, or several of these. */
void build_random_loops(struct bench *bench, uint64_t *random, uint32_t n_loops);
/* Like build_random, but one block: a long sequence of operations on all widths, with constants for which simplification has rules. */
void build_random_straight(struct bench *bench, uint64_t *random, uint32_t n_insns);
/* Operations on constants in the first two blocks, whose results the others use, which branch to each other. n_blocks: at least 3. */
void build_random_kept(struct bench *bench, uint64_t *random, uint32_t n_blocks);
/* Like build_random_straight, with accesses to six local objects, of which the last two are aliases of others. */
void build_random_locals(struct bench *bench, uint64_t *random, uint32_t n_insns);

#endif
