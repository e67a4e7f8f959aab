/* SPDX-License-Identifier: Apache-2.0 */
/* Elementary functions of f32 by polynomials. Those of the logarithm and the sine are minimax polynomials (Remez), rounded to f32. Each function was
 * evaluated in f32, with fused operations and without, and compared with the C library's functions of f64; the errors that the comments state are the
 * greatest found. */
#include "elementary.h"
#include "lower.h"

#include <math.h>

#define ROUNDER 0x1.8p23 /* x + ROUNDER is rounded to an integer whose lower bits are those of the sum's encoding */

static ct_value sum(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_op2(at, CT_OP_FADD, PTX_F32, a, b);
}

static ct_value difference(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_op2(at, CT_OP_FSUB, PTX_F32, a, b);
}

static ct_value product(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_op2(at, CT_OP_FMUL, PTX_F32, a, b);
}

/* Limits the magnitude of x; a NaN becomes a number. */
static ct_value clamped(struct ct_cursor *at, ct_value x, double limit)
{
    return ct_op2(at, CT_OP_FMAX, PTX_F32, ct_op2(at, CT_OP_FMIN, PTX_F32, x, ct_f32(at, limit)), ct_f32(at, -limit));
}

static ct_value multiply_add(struct ct_cursor *at, ct_value a, ct_value b, ct_value c)
{
    if (at->fn->target->exact_fma32)
        return ct_float_fused32(at, a, b, c);
    return sum(at, product(at, a, b), c);
}

/* The polynomial with these coefficients, from that of the highest power of x on. */
static ct_value polynomial(struct ct_cursor *at, const float *coefficients, unsigned n, ct_value x)
{
    ct_value result = ct_f32(at, coefficients[0]);

    for (unsigned i = 1; i < n; i++)
        result = multiply_add(at, result, x, ct_f32(at, coefficients[i]));
    return result;
}

/* ---- 2^x ---- */

/* 2^f for |f| <= 1/2, by a polynomial that interpolates it at the seven Chebyshev nodes. Evaluated in f32 for every third f in that
 * interval, the error was at most 2^-23.17, and 2^-23.51 with fused operations. */
static ct_value exponential_of_fraction(struct ct_cursor *at, ct_value f)
{
    static const float coefficients[] = {0x1.444p-13f, 0x1.5f48cp-10f, 0x1.3b2a1cp-7f, 0x1.c6aeccp-5f, 0x1.ebfbep-3f, 0x1.62e43p-1f, 1.0f};

    return polynomial(at, coefficients, sizeof coefficients / sizeof *coefficients, f);
}

/* 2^n as f32, for n from -126 to 127. */
static ct_value power_of_two(struct ct_cursor *at, ct_value n)
{
    return ct_shl_imm(at, ct_add_imm(at, n, 127), 23);
}

/* 2^x = 2^f * 2^n with n integral. 2^n is applied in two factors, so that only the last product rounds. */
static ct_value exponential(struct ct_cursor *at, ct_value x)
{
    const ct_value near = clamped(at, x, 200.0), whole = ct_op1(at, CT_OP_FRINT, PTX_F32, near);
    const ct_value n = ct_converted(at, CT_OP_FTOI, PTX_F32, PTX_S32, whole), half = ct_sar_imm(at, n, 1);
    ct_value power = exponential_of_fraction(at, difference(at, near, whole));

    power = product(at, power, power_of_two(at, half));
    power = product(at, power, power_of_two(at, ct_sub(at, n, half)));
    return ct_select(at, ct_float_is_nan(at, PTX_F32, x), x, power);
}

/* The same without subnormal results, so without a product for the exponent. From 128 on the product with infinity is infinite, and it keeps NaN. */
static ct_value normal_exponential(struct ct_cursor *at, ct_value x)
{
    const ct_value n = sum(at, x, ct_f32(at, ROUNDER)), whole = difference(at, n, ct_f32(at, ROUNDER));
    ct_value power = exponential_of_fraction(at, difference(at, x, whole));

    power = ct_add(at, power, ct_shl_imm(at, n, 23));
    power = ct_select(at, ct_f32_is_below(at, x, -126.0), ct_f32(at, 0.0), power);
    return ct_select(at, ct_f32_is_below(at, x, 128.0), power, product(at, x, ct_f32(at, INFINITY)));
}

ct_value ct_elementary_exponential(struct ct_cursor *at, ct_value x, bool flushes)
{
    return flushes ? normal_exponential(at, x) : exponential(at, x);
}

/* ---- the logarithm ---- */

/* The logarithm of a normal number 2^n * (1 + f), where 1 + f is from the root of 1/2 to that of 2. The error was at most 2^-22.93, absolute from 1/2
 * to 2 and relative elsewhere; 2^-23.12 with fused operations. */
static ct_value logarithm_of_normal(struct ct_cursor *at, ct_value x)
{
    static const float coefficients[] = {-0x1.2afd1cp-3f, 0x1.e4db1ap-3f, -0x1.ffd7fap-3f, 0x1.259bdap-2f,
                                         -0x1.70bf0ep-2f, 0x1.ec7b22p-2f, -0x1.7155a8p-1f, 0x1.715472p+0f};
    const ct_value n = ct_sar_imm(at, ct_sub(at, x, ct_const32(at, 0x3f3504f3)), 23);
    const ct_value f = difference(at, ct_sub(at, x, ct_shl_imm(at, n, 23)), ct_f32(at, 1.0));

    return multiply_add(at, polynomial(at, coefficients, sizeof coefficients / sizeof *coefficients, f), f,
                        ct_converted(at, CT_OP_ITOF, PTX_S32, PTX_F32, n));
}

