/* SPDX-License-Identifier: Apache-2.0 */
/* lower: sums and products with one rounding of any mode, from operations that round to nearest.
 *
 * f32 is computed in f64: a product of two is exact there, a sum is rounded to odd (the last bit is set if it is inexact), and the
 * narrowing then rounds once. f64 uses the exact error of its sum (TwoSum, Knuth) or product (fma), whose sign says on which side of the
 * nearest value the exact one is. f16 products and sums are exact or rounded to odd in f32. */
#include "lower.h"

static ct_value add(struct ct_cursor *at, enum ptx_type type, ct_value a, ct_value b)
{
    return ct_op2(at, CT_OP_FADD, type, a, b);
}

static ct_value subtract(struct ct_cursor *at, enum ptx_type type, ct_value a, ct_value b)
{
    return ct_op2(at, CT_OP_FSUB, type, a, b);
}

static ct_value is_less(struct ct_cursor *at, enum ptx_type type, ct_value a, ct_value b)
{
    return ct_fcmp(at, type, PTX_LT, a, b);
}

static ct_value is_positive(struct ct_cursor *at, enum ptx_type type, ct_value a)
{
    return ct_fcmp(at, type, PTX_GT, a, ct_const_like(at, a, 0));
}

static ct_value is_negative(struct ct_cursor *at, enum ptx_type type, ct_value a)
{
    return is_less(at, type, a, ct_const_like(at, a, 0));
}

static ct_value sign_bit(struct ct_cursor *at, ct_value bits)
{
    return ct_icmp_imm(at, ct_signed_type(ct_width_at(at, bits)), PTX_LT, bits, 0);
}

static ct_value is_finite(struct ct_cursor *at, enum ptx_type type, ct_value x)
{
    return ct_icmp_imm(at, ct_unsigned_type(ct_width_of(type)), PTX_LT, ct_float_magnitude(at, type, x),
                       ct_float_layout_of(type)->exponent);
}

/* ---- rounding errors, rounding to odd, neighbours ---- */

ct_value ct_two_sum(struct ct_cursor *at, enum ptx_type type, ct_value a, ct_value b, ct_value *error)
{
    const ct_value sum = add(at, type, a, b);
    const ct_value b_part = subtract(at, type, sum, a);
    const ct_value a_part = subtract(at, type, sum, b_part);
    const ct_value a_error = subtract(at, type, a, a_part);

    *error = add(at, type, a_error, subtract(at, type, b, b_part));
    return sum;
}

/* The neighbour away from zero (grow) or towards zero: encodings of one sign are in the order of their magnitudes. */
static ct_value stepped(struct ct_cursor *at, ct_value x, ct_value grow)
{
    const ct_value one = ct_const_like(at, x, 1), minus_one = ct_const_like(at, x, UINT64_MAX);

    return ct_add(at, x, ct_select(at, grow, one, minus_one));
}

/* Rounds to odd: the exact value truncated towards zero, with its last bit set if that is inexact. Encodings of one sign are in the
 * order of their magnitudes. is_beyond: the nearest value has a greater magnitude than the exact one. */
static ct_value made_odd(struct ct_cursor *at, ct_value nearest, ct_value is_inexact, ct_value is_beyond)
{
    const ct_value none = ct_const_like(at, nearest, 0), one = ct_const_like(at, nearest, 1);
    const ct_value towards_zero = ct_add(at, nearest, ct_select(at, is_beyond, ct_const_like(at, nearest, UINT64_MAX), none));

    return ct_or(at, towards_zero, ct_select(at, is_inexact, one, none));
}

static ct_value differs_from_zero(struct ct_cursor *at, enum ptx_type type, ct_value x)
{
    return ct_fcmp(at, type, PTX_NE, x, ct_const_like(at, x, 0)); /* false for NaN */
}

ct_value ct_to_odd(struct ct_cursor *at, enum ptx_type type, ct_value nearest, ct_value error)
{
    const ct_value is_inexact = differs_from_zero(at, type, error);

    return made_odd(at, nearest, is_inexact, ct_and(at, is_inexact, sign_bit(at, ct_xor(at, nearest, error))));
}

