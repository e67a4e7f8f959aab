/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of 8 bits (e4m3: 4 exponent bits with bias 7, 3 fraction bits, no infinity, and NaN only where all bits except the sign are set;
 * e5m2: 5 exponent bits with bias 15 and 2 fraction bits, as in IEEE 754), tf32 (f32 with 10 fraction bits), .satfinite, and cvt.pack (PTX
 * ISA, "Alternate Floating-Point Data Formats", "cvt", "cvt.pack"). The reference for an encoding searches the values of all codes for the
 * nearest one, and for the even code in a tie. */
#include "rows.h"

static double value_of(uint8_t code, bool is_e4m3)
{
    const int fraction_bits = is_e4m3 ? 3 : 2, bias = is_e4m3 ? 7 : 15;
    const int exponent = (code & 0x7f) >> fraction_bits, fraction = code & ((1 << fraction_bits) - 1);
    const double sign = code & 0x80 ? -1 : 1;

    if (is_e4m3 ? (code & 0x7f) == 0x7f : (code & 0x7f) > 0x7c)
        return NAN;
    if (!is_e4m3 && (code & 0x7f) == 0x7c)
        return sign * INFINITY;
    return sign * ldexp((exponent ? 1 << fraction_bits : 0) + fraction, (exponent ? exponent : 1) - bias - fraction_bits);
}

static uint8_t code_of(double x, bool is_e4m3, bool relu)
{
    const uint8_t greatest = is_e4m3 ? 0x7e : 0x7b;
    uint8_t best = 0;

    if (isnan(x))
        return 0x7f;
    if (signbit(x) && relu)
        return 0;
    for (uint8_t code = 0; code <= greatest; code++) {
        const double distance = fabs(fabs(x) - value_of(code, is_e4m3)), least = fabs(fabs(x) - value_of(best, is_e4m3));

        if (distance < least || (distance == least && code % 2 == 0))
            best = code;
    }
    if (fabs(x) > value_of(greatest, is_e4m3)) /* infinity is equally far from all codes */
        best = greatest;
    return best | (signbit(x) ? 0x80 : 0);
}

/* An f16 is converted exactly; relu: after cvt's .relu. */
static uint16_t half_of(uint8_t code, bool is_e4m3, bool relu)
{
    const double x = value_of(code, is_e4m3);

    return f16_from_double(relu && signbit(x) && !isnan(x) ? 0 : x, NEAREST);
}

static uint32_t halves_of(uint16_t codes, bool is_e4m3, bool relu)
{
    return (uint32_t)half_of((uint8_t)(codes >> 8), is_e4m3, relu) << 16 | half_of((uint8_t)codes, is_e4m3, relu);
}

static uint16_t codes_of(double high, double low, bool is_e4m3, bool relu)
{
    return (uint16_t)(code_of(high, is_e4m3, relu) << 8 | code_of(low, is_e4m3, relu));
}

/* %a is the upper half of an f32, which decides all ties; the lower half is zero, small or large. */
static float single(uint16_t upper, uint16_t lower)
{
    return f32_of((uint32_t)upper << 16 | lower);
}

#define SINGLES(low1, low2, text)                                                                                                          \
    "{ .reg .f32 %f1, %f2; mov.b16 %h, " #low1 "; mov.b32 %f1, {%h, %a}; mov.b16 %h, " #low2 "; mov.b32 %f2, {%h, %a}; " text " }"
#define PAIR(text) "xor.b16 %h, %a, 0x9234; mov.b32 %y, {%a, %h}; " text
#define HALF(x) f16_to_float((uint16_t)(x))
#define HALF_PAIR(e4m3, relu) codes_of(HALF(a ^ 0x9234), HALF(a), e4m3, relu)

