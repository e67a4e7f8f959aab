/* SPDX-License-Identifier: Apache-2.0 */
/* Half precision (PTX ISA, "Half Precision Floating Point Instructions"): sums and products of two f16 are exact in f64. */
#include "rows.h"

static uint16_t rounded(double value)
{
    return f16_from_double(value, NEAREST);
}

static uint16_t sum(uint16_t a, uint16_t b)
{
    return rounded((double)f16_to_float(a) + f16_to_float(b));
}

static uint16_t product(uint16_t a, uint16_t b)
{
    return rounded((double)f16_to_float(a) * f16_to_float(b));
}

static uint16_t flush16(uint16_t a)
{
    return a & 0x7c00 ? a : a & 0x8000;
}

static uint16_t saturate16(uint16_t a)
{
    return rounded(saturate(f16_to_float(a)));
}

static uint32_t pair(uint16_t low, uint16_t high)
{
    return (uint32_t)high << 16 | low;
}

#define LOW(x) (uint16_t)(x)
#define HIGH(x) (uint16_t)((x) >> 16)
#define F(x) f16_to_float(x)

#define SCALAR(R)                                                                                                                          \
    R(add_f16, "add.f16 %d, %a, %b;", F16, F16, F16, NONE, NONE, sum(a, b))                                                                \
    R(sub_f16, "sub.rn.f16 %d, %a, %b;", F16, F16, F16, NONE, NONE, sum(a, b ^ 0x8000))                                                    \
    R(mul_f16, "mul.f16 %d, %a, %b;", F16, F16, F16, NONE, NONE, product(a, b))                                                            \
    R(fma_f16, "fma.rn.f16 %d, %a, %b, %c;", F16, F16, F16, F16, NONE, fma_f16(a, b, c))                                                   \
    R(add_f16_ftz, "add.ftz.f16 %d, %a, %b;", F16, F16, F16, NONE, NONE, flush16(sum(flush16(a), flush16(b))))                             \
    R(mul_f16_sat, "mul.sat.f16 %d, %a, %b;", F16, F16, F16, NONE, NONE, saturate16(product(a, b)))                                        \
    R(neg_f16, "neg.f16 %d, %a;", F16, F16, NONE, NONE, NONE, a ^ 0x8000)                                                                  \
    R(abs_f16, "abs.f16 %d, %a;", F16, F16, NONE, NONE, NONE, a & 0x7fff)                                                                  \
    R(setp_f16, "setp.lt.f16 %d, %a, %b;", PRED, F16, F16, NONE, NONE, F(a) < F(b))                                                        \
    R(setp_f16_neu, "setp.neu.f16 %d, %a, %b;", PRED, F16, F16, NONE, NONE, F(a) != F(b))                                                  \
    R(set_f16, "set.eq.f16.f16 %d, %a, %b;", F16, F16, F16, NONE, NONE, F(a) == F(b) ? 0x3c00 : 0)

#define PAIRS(R)                                                                                                                           \
    R(add_f16x2, "add.f16x2 %d, %a, %b;", B32, B32, B32, NONE, NONE, pair(sum(LOW(a), LOW(b)), sum(HIGH(a), HIGH(b))))                     \
    R(mul_f16x2, "mul.f16x2 %d, %a, %b;", B32, B32, B32, NONE, NONE, pair(product(LOW(a), LOW(b)), product(HIGH(a), HIGH(b))))             \
    R(fma_f16x2, "fma.rn.f16x2 %d, %a, %b, %c;", B32, B32, B32, B32, NONE,                                                                 \
      pair(fma_f16(LOW(a), LOW(b), LOW(c)), fma_f16(HIGH(a), HIGH(b), HIGH(c))))                                                           \
    R(neg_f16x2, "neg.f16x2 %d, %a;", B32, B32, NONE, NONE, NONE, a ^ 0x80008000)                                                          \
    R(set_f16x2, "set.gt.f16x2.f16x2 %d, %a, %b;", B32, B32, B32, NONE, NONE,                                                              \
      pair(F(LOW(a)) > F(LOW(b)) ? 0x3c00 : 0, F(HIGH(a)) > F(HIGH(b)) ? 0x3c00 : 0))                                                      \
    R(cvt_f16x2, "cvt.rn.f16x2.f32 %d, %a, %b;", B32, F32, F32, NONE, NONE, pair(rounded(b), rounded(a)))

#define PAIR_ENTRY(id, text, result, ta, tb, tc, te, expression) {#id, text, result, {ta, tb, tc, te}, want_##id, HALVES, 0, 0, 0},
SCALAR(REFERENCE)
PAIRS(REFERENCE)
static const struct row rows[] = {SCALAR(ENTRY) PAIRS(PAIR_ENTRY)};
const struct table table_f16 = {"f16", rows, sizeof rows / sizeof *rows, NULL};
