/* SPDX-License-Identifier: Apache-2.0 */
/* bf16 (PTX ISA, "Half Precision Floating Point Instructions"; .relu; set, setp, cvt): one rounding of the exact result; subnormals are
 * kept. */
#include "rows.h"

static uint16_t sum(uint16_t a, uint16_t b)
{
    return fma_bf16(a, 0x3f80, b);
}

static uint16_t product(uint16_t a, uint16_t b)
{
    return bf16_from_double((double)bf16_to_float(a) * bf16_to_float(b));
}

static bool is_nan16(uint16_t a)
{
    return (a & 0x7fff) > 0x7f80;
}

/* The minimum of two, compared as integers that are ordered like the numbers; -0 is below +0. */
static bool is_less16(uint16_t a, uint16_t b)
{
    const int x = a & 0x8000 ? -(a & 0x7fff) - 1 : a, y = b & 0x8000 ? -(b & 0x7fff) - 1 : b;

    return x < y;
}

static uint16_t extreme(bool least, bool nan, uint16_t a, uint16_t b)
{
    if (is_nan16(a) || is_nan16(b))
        return nan || (is_nan16(a) && is_nan16(b)) ? 0x7fff : is_nan16(a) ? b : a;
    return is_less16(a, b) == least ? a : b;
}

static uint16_t relu16(uint16_t a)
{
    return is_nan16(a) ? 0x7fff : a & 0x8000 ? 0 : a;
}

static uint32_t pair(uint16_t low, uint16_t high)
{
    return (uint32_t)high << 16 | low;
}

#define LOW(x) (uint16_t)(x)
#define HIGH(x) (uint16_t)((x) >> 16)
#define F(x) bf16_to_float(x)

#define SCALAR(R)                                                                                                                          \
    R(add_bf16, "add.bf16 %d, %a, %b;", BF16, BF16, BF16, NONE, NONE, sum(a, b))                                                           \
    R(sub_bf16, "sub.rn.bf16 %d, %a, %b;", BF16, BF16, BF16, NONE, NONE, sum(a, b ^ 0x8000))                                               \
    R(mul_bf16, "mul.bf16 %d, %a, %b;", BF16, BF16, BF16, NONE, NONE, product(a, b))                                                       \
    R(fma_bf16, "fma.rn.bf16 %d, %a, %b, %c;", BF16, BF16, BF16, BF16, NONE, fma_bf16(a, b, c))                                            \
    R(fma_bf16_sum, "{ .reg .b16 %one; mov.b16 %one, 0x3f80; fma.rn.bf16 %d, %a, %one, %b; }", BF16, BF16, BF16, NONE, NONE, sum(a, b))    \
    R(fma_bf16_product, "{ .reg .b16 %none; mov.b16 %none, 0x8000; fma.rn.bf16 %d, %a, %b, %none; }", BF16, BF16, BF16, NONE, NONE,        \
      fma_bf16(a, b, 0x8000))                                                                                                              \
    R(fma_bf16x2_sum, "{ .reg .b32 %ones; mov.b32 %ones, 0x3f803f80; fma.rn.bf16x2 %d, %ones, %a, %b; }", B32, B32, B32, NONE, NONE,       \
      pair(sum(LOW(a), LOW(b)), sum(HIGH(a), HIGH(b))))                                                                                    \
    R(fma_bf16_relu, "fma.rn.relu.bf16 %d, %a, %b, %c;", B16, BF16, BF16, BF16, NONE, relu16(fma_bf16(a, b, c)))                           \
    R(neg_bf16, "neg.bf16 %d, %a;", BF16, BF16, NONE, NONE, NONE, a ^ 0x8000)                                                              \
    R(abs_bf16, "abs.bf16 %d, %a;", BF16, BF16, NONE, NONE, NONE, a & 0x7fff)                                                              \
    R(min_bf16, "min.bf16 %d, %a, %b;", BF16, BF16, BF16, NONE, NONE, extreme(true, false, a, b))                                          \
    R(max_bf16_nan, "max.NaN.bf16 %d, %a, %b;", BF16, BF16, BF16, NONE, NONE, extreme(false, true, a, b))                                  \
    R(setp_bf16, "setp.lt.bf16 %d, %a, %b;", PRED, BF16, BF16, NONE, NONE, F(a) < F(b))                                                    \
    R(setp_bf16_neu, "setp.neu.bf16 %d, %a, %b;", PRED, BF16, BF16, NONE, NONE, F(a) != F(b))                                              \
    R(set_bf16, "set.eq.bf16.bf16 %d, %a, %b;", BF16, BF16, BF16, NONE, NONE, F(a) == F(b) ? 0x3f80 : 0)                                   \
    R(cvt_bf16, "cvt.rn.bf16.f32 %d, %a;", BF16, F32, NONE, NONE, NONE, bf16_from_double(a))                                               \
    R(cvt_bf16_relu, "cvt.rn.relu.bf16.f32 %d, %a;", B16, F32, NONE, NONE, NONE, relu16(bf16_from_double(a)))                              \
    R(cvt_f32_bf16, "cvt.f32.bf16 %d, %a;", F32, BF16, NONE, NONE, NONE, F(a))

#define PAIRS(R)                                                                                                                           \
    R(add_bf16x2, "add.bf16x2 %d, %a, %b;", B32, B32, B32, NONE, NONE, pair(sum(LOW(a), LOW(b)), sum(HIGH(a), HIGH(b))))                   \
    R(mul_bf16x2, "mul.bf16x2 %d, %a, %b;", B32, B32, B32, NONE, NONE, pair(product(LOW(a), LOW(b)), product(HIGH(a), HIGH(b))))           \
    R(fma_bf16x2, "fma.rn.bf16x2 %d, %a, %b, %c;", B32, B32, B32, B32, NONE,                                                               \
      pair(fma_bf16(LOW(a), LOW(b), LOW(c)), fma_bf16(HIGH(a), HIGH(b), HIGH(c))))                                                         \
    R(neg_bf16x2, "neg.bf16x2 %d, %a;", B32, B32, NONE, NONE, NONE, a ^ 0x80008000)                                                        \
    R(max_bf16x2, "max.bf16x2 %d, %a, %b;", B32, B32, B32, NONE, NONE,                                                                     \
      pair(extreme(false, false, LOW(a), LOW(b)), extreme(false, false, HIGH(a), HIGH(b))))                                                \
    R(set_bf16x2, "set.gt.bf16x2.bf16x2 %d, %a, %b;", B32, B32, B32, NONE, NONE,                                                           \
      pair(F(LOW(a)) > F(LOW(b)) ? 0x3f80 : 0, F(HIGH(a)) > F(HIGH(b)) ? 0x3f80 : 0))                                                      \
    R(cvt_bf16x2, "cvt.rn.bf16x2.f32 %d, %a, %b;", B32, F32, F32, NONE, NONE, pair(bf16_from_double(b), bf16_from_double(a)))

#define PAIR_ENTRY(id, text, result, ta, tb, tc, te, expression) {#id, text, result, {ta, tb, tc, te}, want_##id, BHALVES, 0, 0, 0},
SCALAR(REFERENCE)
PAIRS(REFERENCE)
static const struct row rows[] = {SCALAR(ENTRY) PAIRS(PAIR_ENTRY)};
const struct table table_bf16 = {"bf16", rows, sizeof rows / sizeof *rows, NULL};
