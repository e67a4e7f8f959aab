/* SPDX-License-Identifier: Apache-2.0 */
/* Single precision, one rounding for each operation (PTX ISA, "Floating Point Instructions"). */
#include "rows.h"

/* The operand that is not a NaN, if there is one; -0 is less than +0. */
static float least(float a, float b)
{
    if (isnan(a))
        return b;
    if (isnan(b))
        return a;
    return a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}

static float greatest(float a, float b)
{
    return -least(-a, -b);
}

static int is_normal(float a)
{
    return fpclassify(a) == FP_NORMAL || a == 0;
}

/* .ftz of a product: the result is zero if the product, rounded with an unlimited exponent, is below the least normal number. exact: the
 * product rounded towards zero. */
static float flush_tiny(double exact, float rounded)
{
    return fabs(exact) < 0x1.ffffffp-127 ? copysignf(0, rounded) : rounded;
}

/* Drivers that contract products and sums late recognize constants here, if the emitted code lets them. */
static float in_a_loop(float a)
{
    float x = 0x1.333334p0f;

    for (int i = 0; i < 4; i++)
        x = fma_f32(NEAREST, x, 0x1.99999ap-1f, a);
    return x;
}

static float beside_squares(float a, float b, float c)
{
    const float difference = add_f32(NEAREST, mul_f32(NEAREST, a, a), -mul_f32(NEAREST, b, b));

    return add_f32(NEAREST, fma_f32(NEAREST, add_f32(NEAREST, a, a), b, c), add_f32(NEAREST, difference, c));
}

/* Five iterations of the Mandelbrot set. */
static float orbit(float a, float b)
{
    float x = 0, y = 0;

    for (int i = 0; i < 5; i++) {
        const float difference = add_f32(NEAREST, mul_f32(NEAREST, x, x), -mul_f32(NEAREST, y, y));

        y = fma_f32(NEAREST, add_f32(NEAREST, x, x), y, b);
        x = add_f32(NEAREST, a, difference);
    }
    return add_f32(NEAREST, x, y);
}

static float by_counts(float a)
{
    for (int i = 3; i < 7; i++)
        a = fma_f32(NEAREST, (float)i * 0x1.99999ap-4f, 0x1.24924ap-1f, a);
    return a;
}

/* -a with two bits of its fraction changed: the sum of a and this is small, and for small a it is subnormal. */
static float opposite(float a)
{
    return f32_of(bits_of_f32(a) ^ 0x80000003);
}

static float mul_ftz(float a, float b)
{
    return flush_tiny((double)flush(a) * flush(b), mul_f32(NEAREST, flush(a), flush(b)));
}

static float fma_ftz(float a, float b, float c)
{
    return flush_tiny(fma_f64(ZERO, flush(a), flush(b), flush(c)), fma_f32(NEAREST, flush(a), flush(b), flush(c)));
}

