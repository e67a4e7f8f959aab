/* SPDX-License-Identifier: Apache-2.0 */
/* build: logic, shifts, comparison and selection (PTX ISA, "Logic and Shift Instructions", "Comparison and Selection
 * Instructions"). */
#include "build_arithmetic.h"

static enum ptx_type main_type(const struct ct_build *b)
{
    return b->insn->types[0];
}

/* ---- and, or, xor, not, cnot, lop3 ---- */

void ct_build_logic(struct ct_build *b)
{
    const enum ptx_type type = main_type(b);
    const ct_value x = ct_build_source(b, 1, type), y = ct_build_source(b, 2, type);

    ct_build_result(b, ct_op2(&b->at, b->rule->integer_op, type, x, y), type);
}

void ct_build_not(struct ct_build *b)
{
    ct_build_result(b, ct_not(&b->at, ct_build_source(b, 1, main_type(b))), main_type(b));
}

/* Logical not: 1 for 0, else 0. */
void ct_build_cnot(struct ct_build *b)
{
    const ct_value x = ct_build_source(b, 1, main_type(b));
    const ct_value zero = ct_const_like(&b->at, x, 0), one = ct_const_like(&b->at, x, 1);

    ct_build_result(b, ct_select(&b->at, ct_equals(&b->at, x, 0), one, zero), main_type(b));
}

static ct_value inverted_if(struct ct_cursor *at, bool invert, ct_value x)
{
    return invert ? ct_not(at, x) : x;
}

/* The function of two bits y, z with the truth table `table` (bit number 2*y + z). */
static ct_value function_of_two(struct ct_cursor *at, unsigned table, ct_value y, ct_value z)
{
    static const struct {
        uint8_t op, invert_y, invert_z, invert; /* op CONST: a constant; COPY: y only, or z only if invert_z is 2 */
    } rows[16] = {
        {CT_OP_CONST, 0, 0, 0}, {CT_OP_OR, 0, 0, 1},   {CT_OP_AND, 1, 0, 0},  {CT_OP_COPY, 0, 0, 1},
        {CT_OP_AND, 0, 1, 0},   {CT_OP_COPY, 0, 2, 1}, {CT_OP_XOR, 0, 0, 0},  {CT_OP_AND, 0, 0, 1},
        {CT_OP_AND, 0, 0, 0},   {CT_OP_XOR, 0, 0, 1},  {CT_OP_COPY, 0, 2, 0}, {CT_OP_OR, 1, 0, 0},
        {CT_OP_COPY, 0, 0, 0},  {CT_OP_OR, 0, 1, 0},   {CT_OP_OR, 0, 0, 0},   {CT_OP_CONST, 0, 0, 1},
    };

    if (rows[table].op == CT_OP_CONST)
        return ct_const_like(at, y, rows[table].invert ? UINT64_MAX : 0);
    if (rows[table].op == CT_OP_COPY)
        return inverted_if(at, rows[table].invert, rows[table].invert_z ? z : y);
    y = inverted_if(at, rows[table].invert_y, y);
    z = inverted_if(at, rows[table].invert_z, z);
    return inverted_if(at, rows[table].invert, ct_bits2(at, rows[table].op, y, z));
}

/* Shannon expansion by the first operand: f(x, y, z) = f(0, y, z) ^ (x & (f(0, y, z) ^ f(1, y, z))). */
static ct_value function_of_three(struct ct_cursor *at, unsigned table, ct_value x, ct_value y, ct_value z)
{
    const unsigned without = table & 15, change = without ^ (table >> 4 & 15);
    ct_value part;

    if (change == 0)
        return function_of_two(at, without, y, z);
    part = change == 15 ? x : ct_and(at, x, function_of_two(at, change, y, z));
    return without ? ct_xor(at, function_of_two(at, without, y, z), part) : part;
}

static ct_value boolean(struct ct_build *b, ct_value x, ct_value y)
{
    switch ((unsigned)b->insn->mods.operation) {
    case PTX_AND:
        return ct_and(&b->at, x, y);
    case PTX_OR:
        return ct_or(&b->at, x, y);
    case PTX_XOR:
        return ct_xor(&b->at, x, y);
    default:
        ct_build_invalid(b, "not a boolean operation");
        return x;
    }
}