/* All values of a 16-bit source. */
#define EVERY(R)                                                                                                                           \
    R(e4m3x2_f32, SINGLES(0, 1, "cvt.rn.satfinite.e4m3x2.f32 %d, %f1, %f2;"), B16, B16, NONE, NONE, NONE,                                  \
      codes_of(single(a, 0), single(a, 1), true, false))                                                                                   \
    R(e4m3x2_f32_above, SINGLES(0xffff, 0x8000, "cvt.rn.satfinite.e4m3x2.f32 %d, %f1, %f2;"), B16, B16, NONE, NONE, NONE,                  \
      codes_of(single(a, 0xffff), single(a, 0x8000), true, false))                                                                         \
    R(e4m3x2_f32_relu, SINGLES(0, 1, "cvt.rn.satfinite.relu.e4m3x2.f32 %d, %f1, %f2;"), B16, B16, NONE, NONE, NONE,                        \
      codes_of(single(a, 0), single(a, 1), true, true))                                                                                    \
    R(e5m2x2_f32, SINGLES(0, 1, "cvt.rn.satfinite.e5m2x2.f32 %d, %f1, %f2;"), B16, B16, NONE, NONE, NONE,                                  \
      codes_of(single(a, 0), single(a, 1), false, false))                                                                                  \
    R(e5m2x2_f32_above, SINGLES(0xffff, 0x8000, "cvt.rn.satfinite.e5m2x2.f32 %d, %f1, %f2;"), B16, B16, NONE, NONE, NONE,                  \
      codes_of(single(a, 0xffff), single(a, 0x8000), false, false))                                                                        \
    R(e5m2x2_f32_relu, SINGLES(0, 1, "cvt.rn.satfinite.relu.e5m2x2.f32 %d, %f1, %f2;"), B16, B16, NONE, NONE, NONE,                        \
      codes_of(single(a, 0), single(a, 1), false, true))                                                                                   \
    R(e4m3x2_f16x2, PAIR("cvt.rn.satfinite.e4m3x2.f16x2 %d, %y;"), B16, B16, NONE, NONE, NONE, HALF_PAIR(true, false))                     \
    R(e4m3x2_f16x2_relu, PAIR("cvt.rn.satfinite.relu.e4m3x2.f16x2 %d, %y;"), B16, B16, NONE, NONE, NONE, HALF_PAIR(true, true))            \
    R(e5m2x2_f16x2, PAIR("cvt.rn.satfinite.e5m2x2.f16x2 %d, %y;"), B16, B16, NONE, NONE, NONE, HALF_PAIR(false, false))                    \
    R(e5m2x2_f16x2_relu, PAIR("cvt.rn.satfinite.relu.e5m2x2.f16x2 %d, %y;"), B16, B16, NONE, NONE, NONE, HALF_PAIR(false, true))

#define EVERY_HALVES(R)                                                                                                                    \
    R(f16x2_e4m3x2, "cvt.rn.f16x2.e4m3x2 %d, %a;", B32, B16, NONE, NONE, NONE, halves_of(a, true, false))                                  \
    R(f16x2_e4m3x2_relu, "cvt.rn.relu.f16x2.e4m3x2 %d, %a;", B32, B16, NONE, NONE, NONE, halves_of(a, true, true))                         \
    R(f16x2_e5m2x2, "cvt.rn.f16x2.e5m2x2 %d, %a;", B32, B16, NONE, NONE, NONE, halves_of(a, false, false))                                 \
    R(f16x2_e5m2x2_relu, "cvt.rn.relu.f16x2.e5m2x2 %d, %a;", B32, B16, NONE, NONE, NONE, halves_of(a, false, true))

/* ---- tf32 and .satfinite ---- */

/* Removes 13 bits of x in the given rounding mode (AWAY: ties are rounded away from zero). */
static uint32_t tf32_of(float x, int rounding, bool relu, bool finite)
{
    enum { TIES_AWAY = -1 };
    uint32_t magnitude = bits_of_f32(x) & 0x7fffffff, left = magnitude & 0x1fff;

    if (isnan(x))
        return 0x7fffffff;
    if (relu && signbit(x))
        return 0;
    magnitude -= left;
    if (rounding != ZERO && (left > 0x1000 || (left == 0x1000 && (rounding == TIES_AWAY || magnitude & 0x2000))))
        magnitude += 0x2000;
    if (finite && magnitude >= 0x7f800000)
        magnitude = 0x7f7fe000;
    return magnitude | (bits_of_f32(x) & 0x80000000);
}

