/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions on the inputs of a loop under which flushing does not change the result of any of its multiply-adds: see guard_proof.c. */
#ifndef PTX2SPV_GUARD_PROOF_H
#define PTX2SPV_GUARD_PROOF_H
/* Parts: guard_bounds.c. */

#include "guard.h"

/* A value from outside of a loop on which something in the loop depends, and what is assumed of it. */
struct ct_guard_input {
    ct_value value;
    bool is_initial;         /* it is only the initial value of a loop-carried value */
    bool must_absorb;        /* it is added to a product that may be any finite number */
    struct ct_range assumed; /* the bounds and `nonzero` are to be checked before the loop */
};

/* From a block on, a value is at most 2^most, or a NaN. */
struct ct_guard_bound {
    ct_value value;
    int most;
    const struct ct_block *from;
};

struct ct_guard_proof {
    struct ct_guard *g;
    struct ct_block *header;
    CT_VEC(struct ct_block *) blocks; /* of the loop, in reverse postorder */
    CT_VEC(struct ct_guard_bound) bounds;
    CT_VEC(struct ct_guard_input) inputs;
    uint32_t *input_of;     /* indexed by value: index in inputs + 1 */
    struct ct_range *known; /* indexed by value of the loop, */
    bool *is_known;         /* valid where this is set */
    unsigned level;         /* which assumptions are made */
    bool reads_shared;      /* the proof also assumes something of numbers in shared memory */
    bool zeros_allowed;     /* inputs that must absorb may also all be 0; then the ranges are different */
};

static inline struct ct_insn *ct_guard_definition(const struct ct_guard_proof *proof, ct_value x)
{
    return proof->g->fn->values.v[x.i].def;
}

/* ---- guard_proof.c ---- */
/* Allocates the tables for the values that exist now. */
void ct_guard_reserve(struct ct_guard_proof *proof);
/* Whether flushing changes no result in the loop if the inputs are as assumed, and if only factors were stored into shared memory.
 * order: the function's blocks in reverse postorder. */
bool ct_guard_prove(struct ct_guard_proof *proof, struct ct_block *const *order, uint32_t n_blocks);
/* The source of a chain of copies. */
ct_value ct_guard_original(const struct ct_guard_proof *proof, ct_value x);

/* ---- guard_bounds.c ---- */
void ct_guard_find_bounds(struct ct_guard_proof *proof);
/* The comparison that computes a condition, and whether the condition is its negation. */
const struct ct_insn *ct_guard_comparison_or_null(const struct ct_guard_proof *proof, ct_value condition, bool *negated);
/* The range of a value anywhere in the loop, and its range where a block uses it. */
struct ct_range ct_guard_range(const struct ct_guard_proof *proof, ct_value x);
struct ct_range ct_guard_range_at(const struct ct_guard_proof *proof, ct_value x, const struct ct_block *block);
/* Whether a comparison in the loop is never true. */
bool ct_guard_is_never(const struct ct_guard_proof *proof, const struct ct_insn *comparison);

#endif
