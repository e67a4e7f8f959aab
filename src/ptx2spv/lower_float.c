/* SPDX-License-Identifier: Apache-2.0 */
/* lower: modifiers of float operations (.ftz, .sat, .NaN, rounding), comparisons, minimum and maximum.
 *
 * Half precision without a device type is worked out in f32: 24 bits are at least twice 11 plus 2, so that the second rounding of
 * a sum, product, quotient or root changes nothing (Figueroa, "When is double rounding innocuous?"). */
#include "lower.h"

#include <string.h>

const struct ct_float_layout *ct_float_layout_of(enum ptx_type type)
{
    static const struct ct_float_layout f16 = {0x8000, 0x7c00, 0x03ff, 0x3c00, 0x7fff};
    static const struct ct_float_layout bf16 = {0x8000, 0x7f80, 0x007f, 0x3f80, 0x7fff};
    static const struct ct_float_layout f32 = {0x80000000, 0x7f800000, 0x007fffff, 0x3f800000, 0x7fffffff};
    static const struct ct_float_layout f64 = {0x8000000000000000, 0x7ff0000000000000, 0x000fffffffffffff, 0x3ff0000000000000,
                                               0xfff8000000000000};

    return type == PTX_F64 ? &f64 : type == PTX_F16 ? &f16 : type == PTX_BF16 ? &bf16 : &f32;
}

ct_value ct_float_const(struct ct_cursor *at, enum ptx_type type, double value)
{
    const float single = (float)value;
    uint32_t bits32;
    uint64_t bits64;

    memcpy(&bits32, &single, sizeof bits32);
    memcpy(&bits64, &value, sizeof bits64);
    return type == PTX_F64 ? ct_const64(at, bits64) : ct_const32(at, bits32);
}

bool ct_rounds_to_nearest(unsigned rounding)
{
    return rounding == PTX_RND_NONE || rounding == PTX_RN;
}

/* ---- signs and classes, by bits: no driver may flush or canonicalize on the way ---- */

ct_value ct_float_negated(struct ct_cursor *at, enum ptx_type type, ct_value x)
{
    return ct_xor_imm(at, x, ct_float_layout_of(type)->sign);
}

ct_value ct_float_magnitude(struct ct_cursor *at, enum ptx_type type, ct_value x)
{
    return ct_and_imm(at, x, ~ct_float_layout_of(type)->sign);
}

ct_value ct_float_is_nan(struct ct_cursor *at, enum ptx_type type, ct_value x)
{
    return ct_icmp_imm(at, ct_unsigned_type(ct_width_of(type)), PTX_GT, ct_float_magnitude(at, type, x),
                       ct_float_layout_of(type)->exponent);
}

ct_value ct_float_flushed(struct ct_cursor *at, enum ptx_type type, ct_value x)
{
    const struct ct_float_layout *layout = ct_float_layout_of(type);
    const ct_value small = ct_equals(at, ct_and_imm(at, x, layout->exponent), 0);

    return ct_select(at, small, ct_and_imm(at, x, layout->sign), x);
}

ct_value ct_float_saturated(struct ct_cursor *at, enum ptx_type type, ct_value x)
{
    const struct ct_float_layout *layout = ct_float_layout_of(type);
    const ct_value zero = ct_const_like(at, x, 0), one = ct_const_like(at, x, layout->one);
    const ct_value positive = ct_select(at, ct_fcmp(at, type, PTX_GT, x, zero), x, zero);

    return ct_select(at, ct_fcmp(at, type, PTX_LT, positive, one), positive, one);
}

ct_value ct_float_resized(struct ct_cursor *at, enum ptx_type from, enum ptx_type to, ct_value x)
{
    ct_value result;

    if (from == to)
        return x;
    result = ct_emit1(at, CT_OP_FTOF, from, ct_width_of(to), x);
    at->fn->values.v[result.i].def->type2 = to;
    return result;
}

ct_value ct_lower_operand(struct ct_lower *l, unsigned index, enum ptx_type type)
{
    const ct_value x = l->insn->operands[index];

    if (!l->insn->ftz || (type == PTX_F32 && x.i < l->n_flushed && l->flushed[x.i]))
        return x;
    return ct_float_flushed(&l->at, type, x);
}

/* ---- comparison ---- */

static bool half_is_missing(const struct ct_lower *l)
{
    return l->insn->type == PTX_F16 && !l->fn->target->float16;
}

static ct_value comparison_operand(struct ct_lower *l, unsigned index)
{
    const ct_value x = ct_lower_operand(l, index, l->insn->type);

    return half_is_missing(l) ? ct_float_resized(&l->at, PTX_F16, PTX_F32, x) : x;
}

