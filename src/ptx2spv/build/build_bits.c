/* SPDX-License-Identifier: Apache-2.0 */
/* build: counting, finding, reversing, extracting and permuting bits (PTX ISA, "Integer Arithmetic Instructions", prmt). The IR counts
 * and reverses 32 bits; 64-bit operations are built from two of 32 bits. */
#include "build_arithmetic.h"

static bool is_wide(const struct ct_build *b)
{
    return ptx_type_bits(b->insn->types[0]) == 64;
}

/* ---- popc, clz, bfind, brev ---- */

static ct_value count_ones(struct ct_cursor *at, ct_value x)
{
    ct_value low, high;

    if (ct_width_at(at, x) == CT_W_32)
        return ct_op1(at, CT_OP_POPC, PTX_B32, x);
    ct_unpack2(at, x, &low, &high);
    low = ct_op1(at, CT_OP_POPC, PTX_B32, low);
    return ct_add(at, low, ct_op1(at, CT_OP_POPC, PTX_B32, high));
}

void ct_build_popc(struct ct_build *b)
{
    ct_build_result(b, count_ones(&b->at, ct_build_source(b, 1, b->insn->types[0])), PTX_U32);
}

void ct_build_clz(struct ct_build *b)
{
    ct_build_result(b, ct_count_leading_zeros(&b->at, ct_build_source(b, 1, b->insn->types[0])), PTX_U32);
}

/* The position of the most significant bit that is not a sign bit (for unsigned types: the most significant set bit), counted from bit
 * 0, or with .shiftamt from the top; all ones if there is none. */
void ct_build_bfind(struct ct_build *b)
{
    struct ct_cursor *at = &b->at;
    const enum ptx_type type = b->insn->types[0];
    const unsigned bits = ptx_type_bits(type);
    ct_value x = ct_build_source(b, 1, type), zeros, position;

    if (ptx_type_is_signed(type))
        x = ct_xor(at, x, ct_sar_imm(at, x, bits - 1));
    zeros = ct_count_leading_zeros(at, x);
    position = b->insn->mods.shiftamt ? zeros : ct_sub(at, ct_const32(at, bits - 1), zeros);
    ct_build_result(b, ct_select(at, ct_equals(at, zeros, bits), ct_const32(at, UINT32_MAX), position), PTX_U32);
}

void ct_build_brev(struct ct_build *b)
{
    const enum ptx_type type = b->insn->types[0];
    const ct_value x = ct_build_source(b, 1, type);
    ct_value low, high;

    if (!is_wide(b)) {
        ct_build_result(b, ct_op1(&b->at, CT_OP_BREV, PTX_B32, x), type);
        return;
    }
    ct_unpack2(&b->at, x, &low, &high);
    low = ct_op1(&b->at, CT_OP_BREV, PTX_B32, low);
    high = ct_op1(&b->at, CT_OP_BREV, PTX_B32, high);
    ct_build_result(b, ct_pack2(&b->at, high, low), type);
}

/* ---- bit fields ---- */

/* A mask of `length` ones from bit 0, as wide as `like`. */
static ct_value low_ones(struct ct_cursor *at, ct_value like, ct_value length)
{
    const ct_value ones = ct_const_like(at, like, UINT64_MAX);

    return ct_not(at, ct_build_clamped_shift(at, CT_OP_SHL, ct_bits_type(ct_width_at(at, like)), ones, length));
}

static ct_value low_byte(struct ct_build *b, unsigned index)
{
    return ct_and_imm(&b->at, ct_build_source(b, index, PTX_U32), 0xff);
}

