/* SPDX-License-Identifier: Apache-2.0 */
/* The lower 32 bits of a value as a polynomial, modulo 2^32: what sums, differences, products and shifts by constants make of other values, the atoms.
 * Two values with the same polynomial are equal in their lower 32 bits, however they are computed. */
#ifndef PTX2SPV_POLYNOMIAL_H
#define PTX2SPV_POLYNOMIAL_H

#include "builder.h"

enum { CT_MONOMIALS_MAX = 12, CT_DEGREE_MAX = 3 };

struct ct_monomial {
    uint32_t coefficient; /* not 0 */
    uint32_t degree;
    ct_value atoms[CT_DEGREE_MAX]; /* factors, ordered by number */
};

struct ct_polynomial {
    uint32_t n;
    struct ct_monomial terms[CT_MONOMIALS_MAX]; /* ordered by atoms, so a constant comes first */
};

/* The polynomial of an SSA value of 32 or 64 bits. What does not fit into one is an atom. */
void ct_polynomial_of(const struct ct_fn *fn, ct_value value, struct ct_polynomial *out);
/* Adds `factor` times another one. False: there are too many terms; *sum is then undefined. */
bool ct_polynomial_add(struct ct_polynomial *sum, const struct ct_polynomial *other, uint32_t factor);
/* Removes the constant term, and returns it. */
uint32_t ct_polynomial_take_constant(struct ct_polynomial *polynomial);
bool ct_polynomials_equal(const struct ct_polynomial *a, const struct ct_polynomial *b);
/* Whether all threads of a block have the same value, because each atom is a parameter or describes the launch. */
bool ct_monomial_is_uniform(const struct ct_fn *fn, const struct ct_monomial *term);
/* Whether it takes a few operations on uniform values, which need no register of each thread. */
bool ct_polynomial_is_cheap(const struct ct_fn *fn, const struct ct_polynomial *polynomial);
uint32_t ct_polynomial_hash(const struct ct_polynomial *polynomial);
/* Code for a polynomial that is not 0. */
ct_value ct_polynomial_emit(struct ct_cursor *at, const struct ct_polynomial *polynomial);

#endif
