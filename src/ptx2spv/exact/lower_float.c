/* SPDX-License-Identifier: Apache-2.0 */
/* lower: modifiers of float operations (.ftz, .sat, .NaN, rounding), comparisons, minimum and maximum.
 *
 * Half precision without hardware support is computed in f32: 24 bits are at least twice 11 plus 2, so double rounding is innocuous for
 * a sum, product, quotient or root (Figueroa, "When is double rounding innocuous?"). */
#include "lower.h"
#include "range.h"

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

/* ---- signs and classification, by integer operations: no driver may flush or canonicalize the value ---- */

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

/* The encodings of positive numbers are in numerical order; after subtracting one, zero is above them, as are negative numbers and NaNs. */
ct_value ct_float_saturated(struct ct_cursor *at, enum ptx_type type, ct_value x)
{
    const struct ct_float_layout *layout = ct_float_layout_of(type);
    const enum ptx_type bits = ct_unsigned_type(ct_width_of(type));
    const ct_value positive = ct_icmp_imm(at, bits, PTX_LT, ct_add_imm(at, x, UINT64_MAX), layout->exponent);
    const ct_value below_one = ct_op2(at, CT_OP_MIN, bits, x, ct_const_like(at, x, layout->one));

    return ct_select(at, positive, below_one, ct_const_like(at, x, 0));
}

/* Subnormals, which the conversion might flush, are converted as the integers by which they are multiples of 2^-149. They are not scaled
 * by FMul: if x is itself a result, NVIDIA 580 flushes it there (measured on an H200). */
static ct_value widened_exactly(struct ct_cursor *at, ct_value x)
{
    const struct ct_float_layout *layout = ct_float_layout_of(PTX_F32);
    const ct_value is_small = ct_equals(at, ct_and_imm(at, x, layout->exponent), 0);
    const ct_value places = ct_converted(at, CT_OP_ITOF, PTX_U32, PTX_F32, ct_and_imm(at, x, layout->fraction));
    const ct_value down = ct_select(at, is_small, ct_float_const(at, PTX_F64, 0x1p-149), ct_float_const(at, PTX_F64, 1.0));
    const ct_value whole = ct_select(at, is_small, ct_or(at, places, ct_and_imm(at, x, layout->sign)), x);

    return ct_op2(at, CT_OP_FMUL, PTX_F64, ct_converted(at, CT_OP_FTOF, PTX_F32, PTX_F64, whole), down);
}

ct_value ct_float_resized(struct ct_cursor *at, enum ptx_type from, enum ptx_type to, ct_value x)
{
    if (from == to)
        return x;
    if (from == PTX_F32 && to == PTX_F64 && !at->fn->target->keeps_subnormals32 && at->fn->target->float64)
        return widened_exactly(at, x);
    if (!at->fn->target->float16 && from == PTX_F16)
        return ct_float_resized(at, PTX_F32, to, ct_half_widened(at, x));
    if (!at->fn->target->float16 && to == PTX_F16 && from == PTX_F32)
        return ct_half_narrowed(at, x);
    return ct_converted(at, CT_OP_FTOF, from, to, x);
}

/* ---- .ftz ---- */

bool ct_device_flushes(const struct ct_lower *l)
{
    const struct ct_insn *insn = l->insn;
    const struct ptx2spv_target *target = l->fn->target;

    if (!insn->ftz || insn->type != PTX_F32)
        return false;
    if (insn->op == CT_OP_FFMA && target->fma32_flushes) /* always */
        return target->exact_fma32 && ct_rounds_to_nearest(insn->rounding);
    if (insn->op == CT_OP_FEX2 && !ct_lower_is_near(l, PTX2SPV_NEAR_EX2)) /* a polynomial: it takes subnormals for zeros, and gives none */
        return true;
    if (!ct_fn_kernel(l->fn)->flushes32)
        return false;
    switch ((unsigned)insn->op) {
    case CT_OP_FADD:
    case CT_OP_FSUB:
    case CT_OP_FMUL:
        return ct_rounds_to_nearest(insn->rounding);
    case CT_OP_FFMA:
        return ct_rounds_to_nearest(insn->rounding) && (target->exact_fma32 || ct_splits_fma32(l->fn, insn));
    case CT_OP_FDIV:
    case CT_OP_FRCP:
        return insn->approx || (target->exact_div32 && ct_rounds_to_nearest(insn->rounding));
    case CT_OP_FSQRT:
        return (insn->approx && ct_lower_is_near(l, PTX2SPV_NEAR_SQRT)) ||
               ((target->exact_sqrt32 || target->exact_fma32) && ct_rounds_to_nearest(insn->rounding));
    case CT_OP_FRSQRT:
    case CT_OP_FSIN:
    case CT_OP_FCOS:
    case CT_OP_FLG2:
    case CT_OP_FEX2:
    case CT_OP_FCMP:
        return true;
    default: /* minimum and maximum of zeros depend on the bits */
        return false;
    }
}

