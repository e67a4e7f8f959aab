/* SPDX-License-Identifier: Apache-2.0 */
/* Approximations. Each result must be within the bound that the PTX ISA states; the reference is the host's f64 function. */
#include "rows.h"

#define WANT(id, expression)                                                                                                               \
    static uint64_t want_##id(const uint64_t *in)                                                                                          \
    {                                                                                                                                      \
        const float a = f32_of(in[0]), b = f32_of(in[1]);                                                                                  \
                                                                                                                                           \
        (void)a, (void)b;                                                                                                                  \
        return bits_of_f64(expression);                                                                                                    \
    }
#define POWER_20_5 0x1.6ap-21 /* 2^-20.5 */
#define POWER_14_7 0x1.3b2p-15
#define POWER_22_9 0x1.125p-23
#define UNARY(id, text, kind, bound, least, greatest) {#id, text, F32, {F32}, want_##id, kind, bound, least, greatest}

WANT(ex2_f32, exp2(a))
WANT(ex2_ftz, exp2(flush(a)) < 0x1p-126 ? 0 : exp2(flush(a)))
WANT(lg2_f32, log2(a))
WANT(lg2_f32_near_1, log2(a))
WANT(sin_f32, sin(a))
WANT(cos_f32, cos(a))
WANT(sin_far, sin(a))
WANT(cos_far, cos(a))
WANT(tanh_f32, tanh(a))
WANT(tanh_far, tanh(a))
WANT(rsqrt_f32, 1 / sqrt(a))
WANT(rsqrt_ftz, 1 / sqrt(flush(a)))
WANT(sqrt_f32, sqrt(a))
WANT(lg2_ftz, log2(flush(a)))
WANT(sqrt_ftz, sqrt(flush(a)))
WANT(rcp, 1 / (double)a)
WANT(div, a / (isnan(b) ? 0x1p-120 : (double)fminf(fmaxf(fabsf(b), 0x1p-120f), 0x1p120f)))

static uint64_t want_rcp64(const uint64_t *in)
{
    return bits_of_f64(1 / f64_of(in[0]));
}

static uint64_t want_rsqrt64(const uint64_t *in)
{
    return bits_of_f64(1 / sqrt(f64_of(in[0])));
}

/* The ISA states no bound for divisors above 2^126. */
#define IN_RANGE "abs.f32 %b, %b; max.f32 %b, %b, 0f03800000; min.f32 %b, %b, 0f7B800000; "

static const struct row rows[] = {
    UNARY(ex2_f32, "ex2.approx.f32 %d, %a;", RELATIVE, 0x1p-22, -140, 127.9),
    UNARY(ex2_ftz, "ex2.approx.ftz.f32 %d, %a;", RELATIVE, 0x1p-22, -130, 127.9),
    UNARY(lg2_f32, "lg2.approx.f32 %d, %a;", RELATIVE, 0x1p-22, 2, 1e30),
    UNARY(lg2_ftz, "lg2.approx.ftz.f32 %d, %a;", RELATIVE, 0x1p-22, 2, 3.4e38),
    UNARY(lg2_f32_near_1, "lg2.approx.f32 %d, %a;", ABSOLUTE, 0x1p-22, 0.5, 2),
    UNARY(sin_f32, "sin.approx.f32 %d, %a;", ABSOLUTE, POWER_20_5, -3.1415, 3.1415),
    UNARY(cos_f32, "cos.approx.f32 %d, %a;", ABSOLUTE, POWER_20_5, -3.1415, 3.1415),
    UNARY(sin_far, "sin.approx.f32 %d, %a;", ABSOLUTE, POWER_14_7, -314.15, 314.15),
    UNARY(cos_far, "cos.approx.ftz.f32 %d, %a;", ABSOLUTE, POWER_14_7, -314.15, 314.15),
    UNARY(tanh_f32, "tanh.approx.f32 %d, %a;", RELATIVE, 0x1p-11, -2, 2),
    UNARY(tanh_far, "tanh.approx.f32 %d, %a;", RELATIVE, 0x1p-11, -100, 100),
    UNARY(rsqrt_f32, "rsqrt.approx.f32 %d, %a;", RELATIVE, POWER_22_9, 0, 1e30),
    UNARY(rsqrt_ftz, "rsqrt.approx.ftz.f32 %d, %a;", RELATIVE, POWER_22_9, 0, 3.4e38),
    UNARY(sqrt_f32, "sqrt.approx.f32 %d, %a;", RELATIVE, 0x1p-23, 0, 1e30),
    UNARY(sqrt_ftz, "sqrt.approx.ftz.f32 %d, %a;", RELATIVE, 0x1p-23, 0, 1e30),
    UNARY(rcp, "rcp.approx.f32 %d, %a;", RELATIVE, 0x1p-22, -1000, 1000),
    {"div", IN_RANGE "div.approx.f32 %d, %a, %b;", F32, {F32, F32}, want_div, RELATIVE, 0x1p-21, 1, 2},
    {"div_full", IN_RANGE "div.full.f32 %d, %a, %b;", F32, {F32, F32}, want_div, RELATIVE, 0x1p-21, 1, 2},
    {"rcp64", "rcp.approx.ftz.f64 %d, %a;", F64, {F64}, want_rcp64, RELATIVE, 0x1p-18, 1, 1e10},
    {"rsqrt64", "rsqrt.approx.f64 %d, %a;", F64, {F64}, want_rsqrt64, RELATIVE, 0x1p-51, 1e-10, 1e10},
};
const struct table table_approximate = {"approximate", rows, sizeof rows / sizeof *rows, NULL};
