/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the magnitude of an f32 value from the operations that compute it. False means: not known. */
#ifndef PTX2SPV_RANGE_H
#define PTX2SPV_RANGE_H

#include "ptx2spv/ir/ir.h"

/* x, as the target computes it, is not subnormal. */
bool ct_is_no_subnormal(const struct ct_fn *fn, ct_value x);
/* x is NaN or at least 2^-126 in magnitude: its comparison with a subnormal gives the same as with a zero of the same sign. */
bool ct_is_far_from_zero(const struct ct_fn *fn, ct_value x);

#endif
