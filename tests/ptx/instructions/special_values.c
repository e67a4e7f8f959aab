/* SPDX-License-Identifier: Apache-2.0 */
/* What approximate instructions make of zeros, infinities, NaN and operands for which they are not defined (PTX ISA, the tables "Input, Result" of each
 * instruction). Where approximate.c has bounds of errors, the results here are 1. */
#include "rows.h"

#define ONE_IF(condition) condition " selp.f32 %d, 0f3F800000, %d, %x;"
#define ONE_IF_POSITIVE ONE_IF("testp.finite.f32 %x, %a; setp.gt.and.f32 %x, %a, 0f00000000, %x;")
#define ONE_IF_POSITIVE_NORMAL ONE_IF("testp.finite.f32 %x, %a; setp.ge.and.f32 %x, %a, 0f00800000, %x;")
#define ONE_IF_MODERATE ONE_IF("setp.lt.f32 %x, %a, 0f43000000; setp.gt.and.f32 %x, %a, 0fC3200000, %x;")
#define ONE_IF_NOT_ZERO ONE_IF("testp.finite.f32 %x, %a; setp.ne.and.f32 %x, %a, 0f00000000, %x;")
#define ONE_IF_LIMITED ONE_IF("abs.f32 %d, %d; setp.le.f32 %x, %d, 0f3F800000;")

static float logarithm(float a)
{
    return a > 0 && isfinite(a) ? 1 : log2f(a);
}

static float inverse_root(float a)
{
    return a > 0 && isfinite(a) ? 1 : 1 / sqrtf(a);
}

static float root(float a)
{
    return a > 0 && isfinite(a) ? 1 : sqrtf(a);
}

static float exponential(float a)
{
    return a > -160 && a < 128 ? 1 : exp2f(a);
}

static float sine(float a)
{
    return isfinite(a) && a != 0 ? 1 : sinf(a);
}

static float cosine(float a)
{
    return isfinite(a) && a != 0 ? 1 : cosf(a);
}

#define ROWS(R)                                                                                                                            \
    R(special_ex2_f32, "ex2.approx.f32 %d, %a; " ONE_IF_MODERATE, F32, F32, NONE, NONE, NONE, exponential(a))                              \
    R(special_ex2_f32_ftz, "ex2.approx.ftz.f32 %d, %a; " ONE_IF_MODERATE, F32, F32, NONE, NONE, NONE, exponential(a))                      \
    R(special_lg2_f32, "lg2.approx.f32 %d, %a; " ONE_IF_POSITIVE, F32, F32, NONE, NONE, NONE, logarithm(a))                                \
    R(special_lg2_f32_ftz, "lg2.approx.ftz.f32 %d, %a; " ONE_IF_POSITIVE_NORMAL, F32, F32, NONE, NONE, NONE, logarithm(flush(a)))          \
    R(special_rsqrt_f32, "rsqrt.approx.f32 %d, %a; " ONE_IF_POSITIVE, F32, F32, NONE, NONE, NONE, inverse_root(a))                         \
    R(special_rsqrt_f32_ftz, "rsqrt.approx.ftz.f32 %d, %a; " ONE_IF_POSITIVE_NORMAL, F32, F32, NONE, NONE, NONE, inverse_root(flush(a)))   \
    R(special_sqrt_f32, "sqrt.approx.f32 %d, %a; " ONE_IF_POSITIVE, F32, F32, NONE, NONE, NONE, root(a))                                   \
    R(special_sqrt_f32_ftz, "sqrt.approx.ftz.f32 %d, %a; " ONE_IF_POSITIVE_NORMAL, F32, F32, NONE, NONE, NONE, root(flush(a)))             \
    R(special_sin_f32, "sin.approx.f32 %d, %a; " ONE_IF_NOT_ZERO, F32, F32, NONE, NONE, NONE, sine(a))                                     \
    R(special_sin_f32_ftz, "sin.approx.ftz.f32 %d, %a; " ONE_IF_NOT_ZERO, F32, F32, NONE, NONE, NONE, sine(a))                             \
    R(special_cos_f32, "cos.approx.f32 %d, %a; " ONE_IF_NOT_ZERO, F32, F32, NONE, NONE, NONE, cosine(a))                                   \
    R(special_sin_f32_limit, "sin.approx.f32 %d, %a; " ONE_IF_LIMITED, F32, F32, NONE, NONE, NONE, isfinite(a) ? 1 : NAN)                  \
    R(special_cos_f32_limit, "cos.approx.f32 %d, %a; " ONE_IF_LIMITED, F32, F32, NONE, NONE, NONE, isfinite(a) ? 1 : NAN)

DEFINE_TABLE(special_values, ROWS)