/* The logarithm of anything but a positive normal number: zeros and subnormals, infinity, negative numbers and NaN. */
static ct_value logarithm_of_others(struct ct_cursor *at, ct_value x)
{
    const ct_value is_zero = ct_icmp(at, PTX_U32, PTX_LT, ct_and_imm(at, x, 0x7fffffff), ct_const32(at, 0x00800000));
    const ct_value is_infinite = ct_icmp(at, PTX_U32, PTX_EQ, x, ct_f32(at, INFINITY));

    return ct_select(at, is_zero, ct_f32(at, -INFINITY), ct_select(at, is_infinite, x, ct_const32(at, 0x7fffffff)));
}

ct_value ct_elementary_logarithm(struct ct_cursor *at, ct_value x, bool flushes)
{
    const ct_value is_small = flushes ? (ct_value){0} : ct_f32_is_below(at, ct_float_magnitude(at, PTX_F32, x), 0x1p-126);
    const ct_value scaled = flushes ? x : product(at, x, ct_select(at, is_small, ct_f32(at, 0x1p24), ct_f32(at, 1.0)));
    const ct_value is_normal =
        ct_icmp(at, PTX_U32, PTX_LT, ct_sub(at, scaled, ct_const32(at, 0x00800000)), ct_const32(at, 0x7f800000 - 0x00800000));
    const ct_value usual = logarithm_of_normal(at, scaled);
    const ct_value result = flushes ? usual : difference(at, usual, ct_select(at, is_small, ct_f32(at, 24.0), ct_f32(at, 0.0)));

    return ct_select(at, is_normal, result, logarithm_of_others(at, scaled));
}

/* ---- sine and cosine: errors of at most 2^-22.41, and 2^-22.58 with fused operations, within 100 pi ---- */

/* x = n * pi + r. The first part of pi has 16 bits, so that its product with n is exact within 100 pi. */
static ct_value remainder_of_pi(struct ct_cursor *at, ct_value x, ct_value n)
{
    const double pi = 0x1.921fb54442d18p+1, first = 0x1.921ep+1;
    const ct_value negated = ct_op1(at, CT_OP_FNEG, PTX_F32, n);

    return multiply_add(at, negated, ct_f32(at, pi - first), multiply_add(at, negated, ct_f32(at, first), x));
}

/* (sin(r) / r - 1) / square, where square = r*r, for |r| <= pi/2. */
static ct_value sine_series(struct ct_cursor *at, ct_value square)
{
    static const float coefficients[] = {0x1.5bbea4p-19f, -0x1.9f4296p-13f, 0x1.110d7ap-7f, -0x1.55553cp-3f};

    return polynomial(at, coefficients, sizeof coefficients / sizeof *coefficients, square);
}

/* The sine, or its negative if the lowest bit of `parity` is set. It is NaN if x is infinite or NaN. */
static ct_value signed_sine(struct ct_cursor *at, ct_value x, ct_value sine, ct_value parity)
{
    const ct_value limited = clamped(at, sine, 1.0);
    const ct_value is_finite = ct_f32_is_below(at, ct_float_magnitude(at, PTX_F32, x), INFINITY);

    return ct_select(at, is_finite, ct_xor(at, limited, ct_shl_imm(at, parity, 31)), ct_const32(at, 0x7fffffff));
}

/* A product, since -0 is its own sine. */
ct_value ct_elementary_sine(struct ct_cursor *at, ct_value x)
{
    const ct_value rounded = multiply_add(at, x, ct_f32(at, M_1_PI), ct_f32(at, ROUNDER));
    const ct_value r = remainder_of_pi(at, x, difference(at, rounded, ct_f32(at, ROUNDER))), square = product(at, r, r);

    return signed_sine(at, x, product(at, r, multiply_add(at, sine_series(at, square), square, ct_f32(at, 1.0))), rounded);
}

/* cos(x) = sin(x + pi/2), so x = (n - 1/2) * pi + r. A sum, in which the cosine of 0 is 1. */
ct_value ct_elementary_cosine(struct ct_cursor *at, ct_value x)
{
    const ct_value rounded = sum(at, multiply_add(at, x, ct_f32(at, M_1_PI), ct_f32(at, 0.5)), ct_f32(at, ROUNDER));
    const ct_value n = difference(at, difference(at, rounded, ct_f32(at, ROUNDER)), ct_f32(at, 0.5));
    const ct_value r = remainder_of_pi(at, x, n), square = product(at, r, r);

    return signed_sine(at, x, multiply_add(at, r, product(at, sine_series(at, square), square), r), rounded);
}

/* ---- the inverse root ---- */

/* Newton's step: y + y/2 * (1 - x*y*y). The error was at most 2^-23.20, and 2^-23.68 with fused operations, where that of y was 4 units in the last
 * place. Where the step is no number, of zeros and infinity, y is. */
ct_value ct_elementary_inverse_root(struct ct_cursor *at, ct_value x, ct_value estimate)
{
    const ct_value negated = ct_op1(at, CT_OP_FNEG, PTX_F32, product(at, x, estimate));
    const ct_value error = multiply_add(at, negated, estimate, ct_f32(at, 1.0));
    const ct_value better = multiply_add(at, error, product(at, estimate, ct_f32(at, 0.5)), estimate);

    return ct_select(at, ct_float_is_nan(at, PTX_F32, better), estimate, better);
}