/* The same for terms that come from a narrower type: a nonzero error is a multiple of their last bits, and its product with the sum does
 * not underflow. On lavapipe this takes two thirds of the time of ct_to_odd. */
static ct_value narrow_to_odd(struct ct_cursor *at, enum ptx_type type, ct_value nearest, ct_value error)
{
    const ct_value is_beyond = is_negative(at, type, ct_op2(at, CT_OP_FMUL, type, nearest, error));

    return made_odd(at, nearest, differs_from_zero(at, type, error), is_beyond);
}

ct_value ct_adjusted(struct ct_cursor *at, enum ptx_type type, enum ptx_rounding rounding, ct_value nearest, ct_value is_below,
                     ct_value is_above)
{
    const ct_value negative = sign_bit(at, nearest);
    ct_value moves, grow;

    (void)type;
    if (rounding == PTX_RZ || rounding == PTX_RZI) { /* towards zero: only if the nearest value has the greater magnitude */
        moves = ct_select(at, negative, is_above, is_below);
        return ct_select(at, moves, ct_add_imm(at, nearest, UINT64_MAX), nearest);
    }
    moves = rounding == PTX_RM ? is_below : is_above;
    grow = rounding == PTX_RM ? negative : ct_not(at, negative);
    return ct_select(at, moves, stepped(at, nearest, grow), nearest);
}

/* The magnitude of an f16 as the encoding of an f32. By integer operations, since drivers optimize away a conversion to f16 and back. */
static ct_value encoded_as_f32(struct ct_cursor *at, ct_value half)
{
    const ct_value magnitude = ct_and_imm(at, ct_resize(at, half, PTX_U16, CT_W_32), 0x7fff);
    const ct_value subnormal = ct_icmp_imm(at, PTX_U32, PTX_LT, magnitude, 0x0400);
    const ct_value infinite = ct_equals(at, magnitude, 0x7c00);
    const ct_value normal = ct_add_imm(at, ct_shl_imm(at, magnitude, 13), UINT64_C(112) << 23);
    const ct_value small = ct_converted(at, CT_OP_ITOF, PTX_U32, PTX_F32, magnitude);
    const ct_value result = ct_select(at, subnormal, ct_op2(at, CT_OP_FMUL, PTX_F32, small, ct_float_const(at, PTX_F32, 0x1p-24)), normal);

    return ct_select(at, infinite, ct_const32(at, 0x7f800000), result);
}

static ct_value narrowed_to_half(struct ct_cursor *at, enum ptx_rounding rounding, ct_value x, ct_value nearest)
{
    const ct_value magnitude = ct_float_magnitude(at, PTX_F32, x), back = encoded_as_f32(at, nearest);
    const ct_value negative = sign_bit(at, x), number = ct_not(at, ct_float_is_nan(at, PTX_F32, x));
    const ct_value smaller = ct_and(at, number, ct_icmp(at, PTX_U32, PTX_LT, magnitude, back));
    const ct_value greater = ct_and(at, number, ct_icmp(at, PTX_U32, PTX_GT, magnitude, back));

    return ct_adjusted(at, PTX_F16, rounding, nearest, ct_select(at, negative, greater, smaller),
                       ct_select(at, negative, smaller, greater));
}

ct_value ct_float_narrowed(struct ct_cursor *at, enum ptx_type from, enum ptx_type to, enum ptx_rounding rounding, ct_value x)
{
    const ct_value nearest = ct_float_resized(at, from, to, x);
    ct_value back;

    if (ct_rounds_to_nearest(rounding))
        return nearest;
    if (from == PTX_F32 && to == PTX_F16)
        return narrowed_to_half(at, rounding, x, nearest);
    back = ct_float_resized(at, to, from, nearest);
    return ct_adjusted(at, to, rounding, nearest, is_less(at, from, x, back), is_less(at, from, back, x));
}

