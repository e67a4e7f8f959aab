/* SPDX-License-Identifier: Apache-2.0 */
/* build: integer arithmetic (PTX ISA, "Integer Arithmetic Instructions", "Extended-Precision Integer Arithmetic Instructions"). For
 * opcodes that also have float forms, build_float.c builds those. */
#include "build_arithmetic.h"

static enum ptx_type main_type(const struct ct_build *b)
{
    return b->insn->types[0];
}

/* ---- packed types u16x2 and s16x2: both halves ---- */

static enum ptx_type half_type(enum ptx_type type)
{
    return type == PTX_U16X2 ? PTX_U16 : type == PTX_S16X2 ? PTX_S16 : PTX_NONE;
}

static ct_value binary_of_halves(struct ct_build *b, enum ct_op op, enum ptx_type type, ct_value x, ct_value y)
{
    ct_value xs[2], ys[2], low, high;

    ct_unpack2(&b->at, x, &xs[0], &xs[1]);
    ct_unpack2(&b->at, y, &ys[0], &ys[1]);
    low = ct_op2(&b->at, op, type, xs[0], ys[0]);
    high = ct_op2(&b->at, op, type, xs[1], ys[1]);
    return ct_pack2(&b->at, low, high);
}

/* ---- add, sub, min, max, div, rem, neg, abs ---- */

/* Signed 32-bit sum or difference that saturates: on overflow, the limit that has the sign of x. */
static ct_value saturated(struct ct_build *b, enum ct_op op, ct_value x, ct_value y)
{
    struct ct_cursor *at = &b->at;
    const ct_value result = ct_bits2(at, op, x, y);
    const ct_value differ = ct_xor(at, x, y);
    const ct_value may = op == CT_OP_ADD ? ct_not(at, differ) : differ;
    const ct_value overflow = ct_icmp_imm(at, PTX_S32, PTX_LT, ct_and(at, may, ct_xor(at, x, result)), 0);

    return ct_select(at, overflow, ct_xor_imm(at, ct_sar_imm(at, x, 31), INT32_MAX), result);
}

static void integer_binary(struct ct_build *b)
{
    const enum ptx_type type = main_type(b), half = half_type(type);
    const ct_value x = ct_build_source(b, 1, type), y = ct_build_source(b, 2, type);
    const enum ct_op op = b->rule->integer_op;
    ct_value result;

    if (b->insn->mods.sat && type == PTX_S32)
        result = saturated(b, op, x, y);
    else if (half)
        result = binary_of_halves(b, op, half, x, y);
    else
        result = ct_op2(&b->at, op, type, x, y);
    if (b->insn->mods.relu && half)
        result = binary_of_halves(b, CT_OP_MAX, half, result, ct_const32(&b->at, 0));
    else if (b->insn->mods.relu)
        result = ct_op2(&b->at, CT_OP_MAX, type, result, ct_const32(&b->at, 0));
    ct_build_result(b, result, type);
}

void ct_build_arithmetic(struct ct_build *b)
{
    if (ptx_type_is_float(main_type(b)))
        ct_build_float_operation(b, b->rule->float_op, 2);
    else if (b->insn->mods.cc)
        ct_build_carry_arithmetic(b, false);
    else
        integer_binary(b);
}

/* Three sources and .abs require f32; with two sources .abs requires .xorsign (PTX ISA, "min"). */
void ct_build_min_max(struct ct_build *b)
{
    const struct ptx_modifiers *mods = &b->insn->mods;
    const bool three = b->insn->n_operands > 3;

    if (three && (main_type(b) != PTX_F32 || mods->xorsign))
        ct_build_invalid(b, "three sources require .f32, without .xorsign");
    else if (!three && mods->absolute != mods->xorsign)
        ct_build_invalid(b, ".xorsign and .abs require each other");
    else if (ptx_type_is_float(main_type(b)))
        ct_build_float_min_max(b);
    else
        integer_binary(b);
}

void ct_build_negate(struct ct_build *b)
{
    const enum ptx_type type = main_type(b);

    if (ptx_type_is_float(type))
        ct_build_float_operation(b, CT_OP_FNEG, 1);
    else
        ct_build_result(b, ct_op1(&b->at, CT_OP_NEG, type, ct_build_source(b, 1, type)), type);
}

/* |minimum| wraps around to itself. */
void ct_build_absolute(struct ct_build *b)
{
    const enum ptx_type type = main_type(b);
    ct_value x;

    if (ptx_type_is_float(type)) {
        ct_build_float_operation(b, CT_OP_FABS, 1);
        return;
    }
    x = ct_build_source(b, 1, type);
    ct_build_result(b, ct_op2(&b->at, CT_OP_MAX, type, x, ct_op1(&b->at, CT_OP_NEG, type, x)), type);
}

/* ---- products ---- */

