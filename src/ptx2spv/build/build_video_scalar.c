/* SPDX-License-Identifier: Apache-2.0 */
/* build: scalar video instructions (PTX ISA, "Scalar Video Instructions"). A source is a word, or the byte or half that its selector names,
 * extended as its type says. Results have more than 32 bits, so they are computed in 64.
 *     vadd.s32.u32.s32.sat d, a.b0, b.h1;        types of d, a, b; the result is clamped to the type of d
 *     vadd.s32.u32.s32.max d, a, b, c;           a second operation on the 32-bit result and c
 *     vadd.s32.u32.s32.sat d.b2, a, b, c;        a byte or half of d; the rest of d is that of c
 *     vmad.s32.u32.s32.shr7 d, -a, b, c;         negates the product or c; .po adds 1 to the sum */
#include "build.h"

/* A part of a word: the bits from `first` on. */
struct part {
    unsigned first, bits;
};

static struct part part_named(int component)
{
    if (component >= PTX_SELECTOR_HALF)
        return (struct part){16 * (unsigned)(component - PTX_SELECTOR_HALF), 16};
    if (component >= PTX_SELECTOR_BYTE)
        return (struct part){8 * (unsigned)(component - PTX_SELECTOR_BYTE), 8};
    return (struct part){0, 32};
}

static enum ptx_type type_of_part(unsigned bits, bool is_signed)
{
    if (bits == 32)
        return is_signed ? PTX_S32 : PTX_U32;
    if (bits == 16)
        return is_signed ? PTX_S16 : PTX_U16;
    return is_signed ? PTX_S8 : PTX_U8;
}

/* The selected part of a source, extended to 64 bits. */
static ct_value source_part(struct ct_build *b, unsigned index, enum ptx_type type)
{
    const struct ptx_operand *operand = &b->insn->operands[index], word = ct_build_whole_word(operand);
    const struct part part = part_named(operand->component);
    const enum ptx_type read_as = type_of_part(part.bits, ptx_type_is_signed(type));
    ct_value value = ct_build_read(b, &word, PTX_B32);

    if (part.first)
        value = ct_shr_imm(&b->at, value, part.first);
    if (part.bits < 32)
        value = ct_extend_in_place(&b->at, value, read_as);
    return ct_resize(&b->at, value, ptx_type_is_signed(type) ? PTX_S32 : PTX_U32, CT_W_64);
}

/* ---- the first operation ---- */

static ct_value shift_amount(struct ct_build *b, ct_value y)
{
    struct ct_cursor *at = &b->at;
    const ct_value amount = ct_low32(at, y);

    if (b->insn->mods.mode2 == PTX_MODE_WRAP)
        return ct_and_imm(at, amount, 31);
    return ct_op2(at, CT_OP_MIN, PTX_U32, amount, ct_const32(at, 32));
}

static ct_value compute(struct ct_build *b, ct_value x, ct_value y)
{
    struct ct_cursor *at = &b->at;

    switch ((int)b->insn->opcode) {
    case PTX_OP_VADD:
        return ct_add(at, x, y);
    case PTX_OP_VSUB:
        return ct_sub(at, x, y);
    case PTX_OP_VABSDIFF:
        return ct_sub(at, ct_op2(at, CT_OP_MAX, PTX_S64, x, y), ct_op2(at, CT_OP_MIN, PTX_S64, x, y));
    case PTX_OP_VMIN:
        return ct_op2(at, CT_OP_MIN, PTX_S64, x, y);
    case PTX_OP_VMAX:
        return ct_op2(at, CT_OP_MAX, PTX_S64, x, y);
    case PTX_OP_VSHL:
        return ct_op2(at, CT_OP_SHL, PTX_B64, x, shift_amount(b, y));
    case PTX_OP_VSHR:
        return ct_op2(at, CT_OP_SHR, PTX_S64, x, shift_amount(b, y));
    default: /* vset */
        return ct_select(at, ct_icmp(at, PTX_S64, (enum ptx_compare)b->insn->mods.compare, x, y), ct_const64(at, 1), ct_const64(at, 0));
    }
}

/* ---- what happens to its result ---- */

/* An unsigned word that is shifted to the left may need all 64 bits. */
static ct_value clamp_part(struct ct_build *b, ct_value x, bool is_signed, unsigned bits)
{
    const uint64_t most = is_signed ? (UINT64_C(1) << (bits - 1)) - 1 : (UINT64_C(1) << bits) - 1;
    const bool all_bits = b->insn->opcode == PTX_OP_VSHL && b->insn->types[1] == PTX_U32;
    const ct_value high = ct_const64(&b->at, most), low = ct_const64(&b->at, is_signed ? ~most : 0);

    if (all_bits)
        return ct_op2(&b->at, CT_OP_MIN, PTX_U64, x, high);
    return ct_op2(&b->at, CT_OP_MAX, PTX_S64, ct_op2(&b->at, CT_OP_MIN, PTX_S64, x, high), low);
}

