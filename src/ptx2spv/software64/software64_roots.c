/* SPDX-License-Identifier: Apache-2.0 */
/* Quotients and square roots.
 *
 * The device's division or root of f32 gives 19 bits of an inverse, and two steps of Newton's iteration in 64-bit integers nearly 60. Each
 * value is rounded so that it stays below the exact one. The result of 56 bits that follows from it is then at most two units too small, which its
 * remainder tells; what remains after that is sticky. The remainder is a difference of integers that wrap around, since it is small itself. */
#include "software64.h"
#include "ptx2spv/exact/lower.h"

enum {
    ESTIMATE_BITS = 24, /* of a significand, which f32 represents */
    RESULT_BITS = 56,   /* of the integer that is corrected by its remainder */
    MARGIN_BITS = 18,   /* an estimate is lowered by 2^-18 of itself at most, and has an error of less than 2^-20 */
    STEPS = 2,
    CORRECTIONS = 2,
};

static ct_value f32_of(struct ct_cursor *at, ct_value x)
{
    return ct_converted(at, CT_OP_ITOF, PTX_U32, PTX_F32, x);
}

/* numerator / denominator, at most 2^31, as the upper word of 64 bits. */
static ct_value estimate(struct ct_cursor *at, double numerator, ct_value denominator)
{
    const ct_value quotient = ct_op2(at, CT_OP_FDIV, PTX_F32, ct_float_const(at, PTX_F32, numerator), denominator);
    const ct_value whole = ct_converted(at, CT_OP_FTOI, PTX_F32, PTX_U32, quotient);

    return ct_shl_imm(at, ct_zext64(at, ct_sub(at, whole, ct_shr_imm(at, whole, MARGIN_BITS))), 32);
}

/* The significand of a result from its upper bits; the rest is not 0 if there is a remainder. */
static ct_value result_significand(struct ct_cursor *at, ct_value result, ct_value remainder)
{
    return ct_sticky64(at, ct_shl_imm(at, result, 64 - RESULT_BITS), ct_not(at, ct_equals(at, remainder, 0)));
}

/* ---- quotients ---- */

/* 2^126 / b, slightly less, for b with bit 63 set. */
static ct_value inverse(struct ct_cursor *at, ct_value b)
{
    const ct_value upper = f32_of(at, ct_low32(at, ct_shr_imm(at, b, 64 - ESTIMATE_BITS)));
    ct_value x = estimate(at, 0x1p54, upper);

    for (unsigned i = 0; i < STEPS; i++) {
        const ct_value error = ct_sub(at, ct_const64(at, (UINT64_C(1) << 62) - 1), ct_upper_product(at, x, b));

        x = ct_add(at, x, ct_shl_imm(at, ct_upper_product(at, x, error), 2));
    }
    return x;
}

/* numerator / b for numerator < b <= 2 numerator. */
static ct_value significand_quotient(struct ct_cursor *at, ct_value numerator, ct_value b)
{
    const unsigned unused = CT_SPARE_BITS64 - 1; /* low bits of both that are 0 */
    const ct_value divisor = ct_shr_imm(at, b, unused);
    ct_value quotient = ct_shr_imm(at, ct_upper_product(at, numerator, inverse(at, b)), 62 - RESULT_BITS);
    ct_value remainder =
        ct_sub(at, ct_shl_imm(at, ct_shr_imm(at, numerator, unused), RESULT_BITS), ct_op2(at, CT_OP_MUL, PTX_U64, quotient, divisor));

    for (unsigned i = 0; i < CORRECTIONS; i++) {
        const ct_value is_less = ct_icmp(at, PTX_U64, PTX_GE, remainder, divisor);

        quotient = ct_select(at, is_less, ct_add_imm(at, quotient, 1), quotient);
        remainder = ct_select(at, is_less, ct_sub(at, remainder, divisor), remainder);
    }
    return result_significand(at, quotient, remainder);
}

static ct_value quotient(struct ct_cursor *at, ct_value a, ct_value b)
{
    const ct_value sign = ct_sign64(at, ct_xor(at, a, b)), a_magnitude = ct_magnitude64(at, a), b_magnitude = ct_magnitude64(at, b);
    const struct ct_parts64 a_parts = ct_parts64_of(at, a), b_parts = ct_parts64_of(at, b);
    const struct ct_parts64 x = ct_normalized64(at, &a_parts), y = ct_normalized64(at, &b_parts);
    const ct_value is_below_one = ct_icmp(at, PTX_U64, PTX_LT, x.significand, y.significand);
    const ct_value numerator = ct_select(at, is_below_one, x.significand, ct_shr_imm(at, x.significand, 1));
    const ct_value exponent = ct_add_imm(at, ct_sub(at, x.exponent, y.exponent), CT_BIAS64);
    const struct ct_parts64 parts = {significand_quotient(at, numerator, y.significand),
                                     ct_select(at, is_below_one, ct_add_imm(at, exponent, UINT64_MAX), exponent)};
    const ct_value no_a = ct_equals(at, a_magnitude, 0), no_b = ct_equals(at, b_magnitude, 0);
    const ct_value infinite_a = ct_equals(at, a_magnitude, CT_INFINITE64), infinite_b = ct_equals(at, b_magnitude, CT_INFINITE64);
    const ct_value undefined = ct_or(at, ct_and(at, no_a, no_b), ct_and(at, infinite_a, infinite_b));
    ct_value result = ct_rounded64(at, sign, &parts);

    result = ct_select(at, ct_or(at, no_a, infinite_b), sign, result);
    result = ct_select(at, ct_or(at, infinite_a, no_b), ct_or_imm(at, sign, CT_INFINITE64), result);
    return ct_select_nan64(at, ct_or(at, undefined, ct_or(at, ct_is_nan64(at, a), ct_is_nan64(at, b))), result);
}