ct_value ct_float_narrowed_to_odd(struct ct_cursor *at, enum ptx_type from, enum ptx_type to, ct_value x)
{
    const ct_value nearest = ct_float_resized(at, from, to, x);
    const ct_value error = subtract(at, from, x, ct_float_resized(at, to, from, nearest));
    const ct_value is_even = ct_equals(at, ct_and_imm(at, nearest, 1), 0);
    const ct_value inexact = ct_fcmp(at, from, PTX_NE, error, ct_const_like(at, error, 0));
    const ct_value grow = ct_bits2(at, CT_OP_XOR, sign_bit(at, nearest), is_positive(at, from, error));
    const ct_value is_infinite = ct_not(at, is_finite(at, to, nearest)); /* on overflow: the greatest finite number, which is odd */
    const ct_value moved = ct_select(at, ct_and(at, is_even, inexact), stepped(at, nearest, grow), nearest);

    return ct_select(at, ct_and(at, is_infinite, is_finite(at, from, x)), ct_add_imm(at, nearest, UINT64_MAX), moved);
}

/* ---- sums ---- */

/* With .rm an exact zero sum is -0 unless both terms are +0. */
static ct_value with_sign_of_zero(struct ct_cursor *at, enum ptx_type type, enum ptx_rounding rounding, ct_value sum, ct_value a,
                                  ct_value b)
{
    const ct_value is_zero = ct_equals(at, ct_float_magnitude(at, type, sum), 0);
    ct_value signs;

    if (rounding != PTX_RM)
        return sum;
    signs = ct_and_imm(at, ct_or(at, a, b), ct_float_layout_of(type)->sign);
    return ct_select(at, is_zero, signs, sum);
}

/* a + b in f64, of f32 or of products of two f32, rounded to odd. */
static ct_value odd_sum64(struct ct_cursor *at, ct_value a, ct_value b)
{
    ct_value error;
    const ct_value sum = ct_two_sum(at, PTX_F64, a, b, &error);

    return narrow_to_odd(at, PTX_F64, sum, error);
}

static ct_value wide(struct ct_lower *l, ct_value x)
{
    return ct_float_resized(&l->at, PTX_F32, PTX_F64, x);
}

/* If finite terms overflow, the exact sum is below the infinite one (above the negative one), though the computed error is NaN. */
static void add_overflow(struct ct_cursor *at, ct_value sum, ct_value all_finite, ct_value *is_below, ct_value *is_above)
{
    const ct_value overflow = ct_and(at, all_finite, ct_not(at, is_finite(at, PTX_F64, sum)));
    const ct_value negative = sign_bit(at, sum);

    *is_below = ct_or(at, *is_below, ct_and(at, overflow, ct_not(at, negative)));
    *is_above = ct_or(at, *is_above, ct_and(at, overflow, negative));
}

/* Adjusts the nearest f64 value for a directed rounding, given its error and whether the operands were finite. */
static ct_value directed64(struct ct_cursor *at, enum ptx_rounding rounding, ct_value nearest, ct_value error, ct_value all_finite)
{
    ct_value is_below = is_negative(at, PTX_F64, error), is_above = is_positive(at, PTX_F64, error);

    add_overflow(at, nearest, all_finite, &is_below, &is_above);
    return ct_adjusted(at, PTX_F64, rounding, nearest, is_below, is_above);
}

static ct_value both_finite(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_and(at, is_finite(at, PTX_F64, a), is_finite(at, PTX_F64, b));
}

/* a + b and its error, also next to the greatest numbers, where a step of ct_two_sum overflows. */
static ct_value sum64(struct ct_cursor *at, ct_value a, ct_value b, ct_value *error)
{
    const ct_value a_greater = ct_icmp(at, PTX_U64, PTX_GE, ct_float_magnitude(at, PTX_F64, a), ct_float_magnitude(at, PTX_F64, b));
    const ct_value greater = ct_select(at, a_greater, a, b), smaller = ct_select(at, a_greater, b, a);
    const ct_value sum = add(at, PTX_F64, a, b);

    *error = subtract(at, PTX_F64, smaller, subtract(at, PTX_F64, sum, greater));
    return sum;
}

