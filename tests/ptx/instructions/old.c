/* SPDX-License-Identifier: Apache-2.0 */
/* PTX ISA 1.x and targets below sm_20. Divisions, roots and transcendental functions have no .approx before 1.4 but are approximate;
 * divisions and roots of f64 round to nearest ("PTX ISA Notes" of these instructions); mad.f32 has no rounding modifier and is fused and
 * rounded to nearest ("mad": when compiled for sm_20 and above). f32 has no subnormals there ("Target ISA Notes": sm_1x flushes inputs and
 * results). */
#include "rows.h"

static double normal(double x)
{
    return flush((float)x);
}

static uint64_t want_mad(const uint64_t *in)
{
    const float a = flush(f32_of(in[0])), b = flush(f32_of(in[1])), c = flush(f32_of(in[2]));

    return bits_of_f32(flush(fma_f32(NEAREST, a, b, c)));
}

/* As in the other rows, but the result is flushed before it is rounded: operands for which this makes a difference are rare. */
static uint64_t want_add(const uint64_t *in)
{
    return bits_of_f32(flush(add_f32(NEAREST, flush(f32_of(in[0])), flush(f32_of(in[1])))));
}

static uint64_t want_max(const uint64_t *in)
{
    const float a = flush(f32_of(in[0])), b = flush(f32_of(in[1]));

    return bits_of_f32(isnan(a) ? b : isnan(b) ? a : a > b || (a == b && !signbit(a)) ? a : b);
}

static uint64_t want_abs(const uint64_t *in)
{
    return bits_of_f32(fabsf(flush(f32_of(in[0]))));
}

static uint64_t want_is_less(const uint64_t *in)
{
    return flush(f32_of(in[0])) < flush(f32_of(in[1]));
}

static uint64_t want_floor(const uint64_t *in)
{
    return (uint32_t)to_signed(DOWN, flush(f32_of(in[0])), 32, 0);
}

static uint64_t want_widened(const uint64_t *in) /* before PTX ISA 1.5 subnormals are kept */
{
    return bits_of_f64(f32_of(in[0]));
}

static uint64_t want_div(const uint64_t *in)
{
    return bits_of_f64(normal(normal(f32_of(in[0])) / fmin(0x1p120, fmax(0x1p-120, fabs(f32_of(in[1]))))));
}

static uint64_t want_rcp(const uint64_t *in)
{
    return bits_of_f64(1 / normal(f32_of(in[0])));
}

static uint64_t want_root(const uint64_t *in)
{
    return bits_of_f64(sqrt(normal(f32_of(in[0]))));
}

static uint64_t want_ex2(const uint64_t *in)
{
    return bits_of_f64(exp2(normal(f32_of(in[0]))));
}

static uint64_t want_div64(const uint64_t *in)
{
    return bits_of_f64(div_f64(NEAREST, f64_of(in[0]), f64_of(in[1])));
}

static uint64_t want_mad64(const uint64_t *in)
{
    return bits_of_f64(fma_f64(NEAREST, f64_of(in[0]), f64_of(in[1]), f64_of(in[2])));
}

static uint64_t want_root64(const uint64_t *in)
{
    return bits_of_f64(sqrt_f64(NEAREST, f64_of(in[0])));
}

static uint64_t want_place(const uint64_t *in) /* the index of a thread in its block, in 16 and in 32 bits */
{
    return (uint32_t)in[0];
}

/* The ISA states no bound for divisors above 2^126. */
#define IN_RANGE "abs.f32 %b, %b; max.f32 %b, %b, 0f03800000; min.f32 %b, %b, 0f7B800000; "

static const struct row rows[] = {
    {"old_mad", "mad.f32 %d, %a, %b, %c;", F32, {F32, F32, F32}, want_mad, EXACT, 0, 0, 0},
    {"old_add", "add.f32 %d, %a, %b;", F32, {F32, F32}, want_add, EXACT, 0, 0, 0},
    {"old_max", "max.f32 %d, %a, %b;", F32, {F32, F32}, want_max, EXACT, 0, 0, 0},
    {"old_abs", "abs.f32 %d, %a;", F32, {F32}, want_abs, EXACT, 0, 0, 0},
    {"old_setp", "setp.lt.f32 %d, %a, %b;", PRED, {F32, F32}, want_is_less, EXACT, 0, 0, 0},
    {"old_cvt_floor", "cvt.rmi.s32.f32 %d, %a;", S32, {F32}, want_floor, EXACT, 0, 0, 0},
    {"old_cvt_wide", "cvt.f64.f32 %d, %a;", F64, {F32}, want_widened, EXACT, 0, 0, 0},
    {"old_div", IN_RANGE "div.f32 %d, %a, %b;", F32, {F32, F32}, want_div, RELATIVE, 0x1p-21, 1, 2},
    {"old_rcp", "rcp.f32 %d, %a;", F32, {F32}, want_rcp, RELATIVE, 0x1p-22, -1000, 1000},
    {"old_sqrt", "sqrt.f32 %d, %a;", F32, {F32}, want_root, RELATIVE, 0x1p-22, 0, 1e30},
    {"old_ex2", "ex2.f32 %d, %a;", F32, {F32}, want_ex2, RELATIVE, 0x1p-21, -100, 100},
    {"old_div64", "div.f64 %d, %a, %b;", F64, {F64, F64}, want_div64, EXACT, 0, 0, 0},
    {"old_mad64", "mad.f64 %d, %a, %b, %c;", F64, {F64, F64, F64}, want_mad64, EXACT, 0, 0, 0},
    {"old_sqrt64", "sqrt.f64 %d, %a;", F64, {F64}, want_root64, EXACT, 0, 0, 0},
    {"old_tid",
     "cvt.u32.u16 %y, %tid.x; mov.u16 %h, %tid.x; cvt.u32.u16 %y2, %h; sub.u32 %y, %y, %y2; add.u32 %d, %y, %a;",
     U32,
     {U32},
     want_place,
     EXACT,
     0,
     0,
     0},
};
const struct table table_old = {"old", rows, sizeof rows / sizeof *rows, ".version 1.3\n.target sm_13\n"};
