/* SPDX-License-Identifier: Apache-2.0 */
/* Selections between constants that Mesa's drivers misinterpret.
 *
 * The rules of Mesa's optimizer (src/compiler/nir/nir_opt_algebraic.py; these are in 25.0 and 25.2, the first since 2016) compare constants
 * as floats, so a rule for one zero also matches the other one. Our values are bit patterns, for which that is wrong:
 *   p ? 1.0 : 0.0 and p ? 0.0 : 1.0 become b2f(p), which gives +0 where -0 was selected; p ? -1.0 : -0.0 and p ? -0.0 : -1.0 become
 *   fneg(b2f(p)), which gives -0 where +0 was selected (16, 32 and 64 bits);
 *   x < 0.0 ? 0.0 : sqrt(x) becomes sqrt(max(x, 0.0)), which gives +0 where -0 was selected, and for the root of -0, and 0 for the root of
 *   NaN;
 *   sqrt(x) == 0.0 ? FLT_MAX : 1 / sqrt(x) becomes the minimum of the last two, which is FLT_MAX for NaN.
 * The first rule also matches results: an operation on a selection between constants and on another constant becomes a selection between
 * results. All other rules with a zero were read, and those that our code might match were tried on lavapipe 25.0.7. They are correct
 * for bit patterns, or apply only to inexact operations (ours are exact), or only where the sign of a zero may be lost (we declare that
 * it may not), or compare zeros. Where the target has PTX2SPV_WORKAROUND_CONSTANT_CHOICES, the constants of such a selection therefore go
 * through an exclusive or with an opaque zero, which no driver can know at compile time. That is one instruction. */
#include "emit.h"

#include "ptx2spv/passes/simplify.h"

#include <string.h>

#define STEPS_MAX 64  /* operands that are visited for one selection */
#define VALUES_MAX 16 /* possible constants of one selection */

enum { EVERYTHING = 2 * CT_FLOAT_LARGEST - 1 }; /* all kinds of special float */

/* By the bits of a constant. */
static const struct {
    uint8_t bits, kind;
    uint64_t constant;
} kinds[] = {
    {16, CT_FLOAT_PLUS_ZERO, 0},
    {16, CT_FLOAT_MINUS_ZERO, 0x8000},
    {16, CT_FLOAT_PLUS_ONE, 0x3c00},
    {16, CT_FLOAT_MINUS_ONE, 0xbc00},
    {32, CT_FLOAT_PLUS_ZERO, 0},
    {32, CT_FLOAT_MINUS_ZERO, 0x80000000},
    {32, CT_FLOAT_PLUS_ONE, 0x3f800000},
    {32, CT_FLOAT_MINUS_ONE, 0xbf800000},
    {32, CT_FLOAT_LARGEST, 0x7f7fffff},
    {64, CT_FLOAT_PLUS_ZERO, 0},
    {64, CT_FLOAT_MINUS_ZERO, UINT64_C(0x8000000000000000)},
    {64, CT_FLOAT_PLUS_ONE, UINT64_C(0x3ff0000000000000)},
    {64, CT_FLOAT_MINUS_ONE, UINT64_C(0xbff0000000000000)},
};

/* The possible values of a selection, as far as they are constant. */
struct constants {
    uint64_t v[VALUES_MAX];
    unsigned n;
};

unsigned ct_gen_float_kind(uint64_t constant, unsigned bits)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].bits == bits && kinds[i].constant == constant)
            return kinds[i].kind;
    return 0;
}

static bool is_choice(const struct ct_insn *insn)
{
    return insn->op == CT_OP_SELECT || insn->op == CT_OP_PHI;
}

/* NULL: there is no operand, so it is undefined. */
static const struct ct_insn *def_or_null(const struct ct_gen *g, ct_value value)
{
    return value.i ? g->fn->values.v[value.i].def : NULL;
}