ct_value ct_lower_sum(struct ct_lower *l, enum ptx_type type, enum ptx_rounding rounding, ct_value a, ct_value b)
{
    struct ct_cursor *at = &l->at;
    ct_value sum, error, finite;

    if (ct_rounds_to_nearest(rounding))
        return add(at, type, a, b);
    if (type == PTX_F32 && !l->fn->target->float64)
        return ct_lower_integer_fused32(l, rounding, a, ct_float_const(at, PTX_F32, 1.0), b);
    if (type == PTX_F64) {
        sum = sum64(at, a, b, &error);
        finite = both_finite(at, a, b);
        return with_sign_of_zero(at, type, rounding, directed64(at, rounding, sum, error, finite), a, b);
    }
    /* the device may flush what is narrowed, so that only the sum in f64 tells whether it is zero */
    a = wide(l, a);
    b = wide(l, b);
    sum = with_sign_of_zero(at, PTX_F64, rounding, odd_sum64(at, a, b), a, b);
    return ct_float_narrowed(at, PTX_F64, type, rounding, sum);
}

/* ---- products ---- */

ct_value ct_is_tiny64(struct ct_cursor *at, enum ptx_rounding rounding, ct_value x)
{
    const ct_value magnitude = ct_float_magnitude(at, PTX_F64, x), negative = sign_bit(at, x);
    const ct_value towards = ct_float_const(at, PTX_F64, 0x1p-126), away = ct_float_const(at, PTX_F64, 0x1.fffffe0000001p-127);

    if (ct_rounds_to_nearest(rounding))
        return is_less(at, PTX_F64, magnitude, ct_float_const(at, PTX_F64, 0x1.ffffffp-127));
    if (rounding == PTX_RZ)
        return is_less(at, PTX_F64, magnitude, towards);
    return is_less(at, PTX_F64, magnitude,
                   rounding == PTX_RM ? ct_select(at, negative, away, towards) : ct_select(at, negative, towards, away));
}

static void note_tiny64(struct ct_lower *l, enum ptx_rounding rounding, ct_value wide)
{
    if (l->insn->ftz)
        l->tiny = ct_is_tiny64(&l->at, rounding, wide);
}

/* The same for the operation repeated with a scale of 2^24, where results of that size have full precision. If the result is tiny, both
 * factors are below 2^50, so that scaling does not overflow; an overflow compares as not tiny, which is correct. */
static void note_tiny_scaled(struct ct_lower *l, enum ct_op op, ct_value a, ct_value b, ct_value c)
{
    struct ct_cursor *at = &l->at;
    const ct_value scale = ct_float_const(at, PTX_F32, 0x1p24), scaled = ct_op2(at, CT_OP_FMUL, PTX_F32, a, scale);
    ct_value result;

    if (op == CT_OP_FMUL)
        result = ct_op2(at, op, PTX_F32, scaled, b);
    else
        result = ct_emit3(at, op, PTX_F32, CT_W_32, scaled, b, ct_op2(at, CT_OP_FMUL, PTX_F32, c, scale));
    l->tiny = is_less(at, PTX_F32, ct_float_magnitude(at, PTX_F32, result), ct_float_const(at, PTX_F32, 0x1p-102));
}

/* The sign of a*b - product decides. If the product is small, that difference might underflow, so both are scaled by 2^200; scaling the
 * smaller factor does not overflow. */