ct_value ct_lower_operand(struct ct_lower *l, unsigned index, enum ptx_type type)
{
    const ct_value x = l->insn->operands[index];

    if (!l->insn->ftz || ct_device_flushes(l) || (type == PTX_F32 && x.i < l->n_flushed && l->flushed[x.i]))
        return x;
    return ct_float_flushed(&l->at, type, x);
}

/* ---- comparisons ---- */

/* Where the driver's comparison takes subnormals for zeros: the sign of a - b, since the subtraction keeps subnormals, is read from its
 * bits. The difference of equal infinities is NaN, which is neither. */
static ct_value is_less_by_difference(struct ct_cursor *at, ct_value difference)
{
    return ct_icmp_imm(at, PTX_U32, PTX_LE, ct_add_imm(at, difference, -UINT64_C(0x80000001)), 0x7f7fffff);
}

static ct_value is_greater_by_difference(struct ct_cursor *at, ct_value difference)
{
    return ct_icmp_imm(at, PTX_U32, PTX_LE, ct_add_imm(at, difference, UINT64_MAX), 0x7f7fffff);
}

/* Ordered comparisons. Taking subnormals for zeros can only make <=, >= and == true by mistake, so these are the driver's comparisons,
 * corrected. */
static ct_value ordered_exactly(struct ct_cursor *at, enum ptx_compare compare, ct_value a, ct_value b)
{
    const ct_value difference = ct_op2(at, CT_OP_FSUB, PTX_F32, a, b);
    const ct_value less = is_less_by_difference(at, difference), greater = is_greater_by_difference(at, difference);

    switch ((unsigned)compare) {
    case PTX_LT:
        return less;
    case PTX_GT:
        return greater;
    case PTX_NE:
        return ct_or(at, less, greater);
    case PTX_LE:
        return ct_and(at, ct_fcmp(at, PTX_F32, compare, a, b), ct_not(at, greater));
    case PTX_GE:
        return ct_and(at, ct_fcmp(at, PTX_F32, compare, a, b), ct_not(at, less));
    default: /* EQ */
        return ct_and(at, ct_fcmp(at, PTX_F32, PTX_EQ, a, b), ct_not(at, ct_or(at, less, greater)));
    }
}

static ct_value compared_exactly(struct ct_cursor *at, enum ptx_compare compare, ct_value a, ct_value b)
{
    static const uint8_t opposites[] = {
        [PTX_EQU] = PTX_NE, [PTX_NEU] = PTX_EQ, [PTX_LTU] = PTX_GE, [PTX_LEU] = PTX_GT, [PTX_GTU] = PTX_LE, [PTX_GEU] = PTX_LT};

    if (compare == PTX_NUM || compare == PTX_NAN)
        return ct_fcmp(at, PTX_F32, compare, a, b);
    if (compare >= PTX_EQU)
        return ct_not(at, ordered_exactly(at, opposites[compare], a, b));
    return ordered_exactly(at, compare, a, b);
}

ct_value ct_float_compared(struct ct_cursor *at, enum ptx_compare compare, ct_value a, ct_value b)
{
    const struct ct_fn *fn = at->fn;

    if (ct_is_far_from_zero(fn, a) || ct_is_far_from_zero(fn, b) || (ct_is_no_subnormal(fn, a) && ct_is_no_subnormal(fn, b)))
        return ct_fcmp(at, PTX_F32, compare, a, b);
    return compared_exactly(at, compare, a, b);
}

