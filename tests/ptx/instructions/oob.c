/* SPDX-License-Identifier: Apache-2.0 */
/* fma.oob (PTX ISA, "Half Precision Floating Point Instructions: fma"): 0 if a factor is the NaN for elements out of bounds. The manual does
 * not give its bits: on an H100 they are 0x7ff7 with either sign, in both formats. */
#include "rows.h"

static bool is_oob(uint16_t a)
{
    return (a & 0x7fff) == 0x7ff7;
}

static uint16_t relu(uint16_t a, uint16_t infinity)
{
    return (a & 0x7fff) > infinity ? 0x7fff : a & 0x8000 ? 0 : a;
}

static uint16_t oob_f16(uint16_t a, uint16_t b, uint16_t c)
{
    return is_oob(a) || is_oob(b) ? 0 : fma_f16(a, b, c);
}

static uint16_t oob_bf16(uint16_t a, uint16_t b, uint16_t c)
{
    return is_oob(a) || is_oob(b) ? 0 : fma_bf16(a, b, c);
}

#define ROWS(R)                                                                                                                            \
    R(fma_oob_a_f16, "fma.rn.oob.f16 %d, %a, %b, %c;", F16, F16, F16, F16, NONE, oob_f16(a, b, c))                                         \
    R(fma_oob_b_f16, "fma.rn.oob.f16 %d, %b, %a, %c;", F16, F16, F16, F16, NONE, oob_f16(b, a, c))                                         \
    R(fma_oob_c_f16, "fma.rn.oob.f16 %d, %b, %c, %a;", F16, F16, F16, F16, NONE, oob_f16(b, c, a))                                         \
    R(fma_oob_relu_f16, "fma.rn.oob.relu.f16 %d, %a, %b, %c;", F16, F16, F16, F16, NONE, relu(oob_f16(a, b, c), 0x7c00))                   \
    R(fma_oob_a_bf16, "fma.rn.oob.bf16 %d, %a, %b, %c;", BF16, BF16, BF16, BF16, NONE, oob_bf16(a, b, c))                                  \
    R(fma_oob_b_bf16, "fma.rn.oob.bf16 %d, %b, %a, %c;", BF16, BF16, BF16, BF16, NONE, oob_bf16(b, a, c))                                  \
    R(fma_oob_relu_bf16, "fma.rn.oob.relu.bf16 %d, %a, %b, %c;", BF16, BF16, BF16, BF16, NONE, relu(oob_bf16(a, b, c), 0x7f80))            \
    R(fma_oob_f16x2, "mov.b32 %y, {%a, %b}; mov.b32 %d, {%b, %c}; fma.rn.oob.f16x2 %d, %y, %d, %y;", B32, F16, F16, F16, NONE,             \
      (uint32_t)oob_f16(b, c, b) << 16 | oob_f16(a, b, a))

#define EVERY_ENTRY(id, text, result, ta, tb, tc, te, expression)                                                                          \
    {#id, text, result, {ta, tb, tc, te}, want_##id, result == B32 ? EVERY_HALVES : EVERY, 0, 0, 0},
ROWS(REFERENCE)
static const struct row rows[] = {ROWS(EVERY_ENTRY)};
const struct table table_oob = {"oob", rows, sizeof rows / sizeof *rows, ".version 8.1\n.target sm_90\n.address_size 64\n"};
