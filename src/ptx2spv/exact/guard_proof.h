/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold before a loop begins, so that none of its multiply-adds is hurt by flushing: see guard_proof.c. */
#ifndef PTX2SPV_GUARD_PROOF_H
#define PTX2SPV_GUARD_PROOF_H
/* Parts: guard_bounds.c. */

#include "guard.h"

/* A number from outside of a loop that something in it depends on, and what is assumed of it. */
struct ct_guard_input {
    ct_value value;
    bool begins;                 /* is but what a value that changes in the loop begins with */
    bool must_absorb;            /* is added to a product that may be anything that is finite */
    struct ct_range assumed;     /* bounds and nonzero are to be asked for */
};

/* From a block on, a value is no more than 2^most, or a NaN. */
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
    uint32_t *input_of;     /* by value: index in inputs + 1 */
    struct ct_range *known; /* by value of the loop, */
    bool *is_known;         /* once something is */
    unsigned level;         /* which assumptions are made */
    bool reads_shared;      /* of numbers in shared memory, too */
    bool zeros_will_do;     /* those inputs that must absorb may also be all 0; ranges then are others */
};

static inline struct ct_insn *ct_guard_definition(const struct ct_guard_proof *proof, ct_value x)
{
    return proof->g->fn->values.v[x.i].def;
}

/* ---- guard_proof.c ---- */
/* Whether `block` is in the loop. */
bool ct_guard_is_inside(const struct ct_block *header, const struct ct_block *block);
/* Room for what is known of values: of those that there are now. */
void ct_guard_reserve(struct ct_guard_proof *proof);
/* Whether nothing in the loop is hurt if the inputs are what is assumed of them, and what was stored in shared memory what it takes.
 * order: the function's blocks in reverse postorder. */
bool ct_guard_prove(struct ct_guard_proof *proof, struct ct_block *const *order, uint32_t n_blocks);
/* What is copied, if it is. */
ct_value ct_guard_original(const struct ct_guard_proof *proof, ct_value x);

/* ---- guard_bounds.c ---- */
void ct_guard_find_bounds(struct ct_guard_proof *proof);
/* The comparison behind a condition, and whether it is turned round. */
const struct ct_insn *ct_guard_comparison_or_null(const struct ct_guard_proof *proof, ct_value condition, bool *negated);
/* What is known of a value anywhere in the loop, and what where a block reads it. */
struct ct_range ct_guard_range(const struct ct_guard_proof *proof, ct_value x);
struct ct_range ct_guard_range_at(const struct ct_guard_proof *proof, ct_value x, const struct ct_block *block);
/* Whether a comparison in the loop is never true. */
bool ct_guard_is_never(const struct ct_guard_proof *proof, const struct ct_insn *comparison);

#endif