#define AWAY (-1)
#define TF32(mode, relu, finite) f32_of(tf32_of(a, mode, relu, finite))

static uint16_t finite_half(float x, int rounding, bool relu)
{
    const uint16_t bits = f16_from_double(x, rounding);

    if (relu && !isnan(x) && signbit(x))
        return 0;
    return (bits & 0x7fff) == 0x7c00 ? bits - 1 : bits;
}

static uint16_t finite_brain(float x, bool relu)
{
    const uint16_t bits = bf16_from_double(x);

    if (relu && !isnan(x) && signbit(x))
        return 0;
    return (bits & 0x7fff) == 0x7f80 ? bits - 1 : bits;
}

/* The bf16 below or above x, or x itself if no bits are lost. */
static uint16_t directed_brain(float x, int rounding)
{
    const uint16_t upper = (uint16_t)(bits_of_f32(x) >> 16);

    if (isnan(x))
        return 0x7fff;
    return bf16_to_float(upper) != x && (rounding == DOWN) == (bool)signbit(x) ? upper + 1 : upper;
}

#define OTHERS(R)                                                                                                                          \
    R(tf32_rna, "cvt.rna.tf32.f32 %y, %a; mov.b32 %d, %y;", F32, F32, NONE, NONE, NONE, TF32(AWAY, false, false))                          \
    R(tf32_rna_satfinite, "cvt.rna.satfinite.tf32.f32 %y, %a; mov.b32 %d, %y;", F32, F32, NONE, NONE, NONE, TF32(AWAY, false, true))       \
    R(tf32_rn, "cvt.rn.tf32.f32 %y, %a; mov.b32 %d, %y;", F32, F32, NONE, NONE, NONE, TF32(NEAREST, false, false))                         \
    R(tf32_rn_relu, "cvt.rn.relu.tf32.f32 %y, %a; mov.b32 %d, %y;", F32, F32, NONE, NONE, NONE, TF32(NEAREST, true, false))                \
    R(tf32_rz, "cvt.rz.tf32.f32 %y, %a; mov.b32 %d, %y;", F32, F32, NONE, NONE, NONE, TF32(ZERO, false, false))                            \
    R(f16_satfinite, "cvt.rn.satfinite.f16.f32 %d, %a;", F16, F32, NONE, NONE, NONE, finite_half(a, NEAREST, false))                       \
    R(f16_satfinite_relu, "cvt.rn.satfinite.relu.f16.f32 %d, %a;", F16, F32, NONE, NONE, NONE, finite_half(a, NEAREST, true))              \
    R(f16_satfinite_rz, "cvt.rz.satfinite.f16.f32 %d, %a;", F16, F32, NONE, NONE, NONE, finite_half(a, ZERO, false))                       \
    R(bf16_rm, "cvt.rm.bf16.f32 %d, %a;", BF16, F32, NONE, NONE, NONE, directed_brain(a, DOWN))                                            \
    R(bf16_rp, "cvt.rp.bf16.f32 %d, %a;", BF16, F32, NONE, NONE, NONE, directed_brain(a, UP))                                              \
    R(bf16_satfinite, "cvt.rn.satfinite.bf16.f32 %d, %a;", BF16, F32, NONE, NONE, NONE, finite_brain(a, false))                            \
    R(bf16_satfinite_relu, "cvt.rn.satfinite.relu.bf16.f32 %d, %a;", BF16, F32, NONE, NONE, NONE, finite_brain(a, true))

