/* SPDX-License-Identifier: Apache-2.0 */
/* lower: correctly rounded quotients and square roots (PTX ISA, "div", "rcp", "sqrt").
 *
 * f32 is computed in f64 (where there is none: lower_divide32.c). A quotient or root of 24-bit numbers that is not itself a 25-bit number
 * differs from every 25-bit number by at least 2^-49 (relatively), so an f64 result with an error of a few ulps still rounds to the correct f32. Directed rounding uses the
 * residual, which f64 represents exactly: a - q*b or a - s*s.
 * With fused operations both are computed in f32, quotients except for rare operands (refine_quotient.c). What the steps of a root lose if fma
 * flushes subnormals is below 2^-30 of a: too little to matter if the root is one of the two nearest numbers.
 * f64 corrects the driver's result once by its residual (Markstein) if the target is not exact; if the quotient is subnormal, or
 * operands are within 2^60 of the ends of the exponent range, the driver's result is kept. */
#include "lower.h"

static ct_value widen(struct ct_cursor *at, ct_value x)
{
    return ct_float_resized(at, PTX_F32, PTX_F64, x);
}

static ct_value times(struct ct_cursor *at, enum ptx_type type, ct_value a, ct_value b)
{
    return ct_op2(at, CT_OP_FMUL, type, a, b);
}

static ct_value zero_of(struct ct_cursor *at, ct_value like)
{
    return ct_const_like(at, like, 0);
}

/* Directed rounding by the residual: it says whether the exact quotient is below or above the rounded one, depending on the divisor's
 * sign. */
static ct_value quotient_adjusted(struct ct_cursor *at, enum ptx_type type, enum ptx_rounding rounding, ct_value nearest, ct_value residual,
                                  ct_value divisor)
{
    const enum ptx_type bits = ct_signed_type(ct_width_at(at, divisor));
    const ct_value negative = ct_icmp_imm(at, bits, PTX_LT, divisor, 0);
    const ct_value is_less = ct_fcmp(at, PTX_F64, PTX_LT, residual, zero_of(at, residual));
    const ct_value is_greater = ct_fcmp(at, PTX_F64, PTX_GT, residual, zero_of(at, residual));

    return ct_adjusted(at, type, rounding, nearest, ct_select(at, negative, is_greater, is_less),
                       ct_select(at, negative, is_less, is_greater));
}

/* ---- quotients ---- */

static ct_value quotient32(struct ct_lower *l, enum ptx_rounding rounding, ct_value a, ct_value b)
{
    struct ct_cursor *at = &l->at;
    const ct_value wide_a = widen(at, a), wide_b = widen(at, b);
    const ct_value nearest = ct_float_resized(at, PTX_F64, PTX_F32, ct_op2(at, CT_OP_FDIV, PTX_F64, wide_a, wide_b));
    ct_value residual;

    if (ct_rounds_to_nearest(rounding))
        return nearest;
    residual = ct_op2(at, CT_OP_FSUB, PTX_F64, wide_a, times(at, PTX_F64, widen(at, nearest), wide_b));
    return quotient_adjusted(at, PTX_F32, rounding, nearest, residual, wide_b);
}

/* a - q*b with one rounding; the operands are scaled up where it might underflow: see directed_product64. */
static ct_value residual64(struct ct_lower *l, ct_value a, ct_value b, ct_value q)
{
    struct ct_cursor *at = &l->at;
    const ct_value q_magnitude = ct_float_magnitude(at, PTX_F64, q), b_magnitude = ct_float_magnitude(at, PTX_F64, b);
    const ct_value q_smaller = ct_icmp(at, PTX_U64, PTX_LT, q_magnitude, b_magnitude);
    const ct_value smaller = ct_select(at, q_smaller, q, b), greater = ct_select(at, q_smaller, b, q);
    const ct_value one = ct_float_const(at, PTX_F64, 1.0);
    const ct_value is_small = ct_fcmp(at, PTX_F64, PTX_LT, ct_float_magnitude(at, PTX_F64, a), one);
    const ct_value scale = ct_select(at, is_small, ct_float_const(at, PTX_F64, 0x1p200), one);
    const ct_value opposite = ct_float_negated(at, PTX_F64, times(at, PTX_F64, smaller, scale));

    return ct_lower_fused(l, PTX_F64, PTX_RN, opposite, greater, times(at, PTX_F64, a, scale));
}

