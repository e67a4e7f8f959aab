/* SPDX-License-Identifier: Apache-2.0 */
/* cvt (PTX ISA, "Data Movement and Conversion Instructions: cvt"). */
#include "machine.h"

#include <math.h>

static uint64_t limit_of(enum ptx_type type, bool upper)
{
    const unsigned width = ptx_type_bits(type);

    if (ptx_type_is_signed(type))
        return upper ? (UINT64_C(1) << (width - 1)) - 1 : UINT64_MAX << (width - 1);
    return upper ? UINT64_MAX >> (64 - width) : 0;
}

/* ---- to integers ---- */

static uint64_t from_integer(struct oracle_step *s, enum ptx_type to, enum ptx_type from, uint64_t bits)
{
    const __int128 value = ptx_type_is_signed(from) ? (__int128)oracle_signed(bits, from) : (__int128)bits;
    const bool is_signed = ptx_type_is_signed(to);
    const __int128 low = is_signed ? (__int128)(int64_t)limit_of(to, false) : 0, high = limit_of(to, true);

    if (!s->insn->mods.sat)
        return (uint64_t)value;
    return (uint64_t)(value < low ? low : value > high ? high : value);
}

/* Clamped; a NaN becomes 0, but only the sign bit set if the source is f64 or the destination has 64 bits. */
static uint64_t integer_from_float(struct oracle_step *s, enum ptx_type to, enum ptx_type from, uint64_t bits)
{
    const double value = oracle_integral(oracle_to_double(from, bits), (enum ptx_rounding)s->insn->mods.rounding);
    const int width = (int)ptx_type_bits(to);
    const bool is_signed = ptx_type_is_signed(to);

    if (isnan(value))
        return from == PTX_F64 || width == 64 ? UINT64_C(1) << (width - 1) : 0;
    if (value >= ldexp(1, is_signed ? width - 1 : width))
        return limit_of(to, true);
    if (value < (is_signed ? -ldexp(1, width - 1) : 0))
        return limit_of(to, false);
    return is_signed ? (uint64_t)(int64_t)value : (uint64_t)value;
}

/* ---- to floating point ---- */

static enum ptx_rounding rounding_of(const struct oracle_step *s)
{
    return s->insn->mods.rounding ? (enum ptx_rounding)s->insn->mods.rounding : PTX_RN;
}

static bool is_integral_rounding(enum ptx_rounding rounding)
{
    return rounding >= PTX_RNI && rounding <= PTX_RPI;
}

static uint64_t finish(const struct oracle_step *s, enum ptx_type to, uint64_t bits)
{
    if (oracle_is_nan(to, bits))
        return s->insn->mods.sat ? 0 : oracle_nan(to);
    if (s->insn->mods.relu && bits & oracle_sign_bit(to))
        bits = 0;
    return s->insn->mods.sat ? oracle_saturate(to, bits) : bits;
}

static uint64_t float_from_integer(struct oracle_step *s, enum ptx_type to, enum ptx_type from, uint64_t bits)
{
    const bool negative = ptx_type_is_signed(from) && oracle_signed(bits, from) < 0;
    const uint64_t value = ptx_type_is_signed(from) ? (uint64_t)oracle_signed(bits, from) : bits;

    return finish(s, to, oracle_from_integer(to, negative, negative ? 0 - value : value, rounding_of(s)));
}

/* With .satfinite, infinity and numbers that are too large become the largest number. */
static uint64_t narrowed(struct oracle_step *s, enum ptx_type to, double value)
{
    const enum ptx_rounding rounding = is_integral_rounding(rounding_of(s)) ? PTX_RN : rounding_of(s);
    const uint64_t largest = to == PTX_E4M3X2   ? 0x7e
                             : to == PTX_E5M2X2 ? 0x7b
                             : to == PTX_TF32   ? 0x7f7fe000
                                                : oracle_from_double(to, INFINITY, PTX_RN) - 1;
    const bool flush = s->insn->mods.ftz && to == PTX_F32;
    const uint64_t bits = flush ? oracle_from_double_flushed(to, value, rounding) : oracle_from_double(to, value, rounding);

    if (!s->insn->mods.satfinite || isnan(value))
        return bits;
    return (bits & (oracle_sign_bit(to) - 1)) > largest ? (signbit(value) ? oracle_sign_bit(to) : 0) | largest : bits;
}

