/* SPDX-License-Identifier: Apache-2.0 */
/* What is known statically of the magnitude of an f32, in powers of two: see guard_ranges.c. */
#ifndef PTX2SPV_GUARD_RANGES_H
#define PTX2SPV_GUARD_RANGES_H

#include <stdbool.h>
#include <stdint.h>

enum { CT_POWER_LEAST = -149, CT_POWER_ANY = 128, CT_POWER_NORMAL = -126 };

/* Either x is a NaN, or all of these hold. */
struct ct_range {
    int16_t least;    /* x is 0 or |x| >= 2^least */
    int16_t most;     /* |x| <= 2^most; CT_POWER_ANY: x may also be infinite */
    int16_t quantum;  /* x is a multiple of 2^quantum, or infinite */
    bool nonzero;     /* x is not 0 */
    bool nonnegative; /* x is not less than 0, and not -0 if it is nonzero */
    bool number;      /* x is not a NaN */
};

struct ct_range ct_range_any(void);
struct ct_range ct_range_of_constant(uint32_t bits);
/* An f32 that is 0 or has a magnitude from 2^least to 2^most. */
struct ct_range ct_range_between(int least, int most);
struct ct_range ct_range_joined(struct ct_range a, struct ct_range b);
bool ct_ranges_are_equal(struct ct_range a, struct ct_range b);

struct ct_range ct_range_of_sum(struct ct_range a, struct ct_range b);
struct ct_range ct_range_of_difference(struct ct_range a, struct ct_range b);
/* same: both operands are the same value. */
struct ct_range ct_range_of_product(struct ct_range a, struct ct_range b, bool same);
struct ct_range ct_range_of_fused(struct ct_range a, struct ct_range b, struct ct_range c, bool same);
struct ct_range ct_range_of_quotient(struct ct_range a, struct ct_range b);
struct ct_range ct_range_of_inverse_root(struct ct_range x);
struct ct_range ct_range_of_magnitude(struct ct_range x);
struct ct_range ct_range_of_negative(struct ct_range x);

/* Whether an Fma that flushes gives the same result as one that does not, for all a, b and c in these ranges. */
bool ct_fused_is_unaffected(struct ct_range a, struct ct_range b, struct ct_range c, bool same);
/* The smallest power that a nonzero addend must have for that, if the product is only known to be finite. */
enum { CT_POWER_ABSORBING = -60 };

#endif