/* Whether the exponent is well inside the range, so that no step of the correction overflows or underflows. */
static ct_value is_well_inside(struct ct_cursor *at, ct_value x)
{
    const ct_value exponent = ct_and_imm(at, x, UINT64_C(0x7ff) << 52);

    return ct_icmp_imm(at, PTX_U64, PTX_LT, ct_add_imm(at, exponent, -(UINT64_C(60) << 52)), (UINT64_C(0x7fe) - 120) << 52);
}

static ct_value corrected_quotient64(struct ct_lower *l, ct_value a, ct_value b, ct_value q)
{
    struct ct_cursor *at = &l->at;
    const ct_value residual = ct_lower_fused(l, PTX_F64, PTX_RN, ct_float_negated(at, PTX_F64, q), b, a);
    const ct_value inverse = ct_op2(at, CT_OP_FDIV, PTX_F64, ct_float_const(at, PTX_F64, 1.0), b);
    const ct_value better = ct_lower_fused(l, PTX_F64, PTX_RN, residual, inverse, q);
    const ct_value well_inside = ct_and(at, ct_and(at, is_well_inside(at, a), is_well_inside(at, b)),
                                        ct_and(at, is_well_inside(at, inverse), is_well_inside(at, q)));

    return ct_select(at, well_inside, better, q);
}

static ct_value refined(const struct ct_lower *l, ct_value result)
{
    l->fn->values.v[result.i].def->refined = l->fn->target->refined_roots64;
    return result;
}

ct_value ct_lower_driver_inverse64(struct ct_lower *l, ct_value b)
{
    return refined(l, ct_op2(&l->at, CT_OP_FDIV, PTX_F64, ct_float_const(&l->at, PTX_F64, 1.0), b));
}

static bool is_one(const struct ct_lower *l, ct_value x)
{
    const struct ct_insn *def = l->fn->values.v[x.i].def;

    return def && def->op == CT_OP_CONST && def->imm == ct_float_layout_of(PTX_F64)->one;
}

static ct_value quotient64(struct ct_lower *l, enum ptx_rounding rounding, ct_value a, ct_value b)
{
    ct_value q = is_one(l, a) ? ct_lower_driver_inverse64(l, b) : ct_op2(&l->at, CT_OP_FDIV, PTX_F64, a, b);

    if (!l->fn->target->exact_div64)
        q = corrected_quotient64(l, a, b, q);
    if (ct_rounds_to_nearest(rounding))
        return q;
    return quotient_adjusted(&l->at, PTX_F64, rounding, q, residual64(l, a, b, q), b);
}

ct_value ct_lower_quotient(struct ct_lower *l, enum ptx_type type, enum ptx_rounding rounding, ct_value a, ct_value b)
{
    const struct ptx2spv_target *target = l->fn->target;
    ct_value quotient;

    if (type == PTX_F64)
        return quotient64(l, rounding, a, b);
    if (l->insn->approx || ((target->exact_div32 || target->exact_fma32) && ct_rounds_to_nearest(rounding))) {
        quotient = ct_op2(&l->at, CT_OP_FDIV, type, a, b);
        l->fn->values.v[quotient.i].def->refined = !l->insn->approx && !target->exact_div32;
        return quotient;
    }
    return target->float64 ? quotient32(l, rounding, a, b) : ct_lower_integer_quotient32(l, rounding, a, b);
}

/* ---- square roots ---- */

