/* SPDX-License-Identifier: Apache-2.0 */
/* refine: roots of f64, and inverses of them, by fused steps from the driver's InverseSqrt of f32, whose error is below 2 ulp.
 *
 * The operand is m * 4^n with m from 1/2 to 2. m, truncated to 21 bits, becomes an f32; n is inserted directly into the exponent of the
 * first estimate, by integer operations on the encoding's upper word. Everything that follows scales with the operand, and is exact within
 * the limits below; so let operands be from 1 to 4, and roots x from 1 to 2. u is 2^-53.
 *
 * Root. The estimate y has 24 bits, so y*y is exact, and e = 1 - a*y*y is below 2^-19.4. y + y*e*(1/2 + 3/8*e) is 1/x with an error of at
 * most 2^-59 of it: rounded, that is h = 1/x + k*u/2 with |k| hardly above 1. g = a*h rounded is x + (l + k*x*x/2)*u with |l| <= 1. With
 * the residual r = a - g*g, g + r*h/2 differs from x by -S*2^-107/x where S = (l + 2c)^2 - c^2, c = k*x*x/2: from -1/3 to 21, and up to 8
 * more in either direction if r has more than 53 bits. A midpoint M between two numbers has a - M*M = j*2^-106, so its distance from x is
 * j*2^-107/x, and j is 7 more than a multiple of 8. So the result could be wrong only where M*M*2^106 = -j (modulo 2^54 or 2^55) with |j| <
 * 64. These are 24 operands, for which h does not depend on y, since 1/x is not near enough to a midpoint: tests/ptx/refine_test.c finds
 * and tests them all.
 *
 * Inverse of the root b. h has f = 1 - b*h, exactly, and |f| <= (1/x + x/2)*u, below 3/2*u. h + h*f is (1 - f*f)/b before it is rounded.
 * Midpoints differ from 1/b by j*2^-106/b, so the result is correct if f*f < j*u*u for all j > 0: 1 and 2 remain. In these cases b divides
 * 2^106 - 2, which was tested as well and is correct, or 2^106 - 1: a significand of all ones, which is recognized by its lower word.
 *
 * An inverse alone is not computed like this: the integer operations make it slower than NVIDIA's own (docs/devices.md). */
#include "refine.h"
#include "lower.h"
#include "range.h"

#define LEAST ((UINT32_C(1023) - 900) << 20)  /* upper words: of 2^-900, whose residual is normal, */
#define LIMIT ((UINT32_C(1023) + 1000) << 20) /* and of 2^1000, whose inverse is normal, as is its square */

static ct_value f64(struct ct_cursor *at, double value)
{
    return ct_float_const(at, PTX_F64, value);
}

static ct_value times(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_op2(at, CT_OP_FMUL, PTX_F64, a, b);
}

static ct_value fused(struct ct_cursor *at, ct_value a, ct_value b, ct_value c)
{
    ct_value error;

    return at->fn->target->exact_fma64 ? ct_emit3(at, CT_OP_FFMA, PTX_F64, CT_W_64, a, b, c) : ct_fused64(at, a, b, c, &error);
}

/* c - a * b: the negation is a float operation, which drivers fold into the fused one. */
static ct_value residual(struct ct_cursor *at, ct_value a, ct_value b, ct_value c)
{
    return fused(at, ct_op1(at, CT_OP_FNEG, PTX_F64, a), b, c);
}

/* About 1 / sqrt(a). The exponent field is 2n + 1022, or one more. */
static ct_value estimated(struct ct_cursor *at, ct_value high)
{
    const ct_value field_and_fraction = ct_and_imm(at, ct_shl_imm(at, high, 3), 0x00ffffff); /* the last bit of the exponent field */
    const ct_value m = ct_or_imm(at, field_and_fraction, 0x3f000000), y = ct_op1(at, CT_OP_FRSQRT, PTX_F32, m);
    const ct_value half_field = ct_and_imm(at, ct_shr_imm(at, high, 1), 0x7ff00000);
    const ct_value scale = ct_sub(at, ct_const32(at, (1023 - 127 + 511) << 20), half_field);

    return ct_pack2(at, ct_shl_imm(at, y, 29), ct_add(at, ct_shr_imm(at, y, 3), scale));
}