/* bfe d, a, pos, len: extracts a bit field; for signed types it is extended by its sign, the highest bit of a that belongs to the field. */
void ct_build_bfe(struct ct_build *b)
{
    struct ct_cursor *at = &b->at;
    const enum ptx_type type = b->insn->types[0];
    const enum ptx_type unsigned_type = ct_unsigned_type(ct_width_of(type));
    const unsigned bits = ptx_type_bits(type);
    const ct_value x = ct_build_source(b, 1, type), position = low_byte(b, 2), length = low_byte(b, 3);
    const ct_value reach = ct_build_clamped_shift(at, CT_OP_SHR, unsigned_type, ct_const_like(at, x, UINT64_MAX), position);
    const ct_value filled = ct_and(at, low_ones(at, x, length), reach);
    ct_value field = ct_and(at, ct_build_clamped_shift(at, CT_OP_SHR, unsigned_type, x, position), filled), top, sign;

    if (ptx_type_is_signed(type)) {
        /* wraps around if length and position are 0; the sign does not matter then */
        top = ct_add_imm(at, ct_add(at, position, length), UINT32_MAX);
        top = ct_op2(at, CT_OP_MIN, PTX_U32, top, ct_const32(at, bits - 1));
        sign = ct_sar_imm(at, ct_op2(at, CT_OP_SHL, unsigned_type, x, ct_sub(at, ct_const32(at, bits - 1), top)), bits - 1);
        sign = ct_select(at, ct_equals(at, length, 0), ct_const_like(at, x, 0), sign);
        field = ct_or(at, field, ct_and(at, sign, ct_not(at, filled)));
    }
    ct_build_result(b, field, type);
}

/* bfi f, a, b, pos, len: inserts the low bits of a into b. */
void ct_build_bfi(struct ct_build *b)
{
    struct ct_cursor *at = &b->at;
    const enum ptx_type type = b->insn->types[0];
    const ct_value x = ct_build_source(b, 1, type), into = ct_build_source(b, 2, type);
    const ct_value position = low_byte(b, 3), length = low_byte(b, 4);
    const ct_value mask = ct_build_clamped_shift(at, CT_OP_SHL, type, low_ones(at, x, length), position);
    const ct_value moved = ct_build_clamped_shift(at, CT_OP_SHL, type, x, position);

    ct_build_result(b, ct_or(at, ct_and(at, moved, mask), ct_and(at, into, ct_not(at, mask))), type);
}

/* A bit position or count: modulo 32 with .wrap, unchanged with .clamp (and by default). */
static ct_value position_source(struct ct_build *b, unsigned index)
{
    const ct_value x = ct_build_source(b, index, PTX_U32);
    const bool wrap = b->insn->mods.mode == PTX_MODE_WRAP || b->insn->mods.mode2 == PTX_MODE_WRAP;

    return wrap ? ct_and_imm(&b->at, x, 31) : x;
}

/* bmsk d, a, b: a mask of b ones from bit a on. */
void ct_build_bmsk(struct ct_build *b)
{
    const ct_value position = position_source(b, 1), length = position_source(b, 2);
    const ct_value ones = low_ones(&b->at, length, length);

    ct_build_result(b, ct_build_clamped_shift(&b->at, CT_OP_SHL, PTX_B32, ones, position), PTX_B32);
}

/* szext d, a, b: the low b bits of a, sign- or zero-extended by the type; 0 bits give 0, 32 and more bits give a. */
void ct_build_szext(struct ct_build *b)
{
    struct ct_cursor *at = &b->at;
    const enum ptx_type type = b->insn->types[0];
    const ct_value x = ct_build_source(b, 1, type), length = position_source(b, 2);
    const ct_value inside = ct_op2(at, CT_OP_MIN, PTX_U32, length, ct_const32(at, 32));
    const ct_value spare = ct_sub(at, ct_const32(at, 32), inside); /* 32 if there are no bits */

    ct_build_result(b,
                    ct_build_clamped_shift(at, CT_OP_SHR, type, ct_build_clamped_shift(at, CT_OP_SHL, PTX_B32, x, spare),
                                           ct_select(at, ct_equals(at, spare, 32), ct_const32(at, 0), spare)),
                    type);
}

/* ---- fns ---- */

/* The position of the `number`-th set bit of x (from 1), which must exist, by binary search: the set bits of ever smaller halves are
 * counted. */
static ct_value nth_set_bit(struct ct_cursor *at, ct_value x, ct_value number)
{
    ct_value place = ct_const32(at, 0);

    for (unsigned half = 16; half; half /= 2) {
        const ct_value low = ct_and_imm(at, x, (UINT32_C(1) << half) - 1);
        const ct_value ones = ct_op1(at, CT_OP_POPC, PTX_B32, low);
        const ct_value above = ct_icmp(at, PTX_U32, PTX_GT, number, ones);

        place = ct_select(at, above, ct_add_imm(at, place, half), place);
        number = ct_select(at, above, ct_sub(at, number, ones), number);
        x = ct_select(at, above, ct_shr_imm(at, x, half), low);
    }
    return place;
}