/* The upper half of a 64x64-bit product: the unsigned one, with a correction for negative factors. */
static ct_value high_product64(struct ct_cursor *at, enum ptx_type type, ct_value x, ct_value y)
{
    ct_value low, high;

    ct_wide_product64(at, x, y, &low, &high);
    if (!ptx_type_is_signed(type))
        return high;
    high = ct_sub(at, high, ct_and(at, ct_sar_imm(at, x, 63), y));
    return ct_sub(at, high, ct_and(at, ct_sar_imm(at, y, 63), x));
}

static ct_value product(struct ct_build *b, enum ptx_type type, enum ptx_half half, ct_value x, ct_value y)
{
    const enum ct_width width = ct_width_of(type);

    if (half == PTX_WIDE)
        return ct_emit2(&b->at, CT_OP_MULWIDE, type, width == CT_W_16 ? CT_W_32 : CT_W_64, x, y);
    if (half == PTX_HI_HALF)
        return width == CT_W_64 ? high_product64(&b->at, type, x, y) : ct_op2(&b->at, CT_OP_MULHI, type, x, y);
    return ct_op2(&b->at, CT_OP_MUL, type, x, y);
}

/* The type of the result of a product: twice as wide with .wide. */
static enum ptx_type product_type(enum ptx_type type, enum ptx_half half)
{
    if (half != PTX_WIDE)
        return type;
    if (ptx_type_bits(type) == 16)
        return ptx_type_is_signed(type) ? PTX_S32 : PTX_U32;
    return ptx_type_is_signed(type) ? PTX_S64 : PTX_U64;
}

void ct_build_multiply(struct ct_build *b)
{
    const enum ptx_type type = main_type(b);
    const enum ptx_half half = b->insn->mods.half;
    ct_value x, y;

    if (ptx_type_is_float(type)) {
        ct_build_float_operation(b, CT_OP_FMUL, 2);
        return;
    }
    x = ct_build_source(b, 1, type);
    y = ct_build_source(b, 2, type);
    ct_build_result(b, product(b, type, half, x, y), product_type(type, half));
}

void ct_build_multiply_add(struct ct_build *b)
{
    const enum ptx_type type = main_type(b), wide = product_type(type, b->insn->mods.half);
    ct_value x, y, addend;

    if (ptx_type_is_float(type)) {
        ct_build_float_operation(b, CT_OP_FFMA, 3);
        return;
    }
    if (b->insn->mods.cc || b->insn->opcode == PTX_OP_MADC) {
        ct_build_carry_arithmetic(b, b->insn->opcode == PTX_OP_MADC);
        return;
    }
    x = ct_build_source(b, 1, type);
    y = ct_build_source(b, 2, type);
    x = product(b, type, b->insn->mods.half, x, y);
    addend = ct_build_source(b, 3, wide);
    ct_build_result(b, b->insn->mods.sat ? saturated(b, CT_OP_ADD, x, addend) : ct_add(&b->at, x, addend), wide);
}

/* The low 24 bits of a source, sign- or zero-extended by the type. */
static ct_value source24(struct ct_build *b, unsigned index, enum ptx_type type)
{
    const ct_value x = ct_build_source(b, index, type);

    return ptx_type_is_signed(type) ? ct_sar_imm(&b->at, ct_shl_imm(&b->at, x, 8), 8) : ct_and_imm(&b->at, x, 0xffffff);
}

/* mul24, mad24: .lo is bits 31..0 of the 48-bit product, .hi bits 47..16. */
void ct_build_multiply24(struct ct_build *b)
{
    const enum ptx_type type = main_type(b);
    const ct_value x = source24(b, 1, type), y = source24(b, 2, type);
    ct_value result;

    if (b->insn->mods.half == PTX_HI_HALF)
        result = ct_low32(&b->at, ct_shr_imm(&b->at, ct_emit2(&b->at, CT_OP_MULWIDE, type, CT_W_64, x, y), 16));
    else
        result = ct_op2(&b->at, CT_OP_MUL, type, x, y);
    if (b->insn->opcode == PTX_OP_MAD24) {
        const ct_value addend = ct_build_source(b, 3, type);

        result = b->insn->mods.sat ? saturated(b, CT_OP_ADD, result, addend) : ct_add(&b->at, result, addend);
    }
    ct_build_result(b, result, type);
}

/* ---- carry chains: CC.CF is 0 or 1 in a register of its own ----
 * The flag is the carry-out of the hardware's adder, which subtracts by adding the complement: after sub.cc and subc.cc it is 1 if there
 * was no borrow, and subc subtracts the complement of the flag. The manual says "borrow-in" and "borrow-out"; for chains of subtractions
 * only there is no difference, for chains that mix additions and subtractions there is (measured on an H200 with driver 580.159). */

static ct_value carry_register(struct ct_build *b)
{
    if (!b->carry.i)
        b->carry = ct_value_create(b->fn, CT_W_32);
    return b->carry;
}

static ct_value flag(struct ct_build *b, ct_value predicate)
{
    return ct_select(&b->at, predicate, ct_const32(&b->at, 1), ct_const32(&b->at, 0));
}