static ct_value directed_product64(struct ct_lower *l, enum ptx_rounding rounding, ct_value a, ct_value b)
{
    struct ct_cursor *at = &l->at;
    const ct_value product = ct_op2(at, CT_OP_FMUL, PTX_F64, a, b);
    const ct_value a_magnitude = ct_float_magnitude(at, PTX_F64, a), b_magnitude = ct_float_magnitude(at, PTX_F64, b);
    const ct_value a_smaller = ct_icmp(at, PTX_U64, PTX_LT, a_magnitude, b_magnitude);
    const ct_value smaller = ct_select(at, a_smaller, a, b), greater = ct_select(at, a_smaller, b, a);
    const ct_value is_small = is_less(at, PTX_F64, ct_float_magnitude(at, PTX_F64, product), ct_float_const(at, PTX_F64, 1.0));
    const ct_value scale = ct_select(at, is_small, ct_float_const(at, PTX_F64, 0x1p200), ct_float_const(at, PTX_F64, 1.0));
    const ct_value scaled = ct_op2(at, CT_OP_FMUL, PTX_F64, smaller, scale);
    const ct_value opposite = ct_float_negated(at, PTX_F64, ct_op2(at, CT_OP_FMUL, PTX_F64, product, scale));
    const ct_value vanished = ct_and(at, ct_equals(at, ct_float_magnitude(at, PTX_F64, product), 0),
                                     ct_not(at, ct_equals(at, ct_select(at, a_smaller, a_magnitude, b_magnitude), 0)));
    const ct_value signed_one =
        ct_or(at, ct_and_imm(at, ct_xor(at, a, b), ct_float_layout_of(PTX_F64)->sign), ct_float_const(at, PTX_F64, 1.0));
    const ct_value difference = ct_lower_fused(l, PTX_F64, PTX_RN, scaled, greater, opposite);
    const ct_value error = ct_select(at, vanished, signed_one, difference);

    return directed64(at, rounding, product, error, both_finite(at, a, b));
}

ct_value ct_lower_product(struct ct_lower *l, enum ptx_type type, enum ptx_rounding rounding, ct_value a, ct_value b)
{
    struct ct_cursor *at = &l->at;
    ct_value wide_a, wide_b, product;

    if (ct_rounds_to_nearest(rounding)) {
        if (l->insn->ftz && type == PTX_F32 && !ct_device_flushes(l))
            note_tiny_scaled(l, CT_OP_FMUL, a, b, b);
        return ct_op2(at, CT_OP_FMUL, type, a, b);
    }
    if (type == PTX_F64)
        return directed_product64(l, rounding, a, b);
    if (type == PTX_F32 && !l->fn->target->float64) /* an exact zero has the sign of the product */
        return ct_lower_integer_fused32(l, rounding, a, b, ct_and_imm(at, ct_xor(at, a, b), ct_float_layout_of(type)->sign));
    wide_a = wide(l, a);
    wide_b = wide(l, b);
    product = ct_op2(at, CT_OP_FMUL, PTX_F64, wide_a, wide_b);
    note_tiny64(l, rounding, product);
    return ct_float_narrowed(at, PTX_F64, type, rounding, product);
}

/* ---- fused multiply-add ---- */

/* f16 in f32, f32 in f64: the product is exact, the sum is rounded to odd. */
static ct_value fused_through(struct ct_lower *l, enum ptx_type type, enum ptx_type inner, enum ptx_rounding rounding, ct_value a,
                              ct_value b, ct_value c)
{
    struct ct_cursor *at = &l->at;
    const ct_value wide_a = ct_float_resized(at, type, inner, a), wide_b = ct_float_resized(at, type, inner, b);
    const ct_value product = ct_op2(at, CT_OP_FMUL, inner, wide_a, wide_b);
    const ct_value wide_c = ct_float_resized(at, type, inner, c);
    ct_value error, odd;
    const ct_value sum = ct_two_sum(at, inner, product, wide_c, &error);

    odd = narrow_to_odd(at, inner, sum, error);
    if (inner == PTX_F64)
        note_tiny64(l, rounding, odd);
    return ct_float_narrowed(at, inner, type, rounding, with_sign_of_zero(at, inner, rounding, odd, product, wide_c));
}

ct_value ct_fused_from_wide(struct ct_cursor *at, ct_value a, ct_value b, ct_value c)
{
    const ct_value product = ct_op2(at, CT_OP_FMUL, PTX_F64, a, b); /* exact */

    return ct_float_resized(at, PTX_F64, PTX_F32, odd_sum64(at, product, c));
}