/* fns d, mask, base, offset: the offset-th set bit from base on, upwards (offset > 0) or downwards (< 0), counting from 1; with offset
 * 0, base itself if it is set. All ones if there is no such bit. Downwards is implemented as upwards in the reversed mask. */
void ct_build_fns(struct ct_build *b)
{
    struct ct_cursor *at = &b->at;
    const ct_value mask = ct_build_source(b, 1, PTX_B32), base = ct_build_source(b, 2, PTX_U32), offset = ct_build_source(b, 3, PTX_S32);
    const ct_value down = ct_icmp_imm(at, PTX_S32, PTX_LT, offset, 0);
    const ct_value start = ct_select(at, down, ct_sub(at, ct_const32(at, 31), base), base);
    const ct_value field = ct_select(at, down, ct_op1(at, CT_OP_BREV, PTX_B32, mask), mask);
    const ct_value rest = ct_build_clamped_shift(at, CT_OP_SHR, PTX_U32, field, start);
    const ct_value distance = ct_select(at, down, ct_op1(at, CT_OP_NEG, PTX_S32, offset), offset);
    const ct_value exact = ct_equals(at, offset, 0);
    const ct_value number = ct_select(at, exact, ct_const32(at, 1), distance);
    const ct_value within = ct_select(at, exact, ct_and_imm(at, rest, 1), rest);
    const ct_value found = ct_icmp(at, PTX_U32, PTX_LE, number, ct_op1(at, CT_OP_POPC, PTX_B32, within));
    const ct_value up_place = ct_add(at, start, nth_set_bit(at, within, number));
    const ct_value place = ct_select(at, down, ct_sub(at, ct_const32(at, 31), up_place), up_place);

    ct_build_result(b, ct_select(at, found, place, ct_const32(at, UINT32_MAX)), PTX_B32);
}

/* ---- prmt ---- */

/* The selectors of the special modes by the low two bits of c (PTX ISA, "prmt"). */
static unsigned mode_selectors(unsigned mode, unsigned c)
{
    static const uint16_t selectors[6][4] = {
        {0x3210, 0x4321, 0x5432, 0x6543}, /* f4e */
        {0x5670, 0x6701, 0x7012, 0x0123}, /* b4e */
        {0x0000, 0x1111, 0x2222, 0x3333}, /* rc8 */
        {0x3210, 0x3211, 0x3222, 0x3333}, /* ecl */
        {0x0000, 0x1110, 0x2210, 0x3210}, /* ecr */
        {0x1010, 0x3232, 0x1010, 0x3232}, /* rc16 */
    };

    return selectors[mode - PTX_MODE_F4E][c];
}

static ct_value selectors_of(struct ct_build *b)
{
    struct ct_cursor *at = &b->at;
    const unsigned mode = b->insn->mods.mode;
    const ct_value c = ct_build_source(b, 3, PTX_B32);
    ct_value low_bits, selectors;

    if (mode == PTX_MODE_NONE)
        return c;
    low_bits = ct_and_imm(at, c, 3);
    selectors = ct_const32(at, mode_selectors(mode, 0));
    for (unsigned i = 1; i < 4; i++)
        selectors = ct_select(at, ct_equals(at, low_bits, i), ct_const32(at, mode_selectors(mode, i)), selectors);
    return selectors;
}

void ct_build_prmt(struct ct_build *b)
{
    struct ct_cursor *at = &b->at;
    const ct_value low = ct_build_source(b, 1, PTX_B32), high = ct_build_source(b, 2, PTX_B32);
    uint64_t constant;

    if (ct_build_constant(b, 3, &constant)) {
        if (b->insn->mods.mode != PTX_MODE_NONE)
            constant = mode_selectors(b->insn->mods.mode, constant & 3);
        ct_build_result(b, ct_permuted(at, low, high, (uint32_t)constant), PTX_B32);
        return;
    }
    ct_build_result(b, ct_emit3(at, CT_OP_PRMT, PTX_B32, CT_W_32, low, high, selectors_of(b)), PTX_B32);
}
