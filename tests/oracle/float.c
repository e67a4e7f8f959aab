/* SPDX-License-Identifier: Apache-2.0 */
/* Floating point instructions (PTX ISA, "Floating Point Instructions", "Half Precision Floating Point Instructions"). */
#include "machine.h"

#include <math.h>

/* Computes one element of an instruction from its sources; rounding and modifiers are those of the step's instruction. */
typedef uint64_t element_function(struct oracle_step *s, enum ptx_type type, const uint64_t *in);

/* The NaN that .oob means, in f16 and bf16, as an H100 has it: such a factor makes the result 0. */
static bool is_oob(uint64_t bits)
{
    return (bits & 0x7fff) == 0x7ff7;
}

/* f on each element of packed operands, or on whole ones. */
static void each_element(struct oracle_step *s, unsigned n_sources, element_function *f)
{
    const enum ptx_type type = oracle_type(s, 0), element = oracle_element(type);
    const unsigned width = ptx_type_bits(element);
    uint64_t sources[3] = {0}, result = 0;

    for (unsigned i = 0; i < n_sources; i++)
        sources[i] = oracle_source(s, i + 1, type);
    for (unsigned at = 0; at < ptx_type_bits(type); at += width) {
        uint64_t in[3] = {0};

        for (unsigned i = 0; i < n_sources; i++) {
            in[i] = oracle_cut(sources[i] >> at, element);
            if (s->insn->mods.ftz)
                in[i] = oracle_flush(element, in[i]);
        }
        if (!s->insn->mods.oob || !(is_oob(in[0]) || is_oob(in[1])))
            result |= f(s, element, in) << at;
    }
    oracle_result(s, type, result);
}

static uint64_t finish(const struct oracle_step *s, enum ptx_type type, uint64_t bits)
{
    if (oracle_is_nan(type, bits) && !s->insn->mods.sat)
        return oracle_nan(type);
    if (s->insn->mods.ftz)
        bits = oracle_flush(type, bits);
    if (s->insn->mods.relu && bits & oracle_sign_bit(type))
        bits = 0;
    return s->insn->mods.sat ? oracle_saturate(type, bits) : bits;
}

static enum ptx_rounding rounding_of(const struct oracle_step *s)
{
    return s->insn->mods.rounding ? (enum ptx_rounding)s->insn->mods.rounding : PTX_RN;
}

/* ---- add, sub, mul, div, fma ---- */

static uint64_t binary_element(struct oracle_step *s, enum ptx_type type, const uint64_t *in)
{
    uint64_t sources[3] = {in[0], in[1], 0};
    enum oracle_arithmetic what = ORACLE_ADD;

    switch (s->insn->opcode) {
    case PTX_OP_SUB:
        sources[1] ^= oracle_sign_bit(type);
        break;
    case PTX_OP_MUL:
        what = ORACLE_MUL;
        break;
    case PTX_OP_DIV: /* .approx and .full are rounded correctly, too */
        what = ORACLE_DIV;
        break;
    default:
        break;
    }
    return finish(s, type, oracle_compute(type, what, rounding_of(s), s->insn->mods.ftz, sources));
}

void oracle_do_float_binary(struct oracle_step *s)
{
    if (s->insn->n_types > 1)
        oracle_fail(s, ORACLE_UNSUPPORTED, "a second type");
    else
        each_element(s, 2, binary_element);
}

static uint64_t fma_element(struct oracle_step *s, enum ptx_type type, const uint64_t *in)
{
    return finish(s, type, oracle_compute(type, ORACLE_FMA, rounding_of(s), s->insn->mods.ftz, in));
}

void oracle_do_fma(struct oracle_step *s)
{
    if (s->insn->n_types > 1)
        oracle_fail(s, ORACLE_UNSUPPORTED, "a second type");
    else
        each_element(s, 3, fma_element);
}

/* ---- abs, neg, copysign, testp ---- */

static uint64_t sign_element(struct oracle_step *s, enum ptx_type type, const uint64_t *in)
{
    const uint64_t sign = oracle_sign_bit(type);

    return s->insn->opcode == PTX_OP_NEG ? in[0] ^ sign : in[0] & ~sign;
}

void oracle_do_float_sign(struct oracle_step *s)
{
    each_element(s, 1, sign_element);
}

