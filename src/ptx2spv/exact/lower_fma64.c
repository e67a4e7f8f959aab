/* SPDX-License-Identifier: Apache-2.0 */
/* lower: a * b + c in f64 with one rounding of any mode, from additions and multiplications that round to nearest.
 *
 * The product becomes the sum of two f64 (TwoProduct: Dekker, "A floating-point technique for extending the available precision", 1971), to
 * which c is added with the last two errors rounded to odd (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008). That
 * is correct if no intermediate result overflows or underflows, so the operands are scaled into a range where none does:
 *   great   the product or c is at least 2^1000: everything is scaled by 2^-200
 *   tiny    the product is below 2^-950: everything is scaled by 2^900, and a result below 2^-122 is then rounded like the subnormal that
 *   it
 *           represents, by adding and subtracting a number whose unit in the last place is that of the subnormals
 * A term that can only break a tie is replaced by any small number of its sign.
 *
 * For directed rounding, the nearest value is adjusted by the sign of its error. The error is computed in the scaled range, where the
 * exact sum is upper.high plus a rest that is rounded to odd: either the rest is far below the difference between upper.high and the
 * nearest value, or that difference is exact, so the sign of the sum of both is correct. */
#include "lower.h"

#include <math.h>

#define DEKKER_FACTOR 0x8000001p0 /* 2^27 + 1 */

static ct_value number(struct ct_cursor *at, double value)
{
    return ct_float_const(at, PTX_F64, value);
}

static ct_value add(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_op2(at, CT_OP_FADD, PTX_F64, a, b);
}

static ct_value subtract(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_op2(at, CT_OP_FSUB, PTX_F64, a, b);
}

static ct_value multiply(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_op2(at, CT_OP_FMUL, PTX_F64, a, b);
}

static ct_value magnitude(struct ct_cursor *at, ct_value a)
{
    return ct_float_magnitude(at, PTX_F64, a);
}

/* |a| < limit; false for NaN. */
static ct_value is_within(struct ct_cursor *at, ct_value a, double limit)
{
    return ct_fcmp(at, PTX_F64, PTX_LT, magnitude(at, a), number(at, limit));
}

static ct_value is_zero(struct ct_cursor *at, ct_value a)
{
    return ct_equals(at, magnitude(at, a), 0);
}

static ct_value sign_of(struct ct_cursor *at, ct_value a)
{
    return ct_and_imm(at, a, UINT64_C(1) << 63);
}

/* `size` with the sign of a. */
static ct_value signed_like(struct ct_cursor *at, double size, ct_value a)
{
    return ct_or(at, sign_of(at, a), number(at, size));
}

static ct_value choose(struct ct_cursor *at, ct_value condition, double then, double otherwise)
{
    return ct_select(at, condition, number(at, then), number(at, otherwise));
}

struct parts {
    ct_value high, low;
};

/* Splits a into two numbers of 26 bits (Dekker). */
static struct parts split(struct ct_cursor *at, ct_value a)
{
    const ct_value scaled = multiply(at, a, number(at, DEKKER_FACTOR));
    struct parts parts;

    parts.high = subtract(at, scaled, subtract(at, scaled, a));
    parts.low = subtract(at, a, parts.high);
    return parts;
}

ct_value ct_two_product64(struct ct_cursor *at, ct_value a, ct_value b, ct_value *error)
{
    const struct parts x = split(at, a), y = split(at, b);
    const ct_value product = multiply(at, a, b);

    *error = subtract(at, multiply(at, x.high, y.high), product);
    *error = add(at, *error, multiply(at, x.high, y.low));
    *error = add(at, *error, multiply(at, x.low, y.high));
    *error = add(at, *error, multiply(at, x.low, y.low));
    return product;
}

static struct parts two_product(struct ct_cursor *at, ct_value a, ct_value b)
{
    struct parts product;

    product.high = ct_two_product64(at, a, b, &product.low);
    return product;
}

static struct parts two_sum(struct ct_cursor *at, ct_value a, ct_value b)
{
    struct parts sum;

    sum.high = ct_two_sum(at, PTX_F64, a, b, &sum.low);
    return sum;
}

static ct_value odd_sum(struct ct_cursor *at, ct_value a, ct_value b)
{
    const struct parts sum = two_sum(at, a, b);

    return ct_to_odd(at, PTX_F64, sum.high, sum.low);
}

/* The scaled operands. */
struct scaled {
    ct_value a, b, c;
    ct_value tiny;           /* whether this is the case `tiny` */
    ct_value scale, unscale; /* the factor by which the sum was scaled, and the factor that scales the result back */
};

