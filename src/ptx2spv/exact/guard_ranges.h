/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the magnitude of an f32 before it is computed, in powers of two: see guard_ranges.c. */
#ifndef PTX2SPV_GUARD_RANGES_H
#define PTX2SPV_GUARD_RANGES_H

#include <stdbool.h>
#include <stdint.h>

enum { CT_POWER_LEAST = -149, CT_POWER_ANY = 128, CT_POWER_NORMAL = -126 };

/* x is a NaN, or all of these hold. */
struct ct_range {
    int16_t least;    /* x is 0 or |x| >= 2^least */
    int16_t most;     /* |x| <= 2^most; CT_POWER_ANY: it may be infinite, too */
    int16_t quantum;  /* x is a multiple of 2^quantum, or infinite */
    bool nonzero;     /* x is not 0 */
    bool nonnegative; /* x is no less than 0, nor -0 if it is nonzero */
    bool number;      /* x is no NaN */
};

struct ct_range ct_range_any(void);
struct ct_range ct_range_of_constant(uint32_t bits);
/* 0 or of 2^least to 2^most; an f32. */
struct ct_range ct_range_between(int least, int most);
struct ct_range ct_range_joined(struct ct_range a, struct ct_range b);
bool ct_ranges_are_equal(struct ct_range a, struct ct_range b);

struct ct_range ct_range_of_sum(struct ct_range a, struct ct_range b);
struct ct_range ct_range_of_difference(struct ct_range a, struct ct_range b);
/* same: both are one value. */
struct ct_range ct_range_of_product(struct ct_range a, struct ct_range b, bool same);
struct ct_range ct_range_of_fused(struct ct_range a, struct ct_range b, struct ct_range c, bool same);
struct ct_range ct_range_of_quotient(struct ct_range a, struct ct_range b);
struct ct_range ct_range_of_inverse_root(struct ct_range x);
struct ct_range ct_range_of_magnitude(struct ct_range x);
struct ct_range ct_range_of_negative(struct ct_range x);

/* Whether a flushing Fma gives what one that does not flush gives, for all a, b and c in these ranges. */
bool ct_fused_is_harmless(struct ct_range a, struct ct_range b, struct ct_range c, bool same);
/* The least power that an addend that is not 0 must have for that, if nothing is known of the product but that it is finite. */
enum { CT_POWER_ABSORBING = -60 };

#endif