/* In f64, since a product may be out of the range of f32; the sum is rounded to odd before the final rounding. */
ct_value ct_lower_fused_bf16(struct ct_lower *l, ct_value a, ct_value b, ct_value c)
{
    struct ct_cursor *at = &l->at;
    ct_value wide_a, wide_b, wide_c, product;

    if (!l->fn->target->float64)
        return ct_lower_integer_fused_bf16(l, a, b, c);
    wide_a = wide(l, a);
    wide_b = wide(l, b);
    wide_c = wide(l, c);
    product = ct_op2(at, CT_OP_FMUL, PTX_F64, wide_a, wide_b); /* exact */
    return ct_bf16_narrowed(l, PTX_F64, odd_sum64(at, product, wide_c));
}

bool ct_splits_fma32(const struct ct_fn *fn, const struct ct_insn *insn)
{
    return fn->target->splits_fma32 && insn->op == CT_OP_FFMA && insn->type == PTX_F32 && !insn->residual &&
           ct_rounds_to_nearest(insn->rounding);
}

bool ct_guards_rounding(const struct ct_fn *fn)
{
    const struct ptx2spv_target *target = fn->target;

    return target->float64 && !target->exact_fma32 && !target->guards_fma32 && !fn->kernel;
}

bool ct_guards_fma32(const struct ct_fn *fn)
{
    return (fn->target->float64 && fn->target->guards_fma32) || ct_guards_rounding(fn);
}

/* An exact zero is the sum of a zero product and a zero c, or a cancellation of terms with different signs. */
static ct_value directed_fused64(struct ct_cursor *at, enum ptx_rounding rounding, ct_value a, ct_value b, ct_value c)
{
    ct_value error, result, is_exact;
    const ct_value nearest = ct_fused64(at, a, b, c, &error);
    const ct_value finite = ct_and(at, both_finite(at, a, b), is_finite(at, PTX_F64, c));

    result = directed64(at, rounding, nearest, error, finite);
    is_exact = ct_equals(at, ct_float_magnitude(at, PTX_F64, error), 0);
    return ct_select(at, is_exact, with_sign_of_zero(at, PTX_F64, rounding, result, ct_xor(at, a, b), c), result);
}

static ct_value fused64(struct ct_lower *l, enum ptx_rounding rounding, ct_value a, ct_value b, ct_value c)
{
    struct ct_cursor *at = &l->at;
    ct_value error;

    if (!ct_rounds_to_nearest(rounding))
        return directed_fused64(at, rounding, a, b, c);
    return l->fn->target->exact_fma64 ? ct_emit3(at, CT_OP_FFMA, PTX_F64, CT_W_64, a, b, c) : ct_fused64(at, a, b, c, &error);
}

bool ct_refines_fma64(const struct ct_fn *fn)
{
    return fn->target->float64 && !fn->target->exact_fma64 && (fn->kernel || !fn->target->inlines);
}

ct_value ct_lower_fused(struct ct_lower *l, enum ptx_type type, enum ptx_rounding rounding, ct_value a, ct_value b, ct_value c)
{
    struct ct_cursor *at = &l->at;
    const struct ptx2spv_target *target = l->fn->target;
    const bool nearest = ct_rounds_to_nearest(rounding), splits = ct_splits_fma32(l->fn, l->insn);
    const bool guarded = ct_guards_fma32(l->fn) && !l->insn->ftz && !splits;
    ct_value result;

    if (type == PTX_F16)
        return target->float16 && target->exact_fma16 ? ct_emit3(at, CT_OP_FFMA, type, CT_W_16, a, b, c)
                                                      : fused_through(l, type, PTX_F32, rounding, a, b, c);
    if (type == PTX_F64)
        return fused64(l, rounding, a, b, c);
    if (nearest && (target->exact_fma32 || guarded || splits)) {
        if (l->insn->ftz && !splits && !ct_device_flushes(l))
            note_tiny_scaled(l, CT_OP_FFMA, a, b, c);
        result = ct_emit3(at, CT_OP_FFMA, type, CT_W_32, a, b, c);
        at->fn->values.v[result.i].def->guarded = guarded;
        at->fn->values.v[result.i].def->split = splits;
        return result;
    }
    if (!target->float64)
        return ct_lower_integer_fused32(l, rounding, a, b, c);
    return fused_through(l, type, PTX_F64, rounding, a, b, c);
}
