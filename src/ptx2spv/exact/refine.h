/* SPDX-License-Identifier: Apache-2.0 */
/* Between refine.c, which finds what there is to be done and where, and refine_root.c, which knows how. */
#ifndef PTX2SPV_REFINE_H
#define PTX2SPV_REFINE_H
/* Parts: refine_root.c. */

#include "ptx2spv/ir/builder.h"

/* An f64 result by fused steps. */
struct ct_refined {
    ct_value result;
    ct_value estimate; /* of a root: its inverse, within 2^-53 */
    ct_value rare;     /* whether the result may be wrong: the driver's own operation is to be asked */
};

/* The root of a, rounded to nearest. */
struct ct_refined ct_refine_root64(struct ct_cursor *at, ct_value a);
/* The inverse of such a result, rounded to nearest; right where the root is, but for what its own `rare` says. */
struct ct_refined ct_refine_inverse64(struct ct_cursor *at, const struct ct_refined *root);

/* The same by the driver's own operations, for any operand. */
ct_value ct_refine_rare_root64(struct ct_cursor *at, ct_value a);
ct_value ct_refine_rare_inverse64(struct ct_cursor *at, ct_value b);

/* rsqrt.approx.f32 of what may be a subnormal. */
ct_value ct_refine_inverse_root32(struct ct_cursor *at, ct_value x);

#endif