ct_value ct_software64_quotient(struct ct_cursor *at, const struct ct_insn *insn)
{
    return quotient(at, insn->operands[0], insn->operands[1]);
}

ct_value ct_software64_inverse(struct ct_cursor *at, const struct ct_insn *insn)
{
    return quotient(at, ct_const64(at, CT_ONE64), insn->operands[0]);
}

/* ---- square roots ---- */

/* 2^63 / sqrt(m / 2^62), slightly less and so below 2^63, for m from 2^62 on. An error that is not positive any more is as good as none. */
static ct_value inverse_root(struct ct_cursor *at, ct_value m)
{
    const ct_value upper = f32_of(at, ct_low32(at, ct_shr_imm(at, m, 64 - ESTIMATE_BITS)));
    ct_value x = estimate(at, 0x1p42, ct_op1(at, CT_OP_FSQRT, PTX_F32, upper));

    for (unsigned i = 0; i < STEPS; i++) {
        const ct_value square = ct_add_imm(at, ct_upper_product(at, x, x), 1);
        const ct_value error = ct_sub(at, ct_const64(at, (UINT64_C(1) << 60) - 1), ct_upper_product(at, m, square));
        const ct_value positive = ct_op2(at, CT_OP_MAX, PTX_S64, error, ct_const64(at, 0));

        x = ct_add(at, x, ct_shl_imm(at, ct_upper_product(at, x, positive), 3));
    }
    return x;
}

/* The root of m / 2^62. */
static ct_value significand_root(struct ct_cursor *at, ct_value m)
{
    ct_value root = ct_shr_imm(at, ct_upper_product(at, m, inverse_root(at, m)), 62 - RESULT_BITS);
    ct_value remainder = ct_sub(at, ct_shl_imm(at, m, 2 * RESULT_BITS - 64), ct_op2(at, CT_OP_MUL, PTX_U64, root, root));

    for (unsigned i = 0; i < CORRECTIONS; i++) {
        const ct_value twice = ct_shl_imm(at, root, 1), is_less = ct_icmp(at, PTX_U64, PTX_GT, remainder, twice);

        root = ct_select(at, is_less, ct_add_imm(at, root, 1), root);
        remainder = ct_select(at, is_less, ct_sub(at, remainder, ct_add_imm(at, twice, 1)), remainder);
    }
    return result_significand(at, root, remainder);
}

/* A positive number as m / 2^62 * 4^power with m from 2^62 on. */
struct radicand {
    ct_value m, power;
};

static struct radicand radicand_of(struct ct_cursor *at, ct_value a)
{
    const struct ct_parts64 parts = ct_parts64_of(at, a), x = ct_normalized64(at, &parts);
    const ct_value exponent = ct_add_imm(at, x.exponent, (uint64_t)-CT_BIAS64), is_odd = ct_equals(at, ct_and_imm(at, exponent, 1), 1);

    return (struct radicand){ct_select(at, is_odd, x.significand, ct_shr_imm(at, x.significand, 1)), ct_sar_imm(at, exponent, 1)};
}

static ct_value is_negative_or_nan(struct ct_cursor *at, ct_value a, ct_value no_a)
{
    return ct_or(at, ct_and(at, ct_icmp_imm(at, PTX_S64, PTX_LT, a, 0), ct_not(at, no_a)), ct_is_nan64(at, a));
}

/* Zeros and positive infinity are their own roots. */
ct_value ct_software64_root(struct ct_cursor *at, const struct ct_insn *insn)
{
    const ct_value a = insn->operands[0], no_a = ct_equals(at, ct_magnitude64(at, a), 0);
    const struct radicand radicand = radicand_of(at, a);
    const struct ct_parts64 result = {significand_root(at, radicand.m), ct_add_imm(at, radicand.power, CT_BIAS64)};
    const ct_value finite = ct_rounded64(at, ct_const64(at, 0), &result);
    const ct_value is_itself = ct_or(at, no_a, ct_equals(at, a, CT_INFINITE64));

    return ct_select_nan64(at, is_negative_or_nan(at, a, no_a), ct_select(at, is_itself, a, finite));
}

/* An approximation: the exact inverse root or a neighbour. The result is normal. */
ct_value ct_software64_inverse_root(struct ct_cursor *at, const struct ct_insn *insn)
{
    const ct_value a = insn->operands[0], no_a = ct_equals(at, ct_magnitude64(at, a), 0);
    const struct radicand radicand = radicand_of(at, a);
    const struct ct_parts64 result = {ct_shl_imm(at, inverse_root(at, radicand.m), 1),
                                      ct_sub(at, ct_const32(at, CT_BIAS64 - 1), radicand.power)};
    ct_value value = ct_rounded64(at, ct_const64(at, 0), &result);

    value = ct_select(at, ct_equals(at, a, CT_INFINITE64), ct_const64(at, 0), value);
    value = ct_select(at, no_a, ct_or_imm(at, a, CT_INFINITE64), value);
    return ct_select_nan64(at, is_negative_or_nan(at, a, no_a), value);
}