/* x + y, with the carry-out in *out. A sum has wrapped around if it is less than one of its terms. */
static ct_value sum_with_carry(struct ct_build *b, ct_value x, ct_value y, ct_value *out)
{
    const ct_value sum = ct_add(&b->at, x, y);

    *out = flag(b, ct_icmp(&b->at, ct_unsigned_type(ct_width_at(&b->at, x)), PTX_LT, sum, x));
    return sum;
}

/* x - y, with the carry-out of x + ~y + 1 in *out: 1 if there is no borrow. */
static ct_value difference_with_carry(struct ct_build *b, ct_value x, ct_value y, ct_value *out)
{
    *out = flag(b, ct_icmp(&b->at, ct_unsigned_type(ct_width_at(&b->at, x)), PTX_GE, x, y));
    return ct_sub(&b->at, x, y);
}

/* x + y + carry_in, with the carry-out in *out. At most one of the two sums wraps around. */
static ct_value sum_of_three(struct ct_build *b, ct_value x, ct_value y, ct_value carry_in, ct_value *out)
{
    ct_value first, second;
    const ct_value sum = sum_with_carry(b, x, y, &first);
    const ct_value result = sum_with_carry(b, sum, ct_resize(&b->at, carry_in, PTX_U32, ct_width_at(&b->at, x)), &second);

    *out = ct_or(&b->at, first, second);
    return result;
}

static void set_carry(struct ct_build *b, ct_value carry)
{
    const ct_value reg = carry_register(b);

    ct_assign(&b->at, reg, b->guard.i ? ct_select(&b->at, b->guard, carry, reg) : carry);
}

void ct_build_carry_arithmetic(struct ct_build *b, bool takes_carry)
{
    const enum ptx_type type = main_type(b);
    const bool mad = b->insn->opcode == PTX_OP_MAD || b->insn->opcode == PTX_OP_MADC;
    const bool sub = b->insn->opcode == PTX_OP_SUB || b->insn->opcode == PTX_OP_SUBC;
    ct_value x = ct_build_source(b, 1, type), y = ct_build_source(b, 2, type), carry, result;

    if (mad) {
        x = product(b, type, b->insn->mods.half, x, y);
        y = ct_build_source(b, 3, type);
    }
    if (takes_carry)
        result = sum_of_three(b, x, sub ? ct_not(&b->at, y) : y, carry_register(b), &carry);
    else if (sub)
        result = difference_with_carry(b, x, y, &carry);
    else
        result = sum_with_carry(b, x, y, &carry);
    if (b->insn->mods.cc)
        set_carry(b, carry);
    ct_build_result(b, result, type);
}

void ct_build_add_carry(struct ct_build *b)
{
    ct_build_carry_arithmetic(b, true);
}

void ct_build_sub_carry(struct ct_build *b)
{
    ct_build_carry_arithmetic(b, true);
}

/* ---- sums of differences and of products ---- */

void ct_build_sad(struct ct_build *b)
{
    const enum ptx_type type = main_type(b);
    const ct_value x = ct_build_source(b, 1, type), y = ct_build_source(b, 2, type), sum = ct_build_source(b, 3, type);
    const ct_value greater = ct_op2(&b->at, CT_OP_MAX, type, x, y), less = ct_op2(&b->at, CT_OP_MIN, type, x, y);

    ct_build_result(b, ct_add(&b->at, sum, ct_sub(&b->at, greater, less)), type);
}

/* Bits [first, first + width of part) of a 32-bit value, sign- or zero-extended to 32 bits by type `part`. */
static ct_value part_of(struct ct_build *b, ct_value x, enum ptx_type part, unsigned first)
{
    return ct_extend_in_place(&b->at, first ? ct_shr_imm(&b->at, x, first) : x, part);
}

/* dp4a, dp2a: d = c + the sum of the products of the parts of a (`stride` bits each) and the bytes of b from `first_byte` on. */
static void dot(struct ct_build *b, unsigned terms, unsigned stride, unsigned first_byte)
{
    const bool sign_a = ptx_type_is_signed(b->insn->types[0]), sign_b = ptx_type_is_signed(b->insn->types[1]);
    const enum ptx_type part_a = stride == 8 ? (sign_a ? PTX_S8 : PTX_U8) : (sign_a ? PTX_S16 : PTX_U16);
    const ct_value x = ct_build_source(b, 1, PTX_B32), y = ct_build_source(b, 2, PTX_B32);
    ct_value sum = ct_build_source(b, 3, PTX_B32);

    for (unsigned i = 0; i < terms; i++) {
        const ct_value p = part_of(b, x, part_a, i * stride);
        const ct_value q = part_of(b, y, sign_b ? PTX_S8 : PTX_U8, (first_byte + i) * 8);

        sum = ct_add(&b->at, sum, ct_op2(&b->at, CT_OP_MUL, PTX_S32, p, q));
    }
    ct_build_result(b, sum, PTX_S32);
}

void ct_build_dot4(struct ct_build *b)
{
    dot(b, 4, 8, 0);
}

void ct_build_dot2(struct ct_build *b)
{
    dot(b, 2, 16, b->insn->mods.half == PTX_HI_HALF ? 2 : 0);
}
