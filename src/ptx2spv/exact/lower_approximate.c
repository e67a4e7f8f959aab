/* SPDX-License-Identifier: Apache-2.0 */
/* lower: approximate instructions (PTX ISA: ex2, lg2, sin, cos, tanh, rsqrt, and .approx of rcp and sqrt).
 *
 * The device's own instruction is used in the range for which Vulkan specifies its precision. Subnormal arguments and results, which PTX
 * without .ftz keeps but devices may flush, are scaled into that range by powers of two. Errors that the ISA allows: ex2 2^-22 relative,
 * lg2 2^-22 (absolute between 0.5 and 2), rsqrt 2^-22.9, sin and cos 2^-20.5 absolute within [-pi, pi], tanh 2^-11 relative. Vulkan
 * guarantees less ("Precision and Operation of SPIR-V Instructions"): ex2 is our own unless the target's is known to be precise enough;
 * lg2, sin, cos and rsqrt are the device's, which NVIDIA's and lavapipe keep within these bounds. sqrt, 2^-23, is the device's if that is known
 * to be precise enough; where there are fused operations, a step from the inverse root, whose error Vulkan and OpenCL limit to 2 ulp; or else
 * the exact root. */
#include "lower.h"

#include <math.h>

static ct_value f32(struct ct_cursor *at, double value)
{
    return ct_float_const(at, PTX_F32, value);
}

static ct_value op2(struct ct_cursor *at, enum ct_op op, ct_value a, ct_value b)
{
    return ct_op2(at, op, PTX_F32, a, b);
}

static ct_value either(struct ct_cursor *at, ct_value condition, double then, double otherwise)
{
    return ct_select(at, condition, f32(at, then), f32(at, otherwise));
}

static ct_value is_below(struct ct_cursor *at, ct_value x, double limit)
{
    return ct_fcmp(at, PTX_F32, PTX_LT, x, f32(at, limit));
}

/* 2^x = 2^(x+24) * 2^-24 if the result is subnormal. */
static ct_value driver_exponential(struct ct_cursor *at, ct_value x)
{
    const ct_value is_small = is_below(at, x, -126.0);
    const ct_value moved = op2(at, CT_OP_FADD, x, either(at, is_small, 24.0, 0.0));
    const ct_value power = ct_op1(at, CT_OP_FEX2, PTX_F32, moved);

    return op2(at, CT_OP_FMUL, power, either(at, is_small, 0x1p-24, 1.0));
}

static ct_value multiply_add(struct ct_cursor *at, ct_value a, ct_value b, ct_value c)
{
    if (at->fn->target->exact_fma32)
        return ct_float_fused32(at, a, b, c);
    return op2(at, CT_OP_FADD, op2(at, CT_OP_FMUL, a, b), c);
}

/* 2^f for |f| <= 1/2, by a polynomial that interpolates it at the seven Chebyshev nodes. Evaluated in f32 for every third f in that
 * interval, the error was at most 2^-23.17, and 2^-23.51 with fused operations. */
static ct_value exponential_of_fraction(struct ct_cursor *at, ct_value f)
{
    static const float coefficients[] = {0x1.444p-13f, 0x1.5f48cp-10f, 0x1.3b2a1cp-7f, 0x1.c6aeccp-5f, 0x1.ebfbep-3f, 0x1.62e43p-1f, 1.0f};
    ct_value power = f32(at, coefficients[0]);

    for (unsigned i = 1; i < sizeof coefficients / sizeof *coefficients; i++)
        power = multiply_add(at, power, f, f32(at, coefficients[i]));
    return power;
}

/* 2^n as f32, for n from -126 to 127. */
static ct_value power_of_two(struct ct_cursor *at, ct_value n)
{
    return ct_shl_imm(at, ct_add_imm(at, n, 127), 23);
}