ct_value ct_lower_comparison(struct ct_lower *l)
{
    const enum ptx_type type = half_is_missing(l) ? PTX_F32 : l->insn->type;
    ct_value a, b;

    if (!l->insn->ftz && !half_is_missing(l))
        return CT_NO_VALUE;
    a = comparison_operand(l, 0);
    b = comparison_operand(l, 1);
    return ct_fcmp(&l->at, type, l->insn->compare, a, b);
}

/* ---- minimum, maximum ---- */

/* The primitive gives the number beside a NaN, and either of two zeros: the sign of equal operands is settled by their bits, which
 * differ for zeros only. Two NaNs, or with .NaN one, give the device's NaN. */
static ct_value extreme(struct ct_lower *l, enum ptx_type type, const ct_value *operands)
{
    struct ct_cursor *at = &l->at;
    const ct_value a = operands[0], b = operands[1], nan = ct_const_like(at, a, ct_float_layout_of(type)->nan);
    const ct_value chosen = ct_op2(at, l->insn->op, type, a, b);
    const ct_value equal = ct_fcmp(at, type, PTX_EQ, a, b);
    const ct_value settled = l->insn->op == CT_OP_FMIN ? ct_or(at, a, b) : ct_and(at, a, b);
    const ct_value result = ct_select(at, equal, settled, chosen);

    if (l->insn->nan)
        return ct_select(at, ct_fcmp(at, type, PTX_NAN, a, b), nan, result);
    return ct_select(at, ct_and(at, ct_float_is_nan(at, type, a), ct_float_is_nan(at, type, b)), nan, result);
}

/* ---- everything else ---- */

static ct_value core(struct ct_lower *l, enum ptx_type type, const ct_value *operands)
{
    struct ct_cursor *at = &l->at;
    const enum ptx_rounding rounding = l->insn->rounding;

    if (l->insn->approx && l->insn->op != CT_OP_FDIV && l->insn->op != CT_OP_FADD)
        return ct_lower_approximation(l, type, operands);
    switch ((unsigned)l->insn->op) {
    case CT_OP_FADD:
        return ct_lower_sum(l, type, rounding, operands[0], operands[1]);
    case CT_OP_FSUB:
        return ct_lower_sum(l, type, rounding, operands[0], ct_float_negated(at, type, operands[1]));
    case CT_OP_FMUL:
        return ct_lower_product(l, type, rounding, operands[0], operands[1]);
    case CT_OP_FFMA:
        return ct_lower_fused(l, type, rounding, operands[0], operands[1], operands[2]);
    case CT_OP_FDIV:
        return ct_lower_quotient(l, type, rounding, operands[0], operands[1]);
    case CT_OP_FRCP:
        return ct_lower_quotient(l, type, rounding, ct_const_like(at, operands[0], ct_float_layout_of(type)->one), operands[0]);
    case CT_OP_FSQRT:
        return ct_lower_root(l, type, rounding, operands[0]);
    case CT_OP_FMIN:
    case CT_OP_FMAX:
        return extreme(l, type, operands);
    case CT_OP_FNEG:
        return ct_float_negated(at, type, operands[0]);
    case CT_OP_FABS:
        return ct_float_magnitude(at, type, operands[0]);
    default:
        return ct_lower_approximation(l, type, operands);
    }
}

/* Operations that the emitter writes as they are, if nothing is asked of them: correctly rounded by Vulkan's own rules. */
static bool may_stay(const struct ct_lower *l)
{
    const struct ct_insn *insn = l->insn;
    const struct ptx2spv_target *target = l->fn->target;

    if (insn->ftz || insn->sat || insn->nan || !ct_rounds_to_nearest(insn->rounding) || half_is_missing(l))
        return false;
    if (insn->op == CT_OP_FFMA)
        return insn->type == PTX_F32 ? target->exact_fma32 : insn->type == PTX_F64 && target->exact_fma64;
    return insn->op == CT_OP_FADD || insn->op == CT_OP_FSUB || insn->op == CT_OP_FMUL;
}

static bool is_sign_operation(const struct ct_insn *insn)
{
    return insn->op == CT_OP_FNEG || insn->op == CT_OP_FABS;
}

ct_value ct_lower_float_operation(struct ct_lower *l)
{
    const struct ct_insn *insn = l->insn;
    const bool widen = half_is_missing(l) && !is_sign_operation(insn) && insn->op != CT_OP_FFMA;
    const enum ptx_type type = insn->type, inner = widen ? PTX_F32 : type;
    ct_value operands[3], result;

    if (may_stay(l))
        return CT_NO_VALUE;
    for (uint32_t i = 0; i < insn->n_operands; i++)
        operands[i] = ct_float_resized(&l->at, type, inner, ct_lower_operand(l, i, type));
    result = ct_float_resized(&l->at, inner, type, core(l, inner, operands));
    if (insn->ftz && !is_sign_operation(insn))
        result = ct_float_flushed(&l->at, type, result);
    return insn->sat ? ct_float_saturated(&l->at, type, result) : result;
}