#define ROUNDED(R, id, suffix, mode)                                                                                                       \
    R(add_##id, "add." suffix ".f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, add_f32(mode, a, b))                                          \
    R(sub_##id, "sub." suffix ".f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, add_f32(mode, a, -b))                                         \
    R(mul_##id, "mul." suffix ".f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, mul_f32(mode, a, b))                                          \
    R(fma_##id, "fma." suffix ".f32 %d, %a, %b, %c;", F32, F32, F32, F32, NONE, fma_f32(mode, a, b, c))                                    \
    R(div_##id, "div." suffix ".f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, div_f32(mode, a, b))                                          \
    R(rcp_##id, "rcp." suffix ".f32 %d, %a;", F32, F32, NONE, NONE, NONE, div_f32(mode, 1, a))                                             \
    R(sqrt_##id, "sqrt." suffix ".f32 %d, %a;", F32, F32, NONE, NONE, NONE, sqrt_f32(mode, a))

#define FUSED(a, b, c) fma_f32(NEAREST, a, b, c)
/* A product that is also used by itself, a product that is constant, and factors for which drivers have special forms. */
#define FUSIONS(R)                                                                                                                         \
    R(fma_f32_near, "mul.rn.f32 %c, %a, %b; neg.f32 %c, %c; fma.rn.f32 %d, %a, %b, %c;", F32, F32, F32, F32, NONE,                         \
      FUSED(a, b, -mul_f32(NEAREST, a, b)))                                                                                                \
    R(fma_f32_beside_product, "fma.rn.f32 %d, %a, %b, %c; mul.rn.f32 %e, %b, %a; add.rn.f32 %d, %d, %e;", F32, F32, F32, F32, F32,         \
      add_f32(NEAREST, FUSED(a, b, c), mul_f32(NEAREST, a, b)))                                                                            \
    R(fma_f32_twice, "fma.rn.f32 %d, %a, %b, %c; fma.rn.f32 %d, %b, %a, %d;", F32, F32, F32, F32, NONE, FUSED(a, b, FUSED(a, b, c)))       \
    R(fma_f32_square, "fma.rn.f32 %d, %a, %a, %c;", F32, F32, F32, F32, NONE, FUSED(a, a, c))                                              \
    R(fma_f32_negated, "neg.f32 %d, %a; neg.f32 %c, %c; fma.rn.f32 %d, %d, %b, %c;", F32, F32, F32, F32, NONE, FUSED(-a, b, -c))           \
    R(fma_f32_by_two, "fma.rn.f32 %d, %a, 0f40000000, %b;", F32, F32, F32, NONE, NONE, FUSED(a, 2, b))                                     \
    R(fma_f32_by_half, "fma.rn.f32 %d, %a, 0f3F000000, %b;", F32, F32, F32, NONE, NONE, FUSED(a, 0.5f, b))                                 \
    R(fma_f32_by_minus_two, "fma.rn.f32 %d, 0fC0000000, %a, %b;", F32, F32, F32, NONE, NONE, FUSED(a, -2, b))                              \
    R(fma_f32_by_one, "fma.rn.f32 %d, %a, 0f3F800000, %b;", F32, F32, F32, NONE, NONE, FUSED(a, 1, b))                                     \
    R(fma_f32_by_zero, "fma.rn.f32 %d, %a, 0f80000000, %b;", F32, F32, F32, NONE, NONE, FUSED(a, -0.0f, b))                                \
    R(fma_f32_by_third, "fma.rn.f32 %d, %a, 0f3EAAAAAB, %b;", F32, F32, F32, NONE, NONE, FUSED(a, 0x1.555556p-2f, b))                      \
    R(fma_f32_by_least, "fma.rn.f32 %d, %a, 0f00000003, %b;", F32, F32, F32, NONE, NONE, FUSED(a, 0x1.8p-148f, b))                         \
    R(fma_f32_and_zero, "fma.rn.f32 %d, %a, %b, 0f00000000;", F32, F32, F32, NONE, NONE, FUSED(a, b, 0))                                   \
    R(fma_f32_and_minus_zero, "fma.rn.f32 %d, %a, %b, 0f80000000;", F32, F32, F32, NONE, NONE, FUSED(a, b, -0.0f))                         \
    R(fma_f32_of_double, "add.rn.f32 %d, %a, %a; fma.rn.f32 %d, %d, %b, %c;", F32, F32, F32, F32, NONE,                                    \
      FUSED(add_f32(NEAREST, a, a), b, c))                                                                                                 \
    R(fma_f32_of_sum, "add.rn.f32 %d, %a, %c; fma.rn.f32 %d, %d, %b, %c;", F32, F32, F32, F32, NONE, FUSED(add_f32(NEAREST, a, c), b, c))  \
    R(fma_f32_of_product, "mul.rn.f32 %d, %a, %b; fma.rn.f32 %d, %d, %c, %a;", F32, F32, F32, F32, NONE,                                   \
      FUSED(mul_f32(NEAREST, a, b), c, a))                                                                                                 \
    R(fma_f32_plus_product, "mul.rn.f32 %d, %a, %c; fma.rn.f32 %d, %a, %b, %d;", F32, F32, F32, F32, NONE,                                 \
      FUSED(a, b, mul_f32(NEAREST, a, c)))                                                                                                 \
    R(fma_f32_less_product, "mul.rn.f32 %d, %b, %c; fma.rn.f32 %e, %a, %b, %c; sub.rn.f32 %d, %e, %d;", F32, F32, F32, F32, F32,           \
      add_f32(NEAREST, FUSED(a, b, c), -mul_f32(NEAREST, b, c)))                                                                           \
    R(fma_f32_beside_squares,                                                                                                              \
      "mul.rn.f32 %e, %a, %a; mul.rn.f32 %d, %b, %b; sub.rn.f32 %e, %e, %d; add.rn.f32 %e, %e, %c; "                                       \
      "add.rn.f32 %d, %a, %a; fma.rn.f32 %d, %d, %b, %c; add.rn.f32 %d, %d, %e;",                                                          \
      F32, F32, F32, F32, F32, beside_squares(a, b, c))                                                                                    \
    R(fma_f32_orbit,                                                                                                                       \
      "mov.f32 %d, 0f00000000; mov.f32 %e, %d; mov.u32 %y, 0; AGAIN: mul.rn.f32 %c, %d, %d; mul.rn.f32 %y2, %e, %e; "                      \
      "add.rn.f32 %d, %d, %d; fma.rn.f32 %e, %d, %e, %b; sub.rn.f32 %d, %c, %y2; add.rn.f32 %d, %a, %d; add.u32 %y, %y, 1; "               \
      "setp.lt.u32 %x, %y, 5; @%x bra AGAIN; add.rn.f32 %d, %d, %e;",                                                                      \
      F32, F32, F32, F32, F32, orbit(a, b))                                                                                                \
    R(fma_f32_of_integers, "mov.b32 %y, %a; shr.u32 %y, %y, 9; cvt.rn.f32.u32 %d, %y; neg.f32 %d, %d; fma.rn.f32 %d, %d, %b, %c;", F32,    \
      F32, F32, F32, NONE, FUSED(-(float)(in[0] >> 9 & 0x7fffff), b, c))                                                                   \
    R(fma_f32_of_constants, "fma.rn.f32 %d, 0f3F99999A, 0f3F4CCCCD, %a;", F32, F32, NONE, NONE, NONE,                                      \
      FUSED(0x1.333334p0f, 0x1.99999ap-1f, a))                                                                                             \
    R(fma_f32_of_choices, "setp.lt.f32 %x, %a, %b; selp.f32 %d, 0f3F99999A, 0f3F4CCCCE, %x; fma.rn.f32 %d, %d, 0f3F4CCCCD, %a;", F32, F32, \
      F32, NONE, NONE, FUSED(a < b ? 0x1.333334p0f : 0x1.99999cp-1f, 0x1.99999ap-1f, a))                                                   \
    R(fma_f32_in_a_loop,                                                                                                                   \
      "mov.f32 %d, 0f3F99999A; mov.u32 %y, 0; AGAIN: fma.rn.f32 %d, %d, 0f3F4CCCCD, %a; add.u32 %y, %y, 1; "                               \
      "setp.lt.u32 %x, %y, 4; @%x bra AGAIN;",                                                                                             \
      F32, F32, NONE, NONE, NONE, in_a_loop(a))                                                                                            \
    R(fma_f32_by_counts,                                                                                                                   \
      "mov.f32 %d, %a; mov.u32 %y, 3; AGAIN: cvt.rn.f32.u32 %b, %y; mul.rn.f32 %b, %b, 0f3DCCCCCD; "                                       \
      "fma.rn.f32 %d, %b, 0f3F124925, %d; add.u32 %y, %y, 1; setp.lt.u32 %x, %y, 7; @%x bra AGAIN;",                                       \
      F32, F32, F32, NONE, NONE, by_counts(a))

#define ROWS(R)                                                                                                                            \
    FUSIONS(R)                                                                                                                             \
    ROUNDED(R, f32_rn, "rn", NEAREST)                                                                                                      \
    ROUNDED(R, f32_rz, "rz", ZERO)                                                                                                         \
    ROUNDED(R, f32_rm, "rm", DOWN)                                                                                                         \
    ROUNDED(R, f32_rp, "rp", UP)                                                                                                           \
    R(add_f32, "add.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, add_f32(NEAREST, a, b))                                                   \
    R(mul_f32_by_constant, "mul.f32 %d, %a, 0f3DCCCCCD;", F32, F32, NONE, NONE, NONE, mul_f32(NEAREST, a, 0.1f))                           \
    R(mad_f32, "mad.rn.f32 %d, %a, %b, %c;", F32, F32, F32, F32, NONE, fma_f32(NEAREST, a, b, c))                                          \
    R(not_contracted, "mul.rn.f32 %d, %a, %b; add.rn.f32 %d, %d, %c;", F32, F32, F32, F32, NONE,                                           \
      add_f32(NEAREST, mul_f32(NEAREST, a, b), c))                                                                                         \
    R(add_f32_ftz, "add.ftz.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, flush(add_f32(NEAREST, flush(a), flush(b))))                      \
    R(sub_f32_ftz_rz, "sub.rz.ftz.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, flush(add_f32(ZERO, flush(a), -flush(b))))                  \
    R(add_f32_ftz_rm, "mov.b32 %y, %a; xor.b32 %y, %y, 0x80000003; mov.b32 %d, %y; add.rm.ftz.f32 %d, %a, %d;", F32, F32, NONE, NONE,      \
      NONE, flush(add_f32(DOWN, flush(a), flush(opposite(a)))))                                                                            \
    R(mul_f32_ftz, "mul.ftz.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, mul_ftz(a, b))                                                    \
    R(fma_f32_ftz, "fma.rn.ftz.f32 %d, %a, %b, %c;", F32, F32, F32, F32, NONE, fma_ftz(a, b, c))                                           \
    R(div_f32_ftz, "div.rn.ftz.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, flush(div_f32(NEAREST, flush(a), flush(b))))                   \
    R(rcp_f32_ftz, "rcp.rn.ftz.f32 %d, %a;", F32, F32, NONE, NONE, NONE, flush(div_f32(NEAREST, 1, flush(a))))                             \
    R(sqrt_f32_ftz, "sqrt.rn.ftz.f32 %d, %a;", F32, F32, NONE, NONE, NONE, sqrt_f32(NEAREST, flush(a)))                                    \
    R(add_f32_sat, "add.sat.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, saturate(add_f32(NEAREST, a, b)))                                 \
    R(fma_f32_sat, "fma.rn.sat.f32 %d, %a, %b, %c;", F32, F32, F32, F32, NONE, saturate(fma_f32(NEAREST, a, b, c)))                        \
    R(mul_f32_ftz_sat, "mul.ftz.sat.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, saturate(mul_ftz(a, b)))                                  \
    R(min_f32, "min.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, least(a, b))                                                              \
    R(max_f32, "max.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, greatest(a, b))                                                           \
    R(min_f32_ftz, "min.ftz.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, least(flush(a), flush(b)))                                        \
    R(max_f32_ftz, "max.ftz.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, greatest(flush(a), flush(b)))                                     \
    R(widened_product, "mul.rn.f32 %a, %a, %b; cvt.f64.f32 %d, %a;", F64, F32, F32, NONE, NONE, (double)mul_f32(NEAREST, a, b))            \
    R(widened_sum, "add.rn.f32 %a, %a, %b; cvt.f64.f32 %d, %a;", F64, F32, F32, NONE, NONE, (double)add_f32(NEAREST, a, b))                \
    R(sqrt_f32_of_product, "mul.rn.f32 %d, %a, %b; sqrt.rn.f32 %d, %d;", F32, F32, F32, NONE, NONE,                                        \
      sqrt_f32(NEAREST, mul_f32(NEAREST, a, b)))                                                                                           \
    R(less_products, "mul.rn.f32 %a, %a, %c; mul.rn.f32 %b, %b, %c; setp.lt.f32 %d, %a, %b;", PRED, F32, F32, F32, NONE,                   \
      mul_f32(NEAREST, a, c) < mul_f32(NEAREST, b, c))                                                                                     \
    R(min_f32_of_products, "mul.rn.f32 %a, %a, %c; mul.rn.f32 %b, %b, %c; min.f32 %d, %a, %b;", F32, F32, F32, F32, NONE,                  \
      least(mul_f32(NEAREST, a, c), mul_f32(NEAREST, b, c)))                                                                               \
    R(neg_f32, "neg.f32 %d, %a;", F32, F32, NONE, NONE, NONE, -a)                                                                          \
    R(abs_f32, "abs.f32 %d, %a;", F32, F32, NONE, NONE, NONE, fabsf(a))                                                                    \
    R(neg_f32_ftz, "neg.ftz.f32 %d, %a;", F32, F32, NONE, NONE, NONE, -flush(a))                                                           \
    R(abs_f32_ftz, "abs.ftz.f32 %d, %a;", F32, F32, NONE, NONE, NONE, fabsf(flush(a)))                                                     \
    R(copysign_f32, "copysign.f32 %d, %a, %b;", B32, F32, F32, NONE, NONE, (in[1] & 0x7fffffff) | (in[0] & 0x80000000))                    \
    R(testp_finite, "testp.finite.f32 %d, %a;", PRED, F32, NONE, NONE, NONE, isfinite(a))                                                  \
    R(testp_infinite, "testp.infinite.f32 %d, %a;", PRED, F32, NONE, NONE, NONE, isinf(a))                                                 \
    R(testp_number, "testp.number.f32 %d, %a;", PRED, F32, NONE, NONE, NONE, !isnan(a))                                                    \
    R(testp_notanumber, "testp.notanumber.f32 %d, %a;", PRED, F32, NONE, NONE, NONE, isnan(a))                                             \
    R(testp_normal, "testp.normal.f32 %d, %a;", PRED, F32, NONE, NONE, NONE, is_normal(a))                                                 \
    R(testp_subnormal, "testp.subnormal.f32 %d, %a;", PRED, F32, NONE, NONE, NONE, fpclassify(a) == FP_SUBNORMAL)

DEFINE_TABLE(f32, ROWS)