/* 2^x = 2^f * 2^n with n integral. 2^n is applied in two factors, so that only the last product rounds. */
static ct_value own_exponential(struct ct_cursor *at, ct_value x)
{
    const ct_value clamped = op2(at, CT_OP_FMAX, op2(at, CT_OP_FMIN, x, f32(at, 200.0)), f32(at, -200.0));
    const ct_value whole = ct_op1(at, CT_OP_FRINT, PTX_F32, clamped);
    const ct_value n = ct_converted(at, CT_OP_FTOI, PTX_F32, PTX_S32, whole), half = ct_sar_imm(at, n, 1);
    ct_value power = exponential_of_fraction(at, op2(at, CT_OP_FSUB, clamped, whole));

    power = op2(at, CT_OP_FMUL, power, power_of_two(at, half));
    power = op2(at, CT_OP_FMUL, power, power_of_two(at, ct_sub(at, n, half)));
    return ct_select(at, ct_float_is_nan(at, PTX_F32, x), x, power);
}

/* The same without subnormal results, so without a product for the exponent. The sum of x and 1.5 * 2^23 is rounded to an integer, n, and its lower
 * bits are those of n. From 128 on the product with infinity is infinite, and it keeps NaN. */
static ct_value own_normal_exponential(struct ct_cursor *at, ct_value x)
{
    const ct_value n = op2(at, CT_OP_FADD, x, f32(at, 0x1.8p23)), whole = op2(at, CT_OP_FSUB, n, f32(at, 0x1.8p23));
    ct_value power = exponential_of_fraction(at, op2(at, CT_OP_FSUB, x, whole));

    power = ct_add(at, power, ct_shl_imm(at, n, 23));
    power = ct_select(at, is_below(at, x, -126.0), f32(at, 0.0), power);
    return ct_select(at, is_below(at, x, 128.0), power, op2(at, CT_OP_FMUL, x, f32(at, INFINITY)));
}

static ct_value logarithm(struct ct_cursor *at, ct_value x)
{
    const ct_value is_small = is_below(at, ct_float_magnitude(at, PTX_F32, x), 0x1p-126);
    const ct_value scaled = op2(at, CT_OP_FMUL, x, either(at, is_small, 0x1p24, 1.0));

    return op2(at, CT_OP_FSUB, ct_op1(at, CT_OP_FLG2, PTX_F32, scaled), either(at, is_small, 24.0, 0.0));
}

/* PTX2SPV_WORKAROUND_FLUSHED_INVERSE_ROOTS: the driver probably squares an estimate of the result. Great numbers are scaled, so that the square
 * is not flushed. */
ct_value ct_lower_driver_inverse_root32(struct ct_cursor *at, ct_value x)
{
    ct_value is_great, inverse;

    if (!ct_fn_kernel(at->fn)->flushes32 || !(at->fn->target->workarounds & PTX2SPV_WORKAROUND_FLUSHED_INVERSE_ROOTS))
        return ct_op1(at, CT_OP_FRSQRT, PTX_F32, x);
    is_great = ct_fcmp(at, PTX_F32, PTX_GT, x, f32(at, 0x1p100));
    inverse = ct_op1(at, CT_OP_FRSQRT, PTX_F32, op2(at, CT_OP_FMUL, x, either(at, is_great, 0x1p-64, 1.0)));

    return op2(at, CT_OP_FMUL, inverse, either(at, is_great, 0x1p-32, 1.0));
}

/* `refine` handles subnormals. */
static ct_value inverse_root(struct ct_lower *l, ct_value x)
{
    const ct_value result = ct_lower_driver_inverse_root32(&l->at, x);

    l->fn->values.v[result.i].def->refined = !l->insn->ftz && !l->fn->target->keeps_subnormals32;
    return result;
}

/* tanh |x| = 1 - 2 / (2^(|x| * 2/ln 2) + 1); near zero, where that cancels, x - x^3/3 + 2*x^5/15. If the device flushes subnormals, numbers
 * below 2^-14 are returned by their bits: there is no tanh.approx.ftz. */
