/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the IR but for memory of others and warps, register form or SSA, so that tests can compare a function before and after a pass. */
#ifndef TESTS_PTX_IR_MACHINE_H
#define TESTS_PTX_IR_MACHINE_H

#include "ptx2spv/ir/ir.h"

#include <setjmp.h>

/* What a run does that can be seen: each STORE's offset and value, then how it ended. */
struct event {
    uint64_t offset, value;
};
struct trace {
    struct event events[256];
    uint32_t n;
    enum { TRACE_RETURNED, TRACE_FULL, TRACE_TIRED } end; /* TIRED: too many blocks without an event */
};

/* Registers that nobody wrote and UNDEF read as 0. Fails the test on operations that it does not know. */
void run_ir(struct ct_fn *fn, struct trace *out);
/* The same on a machine that does with f32 subnormals what NVIDIA's Vulkan driver 580 does (measured on an H200): fused multiply-adds take
 * them for zeros and make zeros of them; comparison, minimum and widening take them for zeros; sums, products and narrowing keep them. */
void run_ir_flushing(struct ct_fn *fn, struct trace *out);
/* What its fused multiply-add gives. */
float flushing_fma(float a, float b, float c);
/* Inverse roots of f32 are so many units of their last place off, and f64's own roots and quotients are wrong but where refine_root.c has to ask
 * for them: at the ends of the range, and for roots whose lower word is all ones. */
void run_ir_estimating(struct ct_fn *fn, int places, struct trace *out);
/* A store that is one: of 32 or 64 bits. */
void emit_event(struct ct_cursor *at, uint64_t offset, ct_value x);
/* The same events; where a run got tired, only as far as both went. */
void assert_same_trace(const struct trace *wanted, const struct trace *found);

/* A compilation of its own for a test. */
struct bench {
    struct ct_compilation compilation;
    struct ptx_function source;
    struct ct_fn *fn;
    unsigned n_diagnostics;
    char diagnostics[4096];
};
extern jmp_buf bench_exhausted; /* set by main: no memory is the end of the test program */
void bench_init(struct bench *bench);
void bench_finish(struct bench *bench);

/* Small deterministic random numbers. */
uint32_t random_below(uint64_t *state, uint32_t limit);

/* Fills bench->fn with a random graph of `n_blocks` in register form: integer operations on a few registers, stores, all terminators. */
void build_random(struct bench *bench, uint64_t *random, uint32_t n_blocks);
/* The same, but the blocks do little and branch on how a few registers compare that hardly change, so that answers are often known. */
void build_random_questions(struct bench *bench, uint64_t *random, uint32_t n_blocks);
/* The first of these, one block: a long run of operations on all widths, with constants that rules like. */
void build_random_straight(struct bench *bench, uint64_t *random, uint32_t n_insns);
/* The same, with accesses to six local objects of which the last two are names for others. */
void build_random_locals(struct bench *bench, uint64_t *random, uint32_t n_insns);

#endif
