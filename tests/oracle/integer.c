/* SPDX-License-Identifier: Apache-2.0 */
/* Integer arithmetic (PTX ISA, "Integer Arithmetic Instructions", "Extended-Precision Integer Arithmetic Instructions"). Products are
 * computed in 128 bits. */
#include "machine.h"

typedef __int128 wide;
typedef unsigned __int128 uwide;

/* The value of an operand as a mathematical integer. */
static wide number(uint64_t bits, enum ptx_type type)
{
    return ptx_type_is_signed(type) ? (wide)oracle_signed(bits, type) : (wide)bits;
}

static wide source(struct oracle_step *s, unsigned index, enum ptx_type type)
{
    return number(oracle_source(s, index, type), type);
}

static wide clamp(wide value, wide low, wide high)
{
    return value < low ? low : value > high ? high : value;
}

static uint64_t saturated(wide value, enum ptx_type type)
{
    const wide limit = (wide)1 << (ptx_type_bits(type) - 1);

    return (uint64_t)clamp(value, -limit, limit - 1);
}

/* f on each half of packed operands, or on whole ones. */
static void each_half(struct oracle_step *s, uint64_t (*f)(struct oracle_step *s, enum ptx_type type, uint64_t a, uint64_t b))
{
    const enum ptx_type type = oracle_type(s, 0), element = oracle_element(type);
    const unsigned width = ptx_type_bits(element);
    const uint64_t a = oracle_source(s, 1, type), b = oracle_source(s, 2, type);
    uint64_t result = 0;

    for (unsigned at = 0; at < ptx_type_bits(type); at += width)
        result |= oracle_cut(f(s, element, oracle_cut(a >> at, element), oracle_cut(b >> at, element)), element) << at;
    oracle_result(s, type, result);
}

/* ---- add, sub and their carry ---- */

static uint64_t add_one(struct oracle_step *s, enum ptx_type type, uint64_t a, uint64_t b)
{
    const bool is_sub = s->insn->opcode == PTX_OP_SUB;
    const wide x = number(a, type), y = number(b, type), sum = is_sub ? x - y : x + y;

    return s->insn->mods.sat ? saturated(sum, type) : (uint64_t)sum;
}

/* add.cc, addc, sub.cc, subc: a difference is the sum with the complement of its second term, plus one or the carry in, and its carry out is
 * that of the sum. (The manual's "borrow" is the flag's complement on NVIDIA's hardware.) */
static void add_with_carry(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);
    const bool takes = s->insn->opcode == PTX_OP_ADDC || s->insn->opcode == PTX_OP_SUBC;
    const bool is_sub = s->insn->opcode == PTX_OP_SUB || s->insn->opcode == PTX_OP_SUBC;
    const uint64_t a = oracle_source(s, 1, type), b = oracle_source(s, 2, type);
    const uwide carry_in = takes ? s->frame->carry : is_sub;
    const uwide sum = (uwide)a + oracle_cut(is_sub ? ~b : b, type) + carry_in;

    if (s->insn->mods.cc)
        s->frame->carry = sum >> ptx_type_bits(type) & 1;
    oracle_result(s, type, (uint64_t)sum);
}

void oracle_do_add(struct oracle_step *s)
{
    if (s->insn->mods.cc || s->insn->opcode == PTX_OP_ADDC || s->insn->opcode == PTX_OP_SUBC)
        add_with_carry(s);
    else
        each_half(s, add_one);
}

/* ---- mul, mad ---- */

static enum ptx_type doubled(enum ptx_type type)
{
    switch (type) {
    case PTX_U16:
        return PTX_U32;
    case PTX_S16:
        return PTX_S32;
    case PTX_U32:
        return PTX_U64;
    default:
        return PTX_S64;
    }
}

void oracle_do_mul(struct oracle_step *s)
{
    const struct ptx_modifiers *mods = &s->insn->mods;
    const enum ptx_type type = oracle_type(s, 0), to = mods->half == PTX_WIDE ? doubled(type) : type;
    const bool takes = s->insn->opcode == PTX_OP_MADC;
    const unsigned width = ptx_type_bits(to);
    wide product;
    uwide sum;

    if (ptx_type_is_signed(type))
        product = source(s, 1, type) * source(s, 2, type);
    else
        product = (wide)((uwide)oracle_source(s, 1, type) * oracle_source(s, 2, type));
    if (mods->half == PTX_HI_HALF) /* for an arithmetic and a logical shift the remaining bits are the same */
        product >>= width;
    if (s->insn->opcode == PTX_OP_MUL) {
        oracle_result(s, to, (uint64_t)product);
        return;
    }
    if (mods->sat) {
        oracle_result(s, to, saturated((wide)oracle_signed((uint64_t)product, to) + source(s, 3, to), to));
        return;
    }
    sum = (uwide)oracle_cut((uint64_t)product, to) + oracle_source(s, 3, to) + (takes && s->frame->carry);
    if (mods->cc)
        s->frame->carry = sum >> width & 1;
    oracle_result(s, to, (uint64_t)sum);
}