static ct_value combine(struct ct_build *b, ct_value x, ct_value c, enum ptx_type type)
{
    switch (b->insn->mods.operation) {
    case PTX_ADD:
        return ct_add(&b->at, x, c);
    case PTX_MIN:
        return ct_op2(&b->at, CT_OP_MIN, type, x, c);
    default:
        return ct_op2(&b->at, CT_OP_MAX, type, x, c);
    }
}

/* c with the part replaced by the low bits of x. */
static ct_value merge(struct ct_build *b, ct_value x, ct_value c, struct part part)
{
    const uint32_t mask = (uint32_t)((UINT64_C(1) << part.bits) - 1);
    const ct_value inserted = ct_shl_imm(&b->at, ct_and_imm(&b->at, x, mask), part.first);

    return ct_or(&b->at, ct_and_imm(&b->at, c, ~(mask << part.first)), inserted);
}

static void write_word(struct ct_build *b, ct_value x)
{
    const struct ptx_operand word = ct_build_whole_word(&b->insn->operands[0]);

    ct_build_write(b, &word, x, PTX_U32);
}

static void finish(struct ct_build *b, ct_value wide, enum ptx_type type)
{
    const struct part part = part_named(b->insn->operands[0].component);
    ct_value x = b->insn->mods.sat ? clamp_part(b, wide, ptx_type_is_signed(type), part.bits) : wide;

    x = ct_low32(&b->at, x);
    if (b->insn->mods.operation)
        x = combine(b, x, ct_build_source(b, 3, PTX_B32), type);
    else if (part.bits < 32)
        x = merge(b, x, ct_build_source(b, 3, PTX_B32), part);
    write_word(b, x);
}

/* ---- checks ---- */

static bool has_selector(const struct ptx_operand *operand)
{
    return operand->component >= PTX_SELECTOR_BYTE;
}

/* Whether the types are .u32 and .s32, as many as expected. */
static bool check_types(struct ct_build *b, unsigned n)
{
    const struct ptx_instruction *insn = b->insn;

    if (insn->n_types != n) {
        ct_build_invalid(b, "wrong types");
        return false;
    }
    for (unsigned i = 0; i < n; i++)
        if (insn->types[i] != PTX_U32 && insn->types[i] != PTX_S32) {
            ct_build_invalid(b, "only .u32 and .s32 are legal types");
            return false;
        }
    return true;
}

static bool check_form(struct ct_build *b, bool is_shift)
{
    const struct ptx_instruction *insn = b->insn;
    const char *why = NULL;

    if (insn->n_operands != 3 && insn->n_operands != 4)
        why = "wrong operands";
    else if (insn->n_operands == 3 && (insn->mods.operation || has_selector(&insn->operands[0])))
        why = "a fourth operand is missing";
    else if (insn->mods.operation && has_selector(&insn->operands[0]))
        why = "a selector on the destination and a second operation";
    else if (insn->n_operands == 4 && has_selector(&insn->operands[3]))
        why = "a selector on the fourth operand";
    else if (is_shift && (!insn->mods.mode2 || insn->types[2] != PTX_U32))
        why = "a shift needs .clamp or .wrap, and an amount of type .u32";
    else if (insn->opcode == PTX_OP_VSET && (!insn->mods.compare || insn->mods.compare > PTX_GE))
        why = "an illegal comparison";
    if (why)
        ct_build_invalid(b, why);
    return !why;
}

void ct_build_video(struct ct_build *b)
{
    const bool is_shift = b->insn->opcode == PTX_OP_VSHL || b->insn->opcode == PTX_OP_VSHR;
    const unsigned n_types = b->insn->opcode == PTX_OP_VSET ? 2 : 3; /* the type of a is that of a comparison's second operation too */
    const enum ptx_type *sources = b->insn->types + n_types - 2;
    ct_value x, y;

    if (!check_types(b, n_types) || !check_form(b, is_shift))
        return;
    x = source_part(b, 1, sources[0]);
    y = source_part(b, 2, sources[1]);
    finish(b, compute(b, x, y), b->insn->types[0]);
}

/* ---- vmad ---- */

static bool check_mad(struct ct_build *b, bool negates_product)
{
    const struct ptx_instruction *insn = b->insn;
    const char *why = NULL;

    if (insn->n_operands != 4)
        why = "wrong operands";
    else if (has_selector(&insn->operands[0]) || has_selector(&insn->operands[3]))
        why = "a selector on an operand that has none";
    else if (negates_product && insn->operands[3].minus)
        why = "the product and the fourth operand are negated";
    else if (insn->mods.mode2 == PTX_MODE_PLUS_ONE && (insn->operands[1].minus || insn->operands[2].minus || insn->operands[3].minus))
        why = ".po and a negated operand";
    if (why)
        ct_build_invalid(b, why);
    return !why;
}

