/* SPDX-License-Identifier: Apache-2.0 */
/* Elementary functions of f32 within the error bounds of PTX's approximate instructions, by multiply-adds: for drivers whose own functions are less
 * precise (ptx2spv_target.near_functions). */
#ifndef PTX2SPV_ELEMENTARY_H
#define PTX2SPV_ELEMENTARY_H

#include "ptx2spv/ir/builder.h"

/* 2^x. `flushes`: subnormal operands and results are zeros. */
ct_value ct_elementary_exponential(struct ct_cursor *at, ct_value x, bool flushes);
/* The logarithm of x to base 2. `flushes`: subnormal operands are zeros. */
ct_value ct_elementary_logarithm(struct ct_cursor *at, ct_value x, bool flushes);
/* The sine of x, and its cosine. No result is greater than 1, however great x is. */
ct_value ct_elementary_sine(struct ct_cursor *at, ct_value x);
ct_value ct_elementary_cosine(struct ct_cursor *at, ct_value x);
/* An estimate of the inverse root of x, whose error is a few units in the last place, made better. */
ct_value ct_elementary_inverse_root(struct ct_cursor *at, ct_value x, ct_value estimate);

#endif