/* A comparison that must handle subnormals correctly. */
static ct_value compared(struct ct_cursor *at, enum ptx_type type, enum ptx_compare compare, ct_value a, ct_value b)
{
    const ct_value result = ct_fcmp(at, type, compare, a, b);

    at->fn->values.v[result.i].def->refined = type == PTX_F32 && !at->fn->target->keeps_subnormals32;
    return result;
}

static bool half_is_missing(const struct ct_lower *l)
{
    return l->insn->type == PTX_F16 && !l->fn->target->float16;
}

static ct_value comparison_operand(struct ct_lower *l, unsigned index)
{
    const ct_value x = ct_lower_operand(l, index, l->insn->type);

    if (l->insn->type == PTX_BF16)
        return ct_bf16_widened(&l->at, x);
    return half_is_missing(l) ? ct_float_resized(&l->at, PTX_F16, PTX_F32, x) : x;
}

/* Operands that .ftz has flushed can be compared by a driver that flushes too. */
ct_value ct_lower_comparison(struct ct_lower *l)
{
    const bool may_flush = l->insn->type == PTX_F32 && !l->fn->target->keeps_subnormals32;
    const bool widens = half_is_missing(l) || l->insn->type == PTX_BF16;
    const enum ptx_type type = widens ? PTX_F32 : l->insn->type;
    ct_value a, b;

    if (!l->insn->ftz && !widens && !may_flush)
        return CT_NO_VALUE;
    a = comparison_operand(l, 0);
    b = comparison_operand(l, 1);
    return l->insn->ftz ? ct_fcmp(&l->at, type, l->insn->compare, a, b) : compared(&l->at, type, l->insn->compare, a, b);
}

/* ---- minimum, maximum ---- */

/* The number if the other operand is a NaN, else the lesser or greater operand; for two zeros it may be either. */
static ct_value chosen_extreme(struct ct_lower *l, enum ptx_type type, ct_value a, ct_value b)
{
    struct ct_cursor *at = &l->at;
    ct_value takes_a;

    if (type != PTX_F32 || l->fn->target->keeps_subnormals32)
        return ct_op2(at, l->insn->op, type, a, b);
    takes_a = compared(at, type, l->insn->op == CT_OP_FMIN ? PTX_LT : PTX_GT, a, b);
    takes_a = ct_or(at, takes_a, ct_float_is_nan(at, type, b));
    return ct_select(at, takes_a, a, b);
}

/* The sign of equal operands is determined by their bits, which differ for zeros only. Two NaNs, or with .NaN a single one, give the
 * device's NaN. */
static ct_value extreme(struct ct_lower *l, enum ptx_type type, const ct_value *operands)
{
    struct ct_cursor *at = &l->at;
    const ct_value a = operands[0], b = operands[1], nan = ct_const_like(at, a, ct_float_layout_of(type)->nan);
    const ct_value chosen = chosen_extreme(l, type, a, b);
    const ct_value both_zero = ct_equals(at, ct_float_magnitude(at, type, ct_or(at, a, b)), 0);
    const ct_value settled = l->insn->op == CT_OP_FMIN ? ct_or(at, a, b) : ct_and(at, a, b);
    const ct_value result = ct_select(at, both_zero, settled, chosen);

    if (l->insn->nan)
        return ct_select(at, ct_fcmp(at, type, PTX_NAN, a, b), nan, result);
    return ct_select(at, ct_and(at, ct_float_is_nan(at, type, a), ct_float_is_nan(at, type, b)), nan, result);
}

/* ---- other operations ---- */

static ct_value unmodified(struct ct_lower *l, enum ptx_type type, const ct_value *operands)
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

/* Operations without modifiers, which the emitter writes unchanged: Vulkan requires them to be correctly rounded. */
static bool may_stay_unchanged(const struct ct_lower *l)
{
    const struct ct_insn *insn = l->insn;
    const struct ptx2spv_target *target = l->fn->target;

    if (insn->ftz || insn->sat || insn->nan || !ct_rounds_to_nearest(insn->rounding) || half_is_missing(l))
        return false;
    if (insn->op == CT_OP_FFMA)
        return insn->type == PTX_F32   ? target->exact_fma32 || ct_guards_fma32(l->fn) || ct_splits_fma32(l->fn, insn)
               : insn->type == PTX_F64 ? target->exact_fma64 || ct_refines_fma64(l->fn)
                                       : target->exact_fma16;
    return insn->op == CT_OP_FADD || insn->op == CT_OP_FSUB || insn->op == CT_OP_FMUL;
}

