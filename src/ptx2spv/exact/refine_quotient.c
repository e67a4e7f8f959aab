/* SPDX-License-Identifier: Apache-2.0 */
/* refine: f32 quotients, rounded to nearest, by fused steps from the driver's inverse, whose error Vulkan and OpenCL limit to 2.5 ulp.
 *
 * One step makes the inverse y of b the nearest number to 1/b, except for few b, another makes the quotient q one of the two nearest numbers to
 * a/b. Then q + y * (a - b*q) is rounded correctly, since the remainder is exact (Markstein, "Computation of elementary functions on the IBM
 * RISC System/6000 processor"). A significand of b of all ones is an exception: the nearest number to its inverse is so close to a midpoint that
 * y may be the other one. 1.3 * 10^9 quotients, half of them near midpoints, with inverses up to 3 ulp off, gave no other one.
 *
 * Operands are from 2^-61 to 2^63, so that no step, nor the remainder, is subnormal or overflows; or a is a zero. Others are rare. */
#include "refine.h"
#include "lower.h"

#define LEAST ((UINT32_C(127) - 61) << 24) /* encodings without the sign bit, shifted left by 1 */
#define LIMIT ((UINT32_C(127) + 63) << 24)
#define FRACTION UINT32_C(0x7fffff)

static ct_value is_outside(struct ct_cursor *at, ct_value doubled)
{
    return ct_icmp_imm(at, PTX_U32, PTX_GE, ct_add_imm(at, doubled, -(uint64_t)LEAST & UINT32_MAX), LIMIT - LEAST);
}

static ct_value is_rare(struct ct_cursor *at, ct_value a, ct_value b)
{
    const ct_value a_doubled = ct_shl_imm(at, a, 1), b_doubled = ct_shl_imm(at, b, 1);
    const ct_value a_rare = ct_and(at, is_outside(at, a_doubled), ct_icmp_imm(at, PTX_U32, PTX_NE, a_doubled, 0));
    const ct_value ones = ct_equals(at, ct_and_imm(at, b, FRACTION), FRACTION);

    return ct_or(at, ct_or(at, a_rare, is_outside(at, b_doubled)), ones);
}

struct ct_refined ct_refine_quotient32(struct ct_cursor *at, ct_value a, ct_value b)
{
    const ct_value one = ct_float_const(at, PTX_F32, 1.0), opposite = ct_op1(at, CT_OP_FNEG, PTX_F32, b);
    const ct_value estimate = ct_op2(at, CT_OP_FDIV, PTX_F32, one, b);
    const ct_value inverse = ct_float_fused32(at, ct_float_fused32(at, opposite, estimate, one), estimate, estimate);
    const ct_value first = ct_op2(at, CT_OP_FMUL, PTX_F32, a, inverse);
    const ct_value second = ct_float_fused32(at, ct_float_fused32(at, opposite, first, a), inverse, first);
    const ct_value quotient = ct_float_fused32(at, ct_float_fused32(at, opposite, second, a), inverse, second);
    const ct_value sign = ct_and_imm(at, ct_xor(at, a, b), ct_float_layout_of(PTX_F32)->sign); /* which a zero loses on the way */

    return (struct ct_refined){.result = ct_or(at, quotient, sign), .rare = is_rare(at, a, b)};
}

ct_value ct_refine_rare_quotient32(struct ct_cursor *at, ct_value a, ct_value b)
{
    struct ct_lower l = {.fn = at->fn, .at = *at};
    const ct_value quotient = ct_lower_integer_quotient32(&l, PTX_RN, a, b);

    *at = l.at;
    return quotient;
}