/* lop3 d, a, b, c, table; with a boolean operation also d|p, .., q: p = (d != 0) op q. */
void ct_build_lop3(struct ct_build *b)
{
    const ct_value x = ct_build_source(b, 1, PTX_B32), y = ct_build_source(b, 2, PTX_B32), z = ct_build_source(b, 3, PTX_B32);
    uint32_t n;
    const struct ptx_operand *to = ct_build_items(&b->insn->operands[0], &n);
    uint64_t table;
    ct_value result, predicate;

    if (!ct_build_constant(b, 4, &table)) {
        ct_build_invalid(b, "the truth table is not a constant");
        return;
    }
    result = function_of_three(&b->at, (unsigned)table & 0xff, x, y, z); /* ptxas uses the low byte of larger constants */
    if (n == 2) {
        predicate = boolean(b, ct_not(&b->at, ct_equals(&b->at, result, 0)), ct_build_source(b, 5, PTX_PRED));
        ct_build_write(b, &to[1], predicate, PTX_PRED);
    }
    ct_build_write(b, &to[0], result, PTX_B32);
}

/* ---- shifts ---- */

ct_value ct_build_clamped_shift(struct ct_cursor *at, enum ct_op op, enum ptx_type type, ct_value x, ct_value amount)
{
    const unsigned bits = ct_width_bits(ct_width_at(at, x));
    const ct_value inside = ct_op2(at, CT_OP_MIN, PTX_U32, amount, ct_const32(at, bits - 1));
    const ct_value shifted = ct_op2(at, op, type, x, inside);

    if (op == CT_OP_SHR && ptx_type_is_signed(type))
        return shifted;
    return ct_select(at, ct_icmp_imm(at, PTX_U32, PTX_LT, amount, bits), shifted, ct_const_like(at, x, 0));
}

static ct_value constant_shift(struct ct_build *b, enum ct_op op, enum ptx_type type, ct_value x, uint32_t amount)
{
    const unsigned bits = ptx_type_bits(type);

    if (amount >= bits && !(op == CT_OP_SHR && ptx_type_is_signed(type)))
        return ct_const_like(&b->at, x, 0);
    return ct_op2(&b->at, op, type, x, ct_const32(&b->at, amount < bits ? amount : bits - 1));
}

void ct_build_shift(struct ct_build *b)
{
    const enum ct_op op = b->rule->integer_op;
    const enum ptx_type type = main_type(b);
    const ct_value x = ct_build_source(b, 1, type);
    uint64_t amount;

    if (ct_build_constant(b, 2, &amount))
        ct_build_result(b, constant_shift(b, op, type, x, (uint32_t)amount), type);
    else
        ct_build_result(b, ct_build_clamped_shift(&b->at, op, type, x, ct_build_source(b, 2, PTX_U32)), type);
}

/* shf.l: the upper word of {high, low} << n; shf.r: the lower word of {high, low} >> n; n modulo 32 (.wrap) or at most 32. */
void ct_build_funnel_shift(struct ct_build *b)
{
    struct ct_cursor *at = &b->at;
    const bool left = b->insn->mods.mode == PTX_MODE_L, wrap = b->insn->mods.mode2 == PTX_MODE_WRAP;
    const ct_value low = ct_build_source(b, 1, PTX_B32), high = ct_build_source(b, 2, PTX_B32);
    uint64_t constant;
    ct_value amount, both;

    if (ct_build_constant(b, 3, &constant)) {
        const uint32_t n = wrap ? constant & 31 : (uint32_t)constant < 32 ? (uint32_t)constant : 32;
        const uint32_t down = left ? 32 - n : n; /* the shift to the right that moves the result to the lower word of {high, low} */

        if (down == 0 || down == 32)
            ct_build_result(b, down ? high : low, PTX_B32);
        else
            ct_build_result(b, ct_or(at, ct_shr_imm(at, low, down), ct_shl_imm(at, high, 32 - down)), PTX_B32);
        return;
    }
    amount = ct_build_source(b, 3, PTX_U32);
    amount = wrap ? ct_and_imm(at, amount, 31) : ct_op2(at, CT_OP_MIN, PTX_U32, amount, ct_const32(at, 32));
    both = ct_pack2(at, low, high);
    both = ct_op2(at, left ? CT_OP_SHL : CT_OP_SHR, PTX_U64, both, amount);
    ct_build_result(b, ct_low32(at, left ? ct_shr_imm(at, both, 32) : both), PTX_B32);
}

/* ---- comparison ---- */

/* lo, ls, hi, hs are the unsigned forms of lt, le, gt, ge. */
static ct_value integer_comparison(struct ct_build *b, enum ptx_type type, enum ptx_compare compare, ct_value x, ct_value y)
{
    if (compare >= PTX_LO && compare <= PTX_HS) {
        compare = compare - PTX_LO + PTX_LT;
        type = ct_unsigned_type(ct_width_of(type));
    }
    if (compare < PTX_EQ || compare > PTX_GE) {
        ct_build_invalid(b, "this comparison is for floating point types only");
        compare = PTX_EQ;
    }
    return ct_icmp(&b->at, type, compare, x, y);
}

