/* SPDX-License-Identifier: Apache-2.0 */
/* Single precision, one rounding each (PTX ISA, "Floating Point Instructions"). */
#include "rows.h"

/* The number beside a NaN; -0 is less than +0. */
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

/* .ftz of a product: zero if it would be below the least normal number when rounded with any exponent. exact: rounded towards zero. */
static float flush_tiny(double exact, float rounded)
{
    return fabs(exact) < 0x1.ffffffp-127 ? copysignf(0, rounded) : rounded;
}

static float mul_ftz(float a, float b)
{
    return flush_tiny((double)flush(a) * flush(b), mul_f32(NEAREST, flush(a), flush(b)));
}

static float fma_ftz(float a, float b, float c)
{
    return flush_tiny(fma_f64(ZERO, flush(a), flush(b), flush(c)), fma_f32(NEAREST, flush(a), flush(b), flush(c)));
}

#define ROUNDED(R, id, suffix, mode) \
    R(add_##id, "add." suffix ".f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, add_f32(mode, a, b)) \
    R(sub_##id, "sub." suffix ".f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, add_f32(mode, a, -b)) \
    R(mul_##id, "mul." suffix ".f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, mul_f32(mode, a, b)) \
    R(fma_##id, "fma." suffix ".f32 %d, %a, %b, %c;", F32, F32, F32, F32, NONE, fma_f32(mode, a, b, c)) \
    R(div_##id, "div." suffix ".f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, div_f32(mode, a, b)) \
    R(rcp_##id, "rcp." suffix ".f32 %d, %a;", F32, F32, NONE, NONE, NONE, div_f32(mode, 1, a)) \
    R(sqrt_##id, "sqrt." suffix ".f32 %d, %a;", F32, F32, NONE, NONE, NONE, sqrt_f32(mode, a))

#define ROWS(R) \
    ROUNDED(R, f32_rn, "rn", NEAREST) \
    ROUNDED(R, f32_rz, "rz", ZERO) \
    ROUNDED(R, f32_rm, "rm", DOWN) \
    ROUNDED(R, f32_rp, "rp", UP) \
    R(add_f32, "add.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, add_f32(NEAREST, a, b)) \
    R(mul_f32_by_constant, "mul.f32 %d, %a, 0f3DCCCCCD;", F32, F32, NONE, NONE, NONE, mul_f32(NEAREST, a, 0.1f)) \
    R(mad_f32, "mad.rn.f32 %d, %a, %b, %c;", F32, F32, F32, F32, NONE, fma_f32(NEAREST, a, b, c)) \
    R(not_contracted, "mul.rn.f32 %d, %a, %b; add.rn.f32 %d, %d, %c;", F32, F32, F32, F32, NONE, \
      add_f32(NEAREST, mul_f32(NEAREST, a, b), c)) \
    R(add_f32_ftz, "add.ftz.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, flush(add_f32(NEAREST, flush(a), flush(b)))) \
    R(sub_f32_ftz_rz, "sub.rz.ftz.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, flush(add_f32(ZERO, flush(a), -flush(b)))) \
    R(mul_f32_ftz, "mul.ftz.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, mul_ftz(a, b)) \
    R(fma_f32_ftz, "fma.rn.ftz.f32 %d, %a, %b, %c;", F32, F32, F32, F32, NONE, fma_ftz(a, b, c)) \
    R(div_f32_ftz, "div.rn.ftz.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, flush(div_f32(NEAREST, flush(a), flush(b)))) \
    R(rcp_f32_ftz, "rcp.rn.ftz.f32 %d, %a;", F32, F32, NONE, NONE, NONE, flush(div_f32(NEAREST, 1, flush(a)))) \
    R(sqrt_f32_ftz, "sqrt.rn.ftz.f32 %d, %a;", F32, F32, NONE, NONE, NONE, sqrt_f32(NEAREST, flush(a))) \
    R(add_f32_sat, "add.sat.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, saturate(add_f32(NEAREST, a, b))) \
    R(fma_f32_sat, "fma.rn.sat.f32 %d, %a, %b, %c;", F32, F32, F32, F32, NONE, saturate(fma_f32(NEAREST, a, b, c))) \
    R(mul_f32_ftz_sat, "mul.ftz.sat.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, saturate(mul_ftz(a, b))) \
    R(min_f32, "min.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, least(a, b)) \
    R(max_f32, "max.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, greatest(a, b)) \
    R(min_f32_ftz, "min.ftz.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, least(flush(a), flush(b))) \
    R(max_f32_ftz, "max.ftz.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, greatest(flush(a), flush(b))) \
    R(neg_f32, "neg.f32 %d, %a;", F32, F32, NONE, NONE, NONE, -a) \
    R(abs_f32, "abs.f32 %d, %a;", F32, F32, NONE, NONE, NONE, fabsf(a)) \
    R(neg_f32_ftz, "neg.ftz.f32 %d, %a;", F32, F32, NONE, NONE, NONE, -flush(a)) \
    R(abs_f32_ftz, "abs.ftz.f32 %d, %a;", F32, F32, NONE, NONE, NONE, fabsf(flush(a))) \
    R(copysign_f32, "copysign.f32 %d, %a, %b;", B32, F32, F32, NONE, NONE, (in[1] & 0x7fffffff) | (in[0] & 0x80000000)) \
    R(testp_finite, "testp.finite.f32 %d, %a;", PRED, F32, NONE, NONE, NONE, isfinite(a)) \
    R(testp_infinite, "testp.infinite.f32 %d, %a;", PRED, F32, NONE, NONE, NONE, isinf(a)) \
    R(testp_number, "testp.number.f32 %d, %a;", PRED, F32, NONE, NONE, NONE, !isnan(a)) \
    R(testp_notanumber, "testp.notanumber.f32 %d, %a;", PRED, F32, NONE, NONE, NONE, isnan(a)) \
    R(testp_normal, "testp.normal.f32 %d, %a;", PRED, F32, NONE, NONE, NONE, is_normal(a)) \
    R(testp_subnormal, "testp.subnormal.f32 %d, %a;", PRED, F32, NONE, NONE, NONE, fpclassify(a) == FP_SUBNORMAL)

DEFINE_TABLE(f32, ROWS)