static ct_value hyperbolic_tangent(struct ct_cursor *at, ct_value x)
{
    const bool flushes = ct_fn_kernel(at->fn)->flushes32;
    const ct_value magnitude = ct_float_magnitude(at, PTX_F32, x), one = f32(at, 1.0), square = op2(at, CT_OP_FMUL, x, x);
    ct_value power = op2(at, CT_OP_FMUL, magnitude, f32(at, 2.8853900817779268)), series, far, sign;

    power = ct_op1(at, CT_OP_FEX2, PTX_F32, op2(at, CT_OP_FMIN, power, f32(at, 64.0)));
    far = op2(at, CT_OP_FDIV, f32(at, 2.0), op2(at, CT_OP_FADD, power, one));
    far = op2(at, CT_OP_FSUB, one, far);
    sign = ct_and_imm(at, x, 0x80000000);
    far = ct_or(at, far, sign);
    series = op2(at, CT_OP_FADD, op2(at, CT_OP_FMUL, square, f32(at, 2.0 / 15)), f32(at, -1.0 / 3));
    series = op2(at, CT_OP_FADD, op2(at, CT_OP_FMUL, series, square), one);
    series = op2(at, CT_OP_FMUL, series, x);
    far = ct_select(at, is_below(at, magnitude, 0.25), series, far);
    if (flushes)
        far = ct_select(at, ct_icmp(at, PTX_U32, PTX_LT, magnitude, f32(at, 0x1p-14)), x, far);
    return ct_select(at, ct_float_is_nan(at, PTX_F32, x), x, far);
}

/* f64: the exact operations, of whose results .approx.ftz keeps the upper word (PTX ISA, "rcp.approx.ftz.f64"); software64 has a shorter one. */
static ct_value approximate64(struct ct_lower *l, ct_value x)
{
    struct ct_cursor *at = &l->at;
    const uint64_t upper_word = 0xffffffff00000000;
    ct_value result;

    if (l->insn->ftz)
        x = ct_and_imm(at, x, upper_word);
    if (l->insn->op == CT_OP_FRSQRT && !l->fn->target->float64)
        result = ct_op1(at, CT_OP_FRSQRT, PTX_F64, x);
    else
        result = ct_lower_driver_inverse64(l, l->insn->op == CT_OP_FRSQRT ? ct_lower_driver_root64(l, x) : x);
    return l->insn->ftz ? ct_and_imm(at, result, upper_word) : result;
}

static ct_value approximate32(struct ct_lower *l, ct_value x)
{
    struct ct_cursor *at = &l->at;

    switch ((unsigned)l->insn->op) {
    case CT_OP_FEX2:
        if (!l->fn->target->near_exp2)
            return l->insn->ftz ? own_normal_exponential(at, x) : own_exponential(at, x);
        return l->insn->ftz ? ct_op1(at, CT_OP_FEX2, PTX_F32, x) : driver_exponential(at, x);
    case CT_OP_FLG2:
        return l->insn->ftz ? ct_op1(at, CT_OP_FLG2, PTX_F32, x) : logarithm(at, x);
    case CT_OP_FRSQRT:
        return inverse_root(l, x);
    case CT_OP_FTANH:
        return hyperbolic_tangent(at, x);
    case CT_OP_FSQRT:
        if (l->fn->target->near_sqrt32 && (l->insn->ftz || l->fn->target->keeps_subnormals32))
            return ct_op1(at, CT_OP_FSQRT, PTX_F32, x);
        return ct_lower_root(l, PTX_F32, PTX_RN, x);
    default: /* sin, cos, rcp */
        return ct_op1(at, l->insn->op, PTX_F32, x);
    }
}

/* Half precision is computed in f32. */
ct_value ct_lower_approximation(struct ct_lower *l, enum ptx_type type, const ct_value *operands)
{
    ct_value wide;

    if (type == PTX_F64)
        return approximate64(l, operands[0]);
    if (type == PTX_F32)
        return approximate32(l, operands[0]);
    wide = approximate32(l, ct_float_resized(&l->at, type, PTX_F32, operands[0]));
    return ct_float_resized(&l->at, PTX_F32, type, wide);
}
