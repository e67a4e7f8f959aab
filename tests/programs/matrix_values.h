/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of matrices for the tests of matrix instructions: random and edge values, and what a sum of products may be. Written from the text
 * of the PTX ISA. */
#ifndef TESTS_MATRIX_VALUES_H
#define TESTS_MATRIX_VALUES_H

#include <stdbool.h>
#include <stdint.h>

enum element { F16, BF16, TF32, F32, F64, S32, E4M3, E5M2, S8, U8, S4, U4, B1, ELEMENT_COUNT };
enum { ELEMENT_BITS_MAX = 64 };

unsigned element_bits(enum element element);
const char *element_name(enum element element); /* "f16" */
bool element_is_integer(enum element element);
double element_value(enum element element, uint64_t bits);  /* exact, but for S32 as for all */
uint64_t element_from_int(enum element element, int value); /* a small integer */

/* Kinds of contents. */
enum contents {
    SMALL,  /* small integers: every way of adding gives the exact sum */
    RANDOM, /* numbers of similar size; all integers */
    EDGES,  /* also zeros, subnormals, infinities, NaN; the limits of integers */
    CONTENTS_COUNT
};
uint64_t random_bits(void); /* the same sequence in every run */
uint64_t element_random(enum element element, enum contents contents);

/* A sum of products, as it grows. */
struct sum {
    enum element factors, c, d;
    bool saturates, uses_and;
    int rounding; /* of f64: FE_TONEAREST and so on */
    int64_t integer;
    double exact; /* f64: the chain of fma; other floats: the sum, in which double has room for all bits that matter */
    double magnitude;
    unsigned terms;
    enum contents contents;
};
void sum_begin(struct sum *sum, uint64_t c);
void sum_add(struct sum *sum, enum element a, uint64_t x, enum element b, uint64_t y);
/* Whether d may be the result. */
bool sum_accepts(const struct sum *sum, uint64_t d);

#endif
