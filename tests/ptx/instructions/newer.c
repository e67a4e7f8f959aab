/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions introduced with compute capability 10.0 (PTX ISA 8.6 to 8.8): operations on two f32 at a time, and minima and maxima of
 * three operands. */
#include "rows.h"

static uint64_t both(float low, float high)
{
    return bits_of_f32(high) << 32 | bits_of_f32(low);
}

static float lesser(float a, float b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) ? b : a;
    return a < b || (a == b && signbit(a)) ? a : b;
}

static float greater(float a, float b)
{
    return -lesser(-a, -b);
}

#define LOW(x) f32_of(x)
#define HIGH(x) f32_of((x) >> 32)
#define EACH2(f, mode, a, b) both(f(mode, LOW(a), LOW(b)), f(mode, HIGH(a), HIGH(b)))
#define EACH3(f, mode, a, b, c) both(f(mode, LOW(a), LOW(b), LOW(c)), f(mode, HIGH(a), HIGH(b), HIGH(c)))

#define SINGLES(R)                                                                                                                         \
    R(min3, "min.f32 %d, %a, %b, %c;", F32, F32, F32, F32, NONE, lesser(lesser(a, b), c))                                                  \
    R(max3, "max.f32 %d, %a, %b, %c;", F32, F32, F32, F32, NONE, greater(greater(a, b), c))                                                \
    R(max3_nan, "max.NaN.f32 %d, %a, %b, %c;", F32, F32, F32, F32, NONE,                                                                   \
      isnan(a) || isnan(b) || isnan(c) ? NAN : greater(greater(a, b), c))                                                                  \
    R(min3_abs, "min.abs.f32 %d, %a, %b, %c;", F32, F32, F32, F32, NONE, lesser(lesser(fabsf(a), fabsf(b)), fabsf(c)))                     \
    R(max3_ftz_abs, "max.ftz.abs.f32 %d, %a, %b, %c;", F32, F32, F32, F32, NONE,                                                           \
      greater(greater(flush(fabsf(a)), flush(fabsf(b))), flush(fabsf(c))))

#define PAIRS(R)                                                                                                                           \
    R(add_f32x2, "add.rn.f32x2 %d, %a, %b;", B64, B64, B64, NONE, NONE, EACH2(add_f32, NEAREST, a, b))                                     \
    R(add_f32x2_rz, "add.rz.f32x2 %d, %a, %b;", B64, B64, B64, NONE, NONE, EACH2(add_f32, ZERO, a, b))                                     \
    R(mul_f32x2, "mul.rn.f32x2 %d, %a, %b;", B64, B64, B64, NONE, NONE, EACH2(mul_f32, NEAREST, a, b))                                     \
    R(fma_f32x2, "fma.rn.f32x2 %d, %a, %b, %c;", B64, B64, B64, B64, NONE, EACH3(fma_f32, NEAREST, a, b, c))                               \
    R(fma_f32x2_up, "fma.rp.f32x2 %d, %a, %b, %c;", B64, B64, B64, B64, NONE, EACH3(fma_f32, UP, a, b, c))

#define PAIR_ENTRY(id, text, result, ta, tb, tc, te, expression) {#id, text, result, {ta, tb, tc, te}, want_##id, FHALVES, 0, 0, 0},
SINGLES(REFERENCE)
PAIRS(REFERENCE)
static const struct row rows[] = {SINGLES(ENTRY) PAIRS(PAIR_ENTRY)};
const struct table table_newer = {"newer", rows, sizeof rows / sizeof *rows, ".version 8.8\n.target sm_100\n.address_size 64\n"};
