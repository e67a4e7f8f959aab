/* SPDX-License-Identifier: Apache-2.0 */
/* range: bounds that follow from the operations that compute a value, a few steps back. NaN satisfies every bound: it is not subnormal,
 * and flushing does not change its comparisons. Sums and products with a known bound keep it when they are rounded, since 0 and 2^-126
 * are f32 numbers. */
#include "range.h"

#define SIGN UINT32_C(0x80000000)
#define EXPONENT UINT32_C(0x7f800000)
#define DEPTH_MAX 6 /* how many operations back the search goes */

static bool is_constant(const struct ct_fn *fn, ct_value x, uint32_t bits)
{
    const struct ct_insn *def = fn->values.v[x.i].def;

    return def && def->op == CT_OP_CONST && (uint32_t)def->imm == bits;
}

static bool is_f32(const struct ct_insn *insn, enum ct_op op)
{
    return insn->op == op && insn->type == PTX_F32;
}

/* The operand from which this value differs only in its sign, or none. */
static ct_value same_magnitude(const struct ct_fn *fn, const struct ct_insn *insn)
{
    const bool negates = insn->op == CT_OP_XOR && is_constant(fn, insn->operands[1], SIGN);
    const bool clears_sign = insn->op == CT_OP_AND && is_constant(fn, insn->operands[1], ~SIGN);

    return negates || clears_sign || insn->op == CT_OP_COPY || is_f32(insn, CT_OP_FABS) || is_f32(insn, CT_OP_FNEG) ? insn->operands[0]
                                                                                                                    : CT_NO_VALUE;
}

static bool is_square(const struct ct_insn *insn)
{
    return insn->operands[0].i == insn->operands[1].i;
}

static bool is_not_negative(const struct ct_fn *fn, ct_value x, unsigned depth)
{
    const struct ct_insn *def = fn->values.v[x.i].def;

    if (!def || !depth)
        return false;
    if (def->op == CT_OP_CONST)
        return (uint32_t)def->imm < SIGN;
    if (def->op == CT_OP_AND)
        return is_constant(fn, def->operands[1], ~SIGN);
    if (is_f32(def, CT_OP_FMUL))
        return is_square(def);
    if (is_f32(def, CT_OP_FFMA))
        return is_square(def) && is_not_negative(fn, def->operands[2], depth - 1);
    if (is_f32(def, CT_OP_FADD))
        return is_not_negative(fn, def->operands[0], depth - 1) && is_not_negative(fn, def->operands[1], depth - 1);
    return is_f32(def, CT_OP_FABS) || (def->op == CT_OP_COPY && is_not_negative(fn, def->operands[0], depth - 1));
}

/* At least 2^-126: such a constant, or the sum of one and a nonnegative number. */
static bool is_positive(const struct ct_fn *fn, ct_value x, unsigned depth)
{
    const struct ct_insn *def = fn->values.v[x.i].def;

    if (!def || !depth)
        return false;
    if (def->op == CT_OP_CONST)
        return (uint32_t)def->imm < SIGN && (def->imm & EXPONENT) != 0;
    if (is_f32(def, CT_OP_FFMA))
        return is_square(def) && is_positive(fn, def->operands[2], depth - 1);
    if (is_f32(def, CT_OP_FADD))
        return (is_positive(fn, def->operands[0], depth - 1) && is_not_negative(fn, def->operands[1], depth - 1)) ||
               (is_positive(fn, def->operands[1], depth - 1) && is_not_negative(fn, def->operands[0], depth - 1));
    return def->op == CT_OP_COPY && is_positive(fn, def->operands[0], depth - 1);
}

/* An Fma that flushes, and that no driver replaces by a product or a sum, which do not flush. */
static bool is_flushing(const struct ct_fn *fn, const struct ct_insn *insn)
{
    if (!is_f32(insn, CT_OP_FFMA) || !fn->target->fma32_flushes)
        return false;
    for (uint32_t i = 0; i < 3; i++) {
        const struct ct_insn *def = fn->values.v[insn->operands[i].i].def;

        if (!def || def->op == CT_OP_CONST)
            return false;
    }
    return true;
}

/* Operations whose results are never subnormal. */
static bool has_no_subnormal_result(const struct ct_insn *insn)
{
    switch ((unsigned)insn->op) {
    case CT_OP_CONST:
        return (insn->imm & EXPONENT) != 0 || ((uint32_t)insn->imm & ~SIGN) == 0;
    case CT_OP_ITOF:
        return insn->type2 == PTX_F32;
    case CT_OP_FTOF:
        return insn->type == PTX_F16 && insn->type2 == PTX_F32;
    default:
        return is_f32(insn, CT_OP_FRSQRT) || is_f32(insn, CT_OP_FSQRT);
    }
}

static bool is_no_subnormal(const struct ct_fn *fn, ct_value x, unsigned depth)
{
    const struct ct_insn *def = fn->values.v[x.i].def;

    if (!def || !depth)
        return false;
    if (has_no_subnormal_result(def) || is_flushing(fn, def) || is_positive(fn, x, depth))
        return true;
    if (def->op == CT_OP_SELECT)
        return is_no_subnormal(fn, def->operands[1], depth - 1) && is_no_subnormal(fn, def->operands[2], depth - 1);
    return same_magnitude(fn, def).i && is_no_subnormal(fn, same_magnitude(fn, def), depth - 1);
}

bool ct_is_no_subnormal(const struct ct_fn *fn, ct_value x)
{
    return is_no_subnormal(fn, x, DEPTH_MAX);
}

bool ct_is_far_from_zero(const struct ct_fn *fn, ct_value x)
{
    const struct ct_insn *def = fn->values.v[x.i].def;

    return (def && def->op == CT_OP_CONST && (def->imm & EXPONENT) != 0) || is_positive(fn, x, DEPTH_MAX);
}