#define OTHER_HALVES(R)                                                                                                                    \
    R(f16x2_satfinite, "cvt.rn.satfinite.f16x2.f32 %d, %a, %b;", B32, F32, F32, NONE, NONE,                                                \
      (uint32_t)finite_half(a, NEAREST, false) << 16 | finite_half(b, NEAREST, false))                                                     \
    R(f16x2_satfinite_relu, "cvt.rn.satfinite.relu.f16x2.f32 %d, %a, %b;", B32, F32, F32, NONE, NONE,                                      \
      (uint32_t)finite_half(a, NEAREST, true) << 16 | finite_half(b, NEAREST, true))

/* ---- cvt.pack ---- */

static uint32_t packed(int32_t a, int32_t b, uint32_t c, unsigned bits, bool is_signed)
{
    const int32_t greatest = (1 << (bits - is_signed)) - 1, least = is_signed ? -greatest - 1 : 0;
    const int32_t high = a < least ? least : a > greatest ? greatest : a, low = b < least ? least : b > greatest ? greatest : b;
    const uint32_t mask = (1u << bits) - 1, both = ((uint32_t)high & mask) << bits | ((uint32_t)low & mask);

    return bits == 16 ? both : c << 2 * bits | both;
}

#define PACKS(R)                                                                                                                           \
    R(pack_u16, "cvt.pack.sat.u16.s32 %d, %a, %b;", B32, S32, S32, NONE, NONE, packed(a, b, 0, 16, false))                                 \
    R(pack_s16, "cvt.pack.sat.s16.s32 %d, %a, %b;", B32, S32, S32, NONE, NONE, packed(a, b, 0, 16, true))                                  \
    R(pack_u8, "cvt.pack.sat.u8.s32.b32 %d, %a, %b, %c;", B32, S32, S32, B32, NONE, packed(a, b, c, 8, false))                             \
    R(pack_s8, "cvt.pack.sat.s8.s32.b32 %d, %a, %b, %c;", B32, S32, S32, B32, NONE, packed(a, b, c, 8, true))                              \
    R(pack_u4, "cvt.pack.sat.u4.s32.b32 %d, %a, %b, %c;", B32, S32, S32, B32, NONE, packed(a, b, c, 4, false))                             \
    R(pack_s4, "cvt.pack.sat.s4.s32.b32 %d, %a, %b, %c;", B32, S32, S32, B32, NONE, packed(a, b, c, 4, true))                              \
    R(pack_u2, "cvt.pack.sat.u2.s32.b32 %d, %a, %b, %c;", B32, S32, S32, B32, NONE, packed(a, b, c, 2, false))                             \
    R(pack_s2, "cvt.pack.sat.s2.s32.b32 %d, %a, 5, 7;", B32, S32, NONE, NONE, NONE, packed(a, 5, 7, 2, true))

#define EVERY_ENTRY(id, text, result, ta, tb, tc, te, expression) {#id, text, result, {ta, tb, tc, te}, want_##id, EVERY, 0, 0, 0},
#define EVERY_HALVES_ENTRY(id, text, result, ta, tb, tc, te, expression)                                                                   \
    {#id, text, result, {ta, tb, tc, te}, want_##id, EVERY_HALVES, 0, 0, 0},
#define HALVES_ENTRY(id, text, result, ta, tb, tc, te, expression) {#id, text, result, {ta, tb, tc, te}, want_##id, HALVES, 0, 0, 0},
EVERY(REFERENCE)
EVERY_HALVES(REFERENCE)
OTHERS(REFERENCE)
OTHER_HALVES(REFERENCE)
PACKS(REFERENCE)
static const struct row rows[] = {EVERY(EVERY_ENTRY) EVERY_HALVES(EVERY_HALVES_ENTRY) OTHERS(ENTRY) OTHER_HALVES(HALVES_ENTRY)
                                      PACKS(ENTRY)};
const struct table table_narrow = {"narrow", rows, sizeof rows / sizeof *rows, ".version 8.6\n.target sm_90\n.address_size 64\n"};
