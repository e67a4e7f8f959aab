/* SPDX-License-Identifier: Apache-2.0 */
/* Correctly rounded floating point (IEEE 754; PTX ISA, "Rounding Modifiers"). A format narrower than double is computed in double with
 * rounding to odd, which makes double rounding innocuous: double has more than twice the digits plus two. Double itself is the
 * processor's, in each of its rounding modes. Built with -frounding-math; volatile prevents operations from being moved across changes
 * of the mode. */
#include "machine.h"
#include "../float_bits.h"

#include <fenv.h>
#include <math.h>

struct format {
    uint8_t exponent_bits, fraction_bits; /* stored */
    bool has_infinity;                    /* e4m3 has none: its largest exponent is used for numbers */
    uint8_t shift;                        /* tf32 is stored in the upper bits of a word */
};

static const struct format *format_of(enum ptx_type type)
{
    static const struct format f16 = {5, 10, true, 0}, bf16 = {8, 7, true, 0}, f32 = {8, 23, true, 0}, tf32 = {8, 10, true, 13};
    static const struct format f64 = {11, 52, true, 0}, e4m3 = {4, 3, false, 0}, e5m2 = {5, 2, true, 0};

    switch (oracle_element(type)) {
    case PTX_F16:
        return &f16;
    case PTX_BF16:
        return &bf16;
    case PTX_TF32:
        return &tf32;
    case PTX_F64:
        return &f64;
    case PTX_E4M3X2:
        return &e4m3;
    case PTX_E5M2X2:
        return &e5m2;
    default:
        return &f32;
    }
}

/* ---- classes ---- */

uint64_t oracle_sign_bit(enum ptx_type type)
{
    const struct format *f = format_of(type);

    return UINT64_C(1) << (f->exponent_bits + f->fraction_bits + f->shift);
}

static uint64_t infinity_of(enum ptx_type type)
{
    const struct format *f = format_of(type);

    return ((UINT64_C(1) << f->exponent_bits) - 1) << (f->fraction_bits + f->shift);
}

bool oracle_is_nan(enum ptx_type type, uint64_t bits)
{
    const uint64_t magnitude = bits & (oracle_sign_bit(type) - 1);

    return format_of(type)->has_infinity ? magnitude > infinity_of(type) : magnitude == oracle_sign_bit(type) - 1;
}

/* All ones except the sign for 16 and 32 bits (PTX ISA, "Floating Point Comparisons", "min", "fma"); for f64 PTX specifies nothing. */
uint64_t oracle_nan(enum ptx_type type)
{
    return oracle_element(type) == PTX_F64 ? UINT64_C(0x7ff8000000000000) : oracle_sign_bit(type) - 1;
}

uint64_t oracle_flush(enum ptx_type type, uint64_t bits)
{
    const struct format *f = format_of(type);
    const uint64_t magnitude = bits & (oracle_sign_bit(type) - 1);

    return magnitude >> (f->fraction_bits + f->shift) ? bits : bits & oracle_sign_bit(type);
}

uint64_t oracle_saturate(enum ptx_type type, uint64_t bits)
{
    const double value = oracle_to_double(type, bits);

    if (!(value > 0)) /* NaN too */
        return 0;
    return value > 1 ? oracle_from_double(type, 1, PTX_RN) : bits;
}

/* ---- to double, exactly ---- */

double oracle_to_double(enum ptx_type type, uint64_t bits)
{
    const struct format *f = format_of(type);
    const uint64_t fraction = bits >> f->shift & ((UINT64_C(1) << f->fraction_bits) - 1);
    const int exponent = (int)(bits >> (f->shift + f->fraction_bits) & ((1u << f->exponent_bits) - 1));
    const int bias = (1 << (f->exponent_bits - 1)) - 1;
    double magnitude;

    if (oracle_element(type) == PTX_F64)
        return f64_of(bits);
    if (oracle_is_nan(type, bits))
        return NAN;
    if (f->has_infinity && exponent == (1 << f->exponent_bits) - 1)
        magnitude = INFINITY;
    else if (exponent == 0)
        magnitude = ldexp((double)fraction, 1 - bias - f->fraction_bits);
    else
        magnitude = ldexp((double)(fraction | UINT64_C(1) << f->fraction_bits), exponent - bias - f->fraction_bits);
    return bits & oracle_sign_bit(type) ? -magnitude : magnitude;
}