static ct_value root_adjusted(struct ct_cursor *at, enum ptx_type type, enum ptx_rounding rounding, ct_value nearest, ct_value residual)
{
    return quotient_adjusted(at, type, rounding, nearest, residual, ct_float_const(at, PTX_F64, 1.0));
}

static ct_value is_below_encoding(struct ct_cursor *at, ct_value a, uint32_t exponent_field)
{
    return ct_icmp_imm(at, PTX_U32, PTX_LT, a, (uint64_t)exponent_field << 23); /* encodings are in numerical order */
}

/* Selects one of three numbers: for subnormals, for other numbers below 2^-96, for all others. */
static ct_value select_by_size(struct ct_lower *l, ct_value a, double of_subnormal, double of_small, double of_others)
{
    struct ct_cursor *at = &l->at;
    const ct_value selected =
        ct_select(at, is_below_encoding(at, a, 31), ct_float_const(at, PTX_F32, of_small), ct_float_const(at, PTX_F32, of_others));

    if (l->insn->ftz) /* there are none, or multiplication makes zeros of them */
        return selected;
    return ct_select(at, is_below_encoding(at, a, 1), ct_float_const(at, PTX_F32, of_subnormal), selected);
}

/* a times an even power of two, such that no intermediate result of its root is subnormal. Subnormals are converted from integers, as in
 * ct_float_resized. */
static ct_value scaled_for_root(struct ct_lower *l, ct_value a)
{
    struct ct_cursor *at = &l->at;
    const ct_value factor = select_by_size(l, a, 2.0, 0x1p64, 1.0);

    if (!l->insn->ftz)
        a = ct_select(at, is_below_encoding(at, a, 1), ct_converted(at, CT_OP_ITOF, PTX_U32, PTX_F32, a), a);
    return times(at, PTX_F32, a, factor);
}

/* a times its inverse root, then one step with the residual, which is exact. Before it both are improved by another step (Goldschmidt): tried
 * for every significand with inverses up to 4 ulp off. It is omitted where the driver's inverse is known to be precise enough, and for
 * approximate instructions, whose error stays below 2^-23. Zeros, infinity and NaN are their own roots, and the root of other negative
 * numbers is NaN. */
static ct_value refined_root32(struct ct_lower *l, ct_value a)
{
    struct ct_cursor *at = &l->at;
    const ct_value scaled = scaled_for_root(l, a), inverse = ct_lower_driver_inverse_root32(at, scaled);
    const ct_value one_half = ct_float_const(at, PTX_F32, 0.5);
    ct_value root = times(at, PTX_F32, scaled, inverse), half = times(at, PTX_F32, inverse, one_half), missing, better;

    if (!l->fn->target->refined_sqrt32 && !l->insn->approx) {
        const ct_value error = ct_float_fused32(at, ct_float_negated(at, PTX_F32, root), half, one_half);

        root = ct_float_fused32(at, root, error, root);
        half = ct_float_fused32(at, half, error, half);
    }
    missing = ct_float_fused32(at, ct_float_negated(at, PTX_F32, root), root, scaled);
    better = ct_float_fused32(at, missing, half, root);
    const ct_value result = times(at, PTX_F32, better, select_by_size(l, a, 0x1p-75, 0x1p-32, 1.0));
    const ct_value is_usual = ct_icmp_imm(at, PTX_U32, PTX_LT, ct_add_imm(at, scaled, UINT64_MAX), 0x7f7fffff);
    const ct_value is_negative = ct_icmp_imm(at, PTX_U32, PTX_GT, scaled, 0x80000000);

    return ct_select(at, is_usual, result, ct_select(at, is_negative, ct_const32(at, 0x7fffffff), scaled));
}