/* The sign of the first, the magnitude of the second. */
void oracle_do_copysign(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);
    const uint64_t sign = oracle_sign_bit(type);

    oracle_result(s, type, (oracle_source(s, 1, type) & sign) | (oracle_source(s, 2, type) & ~sign));
}

/* Zeros count as normal numbers. */
void oracle_do_testp(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);
    const uint64_t a = oracle_source(s, 1, type);
    const double value = oracle_to_double(type, a);
    const bool is_subnormal = value != 0 && oracle_flush(type, a) != a;
    bool result = false;

    switch (s->insn->mods.mode) {
    case PTX_MODE_FINITE:
        result = isfinite(value);
        break;
    case PTX_MODE_INFINITE:
        result = isinf(value);
        break;
    case PTX_MODE_NUMBER:
        result = !isnan(value);
        break;
    case PTX_MODE_NOTANUMBER:
        result = isnan(value);
        break;
    case PTX_MODE_NORMAL:
        result = isfinite(value) && !is_subnormal;
        break;
    case PTX_MODE_SUBNORMAL:
        result = is_subnormal;
        break;
    }
    oracle_result(s, PTX_PRED, result);
}

/* ---- min, max ---- */

/* If one operand is a NaN, the other one is returned, except with .NaN; -0 is less than +0. */
static uint64_t min_max_two(struct oracle_step *s, enum ptx_type type, const uint64_t *in)
{
    const uint64_t sign = oracle_sign_bit(type);
    const bool is_min = s->insn->opcode == PTX_OP_MIN;
    uint64_t a = in[0], b = in[1], result;
    double x, y;

    if (s->insn->mods.absolute) {
        a &= ~sign;
        b &= ~sign;
    }
    x = oracle_to_double(type, a);
    y = oracle_to_double(type, b);
    if (isnan(x) || isnan(y)) {
        if (s->insn->mods.nan || (isnan(x) && isnan(y)))
            return oracle_nan(type);
        result = isnan(x) ? b : a;
    } else {
        const bool a_less = x < y || (x == y && signbit(x) && !signbit(y));

        result = a_less == is_min ? a : b;
    }
    return s->insn->mods.xorsign ? result | ((in[0] ^ in[1]) & sign) : result;
}

/* Three operands: of the result for two, and the third. */
static uint64_t min_max_element(struct oracle_step *s, enum ptx_type type, const uint64_t *in)
{
    const uint64_t first = min_max_two(s, type, in);

    return s->insn->n_operands > 3 ? min_max_two(s, type, (const uint64_t[]){first, in[2]}) : first;
}

void oracle_do_float_min_max(struct oracle_step *s)
{
    each_element(s, s->insn->n_operands - 1, min_max_element);
}

/* ---- rcp, sqrt and the approximations ---- */

/* Computed with the C library's functions for double, whose error is far below the unit in the last place of a float. */
static double approximate(enum ptx_opcode opcode, double a)
{
    switch (opcode) {
    case PTX_OP_RSQRT:
        return 1 / sqrt(a);
    case PTX_OP_SIN:
        return sin(a);
    case PTX_OP_COS:
        return cos(a);
    case PTX_OP_LG2:
        return log2(a);
    case PTX_OP_EX2:
        return exp2(a);
    default:
        return tanh(a);
    }
}

static uint64_t unary_element(struct oracle_step *s, enum ptx_type type, const uint64_t *in)
{
    const uint64_t of_one[3] = {oracle_from_double(type, 1, PTX_RN), in[0], 0};
    uint64_t result;

    switch (s->insn->opcode) {
    case PTX_OP_RCP:
        result = oracle_compute(type, ORACLE_DIV, rounding_of(s), s->insn->mods.ftz, of_one);
        break;
    case PTX_OP_SQRT:
        result = oracle_compute(type, ORACLE_SQRT, rounding_of(s), s->insn->mods.ftz, in);
        break;
    default:
        result = oracle_from_double(type, approximate(s->insn->opcode, oracle_to_double(type, in[0])), PTX_RN);
        break;
    }
    return finish(s, type, result);
}

void oracle_do_float_unary(struct oracle_step *s)
{
    each_element(s, 1, unary_element);
}
