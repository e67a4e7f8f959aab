/* SPDX-License-Identifier: Apache-2.0 */
/* f32 taken apart and rounded by integers, for targets without 64-bit floats: nothing depends on how the driver treats subnormals. */
#ifndef CT_EXACT_ROUND32_H
#define CT_EXACT_ROUND32_H

#include "lower.h"

enum { CT_FRACTION_BITS32 = 23, CT_BIAS32 = 127 };
#define CT_SIGN32 UINT32_C(0x80000000)
#define CT_INFINITE32 UINT32_C(0x7f800000)
#define CT_NAN32 UINT32_C(0x7fffffff) /* as ct_float_layout_of(PTX_F32)->nan */

/* A positive number: fraction * 2^(exponent - CT_BIAS32 - CT_FRACTION_BITS32), the fraction of 24 bits with the upper one set. */
struct ct_parts32 {
    ct_value fraction, exponent;
};

/* A number that is to be rounded: significand * 2^(exponent - CT_BIAS32 - 24), the significand of 25 bits with the upper one set; is_inexact:
 * the exact number is above that, by less than one unit. */
struct ct_unrounded32 {
    ct_value sign; /* its bit */
    ct_value significand, exponent, is_inexact;
};

ct_value ct_one_if(struct ct_cursor *at, ct_value condition);
/* Of the magnitude of a number that is neither 0 nor infinite nor NaN. */
struct ct_parts32 ct_parts32_of(struct ct_cursor *at, ct_value magnitude);
/* The result is an f32. */
ct_value ct_rounded32(struct ct_cursor *at, enum ptx_rounding rounding, const struct ct_unrounded32 *x);
/* Rounded to nearest even; the result is a bf16. */
ct_value ct_rounded_bf16(struct ct_cursor *at, const struct ct_unrounded32 *x);
/* Whether the number is below the least normal f32 after rounding to 24 bits with an unbounded exponent. */
ct_value ct_is_tiny32(struct ct_cursor *at, enum ptx_rounding rounding, const struct ct_unrounded32 *x);

#endif