static ct_value root32(struct ct_lower *l, enum ptx_rounding rounding, ct_value a)
{
    struct ct_cursor *at = &l->at;
    const ct_value wide_a = widen(at, a);
    ct_value nearest, back, residual;

    nearest = ct_float_resized(at, PTX_F64, PTX_F32, ct_op1(at, CT_OP_FSQRT, PTX_F64, wide_a));
    if (ct_rounds_to_nearest(rounding))
        return nearest;
    back = widen(at, nearest);
    residual = ct_op2(at, CT_OP_FSUB, PTX_F64, wide_a, times(at, PTX_F64, back, back));
    return root_adjusted(at, PTX_F32, rounding, nearest, residual);
}

static ct_value residual_of_product(struct ct_lower *l, ct_value a, ct_value x, ct_value y)
{
    return ct_lower_fused(l, PTX_F64, PTX_RN, ct_float_negated(&l->at, PTX_F64, x), y, a);
}

/* s + (a - s*s) / (2*s), then Tuckerman's test: s is the nearest root if s*(s - ulp) < a <= s*(s + ulp). Zeros, infinities and NaNs are
 * kept. */
static ct_value corrected_root64(struct ct_lower *l, ct_value a, ct_value root)
{
    struct ct_cursor *at = &l->at;
    const ct_value half_inverse = ct_op2(at, CT_OP_FDIV, PTX_F64, ct_float_const(at, PTX_F64, 0.5), root);
    const ct_value better = ct_lower_fused(l, PTX_F64, PTX_RN, residual_of_product(l, a, root, root), half_inverse, root);
    const ct_value below = ct_add_imm(at, better, UINT64_MAX), above = ct_add_imm(at, better, 1);
    const ct_value low = residual_of_product(l, a, better, below), high = residual_of_product(l, a, better, above);
    ct_value nearest = ct_select(at, ct_fcmp(at, PTX_F64, PTX_LE, low, zero_of(at, low)), below, better);

    nearest = ct_select(at, ct_fcmp(at, PTX_F64, PTX_GT, high, zero_of(at, high)), above, nearest);
    return ct_select(at, ct_and(at, is_well_inside(at, a), is_well_inside(at, root)), nearest, root);
}

ct_value ct_lower_driver_root64(struct ct_lower *l, ct_value a)
{
    return refined(l, ct_op1(&l->at, CT_OP_FSQRT, PTX_F64, a));
}

/* Small arguments are scaled by 2^200, their roots by 2^-100: both exact, since no root is subnormal. */
static ct_value root64(struct ct_lower *l, enum ptx_rounding rounding, ct_value a)
{
    struct ct_cursor *at = &l->at;
    const ct_value one = ct_float_const(at, PTX_F64, 1.0);
    const bool nearest = ct_rounds_to_nearest(rounding);
    ct_value is_small, scaled, root;

    if (nearest && l->fn->target->exact_sqrt64)
        return ct_lower_driver_root64(l, a);
    is_small = ct_fcmp(at, PTX_F64, PTX_LT, a, ct_float_const(at, PTX_F64, 0x1p-500));
    scaled = times(at, PTX_F64, a, ct_select(at, is_small, ct_float_const(at, PTX_F64, 0x1p200), one));
    root = ct_lower_driver_root64(l, scaled);
    if (!l->fn->target->exact_sqrt64)
        root = corrected_root64(l, scaled, root);
    if (!nearest)
        root = root_adjusted(at, PTX_F64, rounding, root, residual_of_product(l, scaled, root, root));
    return times(at, PTX_F64, root, ct_select(at, is_small, ct_float_const(at, PTX_F64, 0x1p-100), one));
}

ct_value ct_lower_root(struct ct_lower *l, enum ptx_type type, enum ptx_rounding rounding, ct_value a)
{
    if (type == PTX_F64)
        return root64(l, rounding, a);
    if (l->fn->target->exact_sqrt32 && ct_rounds_to_nearest(rounding))
        return ct_op1(&l->at, CT_OP_FSQRT, type, a);
    if (l->fn->target->exact_fma32 && ct_rounds_to_nearest(rounding))
        return refined_root32(l, a);
    return l->fn->target->float64 ? root32(l, rounding, a) : ct_lower_integer_root32(l, rounding, a);
}