/* Builds a comparison of any PTX type and operator as a predicate; the instruction's .ftz applies. */
static ct_value comparison(struct ct_build *b, enum ptx_type type, enum ptx_compare compare, ct_value x, ct_value y)
{
    ct_value result;

    if (!ptx_type_is_float(type))
        return integer_comparison(b, type, compare, x, y);
    result = ct_fcmp(&b->at, type, compare, x, y);
    b->at.block->last->ftz = b->insn->mods.ftz;
    return result;
}

static ct_value combined(struct ct_build *b, ct_value condition, unsigned third)
{
    if (b->insn->mods.operation == PTX_OPER_NONE)
        return condition;
    return boolean(b, condition, ct_build_source(b, third, PTX_PRED));
}

static bool is_packed(enum ptx_type type)
{
    return type == PTX_F16X2 || type == PTX_BF16X2;
}

/* f16x2 and bf16x2: compares both halves, with one predicate each. */
static void compare_halves(struct ct_build *b, enum ptx_type type, ct_value out[2])
{
    ct_value x[2], y[2];

    ct_unpack2(&b->at, ct_build_source(b, 1, type), &x[0], &x[1]);
    ct_unpack2(&b->at, ct_build_source(b, 2, type), &y[0], &y[1]);
    for (int i = 0; i < 2; i++)
        out[i] = combined(b, comparison(b, type == PTX_F16X2 ? PTX_F16 : PTX_BF16, b->insn->mods.compare, x[i], y[i]), 3);
}

/* setp p|q, a, b {, c}: p = (a cmp b) op c, q = !(a cmp b) op c. */
void ct_build_setp(struct ct_build *b)
{
    const enum ptx_type type = main_type(b);
    uint32_t n;
    const struct ptx_operand *to = ct_build_items(&b->insn->operands[0], &n);
    ct_value condition, results[2];

    if (is_packed(type)) {
        compare_halves(b, type, results);
    } else {
        const ct_value x = ct_build_source(b, 1, type), y = ct_build_source(b, 2, type);

        condition = comparison(b, type, b->insn->mods.compare, x, y);
        results[0] = combined(b, condition, 3);
        if (n > 1)
            results[1] = combined(b, ct_not(&b->at, condition), 3);
    }
    for (uint32_t i = 0; i < n && i < 2; i++)
        ct_build_write(b, &to[i], results[i], PTX_PRED);
}

/* The number that means true: 1.0 for float types, all ones for integer types. */
static uint64_t true_bits(enum ptx_type type)
{
    if (type == PTX_F32)
        return 0x3f800000;
    if (type == PTX_BF16 || type == PTX_BF16X2)
        return 0x3f80;
    return type == PTX_F16 || type == PTX_F16X2 ? 0x3c00 : UINT64_MAX;
}

void ct_build_set(struct ct_build *b)
{
    const enum ptx_type to = main_type(b), from = b->insn->types[1];
    struct ct_cursor *at = &b->at;
    ct_value halves[2], condition;

    if (is_packed(from)) {
        compare_halves(b, from, halves);
        for (int i = 0; i < 2; i++)
            halves[i] = ct_select(at, halves[i], ct_emit_const(at, CT_W_16, true_bits(to)), ct_emit_const(at, CT_W_16, 0));
        ct_build_result(b, ct_pack2(at, halves[0], halves[1]), to);
    } else {
        const ct_value x = ct_build_source(b, 1, from), y = ct_build_source(b, 2, from);
        const enum ct_width width = ct_width_of(to);

        condition = combined(b, comparison(b, from, b->insn->mods.compare, x, y), 3);
        ct_build_result(b, ct_select(at, condition, ct_emit_const(at, width, true_bits(to)), ct_emit_const(at, width, 0)), to);
    }
}

/* ---- selection ---- */

void ct_build_selp(struct ct_build *b)
{
    const enum ptx_type type = main_type(b);
    const ct_value x = ct_build_source(b, 1, type), y = ct_build_source(b, 2, type), condition = ct_build_source(b, 3, PTX_PRED);

    ct_build_result(b, ct_select(&b->at, condition, x, y), type);
}

/* slct d, a, b, c: a if c >= 0 (including -0), else b, also if c is NaN. */
void ct_build_slct(struct ct_build *b)
{
    const enum ptx_type type = main_type(b), tested = b->insn->types[1];
    const ct_value x = ct_build_source(b, 1, type), y = ct_build_source(b, 2, type), z = ct_build_source(b, 3, tested);
    const ct_value condition = comparison(b, tested, PTX_GE, z, ct_const_like(&b->at, z, 0));

    ct_build_result(b, ct_select(&b->at, condition, x, y), type);
}
