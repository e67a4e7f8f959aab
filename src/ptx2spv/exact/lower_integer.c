/* SPDX-License-Identifier: Apache-2.0 */
/* lower: integer division (PTX ISA, "div", "rem"). The ISA leaves division by zero to the machine; NVIDIA's machines return all ones,
 * for the remainder too. SPIR-V leaves it undefined, as well as minimum / -1. Vulkan also leaves the remainder of negative numbers
 * undefined (NVIDIA 580 returns the dividend for a divisor of -1), but not their quotient: signed remainders are computed from the
 * quotient. */
#include "lower.h"

/* Whether the divisor is a constant for which no guard is needed: neither 0 nor -1. */
static bool is_safe_divisor(const struct ct_lower *l)
{
    const struct ct_insn *def = l->fn->values.v[l->insn->operands[1].i].def;
    const unsigned bits = ptx_type_bits(l->insn->type);
    const uint64_t ones = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;

    return def && def->op == CT_OP_CONST && def->imm != 0 && def->imm != ones;
}

/* 16-bit divisions are computed in 32 bits: few drivers have 16-bit ones. */
static ct_value widened(struct ct_lower *l, unsigned index)
{
    const ct_value x = l->insn->operands[index];

    return ct_width_at(&l->at, x) == CT_W_16 ? ct_resize(&l->at, x, l->insn->type, CT_W_32) : x;
}

static ct_value divided(struct ct_cursor *at, bool is_signed, bool remainder, ct_value a, ct_value b)
{
    const enum ct_width width = ct_width_at(at, a);
    ct_value quotient;

    if (!is_signed)
        return ct_op2(at, remainder ? CT_OP_UREM : CT_OP_UDIV, ct_unsigned_type(width), a, b);
    quotient = ct_op2(at, CT_OP_SDIV, ct_signed_type(width), a, b);
    return remainder ? ct_sub(at, a, ct_bits2(at, CT_OP_MUL, quotient, b)) : quotient;
}

ct_value ct_lower_integer_division(struct ct_lower *l)
{
    struct ct_cursor *at = &l->at;
    const enum ptx_type type = l->insn->type;
    const bool is_signed = ptx_type_is_signed(type), remainder = l->insn->op == CT_OP_REM;
    const ct_value a = widened(l, 0), b = widened(l, 1);
    ct_value unsafe, is_zero, result;

    if (is_safe_divisor(l))
        return ct_resize(at, divided(at, is_signed, remainder, a, b), type, ct_width_of(type));
    is_zero = ct_equals(at, b, 0);
    unsafe = is_zero;
    if (is_signed) {
        const ct_value least = ct_equals(at, a, UINT64_C(1) << (ct_width_bits(ct_width_at(at, a)) - 1));

        unsafe = ct_or(at, unsafe, ct_and(at, least, ct_equals(at, b, UINT64_MAX)));
    }
    result = divided(at, is_signed, remainder, a, ct_select(at, unsafe, ct_const_like(at, b, 1), b));
    result = ct_select(at, is_zero, ct_const_like(at, result, UINT64_MAX), result);
    return ct_resize(at, result, type, ct_width_of(type));
}