static uint64_t float_from_float(struct oracle_step *s, enum ptx_type to, enum ptx_type from, uint64_t bits)
{
    double value;

    if (s->insn->mods.ftz && from == PTX_F32)
        bits = oracle_flush(from, bits);
    value = oracle_to_double(from, bits);
    if (is_integral_rounding(rounding_of(s)))
        value = oracle_integral(value, rounding_of(s));
    return finish(s, to, narrowed(s, to, value));
}

static uint64_t convert(struct oracle_step *s, enum ptx_type to, enum ptx_type from, uint64_t bits)
{
    const bool to_float = ptx_type_is_float(to), from_float = ptx_type_is_float(from);

    if (from_float && s->insn->mods.ftz && from == PTX_F32)
        bits = oracle_flush(from, bits);
    if (to_float)
        return from_float ? float_from_float(s, to, from, bits) : float_from_integer(s, to, from, bits);
    return from_float ? integer_from_float(s, to, from, bits) : from_integer(s, to, from, bits);
}

/* ---- packed forms: the first source becomes the upper half ---- */

static bool is_eighths(enum ptx_type type)
{
    return type == PTX_E4M3X2 || type == PTX_E5M2X2;
}

static void pack_two(struct oracle_step *s, enum ptx_type to)
{
    const enum ptx_type element = oracle_element(to);
    const unsigned width = ptx_type_bits(to) / 2;
    const uint64_t high = convert(s, element, PTX_F32, oracle_source(s, 1, PTX_F32));
    const uint64_t low = convert(s, element, PTX_F32, oracle_source(s, 2, PTX_F32));

    oracle_result(s, width == 8 ? PTX_B16 : PTX_B32, high << width | low);
}

/* Between two packed types. */
static void convert_two(struct oracle_step *s, enum ptx_type to, enum ptx_type from)
{
    const unsigned to_width = ptx_type_bits(to) / 2, from_width = ptx_type_bits(from) / 2;
    const uint64_t bits = oracle_source(s, 1, from_width == 8 ? PTX_B16 : PTX_B32);
    uint64_t result = 0;

    for (unsigned i = 0; i < 2; i++) {
        const uint64_t part = bits >> i * from_width & ((UINT64_C(1) << from_width) - 1);

        result |= convert(s, oracle_element(to), oracle_element(from), part) << i * to_width;
    }
    oracle_result(s, to_width == 8 ? PTX_B16 : PTX_B32, result);
}

/* cvt.pack: two numbers clamped and packed, the first one above; narrow ones shift the third operand up. */
static void pack_integers(struct oracle_step *s)
{
    const unsigned width = ptx_pack_bits(&s->insn->mods, oracle_type(s, 0));
    const bool is_signed = ptx_pack_is_signed(&s->insn->mods, oracle_type(s, 0));
    const int64_t high = (INT64_C(1) << (width - is_signed)) - 1, low = is_signed ? -high - 1 : 0;
    uint64_t result = width < 16 ? oracle_source(s, 3, PTX_B32) : 0;

    for (unsigned i = 1; i <= 2; i++) {
        const int64_t value = oracle_signed(oracle_source(s, i, PTX_S32), PTX_S32);
        const int64_t clamped = value < low ? low : value > high ? high : value;

        result = result << width | ((uint64_t)clamped & ((UINT64_C(1) << width) - 1));
    }
    oracle_result(s, PTX_B32, result & UINT32_MAX);
}

void oracle_do_cvt(struct oracle_step *s)
{
    const enum ptx_type to = oracle_type(s, 0), from = oracle_type(s, 1);
    const bool packed_to = oracle_element(to) != to || is_eighths(to), packed_from = oracle_element(from) != from || is_eighths(from);

    if (s->insn->mods.mode == PTX_MODE_PACK)
        pack_integers(s);
    else if (s->insn->n_types > 2 || rounding_of(s) == PTX_RS)
        oracle_fail(s, ORACLE_UNSUPPORTED, "this form of cvt");
    else if (packed_to && packed_from)
        convert_two(s, to, from);
    else if (packed_to)
        pack_two(s, to);
    else
        oracle_result(s, to, convert(s, to, from, oracle_source(s, 1, from)));
}