/* Adds the constants that a selection, and the selections among its operands, may yield. */
static void collect(const struct ct_gen *g, const struct ct_insn *choice, unsigned *steps, struct constants *out)
{
    for (uint32_t i = choice->op == CT_OP_SELECT; i < choice->n_operands && *steps; i++) {
        const struct ct_insn *def = def_or_null(g, choice->operands[i]);

        --*steps;
        if (def && def->op == CT_OP_CONST && out->n < VALUES_MAX)
            out->v[out->n++] = def->imm;
        else if (def && is_choice(def))
            collect(g, def, steps, out);
    }
}

static struct constants constants_of(const struct ct_gen *g, const struct ct_insn *choice)
{
    struct constants constants = {.n = 0};
    unsigned steps = STEPS_MAX;

    collect(g, choice, &steps, &constants);
    return constants;
}

/* The kinds that must not occur together. */
static unsigned misinterpreted(const struct constants *constants, unsigned bits)
{
    unsigned found = 0;

    for (unsigned i = 0; i < constants->n; i++)
        found |= ct_gen_float_kind(constants->v[i], bits);
    return ((found & CT_FLOAT_PLUS_ZERO) && (found & CT_FLOAT_MINUS_ONE) ? CT_FLOAT_PLUS_ZERO | CT_FLOAT_MINUS_ONE : 0u) |
           ((found & CT_FLOAT_MINUS_ZERO) && (found & CT_FLOAT_PLUS_ONE) ? CT_FLOAT_MINUS_ZERO | CT_FLOAT_PLUS_ONE : 0u);
}

/* The kinds that must not occur together with a root. */
static unsigned excluded_by_roots(const struct ct_gen *g, const struct ct_insn *choice)
{
    unsigned found = 0;

    for (uint32_t i = 0; i < choice->n_operands; i++) {
        const struct ct_insn *def = def_or_null(g, choice->operands[i]);

        if (def && def->op == CT_OP_FSQRT)
            found |= CT_FLOAT_PLUS_ZERO | CT_FLOAT_MINUS_ZERO;
        if (def && def->op == CT_OP_FRSQRT)
            found |= CT_FLOAT_LARGEST;
    }
    return found;
}

static bool has_kind(const struct ct_gen *g, const struct ct_insn *choice, unsigned bits)
{
    for (uint32_t i = 0; i < choice->n_operands; i++) {
        const struct ct_insn *constant = choice->operands[i].i ? ct_constant_or_null(g->fn, choice->operands[i]) : NULL;

        if (constant && ct_gen_float_kind(constant->imm, bits))
            return true;
    }
    return false;
}

static uint8_t hidden_in_choice(const struct ct_gen *g, const struct ct_insn *choice)
{
    const unsigned bits = ct_gen_bits(g, choice->results[0]);
    struct constants constants;

    if (bits == 1 || !has_kind(g, choice, bits))
        return 0;
    constants = constants_of(g, choice);
    return (uint8_t)(misinterpreted(&constants, bits) | excluded_by_roots(g, choice));
}

/* ---- operations on selections ---- */

/* Index of the operand that is a selection while the other one is constant; -1: there is none. */
static int choice_operand(const struct ct_gen *g, const struct ct_insn *insn)
{
    const struct ct_insn *a = def_or_null(g, insn->operands[0]);
    const struct ct_insn *b = insn->n_operands == 2 ? def_or_null(g, insn->operands[1]) : NULL;

    if (a && is_choice(a) && (insn->n_operands == 1 || (b && b->op == CT_OP_CONST)))
        return 0;
    return a && b && is_choice(b) && a->op == CT_OP_CONST ? 1 : -1;
}

static double float_of(uint64_t constant, unsigned bits)
{
    const uint32_t word = (uint32_t)constant;
    float single;
    double value;

    memcpy(&single, &word, sizeof single);
    memcpy(&value, &constant, sizeof value);
    return bits == 32 ? (double)single : value;
}