/* ---- rounding ---- */

/* Whether a magnitude is rounded up, by the discarded part: compared with half a unit in the last place. */
static bool rounds_up(enum ptx_rounding rounding, bool negative, bool is_odd, int against_half, bool is_exact)
{
    switch (rounding) {
    case PTX_RZ:
    case PTX_RZI:
        return false;
    case PTX_RM:
    case PTX_RMI:
        return negative && !is_exact;
    case PTX_RP:
    case PTX_RPI:
        return !negative && !is_exact;
    case PTX_RNA:
        return against_half >= 0;
    default: /* to nearest, ties to even */
        return against_half > 0 || (against_half == 0 && is_odd);
    }
}

/* n / 2^shift to an integer. */
static uint64_t shift_rounded(uint64_t n, int shift, bool negative, enum ptx_rounding rounding)
{
    uint64_t kept, rest, half;
    int against_half;

    if (shift <= 0)
        return n << -shift;
    if (shift > 63) { /* less than half a unit in the last place: n has at most 53 bits, or 64, and shift 64 is distinguished below */
        kept = 0;
        against_half = shift == 64 && n > UINT64_C(1) << 63 ? 1 : shift == 64 && n == UINT64_C(1) << 63 ? 0 : -1;
        return rounds_up(rounding, negative, false, against_half, n == 0);
    }
    kept = n >> shift;
    rest = n & ((UINT64_C(1) << shift) - 1);
    half = UINT64_C(1) << (shift - 1);
    against_half = rest > half ? 1 : rest == half ? 0 : -1;
    return kept + rounds_up(rounding, negative, kept & 1, against_half, rest == 0);
}

static uint64_t overflowed(enum ptx_type type, bool negative, enum ptx_rounding rounding)
{
    const bool to_infinity = rounding == PTX_RP ? !negative : rounding == PTX_RM ? negative : rounding != PTX_RZ;
    const struct format *f = format_of(type);

    if (!f->has_infinity)
        return oracle_nan(type);
    return to_infinity ? infinity_of(type) : infinity_of(type) - (UINT64_C(1) << f->shift);
}

struct rounding {
    enum ptx_rounding mode;
    bool flush; /* .ftz: a result below the least normal number after rounding with an unbounded exponent becomes zero */
};

/* Rounds magnitude * 2^exponent, where the magnitude has up to 64 bits, to a format. */
static uint64_t round_to(enum ptx_type type, bool negative, uint64_t magnitude, int exponent, struct rounding rounding)
{
    const struct format *f = format_of(type);
    const int bias = (1 << (f->exponent_bits - 1)) - 1, least = 1 - bias - f->fraction_bits;
    const uint64_t sign = negative ? oracle_sign_bit(type) : 0;
    int last; /* exponent of the unit in the last place of the result */
    uint64_t n, bits;

    if (magnitude == 0)
        return sign;
    last = exponent + 63 - __builtin_clzll(magnitude) - f->fraction_bits;
    if (last < least) {
        n = shift_rounded(magnitude, last - exponent, negative, rounding.mode);
        if (rounding.flush && (last < least - 1 || n >> (f->fraction_bits + 1) == 0))
            return sign;
        last = least;
    }
    n = shift_rounded(magnitude, last - exponent, negative, rounding.mode);
    /* n counts from the exponent field 1 on: below 2^fraction_bits it is subnormal, and a carry goes to the exponent by itself */
    bits = n < UINT64_C(1) << f->fraction_bits ? n : ((uint64_t)(last + f->fraction_bits + bias - 1) << f->fraction_bits) + n;
    bits <<= f->shift;
    if (f->has_infinity ? bits >= infinity_of(type) : bits >= oracle_nan(type))
        return sign | overflowed(type, negative, rounding.mode);
    return sign | bits;
}