static ct_value halved(struct ct_cursor *at, ct_value x)
{
    ct_value low, high;

    ct_unpack2(at, x, &low, &high);
    return ct_pack2(at, low, ct_add_imm(at, high, -(UINT64_C(1) << 20)));
}

struct ct_refined ct_refine_root64(struct ct_cursor *at, ct_value a)
{
    struct ct_refined root;
    ct_value low, high, y, e, g;

    ct_unpack2(at, a, &low, &high);
    root.rare = ct_icmp_imm(at, PTX_U32, PTX_GE, ct_sub(at, high, ct_const32(at, LEAST)), LIMIT - LEAST);
    y = estimated(at, high);
    e = residual(at, a, times(at, y, y), f64(at, 1.0));
    root.estimate = fused(at, fused(at, e, f64(at, 0.375), f64(at, 0.5)), times(at, y, e), y);
    g = times(at, a, root.estimate);
    root.result = fused(at, residual(at, g, g, a), halved(at, root.estimate), g);
    return root;
}

struct ct_refined ct_refine_inverse64(struct ct_cursor *at, const struct ct_refined *root)
{
    const ct_value h = root->estimate, f = residual(at, root->result, h, f64(at, 1.0));
    struct ct_refined inverse = {.result = fused(at, h, f, h)};
    ct_value low, high;

    ct_unpack2(at, root->result, &low, &high);
    inverse.rare = ct_equals(at, low, UINT32_MAX);
    return inverse;
}

/* ---- the driver's operations ----
 * Operands below 2^-500 are scaled and their results scaled back, exactly. No driver requires that, but NVIDIA's flattens a branch one
 * side of which is only a root and a quotient, so that all threads compute both sides (580.159.04; its own roots are one instruction at
 * that stage, and DontFlatten does not help). */

static ct_value if_tiny(struct ct_cursor *at, ct_value x, double then)
{
    const ct_value is_tiny = ct_fcmp(at, PTX_F64, PTX_LT, x, f64(at, 0x1p-500));

    return ct_select(at, is_tiny, f64(at, then), f64(at, 1.0));
}

ct_value ct_refine_rare_root64(struct ct_cursor *at, ct_value a)
{
    const ct_value root = ct_op1(at, CT_OP_FSQRT, PTX_F64, times(at, a, if_tiny(at, a, 0x1p200)));

    return times(at, root, if_tiny(at, a, 0x1p-100));
}

ct_value ct_refine_rare_inverse64(struct ct_cursor *at, ct_value b)
{
    const ct_value scale = if_tiny(at, b, 0x1p200);

    return times(at, ct_op2(at, CT_OP_FDIV, PTX_F64, f64(at, 1.0), times(at, b, scale)), scale);
}

/* ---- f32 ---- */

/* Subnormals, which drivers may flush, are scaled by 2^24 first. */
ct_value ct_refine_inverse_root32(struct ct_cursor *at, ct_value x)
{
    const ct_value one = ct_float_const(at, PTX_F32, 1.0);
    ct_value is_small, scaled, inverse;

    if (ct_is_no_subnormal(at->fn, x))
        return ct_op1(at, CT_OP_FRSQRT, PTX_F32, x);
    is_small = ct_fcmp(at, PTX_F32, PTX_LT, ct_float_magnitude(at, PTX_F32, x), ct_float_const(at, PTX_F32, 0x1p-126));
    scaled = ct_op2(at, CT_OP_FMUL, PTX_F32, x, ct_select(at, is_small, ct_float_const(at, PTX_F32, 0x1p24), one));
    inverse = ct_op1(at, CT_OP_FRSQRT, PTX_F32, scaled);
    return ct_op2(at, CT_OP_FMUL, PTX_F32, inverse, ct_select(at, is_small, ct_float_const(at, PTX_F32, 0x1p12), one));
}
