/* SPDX-License-Identifier: Apache-2.0 */
/* guard: arithmetic on what is known of f32, and when a flushing Fma cannot be told from another.
 *
 * Rounding to nearest keeps order, so bounds that are f32 themselves hold for rounded results as for exact ones; f32 above any multiple of
 * a power of two are multiples of it, so it keeps these too. A last place of x is more than |x| * 2^-24: a bound below gives a multiple.
 *
 * r = a * b + c, where the driver takes subnormal operands for zeros and makes a zero of an exact result that is not 0 and below 2^-126:
 *  - *Multiples.* a, b and c are multiples of 2^-126, and so is a * b by what is known of a and b. None is a subnormal then, and the exact
 *    result is a multiple of 2^-126: 0 or no less. Nothing is flushed.
 *  - *No cancellation.* a, b and c are 0 or at least 2^-126, a * b too, and a * b and c are not negative, or one is 0. So is the sum.
 *  - *Absorption.* |c| >= 2^e with e >= -78, not 0. If a is subnormal and |b| <= 2^(e+101), |a * b| < 2^(e-25), less than half of the way
 *    from c to any other f32: r is c, with a flushed or not (b has to be finite: 0 times infinity is a NaN). The same with a and b changed.
 *    If a and b are one value, a subnormal's square is below 2^-252, whatever its bound. Else no operand is flushed, and the result is not:
 *    where |a * b| < 2^(e-1) the sum is above 2^(e-1), a multiple of 2^(e-24). Otherwise the last places of a and b multiply to a power of
 *    two above |a * b| * 2^-48, so to 2^(e-48) or more; that of c is 2^(e-23) or more; the exact sum is a multiple of 2^(e-48), which is a
 *    multiple of 2^-126.
 *  - *Nothing added.* a * b is 0 by what is known of a and b, one of them being 0 and the other finite; c is no subnormal. Flushing keeps
 * signs. NaNs give NaN in either way. */
#include "guard_ranges.h"

enum { PLACES = 23, NO_QUANTUM = -1000 };

static int16_t lesser(int a, int b)
{
    return (int16_t)(a < b ? a : b);
}

static int16_t greater(int a, int b)
{
    return (int16_t)(a > b ? a : b);
}

struct ct_range ct_range_any(void)
{
    return (struct ct_range){.least = CT_POWER_LEAST, .most = CT_POWER_ANY, .quantum = CT_POWER_LEAST};
}

/* What holds of an f32 if this holds of what was rounded to it. That a subnormal is not zero is not relied on. */
static struct ct_range rounded(struct ct_range x)
{
    if (x.least < CT_POWER_NORMAL)
        x.nonzero = false;
    x.quantum = greater(x.quantum, CT_POWER_LEAST);
    x.least = greater(greater(x.least, CT_POWER_LEAST), x.quantum);
    x.quantum = greater(x.quantum, x.least - PLACES);
    x.most = x.most >= CT_POWER_ANY ? CT_POWER_ANY : greater(x.most, CT_POWER_LEAST);
    return x;
}

struct ct_range ct_range_between(int least, int most)
{
    return rounded((struct ct_range){.least = (int16_t)least, .most = (int16_t)most, .quantum = NO_QUANTUM, .number = most < CT_POWER_ANY});
}

struct ct_range ct_range_of_constant(uint32_t bits)
{
    const int exponent = bits >> PLACES & 0xff;
    const uint32_t fraction = bits & 0x7fffff, significant = fraction | (exponent ? 0x800000 : 0);
    struct ct_range x = {.number = exponent < 255 || !fraction, .nonzero = bits << 1 != 0};

    x.nonnegative = !(bits >> 31) && x.number;
    x.least = x.most = x.quantum = CT_POWER_LEAST;
    if (exponent == 255) {
        x.least = x.quantum = CT_POWER_ANY - 1;
        x.most = CT_POWER_ANY;
    } else if (significant) {
        const int last = (exponent ? exponent : 1) - 150, first = 31 - __builtin_clz(significant);

        x.least = (int16_t)(last + first);
        x.most = (int16_t)(x.least + (significant >> first << first != significant));
        x.quantum = (int16_t)(last + __builtin_ctz(significant));
    } else {
        x.least = x.quantum = CT_POWER_ANY - 1; /* 0 is a multiple of all */
    }
    return x;
}

struct ct_range ct_range_joined(struct ct_range a, struct ct_range b)
{
    return (struct ct_range){.least = lesser(a.least, b.least),
                             .most = greater(a.most, b.most),
                             .quantum = lesser(a.quantum, b.quantum),
                             .nonzero = a.nonzero && b.nonzero,
                             .nonnegative = a.nonnegative && b.nonnegative,
                             .number = a.number && b.number};
}

bool ct_ranges_are_equal(struct ct_range a, struct ct_range b)
{
    return a.least == b.least && a.most == b.most && a.quantum == b.quantum && a.nonzero == b.nonzero && a.nonnegative == b.nonnegative &&
           a.number == b.number;
}

static bool is_finite(struct ct_range x)
{
    return x.most < CT_POWER_ANY;
}

static bool is_zero(struct ct_range x)
{
    return x.number && x.least > x.most && x.most < CT_POWER_ANY;
}

/* ---- exact results ---- */