static struct scaled scale(struct ct_cursor *at, ct_value a, ct_value b, ct_value c, ct_value product)
{
    const ct_value a_greater = ct_icmp(at, PTX_U64, PTX_GE, magnitude(at, a), magnitude(at, b));
    const ct_value greater = ct_select(at, a_greater, a, b), smaller = ct_select(at, a_greater, b, a);
    const ct_value great = ct_not(at, ct_and(at, is_within(at, product, 0x1p1000), is_within(at, c, 0x1p1000)));
    const ct_value tiny = is_within(at, product, 0x1p-950);
    const ct_value uneven = ct_not(at, is_within(at, greater, 0x1p600)); /* splitting could overflow */
    const ct_value great_scale = ct_select(at, great, number(at, 0x1p-200), choose(at, uneven, 0x1p-500, 1.0));
    const ct_value small_scale =
        ct_select(at, tiny, number(at, 0x1p900), ct_select(at, great, number(at, 1.0), choose(at, uneven, 0x1p500, 1.0)));
    const ct_value c_scale = ct_select(at, great, number(at, 0x1p-200), choose(at, tiny, 0x1p900, 1.0));
    const ct_value c_vanishes = ct_and(at, ct_and(at, great, is_within(at, c, 0x1p-500)), ct_not(at, is_zero(at, c)));
    struct scaled s = {.tiny = tiny};
    ct_value vanishes;

    s.a = multiply(at, greater, great_scale);
    s.b = multiply(at, smaller, small_scale);
    s.c = multiply(at, ct_select(at, c_vanishes, signed_like(at, 0x1p-300, c), c), c_scale);
    s.scale = c_scale;
    s.unscale = ct_select(at, great, number(at, 0x1p200), choose(at, tiny, 0x1p-900, 1.0));
    vanishes = ct_and(at, tiny, is_within(at, multiply(at, s.a, s.b), 0x1p-700));
    vanishes = ct_and(at, vanishes, ct_not(at, ct_or(at, is_zero(at, a), is_zero(at, b))));
    s.a = ct_select(at, vanishes, signed_like(at, 0x1p-700, ct_xor(at, a, b)), s.a);
    s.b = ct_select(at, vanishes, number(at, 1.0), s.b);
    return s;
}

/* sum + rest, rounded once: to 53 bits, or, if `subnormal`, to a multiple of 2^-174, which is the unit in the last place of numbers from
 * 2^-122 up to twice that. `leading` has the sign of the whole. */
static ct_value rounded(struct ct_cursor *at, ct_value sum, ct_value rest, ct_value leading, ct_value subnormal)
{
    const ct_value lift = ct_select(at, subnormal, signed_like(at, 0x1p-122, leading), number(at, 0.0));
    const struct parts lifted = two_sum(at, lift, sum);

    return subtract(at, add(at, lifted.high, odd_sum(at, lifted.low, rest)), lift);
}

/* The exact sum minus the nearest value. back: scales it to the range of the sum. */
static ct_value missing(struct ct_cursor *at, ct_value sum, ct_value rest, ct_value nearest, ct_value back)
{
    return add(at, subtract(at, sum, multiply(at, nearest, back)), rest);
}

/* The sign of a product that is negligibly small; 0 if the product is zero. */
static ct_value sign_of_product(struct ct_cursor *at, ct_value a, ct_value b)
{
    const ct_value none = ct_or(at, is_zero(at, a), is_zero(at, b));

    return ct_select(at, none, number(at, 0.0), signed_like(at, 1.0, ct_xor(at, a, b)));
}

ct_value ct_fused64(struct ct_cursor *at, ct_value a, ct_value b, ct_value c, ct_value *error)
{
    const ct_value product = multiply(at, a, b), plain = add(at, product, c);
    const struct scaled s = scale(at, a, b, c, product);
    const struct parts exact = two_product(at, s.a, s.b);
    const struct parts lower = two_sum(at, s.c, exact.low);
    const struct parts upper = two_sum(at, exact.high, lower.high);
    const ct_value subnormal = ct_and(at, s.tiny, is_within(at, upper.high, 0x1p-122));
    const ct_value rest = odd_sum(at, lower.low, upper.low);
    const ct_value leading = ct_select(at, is_zero(at, upper.high), rest, upper.high);
    const ct_value sum = rounded(at, upper.high, rest, leading, subnormal);
    ct_value result = multiply(at, sum, s.unscale), remainder = missing(at, upper.high, rest, result, s.scale);
    const ct_value finite_factors = ct_and(at, is_within(at, a, INFINITY), is_within(at, b, INFINITY));
    const ct_value infinite_c = ct_equals(at, magnitude(at, c), UINT64_C(0x7ff) << 52);
    ct_value no_number, negligible, zero;

    /* for a zero result: the sign of what was rounded to zero, or, if the result is exact, that of the plain sum */
    zero = ct_select(at, is_zero(at, leading), plain, sign_of(at, leading));
    result = ct_select(at, is_zero(at, result), zero, result);
    /* terms of two_product may overflow if the scaled product is close to the greatest number; from 2^1000 on the result is infinite anyway */
    no_number = ct_not(at, ct_and(at, is_within(at, exact.high, 0x1p1000), is_within(at, c, INFINITY)));
    result = ct_select(at, no_number, plain, result);
    negligible = ct_fcmp(at, PTX_F64, PTX_LT, magnitude(at, product), multiply(at, magnitude(at, c), number(at, 0x1p-110)));
    result = ct_select(at, ct_or(at, negligible, ct_and(at, infinite_c, finite_factors)), c, result);
    remainder = ct_select(at, negligible, sign_of_product(at, a, b), remainder);
    *error = ct_select(at, is_within(at, result, INFINITY), remainder, number(at, 0.0));
    return result;
}
