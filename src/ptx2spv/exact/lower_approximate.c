/* SPDX-License-Identifier: Apache-2.0 */
/* lower: approximate instructions (PTX ISA: ex2, lg2, sin, cos, tanh, rsqrt, and .approx of rcp and sqrt).
 *
 * The device's own function is used if it is known to be within the bounds of the ISA (enum ptx2spv_near). Vulkan guarantees none of them: its sines
 * may be 2^-11 off ("Precision and Operation of SPIR-V Instructions"). Subnormal arguments and results, which PTX without .ftz keeps but devices may
 * flush, are scaled by powers of two. Otherwise the function is our own (elementary.c); sqrt is a step from the inverse root where there are fused
 * operations, whose error Vulkan and OpenCL limit to 2 ulp, or else the exact root. tanh may have a relative error of 2^-11, for which the exponential of
 * every device is precise enough. */
#include "elementary.h"
#include "lower.h"

static ct_value op2(struct ct_cursor *at, enum ct_op op, ct_value a, ct_value b)
{
    return ct_op2(at, op, PTX_F32, a, b);
}

static ct_value either(struct ct_cursor *at, ct_value condition, double then, double otherwise)
{
    return ct_select(at, condition, ct_f32(at, then), ct_f32(at, otherwise));
}

/* 2^x = 2^(x+24) * 2^-24 if the result is subnormal. */
static ct_value driver_exponential(struct ct_cursor *at, ct_value x)
{
    const ct_value is_small = ct_f32_is_below(at, x, -126.0);
    const ct_value moved = op2(at, CT_OP_FADD, x, either(at, is_small, 24.0, 0.0));
    const ct_value power = ct_op1(at, CT_OP_FEX2, PTX_F32, moved);

    return op2(at, CT_OP_FMUL, power, either(at, is_small, 0x1p-24, 1.0));
}

static ct_value driver_logarithm(struct ct_cursor *at, ct_value x)
{
    const ct_value is_small = ct_f32_is_below(at, ct_float_magnitude(at, PTX_F32, x), 0x1p-126);
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
    is_great = ct_fcmp(at, PTX_F32, PTX_GT, x, ct_f32(at, 0x1p100));
    inverse = ct_op1(at, CT_OP_FRSQRT, PTX_F32, op2(at, CT_OP_FMUL, x, either(at, is_great, 0x1p-64, 1.0)));

    return op2(at, CT_OP_FMUL, inverse, either(at, is_great, 0x1p-32, 1.0));
}

/* `refine` handles subnormals. */
static ct_value inverse_root(struct ct_lower *l, ct_value x)
{
    const ct_value result = ct_lower_driver_inverse_root32(&l->at, x);

    l->fn->values.v[result.i].def->refined = !l->insn->ftz && !l->fn->target->keeps_subnormals32;
    return ct_lower_is_near(l, PTX2SPV_NEAR_RSQRT) ? result : ct_elementary_inverse_root(&l->at, x, result);
}

/* tanh |x| = 1 - 2 / (2^(|x| * 2/ln 2) + 1); near zero, where that cancels, x - x^3/3 + 2*x^5/15. If the device flushes subnormals, numbers
 * below 2^-14 are returned by their bits: there is no tanh.approx.ftz. */
static ct_value hyperbolic_tangent(struct ct_cursor *at, ct_value x)
{
    const bool flushes = ct_fn_kernel(at->fn)->flushes32;
    const ct_value magnitude = ct_float_magnitude(at, PTX_F32, x), one = ct_f32(at, 1.0), square = op2(at, CT_OP_FMUL, x, x);
    ct_value power = op2(at, CT_OP_FMUL, magnitude, ct_f32(at, 2.8853900817779268)), series, far, sign;

    power = ct_op1(at, CT_OP_FEX2, PTX_F32, op2(at, CT_OP_FMIN, power, ct_f32(at, 64.0)));
    far = op2(at, CT_OP_FDIV, ct_f32(at, 2.0), op2(at, CT_OP_FADD, power, one));
    far = op2(at, CT_OP_FSUB, one, far);
    sign = ct_and_imm(at, x, 0x80000000);
    far = ct_or(at, far, sign);
    series = op2(at, CT_OP_FADD, op2(at, CT_OP_FMUL, square, ct_f32(at, 2.0 / 15)), ct_f32(at, -1.0 / 3));
    series = op2(at, CT_OP_FADD, op2(at, CT_OP_FMUL, series, square), one);
    series = op2(at, CT_OP_FMUL, series, x);
    far = ct_select(at, ct_f32_is_below(at, magnitude, 0.25), series, far);
    if (flushes)
        far = ct_select(at, ct_icmp(at, PTX_U32, PTX_LT, magnitude, ct_f32(at, 0x1p-14)), x, far);
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
        if (!ct_lower_is_near(l, PTX2SPV_NEAR_EX2))
            return ct_elementary_exponential(at, x, l->insn->ftz);
        return l->insn->ftz ? ct_op1(at, CT_OP_FEX2, PTX_F32, x) : driver_exponential(at, x);
    case CT_OP_FLG2:
        if (!ct_lower_is_near(l, PTX2SPV_NEAR_LG2))
            return ct_elementary_logarithm(at, x, l->insn->ftz);
        return l->insn->ftz ? ct_op1(at, CT_OP_FLG2, PTX_F32, x) : driver_logarithm(at, x);
    case CT_OP_FSIN:
        return ct_lower_is_near(l, PTX2SPV_NEAR_SIN) ? ct_op1(at, CT_OP_FSIN, PTX_F32, x) : ct_elementary_sine(at, x);
    case CT_OP_FCOS:
        return ct_lower_is_near(l, PTX2SPV_NEAR_SIN) ? ct_op1(at, CT_OP_FCOS, PTX_F32, x) : ct_elementary_cosine(at, x);
    case CT_OP_FRSQRT:
        return inverse_root(l, x);
    case CT_OP_FTANH:
        return hyperbolic_tangent(at, x);
    case CT_OP_FSQRT:
        if (ct_lower_is_near(l, PTX2SPV_NEAR_SQRT) && (l->insn->ftz || l->fn->target->keeps_subnormals32))
            return ct_op1(at, CT_OP_FSQRT, PTX_F32, x);
        return ct_lower_root(l, PTX_F32, PTX_RN, x);
    default: /* rcp */
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
