/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between refine.c, which finds the instructions to be refined, and the files that emit the code for them. */
#ifndef PTX2SPV_REFINE_H
#define PTX2SPV_REFINE_H
/* Parts: refine_fused.c, refine_quotient.c, refine_root.c. */

#include "ptx2spv/ir/builder.h"

/* A result computed by fused steps. */
struct ct_refined {
    ct_value result;
    ct_value estimate; /* for a root: its inverse, with an error below 2^-53 */
    ct_value rare;     /* whether the result may be wrong, so that the driver's own operation has to be used */
};

/* The square root of a, rounded to nearest. */
struct ct_refined ct_refine_root64(struct ct_cursor *at, ct_value a);
/* The inverse of such a result, rounded to nearest; correct where the root is, except where its own `rare` is set. */
struct ct_refined ct_refine_inverse64(struct ct_cursor *at, const struct ct_refined *root);

/* a / b in f32, rounded to nearest. */
struct ct_refined ct_refine_quotient32(struct ct_cursor *at, ct_value a, ct_value b);
/* The same by integers, for any operands. */
ct_value ct_refine_rare_quotient32(struct ct_cursor *at, ct_value a, ct_value b);

/* The same by the driver's own operations, for any operand. */
ct_value ct_refine_rare_root64(struct ct_cursor *at, ct_value a);
ct_value ct_refine_rare_inverse64(struct ct_cursor *at, ct_value b);

/* a * b + c in f64, rounded to nearest once. */
struct ct_refined ct_refine_fused64(struct ct_cursor *at, ct_value a, ct_value b, ct_value c);
/* The same for any operands. */
ct_value ct_refine_rare_fused64(struct ct_cursor *at, ct_value a, ct_value b, ct_value c);

/* rsqrt.approx.f32 of a value that may be subnormal. */
ct_value ct_refine_inverse_root32(struct ct_cursor *at, ct_value x);

#endif
