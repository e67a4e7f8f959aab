/* SPDX-License-Identifier: Apache-2.0 */
/* Host floats and their encodings. f32 is the lower half of 64 bits. */
#ifndef CUTTLE_FLOAT_BITS_H
#define CUTTLE_FLOAT_BITS_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float f32_of(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float value;

    memcpy(&value, &low, sizeof value);
    return value;
}

static inline double f64_of(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t bits_of_f32(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline uint64_t bits_of_f64(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* .ftz: a subnormal number becomes a zero of the same sign. */
static inline float flushed(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0, x) : x;
}

#endif