static uint64_t bits_of(double value, unsigned bits)
{
    const float single = (float)value;
    uint32_t word;
    uint64_t constant;

    memcpy(&word, &single, sizeof word);
    memcpy(&constant, &value, sizeof constant);
    return bits == 32 ? word : constant;
}

/* f32 is computed in f64, which rounds to the same result. */
static bool compute(const struct ct_gen *g, const struct ct_insn *insn, const uint64_t operands[2], uint64_t *out)
{
    const unsigned bits = ct_gen_bits(g, insn->results[0]);
    const double x = float_of(operands[0], bits), y = float_of(operands[1], bits);

    switch (insn->op) {
    case CT_OP_FADD:
        *out = bits_of(x + y, bits);
        return true;
    case CT_OP_FSUB:
        *out = bits_of(x - y, bits);
        return true;
    case CT_OP_FMUL:
        *out = bits_of(x * y, bits);
        return true;
    default:
        return ct_fold_values(g->fn, insn, operands, out);
    }
}

/* 16-bit floats are not evaluated here; their constants are always made opaque. */
static uint8_t hidden_in_operation(const struct ct_gen *g, const struct ct_insn *insn)
{
    const unsigned bits = ct_gen_bits(g, insn->results[0]);
    const int at = bits > 1 ? choice_operand(g, insn) : -1;
    struct constants constants;
    uint64_t operands[2] = {0};

    if (at < 0)
        return 0;
    constants = constants_of(g, def_or_null(g, insn->operands[at]));
    if (constants.n < 2)
        return 0;
    if (bits == 16 && (insn->op == CT_OP_FADD || insn->op == CT_OP_FSUB || insn->op == CT_OP_FMUL))
        return EVERYTHING;
    if (insn->n_operands == 2)
        operands[1 - at] = def_or_null(g, insn->operands[1 - at])->imm;
    for (unsigned i = 0; i < constants.n; i++) {
        operands[at] = constants.v[i];
        if (!compute(g, insn, operands, &constants.v[i]))
            return 0;
    }
    return misinterpreted(&constants, bits) ? EVERYTHING : 0;
}

void ct_gen_find_choices(struct ct_gen *g)
{
    for (uint32_t b = 0; b < g->fn->blocks.n; b++)
        for (const struct ct_insn *insn = g->fn->blocks.v[b]->first; insn; insn = insn->next) {
            if (is_choice(insn))
                g->values[insn->results[0].i].hides = hidden_in_choice(g, insn);
            else if (insn->n_results == 1 && insn->results[0].i && (insn->n_operands == 1 || insn->n_operands == 2))
                g->values[insn->results[0].i].hides = hidden_in_operation(g, insn);
        }
}

static bool is_misinterpreted(const struct ct_gen *g, const struct ct_insn *insn, uint32_t operand)
{
    const uint8_t hides = insn->n_results == 1 ? g->values[insn->results[0].i].hides : 0;
    const struct ct_insn *constant = hides ? ct_constant_or_null(g->fn, insn->operands[operand]) : NULL;

    if (!hides)
        return false;
    if (!is_choice(insn))
        return constant || insn->n_operands == 1;
    return constant && (hides & ct_gen_float_kind(constant->imm, ct_gen_bits(g, insn->results[0])));
}

uint32_t ct_gen_use_chosen(struct ct_gen *g, const struct ct_insn *insn, uint32_t operand)
{
    const uint32_t id = ct_gen_use(g, insn->operands[operand]);

    return is_misinterpreted(g, insn, operand) ? ct_gen_opaque(g, ct_gen_bits(g, insn->operands[operand]), id) : id;
}

uint32_t ct_gen_use_chosen_float(struct ct_gen *g, const struct ct_insn *insn, uint32_t operand)
{
    if (!is_misinterpreted(g, insn, operand))
        return ct_gen_use_float(g, insn->operands[operand]);
    return GEN(g, SpvOpBitcast, ct_gen_float_type(g, ptx_type_bits(insn->type)), ct_gen_use_chosen(g, insn, operand));
}