/* .lo: bits 31..0 of the 48-bit product of the operands' low 24 bits, .hi: bits 47..16. */
void oracle_do_mul24(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);
    const bool is_signed = ptx_type_is_signed(type);
    const uint64_t a = oracle_source(s, 1, type) << 40, b = oracle_source(s, 2, type) << 40;
    const int64_t product = is_signed ? ((int64_t)a >> 40) * ((int64_t)b >> 40) : (int64_t)((a >> 40) * (b >> 40));
    const uint64_t part = oracle_cut((uint64_t)(s->insn->mods.half == PTX_HI_HALF ? product >> 16 : product), type);

    if (s->insn->opcode == PTX_OP_MUL24)
        oracle_result(s, type, part);
    else if (s->insn->mods.sat)
        oracle_result(s, type, saturated(number(part, type) + source(s, 3, type), type));
    else
        oracle_result(s, type, part + oracle_source(s, 3, type));
}

void oracle_do_sad(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);
    const wide a = source(s, 1, type), b = source(s, 2, type);

    oracle_result(s, type, (uint64_t)(a < b ? b - a : a - b) + oracle_source(s, 3, type));
}

/* ---- div, rem ---- */

/* Division by zero "yields an unspecified, machine-specific value": no result may depend on it. NVIDIA's machines return all ones. */
void oracle_do_div(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);
    const wide a = source(s, 1, type), b = source(s, 2, type);

    if (b == 0 && !s->grid->launch->allow_zero_division)
        oracle_fail(s, ORACLE_UNDEFINED, "division by zero");
    else if (b == 0)
        oracle_result(s, type, UINT64_MAX);
    else
        oracle_result(s, type, (uint64_t)(s->insn->opcode == PTX_OP_DIV ? a / b : a % b));
}

/* ---- abs, neg, min, max ---- */

void oracle_do_abs(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);
    const wide a = source(s, 1, type);

    oracle_result(s, type, (uint64_t)(s->insn->opcode == PTX_OP_NEG || a < 0 ? -a : a));
}

static uint64_t min_max_one(struct oracle_step *s, enum ptx_type type, uint64_t a, uint64_t b)
{
    const wide x = number(a, type), y = number(b, type);
    const wide result = (s->insn->opcode == PTX_OP_MIN) == (x < y) ? x : y;

    return s->insn->mods.relu && result < 0 ? 0 : (uint64_t)result;
}

void oracle_do_min_max(struct oracle_step *s)
{
    if (s->insn->n_operands > 3)
        oracle_fail(s, ORACLE_UNSUPPORTED, "three operands");
    else
        each_half(s, min_max_one);
}

/* ---- dot products ---- */

static int64_t part_of(uint64_t bits, unsigned index, unsigned width, enum ptx_type type)
{
    const uint64_t part = bits << (64 - width * (index + 1));

    return ptx_type_is_signed(type) ? (int64_t)part >> (64 - width) : (int64_t)(part >> (64 - width));
}

/* dp4a: four bytes by four bytes; dp2a: two halves by the lower or upper two bytes. Sums wrap around. */
void oracle_do_dot(struct oracle_step *s)
{
    const bool is_four = s->insn->opcode == PTX_OP_DP4A;
    const enum ptx_type atype = oracle_type(s, 0), btype = oracle_type(s, 1);
    const uint64_t a = oracle_source(s, 1, PTX_B32), b = oracle_source(s, 2, PTX_B32);
    const unsigned upper = s->insn->mods.half == PTX_HI_HALF ? 2 : 0;
    uint64_t sum = oracle_source(s, 3, PTX_B32);

    for (unsigned i = 0; i < (is_four ? 4 : 2); i++)
        sum += (uint64_t)(part_of(a, i, is_four ? 8 : 16, atype) * part_of(b, i + upper, 8, btype));
    oracle_result(s, PTX_B32, sum);
}
