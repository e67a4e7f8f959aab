/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix_values.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    uint8_t bits, fraction, exponent; /* of floats */
} elements[ELEMENT_COUNT] = {
    [F16] = {"f16", 16, 10, 5}, [BF16] = {"bf16", 16, 7, 8}, [TF32] = {"tf32", 32, 23, 8}, [F32] = {"f32", 32, 23, 8},
    [F64] = {"f64", 64, 0, 0},  [S32] = {"s32", 32, 0, 0},   [E4M3] = {"e4m3", 8, 3, 4},   [E5M2] = {"e5m2", 8, 2, 5},
    [S8] = {"s8", 8, 0, 0},     [U8] = {"u8", 8, 0, 0},      [S4] = {"s4", 4, 0, 0},       [U4] = {"u4", 4, 0, 0},
    [B1] = {"b1", 1, 0, 0},
};

unsigned element_bits(enum element element)
{
    return elements[element].bits;
}

const char *element_name(enum element element)
{
    return elements[element].name;
}

bool element_is_integer(enum element element)
{
    return element == S32 || element >= S8;
}

static uint64_t mask_of(enum element element)
{
    return element_bits(element) == 64 ? UINT64_MAX : (UINT64_C(1) << element_bits(element)) - 1;
}

/* ---- values ---- */

static double float_value(enum element element, uint64_t bits)
{
    const unsigned fraction_bits = elements[element].fraction, exponent_bits = elements[element].exponent;
    const uint64_t fraction = bits & ((UINT64_C(1) << fraction_bits) - 1), top = (UINT64_C(1) << exponent_bits) - 1;
    const uint64_t exponent = bits >> fraction_bits & top;
    const int bias = (1 << (exponent_bits - 1)) - 1, unit = (exponent ? (int)exponent : 1) - bias - (int)fraction_bits;
    const double sign = bits >> (element_bits(element) - 1) & 1 ? -1 : 1;

    if (element == E4M3 ? (bits & 0x7f) == 0x7f : exponent == top)
        return fraction && element != E4M3 ? NAN : element == E4M3 ? NAN : sign * INFINITY;
    return sign * ldexp((double)((exponent ? UINT64_C(1) << fraction_bits : 0) | fraction), unit);
}

static int64_t signed_value(enum element element, uint64_t bits)
{
    const unsigned n = element_bits(element);

    return (int64_t)(bits << (64 - n)) >> (64 - n);
}