static uint64_t round_double(enum ptx_type type, double value, struct rounding rounding)
{
    const uint64_t bits = bits_of_f64(value), fraction = bits & ((UINT64_C(1) << 52) - 1);
    const int exponent = (int)(bits >> 52 & 0x7ff);
    const bool negative = bits >> 63;

    if (isnan(value))
        return oracle_nan(type);
    if (oracle_element(type) == PTX_F64)
        return bits;
    if (isinf(value))
        return (negative ? oracle_sign_bit(type) : 0) | (format_of(type)->has_infinity ? infinity_of(type) : oracle_nan(type));
    if (exponent == 0)
        return round_to(type, negative, fraction, -1074, rounding);
    return round_to(type, negative, fraction | UINT64_C(1) << 52, exponent - 1075, rounding);
}

uint64_t oracle_from_double(enum ptx_type type, double value, enum ptx_rounding rounding)
{
    return round_double(type, value, (struct rounding){rounding, false});
}

uint64_t oracle_from_double_flushed(enum ptx_type type, double value, enum ptx_rounding rounding)
{
    return round_double(type, value, (struct rounding){rounding, true});
}

uint64_t oracle_from_integer(enum ptx_type type, bool negative, uint64_t magnitude, enum ptx_rounding rounding)
{
    return round_to(type, negative, magnitude, 0, (struct rounding){rounding, false});
}

double oracle_integral(double value, enum ptx_rounding rounding)
{
    switch (rounding) {
    case PTX_RZ:
    case PTX_RZI:
        return trunc(value);
    case PTX_RM:
    case PTX_RMI:
        return floor(value);
    case PTX_RP:
    case PTX_RPI:
        return ceil(value);
    default:
        return nearbyint(value);
    }
}

/* ---- operations ---- */

static double compute_in_mode(enum oracle_arithmetic what, int mode, const double *in, bool *is_exact)
{
    volatile double a = in[0], b = in[1], c = in[2], result = 0;

    feclearexcept(FE_ALL_EXCEPT);
    fesetround(mode);
    switch (what) {
    case ORACLE_ADD:
        result = a + b;
        break;
    case ORACLE_MUL:
        result = a * b;
        break;
    case ORACLE_FMA:
        result = fma(a, b, c);
        break;
    case ORACLE_DIV:
        result = a / b;
        break;
    case ORACLE_SQRT:
        result = sqrt(a);
        break;
    }
    *is_exact = !fetestexcept(FE_INEXACT);
    fesetround(FE_TONEAREST);
    return result;
}

static int mode_of(enum ptx_rounding rounding)
{
    switch (rounding) {
    case PTX_RZ:
        return FE_TOWARDZERO;
    case PTX_RM:
        return FE_DOWNWARD;
    case PTX_RP:
        return FE_UPWARD;
    default:
        return FE_TONEAREST;
    }
}

uint64_t oracle_compute(enum ptx_type type, enum oracle_arithmetic what, enum ptx_rounding rounding, bool flush, const uint64_t *in)
{
    double values[3], result;
    bool is_exact;

    for (unsigned i = 0; i < 3; i++)
        values[i] = oracle_to_double(type, in[i]);
    if (oracle_element(type) == PTX_F64) {
        result = compute_in_mode(what, mode_of(rounding), values, &is_exact);
        return oracle_from_double(type, result, rounding);
    }
    result = compute_in_mode(what, FE_TOWARDZERO, values, &is_exact);
    if (is_exact) /* again: the sign of a zero sum depends on the mode */
        result = compute_in_mode(what, mode_of(rounding), values, &is_exact);
    else if (isfinite(result))
        result = f64_of(bits_of_f64(result) | 1);
    return round_double(type, result, (struct rounding){rounding, flush});
}
