/* SPDX-License-Identifier: Apache-2.0 */
/* min and max with .xorsign.abs and .relu (PTX ISA, "min", "max"), and fma.relu. */
#include "rows.h"

static bool is_less(double a, double b)
{
    return a < b || (a == b && signbit(a) && !signbit(b));
}

/* The minimum or maximum of the magnitudes, with the sign of the product; a NaN keeps its own sign. */
static float with_xored_sign(bool least, bool nan, float a, float b)
{
    const float x = fabsf(a), y = fabsf(b);
    float extreme = is_less(x, y) == least ? x : y;

    if (isnan(a) || isnan(b)) {
        if (nan || (isnan(a) && isnan(b)))
            return NAN;
        extreme = isnan(a) ? y : x;
    }
    return !signbit(a) == !signbit(b) ? extreme : -extreme;
}

static uint16_t half_with_xored_sign(bool least, uint16_t a, uint16_t b)
{
    const float extreme = with_xored_sign(least, false, f16_to_float(a & 0x7fff), f16_to_float(b & 0x7fff));

    return isnan(extreme) ? 0x7fff : f16_from_double(extreme, NEAREST) | ((a ^ b) & 0x8000);
}

static int32_t relu(int32_t value)
{
    return value < 0 ? 0 : value;
}

static int16_t low(uint32_t x)
{
    return (int16_t)x;
}

static int16_t high(uint32_t x)
{
    return (int16_t)(x >> 16);
}

static uint32_t pair(int32_t of_low, int32_t of_high)
{
    return (uint32_t)of_high << 16 | (uint16_t)of_low;
}

#define LESSER(a, b) ((a) < (b) ? (a) : (b))
#define GREATER(a, b) ((a) > (b) ? (a) : (b))

#define ROWS(R)                                                                                                                            \
    R(min_f32_xorsign, "min.xorsign.abs.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, with_xored_sign(true, false, a, b))                   \
    R(max_f32_xorsign, "max.xorsign.abs.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, with_xored_sign(false, false, a, b))                  \
    R(max_f32_nan_xorsign, "max.NaN.xorsign.abs.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE, with_xored_sign(false, true, a, b))           \
    R(min_f32_ftz_xorsign, "min.ftz.xorsign.abs.f32 %d, %a, %b;", F32, F32, F32, NONE, NONE,                                               \
      with_xored_sign(true, false, flush(a), flush(b)))                                                                                    \
    R(min_f16_xorsign, "min.xorsign.abs.f16 %d, %a, %b;", F16, F16, F16, NONE, NONE, half_with_xored_sign(true, a, b))                     \
    R(min_s32_relu, "min.relu.s32 %d, %a, %b;", S32, S32, S32, NONE, NONE, relu(LESSER(a, b)))                                             \
    R(max_s32_relu, "max.relu.s32 %d, %a, %b;", S32, S32, S32, NONE, NONE, relu(GREATER(a, b)))                                            \
    R(min_s16x2, "min.s16x2 %d, %a, %b;", B32, B32, B32, NONE, NONE, pair(LESSER(low(a), low(b)), LESSER(high(a), high(b))))               \
    R(max_s16x2_relu, "max.relu.s16x2 %d, %a, %b;", B32, B32, B32, NONE, NONE,                                                             \
      pair(relu(GREATER(low(a), low(b))), relu(GREATER(high(a), high(b)))))

DEFINE_TABLE(extremes, ROWS)
