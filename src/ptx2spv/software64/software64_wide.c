/* SPDX-License-Identifier: Apache-2.0 */
#include "software64.h"

struct ct_wide ct_wide_product(struct ct_cursor *at, ct_value a, ct_value b)
{
    struct ct_wide product;

    ct_wide_product64(at, a, b, &product.low, &product.high);
    return product;
}

ct_value ct_upper_product(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_wide_product(at, a, b).high;
}

struct ct_wide ct_wide_select(struct ct_cursor *at, ct_value condition, struct ct_wide yes, struct ct_wide no)
{
    return (struct ct_wide){ct_select(at, condition, yes.low, no.low), ct_select(at, condition, yes.high, no.high)};
}

static ct_value one_if(struct ct_cursor *at, ct_value condition)
{
    return ct_select(at, condition, ct_const64(at, 1), ct_const64(at, 0));
}

struct ct_wide ct_wide_sum(struct ct_cursor *at, struct ct_wide a, struct ct_wide b)
{
    const ct_value low = ct_add(at, a.low, b.low), carry = one_if(at, ct_icmp(at, PTX_U64, PTX_LT, low, a.low));

    return (struct ct_wide){low, ct_add(at, ct_add(at, a.high, b.high), carry)};
}

struct ct_wide ct_wide_difference(struct ct_cursor *at, struct ct_wide a, struct ct_wide b)
{
    const ct_value borrow = one_if(at, ct_icmp(at, PTX_U64, PTX_LT, a.low, b.low));

    return (struct ct_wide){ct_sub(at, a.low, b.low), ct_sub(at, ct_sub(at, a.high, b.high), borrow)};
}

/* Shifts by 64 or more exchange the halves, and shift by the rest. A shift of 64 - rest is one by 1 and one by 63 - rest. */
struct ct_wide ct_wide_shifted_left(struct ct_cursor *at, struct ct_wide x, ct_value amount)
{
    const ct_value rest = ct_and_imm(at, amount, 63), complement = ct_xor_imm(at, rest, 63), zero = ct_const64(at, 0);
    const ct_value low = ct_shifted64(at, CT_OP_SHL, x.low, rest);
    const ct_value crossing = ct_shifted64(at, CT_OP_SHR, ct_shr_imm(at, x.low, 1), complement);
    const struct ct_wide far = {zero, low}, near = {low, ct_or(at, ct_shifted64(at, CT_OP_SHL, x.high, rest), crossing)};

    return ct_wide_select(at, ct_icmp_imm(at, PTX_U32, PTX_GE, amount, 64), far, near);
}

struct ct_wide ct_wide_shifted_sticky(struct ct_cursor *at, struct ct_wide x, ct_value amount)
{
    const ct_value rest = ct_and_imm(at, amount, 63), complement = ct_xor_imm(at, rest, 63), zero = ct_const64(at, 0);
    const ct_value is_far = ct_icmp_imm(at, PTX_U32, PTX_GE, amount, 64);
    const ct_value cut = ct_select(at, is_far, x.high, x.low); /* the word that loses bits, all those of x.low beside */
    const ct_value kept = ct_shifted64(at, CT_OP_SHR, cut, rest), back = ct_shifted64(at, CT_OP_SHL, kept, rest);
    const ct_value lost = ct_or(at, ct_xor(at, back, cut), ct_select(at, is_far, x.low, zero));
    const ct_value crossing = ct_shifted64(at, CT_OP_SHL, ct_shl_imm(at, x.high, 1), complement);
    const ct_value low = ct_or(at, kept, ct_select(at, is_far, zero, crossing));

    return (struct ct_wide){
        .low = ct_sticky64(at, low, ct_not(at, ct_equals(at, lost, 0))),
        .high = ct_select(at, is_far, zero, ct_shifted64(at, CT_OP_SHR, x.high, rest)),
    };
}

ct_value ct_wide_count_zeros(struct ct_cursor *at, struct ct_wide x)
{
    const ct_value is_far = ct_equals(at, x.high, 0), zeros = ct_count_leading_zeros(at, ct_select(at, is_far, x.low, x.high));

    return ct_select(at, is_far, ct_add_imm(at, zeros, 64), zeros);
}

ct_value ct_wide_is_zero(struct ct_cursor *at, struct ct_wide x)
{
    return ct_equals(at, ct_or(at, x.low, x.high), 0);
}