double element_value(enum element element, uint64_t bits)
{
    double value;

    bits &= mask_of(element);
    if (element == F64) {
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    if (element == TF32) /* the lower 13 bits are ignored */
        bits &= ~UINT64_C(0x1fff);
    if (!element_is_integer(element))
        return float_value(element, bits);
    return element == S32 || element == S8 || element == S4 ? (double)signed_value(element, bits) : (double)bits;
}

/* Finds the encoding of a small integer by its value, one exponent and fraction bit at a time. */
uint64_t element_from_int(enum element element, int value)
{
    const double magnitude = value < 0 ? -value : value;
    uint64_t bits = 0;

    if (element_is_integer(element))
        return (uint64_t)value & mask_of(element);
    if (element == F64) {
        const double d = value;

        memcpy(&bits, &d, sizeof bits);
        return bits;
    }
    for (unsigned i = element_bits(element) - 1; i-- > 0;)
        if (element_value(element, bits | UINT64_C(1) << i) <= magnitude)
            bits |= UINT64_C(1) << i;
    return bits | (uint64_t)(value < 0) << (element_bits(element) - 1);
}

/* ---- contents ---- */

uint64_t random_bits(void)
{
    static uint64_t state = 0x9e3779b97f4a7c15;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * UINT64_C(0x2545f4914f6cdd1d) >> 8 | state << 60;
}

/* A float between 1/8 and 8. */
static uint64_t similar_float(enum element element)
{
    const unsigned fraction_bits = element == F64 ? 52 : elements[element].fraction;
    const unsigned bias = element == F64 ? 1023 : (1u << (elements[element].exponent - 1)) - 1;
    const uint64_t sign = (random_bits() & 1) << (element_bits(element) - 1);
    const uint64_t fraction = random_bits() & ((UINT64_C(1) << fraction_bits) - 1);

    return sign | (uint64_t)(bias - 3 + random_bits() % 6) << fraction_bits | fraction;
}

/* Edges are rare, so that most sums have at most one. Products of large numbers of 8 bits of exponent would exceed the range of f32, where the
 * ISA says nothing: there are none. */
static uint64_t edge(enum element element)
{
    static const uint64_t f16[] = {0, 0x8000, 1, 0x3ff, 0x7bff, 0x7c00, 0xfc00, 0x7e00}, bf16[] = {0, 0x8000, 1, 0x7f80, 0xff80, 0x7fc0};
    static const uint64_t f32[] = {0, 0x80000000, 1, 0x7f800000, 0xff800000, 0x7fc00000};
    static const uint64_t f64[] = {0, UINT64_C(1) << 63, 1, UINT64_C(0x7fefffffffffffff), UINT64_C(0x7ff) << 52, UINT64_C(0x7ff8) << 48};
    static const uint64_t e4m3[] = {0, 0x80, 1, 7, 0x7e, 0xfe, 0x7f}, e5m2[] = {0, 0x80, 1, 3, 0x7b, 0x7c, 0xfc, 0x7e};
    static const uint64_t s32[] = {0x7fffffff, 0x80000000, 0x7ffffff0, 0x80000010, 0xffffffff};
    const uint64_t n = random_bits();

    switch (element) {
    case F16:
        return f16[n % 8];
    case BF16:
        return bf16[n % 6];
    case TF32:
    case F32:
        return f32[n % 6];
    case F64:
        return f64[n % 6];
    case E4M3:
        return e4m3[n % 7];
    case E5M2:
        return e5m2[n % 8];
    case S32:
        return s32[n % 5];
    default:
        return n & 1 ? mask_of(element) : mask_of(element) / 2 + 1;
    }
}

uint64_t element_random(enum element element, enum contents contents)
{
    const bool is_integer = element_is_integer(element), is_small = element == U4 || element == U8 || element == B1;

    if (contents == EDGES && random_bits() % (is_integer ? 2 : 24) == 0)
        return edge(element);
    if (contents == SMALL)
        return element_from_int(element, element == B1 ? (int)(random_bits() & 1) : (int)(random_bits() % 7) - (is_small ? 0 : 3));
    if (is_integer)
        return random_bits() & mask_of(element);
    return similar_float(element);
}

/* ---- sums ---- */

void sum_begin(struct sum *sum, uint64_t c)
{
    sum->integer = element_is_integer(sum->c) ? signed_value(sum->c, c) : 0;
    sum->exact = element_value(sum->c, c);
    sum->magnitude = fabs(sum->exact);
    sum->terms = 1;
}

void sum_add(struct sum *sum, enum element a, uint64_t x, enum element b, uint64_t y)
{
    const double p = element_value(a, x), q = element_value(b, y);

    sum->terms++;
    if (a == B1) {
        sum->integer += sum->uses_and ? x & y & 1 : (x ^ y) & 1;
    } else if (element_is_integer(a)) {
        sum->integer += (int64_t)(p * q);
    } else if (a == F64) {
        const int before = fegetround();

        fesetround(sum->rounding);
        sum->exact = fma(p, q, sum->exact);
        fesetround(before);
    } else {
        sum->exact += p * q;
        sum->magnitude += fabs(p * q);
    }
}

static bool accepts_integer(const struct sum *sum, uint64_t d)
{
    int64_t want = sum->integer;

    if (sum->saturates)
        want = want > INT32_MAX ? INT32_MAX : want < INT32_MIN ? INT32_MIN : want;
    return (uint32_t)want == (uint32_t)d;
}

/* Each addition may round or truncate at the size of the largest intermediate sum. NVIDIA's keep at least 24 bits. f16 results are rounded
 * once more, and sums in f16 may have been rounded in between. */
bool sum_accepts(const struct sum *sum, uint64_t d)
{
    const double found = element_value(sum->d, d), limit = sum->d == F16 ? 65520 : 0x1p128;
    double error = sum->terms * sum->magnitude * 0x1p-22 + 0x1p-126 * sum->terms, low, high;

    if (element_is_integer(sum->d))
        return accepts_integer(sum, d);
    if (sum->d == F16 && isinf(sum->magnitude) && isnan(found)) /* an H100 rounds parts of some sums to f16, where infinities cancel */
        return true;
    if (isnan(sum->exact) || isinf(sum->exact))
        return isnan(sum->exact) ? isnan(found) : found == sum->exact;
    if (sum->d == F64)
        return found == sum->exact;
    if (sum->contents == SMALL)
        return found == sum->exact;
    if (sum->d == F16)
        error += (fabs(sum->exact) + error) * 0x1p-10 + 0x1p-24 + (sum->terms > 9 ? sum->magnitude * 0x1p-10 : 0);
    low = sum->exact - error;
    high = sum->exact + error;
    if (isinf(found))
        return found > 0 ? high >= limit : low <= -limit;
    return found >= low && found <= high;
}
