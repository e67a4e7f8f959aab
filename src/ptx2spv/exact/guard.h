/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between the parts of `guard`: guard.c divides blocks into segments and recomputes them. guard_rounding.c emits the checks
 * that decide whether to if the target rounds twice, and guard_flags.c if it flushes; for the latter, guard_shared.c checks what is stored
 * into shared memory, and guard_runs.c and guard_loops.c make unguarded versions of code that needs no segments. */
#ifndef PTX2SPV_GUARD_H
#define PTX2SPV_GUARD_H
/* Parts: guard_flags.c, guard_loops.c, guard_rounding.c, guard_runs.c, guard_shared.c. */

#include "guard_ranges.h"
#include "lower.h"

/* What is known of an f32: see guard_flags.c. */
enum ct_grade { CT_GRADE_NONE, CT_GRADE_TERM, CT_GRADE_FACTOR };

/* The values that a segment has to check. */
typedef CT_VEC(ct_value) ct_value_list;
struct ct_guard_checks {
    ct_value_list factors[2], terms[2]; /* computed in the block; computed before the loop */
    ct_value_list tracked;              /* words of shared memory: they are factors if the flag of shared memory is not set */
    bool always_fails;                  /* a constant is too small, so the check always fails */
};

/* A sequence of instructions of one block that ends with a guarded FFMA. Segments are numbered from 1. */
struct ct_segment {
    uint32_t number;
    CT_VEC(struct ct_insn *) dependents; /* guarded FFMAs and what depends on them, all pure, in order */
    ct_value_list lower_words;           /* rounds_twice: of the f64 sum of each of these FFMAs */
    struct ct_block *fast, *check, *rest;
};

struct ct_guard {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    bool rounds_twice;                   /* what is guarded against: two roundings, else flushes */
    bool shared_is_tracked;              /* guard_shared.c checks stores to shared memory */
    CT_VEC(struct ct_block *) unguarded; /* blocks that are not to be guarded: guard_runs.c, guard_loops.c */
    uint32_t n_blocks, n_values;         /* those of the original function; the arrays below are indexed by value */
    uint32_t *segment_of;                /* the segment in which the value is defined and on which it depends; 0: none */
    ct_value *merged;                    /* after that segment: the phi of the value and its exact recomputation */
    uint8_t *grade;
    uint32_t *graded_in;     /* number + 1 of the block in which `grade` is valid */
    ct_value *copied;        /* the copy of a dependent value in the code that recomputes the segment */
    struct ct_block **home;  /* the block in which it was defined originally */
    struct ct_block **tail;  /* indexed by block: what remains of it after its segments */
    uint32_t block;          /* number + 1 of the block that is being divided */
    struct ct_block *header; /* header of the innermost loop around it, if loop invariants are checked before that loop; else NULL */
    ct_value flag;           /* set if a segment of this block may have met a subnormal; no value if none can */
    CT_VEC(struct ct_segment) segments;
};

static inline bool ct_is_guarded(const struct ct_insn *insn)
{
    return insn->op == CT_OP_FFMA && insn->guarded;
}

/* The values that a segment has to check. */
struct ct_guard_checks ct_guard_find_checks(struct ct_guard *g, const struct ct_segment *segment);
/* The coarse check: whether something in the segment, or before it in the block, may have met a subnormal; no value if nothing can.
 * Cheap, but zeros fail it. */
ct_value ct_guard_coarse_check(const struct ct_guard *g, const struct ct_guard_checks *checks, struct ct_cursor *at);
/* The fine check: the same, but zeros pass it. */
ct_value ct_guard_fine_check(const struct ct_guard *g, const struct ct_guard_checks *checks, struct ct_cursor *at);
/* Whether r, the driver's result for a * b + c, may be wrong. */
ct_value ct_guard_may_be_wrong(struct ct_cursor *at, const ct_value x[3], ct_value r);
/* a OR b if both exist; else the one that exists, if any. */
ct_value ct_guard_or(struct ct_cursor *at, ct_value a, ct_value b);
/* Whether x violates the bounds `least`, `most` and `nonzero` of the range. Infinities and NaNs violate all bounds. */
ct_value ct_guard_is_out_of_range(struct ct_cursor *at, ct_value x, struct ct_range range);
/* Whether x is neither 0 nor known to be a factor. */
ct_value ct_guard_is_no_factor(struct ct_cursor *at, ct_value x);
/* Whether one of some values may be 0 or no factor: cheap. */
ct_value ct_guard_one_is_no_factor(struct ct_cursor *at, const ct_value_list *values);

/* Whether the least magnitude other than zero is below that with the encoding `least`. */
ct_value ct_guard_one_is_between(const struct ct_guard *g, struct ct_cursor *at, const ct_value_list *values, uint32_t least);
/* The least or the greatest of some values, as a balanced tree, so that few operations depend on each other. Changes `v`. */
ct_value ct_guard_least_of(struct ct_cursor *at, enum ct_op op, enum ptx_type type, ct_value *v, uint32_t n);

/* The header of the innermost loop, if control never returns to the code before that loop; else NULL. */
struct ct_block *ct_guard_header_or_null(const struct ct_block *block);

/* Whether a block belongs to an unguarded version. */
bool ct_guard_is_unguarded(const struct ct_guard *g, const struct ct_block *block);
/* Computes the analyses of the graph; predecessors are kept up to date by the functions that change the graph. */
void ct_guard_compute_graph(struct ct_fn *fn);

/* ---- guard_rounding.c: requires a target that rounds twice ---- */
/* The exact result of an FFMA with other operands. */
ct_value ct_guard_exact(struct ct_cursor *at, const struct ct_insn *ffma, ct_value x[3]);
/* Replaces the FFMAs of a segment, which remain listed as its dependents, by their common form. */
void ct_guard_expand(struct ct_guard *g, struct ct_segment *segment);
/* Whether a result of the FFMAs of an expanded segment may be wrong. The coarse check is cheap, but numbers with few bits fail it. */
ct_value ct_guard_coarse_rounding_check(const struct ct_guard *g, const struct ct_segment *segment, struct ct_cursor *at);
ct_value ct_guard_fine_rounding_check(const struct ct_guard *g, const struct ct_segment *segment, struct ct_cursor *at);

/* ---- guard_runs.c: requires tracked shared memory ---- */
void ct_guard_make_unguarded_runs(struct ct_guard *g);

/* ---- guard_loops.c ---- */
void ct_guard_make_unguarded_loops(struct ct_guard *g);

/* ---- guard_shared.c ---- */
/* Whether stores to shared memory can be checked, and whether that is useful. */
bool ct_guard_can_track_shared(struct ct_fn *fn);
void ct_guard_track_shared(struct ct_fn *fn);
/* Whether a number that is no factor has been stored. Emit it after the loads that it covers. */
ct_value ct_guard_shared_flag(struct ct_cursor *at);
/* Whether the instruction neither changes shared memory nor may make stores of other threads visible. Not for terminators. */
bool ct_guard_leaves_shared_alone(const struct ct_insn *insn);
/* Whether it is a load of 32-bit words from shared memory. */
bool ct_is_shared_word(const struct ct_fn *fn, const struct ct_insn *insn);

#endif
