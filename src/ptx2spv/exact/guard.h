/* SPDX-License-Identifier: Apache-2.0 */
/* Between guard.c, which cuts blocks into segments and does them again, guard_flags.c, which decides whether to, guard_shared.c, which
 * looks at what goes into shared memory, and guard_plain.c and guard_loops.c, which make copies of what need not be cut. */
#ifndef PTX2SPV_GUARD_H
#define PTX2SPV_GUARD_H
/* Parts: guard_flags.c, guard_loops.c, guard_plain.c, guard_shared.c. */

#include "guard_ranges.h"
#include "lower.h"

/* What is known of an f32: see guard_flags.c. */
enum ct_grade { CT_GRADE_NONE, CT_GRADE_TERM, CT_GRADE_FACTOR };

/* What is to be looked at in a segment. */
typedef CT_VEC(ct_value) ct_value_list;
struct ct_looks {
    ct_value_list factors[2], terms[2]; /* in the block; before the loop */
    ct_value_list watched;              /* words of shared memory: factors, if its flag is not set */
    bool hopeless;                      /* a constant is too small */
};

/* A run of instructions of one block that ends with a guarded FFMA. Numbers are from 1. */
struct ct_segment {
    uint32_t number;
    CT_VEC(struct ct_insn *) dependents; /* guarded FFMAs and what depends on them, all pure, in order */
    struct ct_block *fast, *doubt, *rest;
};

struct ct_guard {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    bool shared_is_watched; /* guard_shared.c */
    CT_VEC(struct ct_block *) plain; /* that are not to be guarded: guard_plain.c */
    uint32_t n_blocks, n_values;     /* those of the function as it came; the arrays below are by value */
    uint32_t *segment_of; /* the segment that value depends on and is defined in; 0 none */
    ct_value *merged;     /* behind that segment: it or what is exact */
    uint8_t *grade;
    uint32_t *graded_in;     /* number of the block + 1 in which `grade` holds */
    ct_value *copied;        /* what stands for a dependent where the segment is done again */
    struct ct_block **home;  /* the block that it came in */
    struct ct_block **tail;  /* by block: what is left of it behind its segments */
    uint32_t block;          /* number + 1 of the block that is being cut */
    struct ct_block *header; /* of the innermost loop that it is in, if what does not change there is looked at before; else NULL */
    ct_value flag;           /* set if a segment of this block may have met a subnormal; nothing if none can */
    CT_VEC(struct ct_segment) segments;
};

static inline bool ct_is_guarded(const struct ct_insn *insn)
{
    return insn->op == CT_OP_FFMA && insn->guarded;
}

/* What of a segment is to be looked at. */
struct ct_looks ct_guard_look(struct ct_guard *g, const struct ct_segment *segment);
/* Whether something in the segment or before it in the block may have met a subnormal; nothing if nothing can. Cheap. */
ct_value ct_guard_suspect(const struct ct_guard *g, const struct ct_looks *looks, struct ct_cursor *at);
/* The same, for zeros too. */
ct_value ct_guard_doubt(const struct ct_guard *g, const struct ct_looks *looks, struct ct_cursor *at);
/* Whether r, what the driver has for a * b + c, may be wrong. */
ct_value ct_guard_convict(struct ct_cursor *at, const ct_value x[3], ct_value r);
/* a or b, if both are there; else the one that is, if any. */
ct_value ct_guard_either(struct ct_cursor *at, ct_value a, ct_value b);
/* Whether x is not as its range says: least, most and nonzero. Infinities and NaNs are beyond all bounds. */
ct_value ct_guard_is_out_of_range(struct ct_cursor *at, ct_value x, struct ct_range range);
/* Whether x is neither 0 nor, for sure, a factor. */
ct_value ct_guard_is_no_factor(struct ct_cursor *at, ct_value x);
/* Whether one of some values may be 0 or no factor: cheap. */
ct_value ct_guard_one_is_no_factor(struct ct_cursor *at, const ct_value_list *values);

/* The header of the innermost loop, if it is left for good by what comes before it. */
struct ct_block *ct_guard_header_or_null(const struct ct_block *block);

/* Whether a block is a copy that is not to be guarded. */
bool ct_guard_is_plain(const struct ct_guard *g, const struct ct_block *block);
/* Predecessors are kept by whoever changes the graph; this is the rest. */
void ct_guard_compute_graph(struct ct_fn *fn);

/* ---- guard_plain.c: where shared memory is watched ---- */
void ct_guard_make_plain_copies(struct ct_guard *g);

/* ---- guard_loops.c ---- */
void ct_guard_make_plain_loops(struct ct_guard *g);

/* ---- guard_shared.c ---- */
/* Whether stores to shared memory can be looked at, and should be. */
bool ct_guard_can_watch_shared(struct ct_fn *fn);
void ct_guard_watch_shared(struct ct_fn *fn);
/* Whether a number was stored that is no factor. Asked behind the loads that it answers for. */
ct_value ct_guard_shared_flag(struct ct_cursor *at);
/* Whether a thread neither changes shared memory by it nor may learn by it of what others stored in the meantime. Not asked of jumps. */
bool ct_guard_leaves_shared_alone(const struct ct_insn *insn);
/* A load of 32-bit words from shared memory. */
bool ct_is_shared_word(const struct ct_fn *fn, const struct ct_insn *insn);

#endif