/* The low 64 bits of a sum, and whether it is negative, which they do not tell if the product of two unsigned words is negated or large;
 * no value: it is unsigned. */
struct sum {
    ct_value low, is_negative;
};

/* c - product, with product unsigned. */
static struct sum subtract_product(struct ct_cursor *at, ct_value c, ct_value product)
{
    const ct_value is_below = ct_icmp(at, PTX_U64, PTX_LT, c, product);

    return (struct sum){ct_sub(at, c, product), ct_or(at, is_below, ct_icmp_imm(at, PTX_S64, PTX_LT, c, 0))};
}

/* product - c, with product unsigned. */
static struct sum subtract_c(struct ct_cursor *at, ct_value product, ct_value c)
{
    const ct_value is_below = ct_icmp(at, PTX_U64, PTX_LT, product, c);

    return (struct sum){ct_sub(at, product, c), ct_and(at, is_below, ct_icmp_imm(at, PTX_S64, PTX_GE, c, 0))};
}

static struct sum signed_sum(struct ct_cursor *at, ct_value low)
{
    return (struct sum){low, ct_icmp_imm(at, PTX_S64, PTX_LT, low, 0)};
}

static struct sum add_or_subtract(struct ct_build *b, bool negates_product, bool has_signed_source)
{
    struct ct_cursor *at = &b->at;
    const struct ptx_instruction *insn = b->insn;
    const bool negates_c = insn->operands[3].minus, is_signed = has_signed_source || negates_product || negates_c;
    const struct ptx_operand third = ct_build_whole_word(&insn->operands[3]);
    const ct_value product = ct_bits2(at, CT_OP_MUL, source_part(b, 1, insn->types[1]), source_part(b, 2, insn->types[2]));
    const ct_value c = ct_resize(at, ct_build_read(b, &third, PTX_B32), is_signed ? PTX_S32 : PTX_U32, CT_W_64);
    ct_value low;

    if (negates_product && !has_signed_source)
        return subtract_product(at, c, product);
    if (negates_c && !has_signed_source)
        return subtract_c(at, product, c);
    if (negates_product)
        low = ct_sub(at, c, product);
    else
        low = negates_c ? ct_sub(at, product, c) : ct_add(at, product, c);
    if (insn->mods.mode2 == PTX_MODE_PLUS_ONE)
        low = ct_add_imm(at, low, 1);
    return is_signed ? signed_sum(at, low) : (struct sum){low, CT_NO_VALUE};
}

static void scale(struct ct_cursor *at, struct sum *sum, unsigned amount)
{
    sum->low = ct_shr_imm(at, sum->low, amount);
    if (sum->is_negative.i)
        sum->low = ct_or(at, sum->low, ct_select(at, sum->is_negative, ct_const64(at, UINT64_MAX << (64 - amount)), ct_const64(at, 0)));
}

static ct_value clamp_sum(struct ct_cursor *at, struct sum sum)
{
    const bool is_signed = sum.is_negative.i != 0;
    const ct_value most = ct_op2(at, CT_OP_MIN, PTX_U64, sum.low, ct_const64(at, is_signed ? INT32_MAX : UINT32_MAX));
    const ct_value least = ct_const64(at, (uint64_t)INT32_MIN);
    ct_value negative;

    if (!is_signed)
        return most;
    negative = ct_select(at, ct_icmp_imm(at, PTX_S64, PTX_LT, sum.low, 0), ct_op2(at, CT_OP_MAX, PTX_S64, sum.low, least), least);
    return ct_select(at, sum.is_negative, negative, most);
}

void ct_build_video_mad(struct ct_build *b)
{
    const struct ptx_instruction *insn = b->insn;
    const bool negates_product = insn->n_operands == 4 && insn->operands[1].minus != insn->operands[2].minus;
    struct sum sum;

    if (!check_types(b, 3) || !check_mad(b, negates_product))
        return;
    sum = add_or_subtract(b, negates_product, ptx_type_is_signed(insn->types[1]) || ptx_type_is_signed(insn->types[2]));
    if (insn->mods.mode)
        scale(&b->at, &sum, insn->mods.mode == PTX_MODE_SHR7 ? 7 : 15);
    if (insn->mods.sat)
        sum.low = clamp_sum(&b->at, sum);
    ct_build_write(b, &insn->operands[0], ct_low32(&b->at, sum.low), PTX_U32);
}
