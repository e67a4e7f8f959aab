/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the size of an f32 value by how it came about, wherever the kernel runs. False means: not known. */
#ifndef PTX2SPV_RANGE_H
#define PTX2SPV_RANGE_H

#include "ptx2spv/ir/ir.h"

/* x is no subnormal, as the target computes it. */
bool ct_is_no_subnormal(const struct ct_fn *fn, ct_value x);
/* x is NaN or at least 2^-126 in magnitude: it compares the same with a subnormal and with a zero of its sign. */
bool ct_is_far_from_zero(const struct ct_fn *fn, ct_value x);

#endif