/* A bound below for a sum of two that are not negative, if it is not 0. */
static int16_t least_of_sum(struct ct_range a, struct ct_range b)
{
    const int16_t least = lesser(a.least, b.least);

    return greater(least, greater(a.nonzero ? a.least : least, b.nonzero ? b.least : least));
}

static struct ct_range sum(struct ct_range a, struct ct_range b)
{
    const bool grows = a.nonnegative && b.nonnegative;
    struct ct_range r = {.quantum = lesser(a.quantum, b.quantum), .nonnegative = grows};

    if (is_zero(a) || is_zero(b))
        return is_zero(a) ? b : a;
    r.most = is_finite(a) && is_finite(b) ? (int16_t)(greater(a.most, b.most) + 1) : CT_POWER_ANY;
    r.least = grows ? least_of_sum(a, b) : r.quantum;
    r.nonzero = grows && (a.nonzero || b.nonzero);
    r.number = a.number && b.number && (grows || is_finite(a) || is_finite(b));
    return r;
}

static struct ct_range product(struct ct_range a, struct ct_range b, bool same)
{
    struct ct_range r = {.least = (int16_t)(a.least + b.least), .quantum = (int16_t)(a.quantum + b.quantum)};

    r.most = is_finite(a) && is_finite(b) ? (int16_t)(a.most + b.most) : CT_POWER_ANY;
    r.nonzero = a.nonzero && b.nonzero;
    r.nonnegative = same || (a.nonnegative && b.nonnegative);
    r.number = a.number && b.number && (same || (is_finite(a) && is_finite(b)));
    return r;
}

/* ---- results ---- */

struct ct_range ct_range_of_sum(struct ct_range a, struct ct_range b)
{
    return rounded(sum(a, b));
}

struct ct_range ct_range_of_negative(struct ct_range x)
{
    x.nonnegative = false;
    return x;
}

struct ct_range ct_range_of_magnitude(struct ct_range x)
{
    x.nonnegative = true;
    return x;
}

struct ct_range ct_range_of_difference(struct ct_range a, struct ct_range b)
{
    return rounded(sum(a, ct_range_of_negative(b)));
}

struct ct_range ct_range_of_product(struct ct_range a, struct ct_range b, bool same)
{
    return rounded(product(a, b, same));
}

static bool absorbs(struct ct_range c)
{
    return c.nonzero && c.least - 48 >= CT_POWER_NORMAL;
}

struct ct_range ct_range_of_fused(struct ct_range a, struct ct_range b, struct ct_range c, bool same)
{
    struct ct_range r = sum(product(a, b, same), c);

    if (absorbs(c))
        r.quantum = greater(r.quantum, c.least - 48);
    return rounded(r);
}

/* 1 / x, exact. */
static struct ct_range inverse(struct ct_range x)
{
    return (struct ct_range){.least = (int16_t)-x.most,
                             .most = x.nonzero ? (int16_t)-x.least : CT_POWER_ANY,
                             .quantum = NO_QUANTUM,
                             .nonzero = is_finite(x),
                             .nonnegative = x.nonnegative && x.nonzero,
                             .number = x.number && x.nonzero};
}

struct ct_range ct_range_of_quotient(struct ct_range a, struct ct_range b)
{
    return rounded(product(a, inverse(b), false));
}

static int half_down(int power)
{
    return power >= 0 ? power / 2 : -((1 - power) / 2);
}

/* The device's own, which takes subnormals for zeros and is off by less than a factor of two. */
struct ct_range ct_range_of_inverse_root(struct ct_range x)
{
    const bool positive = x.nonnegative && x.nonzero;

    if (x.least < CT_POWER_NORMAL)
        return ct_range_any();
    return rounded((struct ct_range){.least = (int16_t)(-half_down(x.most) - 1),
                                     .quantum = NO_QUANTUM,
                                     .most = positive ? (int16_t)(1 - half_down(x.least)) : CT_POWER_ANY,
                                     .nonzero = is_finite(x),
                                     .nonnegative = positive,
                                     .number = x.number && positive});
}

/* ---- what does no harm ---- */

static bool is_no_subnormal(struct ct_range x)
{
    return x.least >= CT_POWER_NORMAL;
}

static bool are_multiples(struct ct_range a, struct ct_range b, struct ct_range c)
{
    return lesser(a.quantum, b.quantum) >= CT_POWER_NORMAL && c.quantum >= CT_POWER_NORMAL && a.quantum + b.quantum >= CT_POWER_NORMAL;
}

static bool cannot_cancel(struct ct_range a, struct ct_range b, struct ct_range c, bool same)
{
    const struct ct_range p = product(a, b, same);

    if (!is_no_subnormal(a) || !is_no_subnormal(b) || !is_no_subnormal(c) || !is_no_subnormal(p))
        return false;
    return (p.nonnegative && c.nonnegative) || is_zero(c);
}

static bool is_absorbed(struct ct_range a, struct ct_range b, struct ct_range c)
{
    return is_no_subnormal(a) || (is_finite(b) && b.most <= c.least + 101);
}

bool ct_fused_is_harmless(struct ct_range a, struct ct_range b, struct ct_range c, bool same)
{
    if (are_multiples(a, b, c) || cannot_cancel(a, b, c, same) || (is_zero(product(a, b, same)) && is_no_subnormal(c)))
        return true;
    return absorbs(c) && (same || (is_absorbed(a, b, c) && is_absorbed(b, a, c)));
}
