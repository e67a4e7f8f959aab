/* SPDX-License-Identifier: Apache-2.0 */
/* Host arithmetic for the references: the processor's own IEEE 754 operations in each rounding mode. Built with -frounding-math and without
 * contraction; volatile keeps each operation between the changes of the mode. */
#include "harness.h"

#include <fenv.h>
#include <math.h>

#define IN_MODE(type, name, parameters, expression)                                                                                        \
    type name parameters                                                                                                                   \
    {                                                                                                                                      \
        volatile type result;                                                                                                              \
        fesetround(rounding);                                                                                                              \
        result = (expression);                                                                                                             \
        fesetround(FE_TONEAREST);                                                                                                          \
        return result;                                                                                                                     \
    }
#define V(type, x) (*(volatile const type *)&(x))
IN_MODE(float, add_f32, (int rounding, float a, float b), V(float, a) + V(float, b))
IN_MODE(float, mul_f32, (int rounding, float a, float b), V(float, a) * V(float, b))
IN_MODE(float, div_f32, (int rounding, float a, float b), V(float, a) / V(float, b))
IN_MODE(float, fma_f32, (int rounding, float a, float b, float c), fmaf(V(float, a), V(float, b), V(float, c)))
IN_MODE(float, sqrt_f32, (int rounding, float a), sqrtf(V(float, a)))
IN_MODE(double, add_f64, (int rounding, double a, double b), V(double, a) + V(double, b))
IN_MODE(double, mul_f64, (int rounding, double a, double b), V(double, a) * V(double, b))
IN_MODE(double, div_f64, (int rounding, double a, double b), V(double, a) / V(double, b))
IN_MODE(double, fma_f64, (int rounding, double a, double b, double c), fma(V(double, a), V(double, b), V(double, c)))
IN_MODE(double, sqrt_f64, (int rounding, double a), sqrt(V(double, a)))
IN_MODE(float, narrow_f32, (int rounding, double a), (float)V(double, a))
IN_MODE(float, float_of_s64, (int rounding, int64_t a), (float)V(int64_t, a))
IN_MODE(double, double_of_s64, (int rounding, int64_t a), (double)V(int64_t, a))
IN_MODE(double, integral, (int rounding, double a), nearbyint(V(double, a)))

/* A number of more than 63 bits is halved, with a sticky last bit: the half then rounds to half of the result. */
float float_of_u64(int rounding, uint64_t a)
{
    return a >> 63 ? 2 * float_of_s64(rounding, (int64_t)(a >> 1 | (a & 1))) : float_of_s64(rounding, (int64_t)a);
}

double double_of_u64(int rounding, uint64_t a)
{
    return a >> 63 ? 2 * double_of_s64(rounding, (int64_t)(a >> 1 | (a & 1))) : double_of_s64(rounding, (int64_t)a);
}

/* ---- half precision: 1 sign bit, 5 exponent bits, 10 fraction bits ---- */

float f16_to_float(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float sign = bits & 0x8000 ? -1.0f : 1.0f;

    if (exponent == 31)
        return fraction ? NAN : sign * INFINITY;
    return sign * ldexpf((float)(exponent ? fraction | 1024 : fraction), (exponent ? exponent : 1) - 25);
}

uint16_t f16_from_double(double value, int rounding)
{
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    double magnitude = fabs(value);
    int exponent, mode = rounding;

    if (isnan(value))
        return 0x7fff;
    if (isinf(value))
        return sign | 0x7c00;
    if (sign && rounding == FE_DOWNWARD) /* of the magnitude */
        mode = FE_UPWARD;
    else if (sign && rounding == FE_UPWARD)
        mode = FE_DOWNWARD;
    frexp(magnitude, &exponent); /* magnitude < 2^exponent */
    if (magnitude == 0 || exponent < -13)
        exponent = -13;
    magnitude = integral(mode, ldexp(magnitude, 11 - exponent)); /* a multiple of the unit in the last place, 2^(exponent - 11) */
    if (ldexp(magnitude, exponent - 11) > 65504)
        return sign | (mode == FE_TONEAREST || mode == FE_UPWARD ? 0x7c00 : 0x7bff);
    return sign | (uint16_t)((exponent + 13) * 1024 + (int)magnitude); /* a carry increments the exponent, also through the hidden bit */
}

float bf16_to_float(uint16_t bits)
{
    return f32_of((uint64_t)bits << 16);
}

uint16_t bf16_from_double(double value)
{
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    double magnitude = fabs(value);
    int exponent;

    if (isnan(value))
        return 0x7fff;
    if (isinf(value))
        return sign | 0x7f80;
    frexp(magnitude, &exponent); /* magnitude < 2^exponent */
    if (magnitude == 0 || exponent < -125)
        exponent = -125;
    magnitude = integral(FE_TONEAREST, ldexp(magnitude, 8 - exponent)); /* a multiple of the unit in the last place, 2^(exponent - 8) */
    if (ldexp(magnitude, exponent - 8) > 0x1.fep127)
        return sign | 0x7f80;
    return sign | (uint16_t)((exponent + 125) * 128 + (int)magnitude); /* a carry increments the exponent, also through the hidden bit */
}

/* ---- modifiers ---- */

float flush(float value)
{
    return fpclassify(value) == FP_SUBNORMAL ? copysignf(0.0f, value) : value;
}

float saturate(float value)
{
    return !(value > 0) ? 0.0f : value > 1 ? 1.0f : value;
}

/* ---- float to integer ---- */

int64_t to_signed(int rounding, double a, unsigned bits, int64_t nan)
{
    const double limit = ldexp(1, (int)bits - 1), whole = integral(rounding, a);

    if (isnan(a))
        return nan;
    if (whole >= limit)
        return (int64_t)((UINT64_C(1) << (bits - 1)) - 1);
    return whole < -limit ? -(int64_t)((UINT64_C(1) << (bits - 1)) - 1) - 1 : (int64_t)whole;
}

uint64_t to_unsigned(int rounding, double a, unsigned bits, uint64_t nan)
{
    const double whole = integral(rounding, a);

    if (isnan(a))
        return nan;
    if (whole >= ldexp(1, (int)bits))
        return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    return whole < 0 ? 0 : (uint64_t)whole;
}

/* a*b + c in f64, rounded to odd: the last bit is sticky, so a second rounding, to f16, gives the same result as one rounding of the exact
 * value. */
uint16_t fma_f16(uint16_t a, uint16_t b, uint16_t c)
{
    const double x = f16_to_float(a), y = f16_to_float(b), z = f16_to_float(c);
    const double below = fma_f64(FE_TOWARDZERO, x, y, z);

    if (below == 0 || isnan(below) || fma_f64(FE_UPWARD, x, y, z) == fma_f64(FE_DOWNWARD, x, y, z))
        return f16_from_double(fma_f64(FE_TONEAREST, x, y, z), FE_TONEAREST);
    return f16_from_double(f64_of(bits_of_f64(below) | 1), FE_TONEAREST);
}

uint16_t fma_bf16(uint16_t a, uint16_t b, uint16_t c)
{
    const double x = bf16_to_float(a), y = bf16_to_float(b), z = bf16_to_float(c);
    const double below = fma_f64(FE_TOWARDZERO, x, y, z);

    if (below == 0 || isnan(below) || fma_f64(FE_UPWARD, x, y, z) == fma_f64(FE_DOWNWARD, x, y, z))
        return bf16_from_double(fma_f64(FE_TONEAREST, x, y, z));
    return bf16_from_double(f64_of(bits_of_f64(below) | 1));
}
