/* SPDX-License-Identifier: Apache-2.0 */
/* guard: interval arithmetic on the magnitudes of f32, and conditions under which an Fma that flushes gives the same result as one that
 * does not.
 *
 * Rounding to nearest is monotonic, so bounds that are f32 themselves hold for rounded results as for exact ones; f32 above any multiple of
 * a power of two are multiples of it, so rounding preserves these too. The unit in the last place of x is more than |x| * 2^-24: a lower
 * bound implies a multiple.
 *
 * r = a * b + c, where the driver replaces subnormal operands by zeros, and a nonzero exact result below 2^-126 by zero:
 *  - *Multiples.* a, b and c are multiples of 2^-126, and so is a * b by what is known of a and b. Then none is subnormal, and the exact
 *    result is a multiple of 2^-126: it is 0 or at least 2^-126. Nothing is flushed.
 *  - *No cancellation.* a, b, c and a * b are each 0 or at least 2^-126, and a * b and c are not negative, or one of them is 0. Then the
 *    sum
 *    is 0 or at least 2^-126, too.
 *  - *Absorption.* |c| >= 2^e with e >= -78, not 0. If a is subnormal and |b| <= 2^(e+101), then |a * b| < 2^(e-25), less than half of the
 *    distance from c to any other f32: r is c, whether a is flushed or not (b has to be finite: 0 times infinity is a NaN). The same holds
 *    with
 *    a and b exchanged. If a and b are the same value, the square of a subnormal is below 2^-252, whatever its bound. Otherwise no operand
 *    is flushed, and neither is the result: if |a * b| < 2^(e-1), the sum is above 2^(e-1), a multiple of 2^(e-24). Else the units in the
 *    last places of a and b have a product that is a power of two above |a * b| * 2^-48, so at least 2^(e-48); that of c is at least
 *    2^(e-23); the exact sum is a multiple of 2^(e-48), which is a multiple of 2^-126.
 *  - *Zero product.* a * b is 0 by what is known of a and b, since one is 0 and the other finite, and c is not subnormal.
 * Flushing preserves signs. NaNs give NaN in either case. */
#include "guard_ranges.h"

enum { FRACTION_BITS = 23, NO_QUANTUM = -1000 };

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

/* The range of the f32 to which a value with this range is rounded. It does not rely on a subnormal being nonzero. */
static struct ct_range rounded(struct ct_range x)
{
    if (x.least < CT_POWER_NORMAL)
        x.nonzero = false;
    x.quantum = greater(x.quantum, CT_POWER_LEAST);
    x.least = greater(greater(x.least, CT_POWER_LEAST), x.quantum);
    x.quantum = greater(x.quantum, x.least - FRACTION_BITS);
    x.most = x.most >= CT_POWER_ANY ? CT_POWER_ANY : greater(x.most, CT_POWER_LEAST);
    return x;
}

struct ct_range ct_range_between(int least, int most)
{
    return rounded((struct ct_range){.least = (int16_t)least, .most = (int16_t)most, .quantum = NO_QUANTUM, .number = most < CT_POWER_ANY});
}

struct ct_range ct_range_of_constant(uint32_t bits)
{
    const int exponent = bits >> FRACTION_BITS & 0xff;
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
        x.least = x.quantum = CT_POWER_ANY - 1; /* 0 is a multiple of every power */
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

/* A lower bound for a nonzero sum of two nonnegative numbers. */
static int16_t least_of_sum(struct ct_range a, struct ct_range b)
{
    const int16_t least = lesser(a.least, b.least);

    return greater(least, greater(a.nonzero ? a.least : least, b.nonzero ? b.least : least));
}

static struct ct_range sum(struct ct_range a, struct ct_range b)
{
    const bool no_cancellation = a.nonnegative && b.nonnegative;
    struct ct_range r = {.quantum = lesser(a.quantum, b.quantum), .nonnegative = no_cancellation};

    if (is_zero(a) || is_zero(b))
        return is_zero(a) ? b : a;
    r.most = is_finite(a) && is_finite(b) ? (int16_t)(greater(a.most, b.most) + 1) : CT_POWER_ANY;
    r.least = no_cancellation ? least_of_sum(a, b) : r.quantum;
    r.nonzero = no_cancellation && (a.nonzero || b.nonzero);
    r.number = a.number && b.number && (no_cancellation || is_finite(a) || is_finite(b));
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

/* ---- rounded results ---- */

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

/* 1 / x, not rounded. */
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

/* The device's inverse root, which takes subnormals for zeros and is wrong by a factor below two. */
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

/* ---- when flushing has no effect ---- */

static bool is_not_subnormal(struct ct_range x)
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

    if (!is_not_subnormal(a) || !is_not_subnormal(b) || !is_not_subnormal(c) || !is_not_subnormal(p))
        return false;
    return (p.nonnegative && c.nonnegative) || is_zero(c);
}

static bool is_absorbed(struct ct_range a, struct ct_range b, struct ct_range c)
{
    return is_not_subnormal(a) || (is_finite(b) && b.most <= c.least + 101);
}

bool ct_fused_is_unaffected(struct ct_range a, struct ct_range b, struct ct_range c, bool same)
{
    if (are_multiples(a, b, c) || cannot_cancel(a, b, c, same) || (is_zero(product(a, b, same)) && is_not_subnormal(c)))
        return true;
    return absorbs(c) && (same || (is_absorbed(a, b, c) && is_absorbed(b, a, c)));
}