/* A result is flushed if it is tiny with an unbounded exponent (ct_is_tiny64): a product of 2^-126 - 2^-150 becomes zero though it
 * rounds up to 2^-126. If the operation does not compute that, the rounded result decides; tiny sums are exact. */
static ct_value flushed_result(struct ct_lower *l, enum ptx_type type, ct_value result)
{
    if (!l->tiny.i || type != PTX_F32)
        return ct_float_flushed(&l->at, type, result);
    return ct_select(&l->at, l->tiny, ct_and_imm(&l->at, result, ct_float_layout_of(type)->sign), result);
}

static bool is_sign_operation(const struct ct_insn *insn)
{
    return insn->op == CT_OP_FNEG || insn->op == CT_OP_FABS;
}

static bool is_constant(const struct ct_lower *l, ct_value x, uint64_t bits)
{
    const struct ct_insn *constant = ct_constant_or_null(l->fn, x);

    return constant && (constant->imm & 0xffff) == bits;
}

/* Compute capability 8.0 has no other arithmetic of bf16 than fma, so that cuda_bf16.h writes sums as a * 1 + b and products as a * b - 0. */
static ct_value fused_bf16(struct ct_lower *l, const ct_value wide[3])
{
    const ct_value *x = l->insn->operands;

    for (unsigned i = 0; i < 2; i++)
        if (is_constant(l, x[i], ct_float_layout_of(PTX_BF16)->one))
            return ct_bf16_narrowed(l, PTX_F32, ct_lower_sum(l, PTX_F32, PTX_RN, wide[1 - i], wide[2]));
    if (is_constant(l, x[2], ct_float_layout_of(PTX_BF16)->sign))
        return ct_bf16_narrowed(l, PTX_F32, ct_lower_product(l, PTX_F32, PTX_RN, wide[0], wide[1]));
    return ct_lower_fused_bf16(l, wide[0], wide[1], wide[2]);
}

/* bf16 is computed in f32, whose 24 bits are more than twice the 8 bits of bf16 plus 2: double rounding is innocuous for sums and
 * products. */
static ct_value through_f32(struct ct_lower *l)
{
    const struct ct_insn *insn = l->insn;
    ct_value wide[3];

    if (is_sign_operation(insn))
        return unmodified(l, PTX_BF16, insn->operands);
    for (uint32_t i = 0; i < insn->n_operands; i++)
        wide[i] = ct_bf16_widened(&l->at, insn->operands[i]);
    if (insn->op == CT_OP_FFMA)
        return fused_bf16(l, wide);
    return ct_bf16_narrowed(l, PTX_F32, unmodified(l, PTX_F32, wide));
}

ct_value ct_lower_float_operation(struct ct_lower *l)
{
    struct ct_insn *insn = l->insn;
    const bool widen = half_is_missing(l) && !is_sign_operation(insn) && insn->op != CT_OP_FFMA;
    const enum ptx_type type = insn->type, inner = widen ? PTX_F32 : type;
    ct_value operands[3], result;

    l->tiny = CT_NO_VALUE;
    if (insn->type == PTX_BF16)
        return through_f32(l);
    if (may_stay_unchanged(l)) {
        insn->split = ct_splits_fma32(l->fn, insn);
        insn->refined = insn->op == CT_OP_FFMA && insn->type == PTX_F64 && ct_refines_fma64(l->fn);
        insn->guarded = insn->op == CT_OP_FFMA && insn->type == PTX_F32 && ct_guards_fma32(l->fn) && !insn->split;
        return CT_NO_VALUE;
    }
    for (uint32_t i = 0; i < insn->n_operands; i++)
        operands[i] = ct_float_resized(&l->at, type, inner, ct_lower_operand(l, i, type));
    result = ct_float_resized(&l->at, inner, type, unmodified(l, inner, operands));
    if (insn->ftz && !is_sign_operation(insn) && insn->op != CT_OP_FSQRT && !ct_device_flushes(l)) /* no root is subnormal */
        result = flushed_result(l, type, result);
    return insn->sat ? ct_float_saturated(&l->at, type, result) : result;
}
