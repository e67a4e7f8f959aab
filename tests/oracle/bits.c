/* SPDX-License-Identifier: Apache-2.0 */
/* Bit operations (PTX ISA, "Integer Arithmetic Instructions" from popc to bmsk, "Logic and Shift Instructions", "prmt"). They process
 * one bit at a time where the ISA describes them like that. */
#include "machine.h"

static bool bit(uint64_t bits, unsigned index)
{
    return bits >> index & 1;
}

void oracle_do_popc(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);
    const uint64_t a = oracle_source(s, 1, type);
    unsigned n = 0;

    for (unsigned i = 0; i < ptx_type_bits(type); i++)
        n += bit(a, i);
    oracle_result(s, PTX_U32, n);
}

void oracle_do_clz(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);
    const uint64_t a = oracle_source(s, 1, type);
    unsigned n = 0;

    while (n < ptx_type_bits(type) && !bit(a, ptx_type_bits(type) - 1 - n))
        n++;
    oracle_result(s, PTX_U32, n);
}

/* The highest bit that differs from the sign (signed) or is set (unsigned); .shiftamt: the shift that brings it to the top. */
void oracle_do_bfind(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);
    const unsigned top = ptx_type_bits(type) - 1;
    uint64_t a = oracle_source(s, 1, type);
    int at = (int)top;

    if (ptx_type_is_signed(type) && bit(a, top))
        a = ~a;
    while (at >= 0 && !bit(a, (unsigned)at))
        at--;
    if (s->insn->mods.shiftamt && at >= 0)
        at = (int)top - at;
    oracle_result(s, PTX_U32, (uint32_t)at);
}

/* The n-th set bit of the mask from `base` on, upwards or downwards. */
void oracle_do_fns(struct oracle_step *s)
{
    const uint32_t mask = (uint32_t)oracle_source(s, 1, PTX_B32), base = (uint32_t)oracle_source(s, 2, PTX_B32);
    const int32_t offset = (int32_t)oracle_source(s, 3, PTX_B32);
    const int step = offset < 0 ? -1 : 1;
    int64_t left = offset < 0 ? -(int64_t)offset : offset;
    uint32_t found = UINT32_MAX;

    if (base > 31) {
        oracle_fail(s, ORACLE_UNDEFINED, "the base of fns is %u, it ends at 31", base);
        return;
    }
    left -= left > 0; /* 0 and 1 both select the bit itself, but 0 does not search */
    for (int at = (int)base; at >= 0 && at < 32; at += step) {
        if (bit(mask, (unsigned)at) && left-- == 0) {
            found = (uint32_t)at;
            break;
        }
        if (offset == 0)
            break;
    }
    oracle_result(s, PTX_B32, found);
}

void oracle_do_brev(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);
    const unsigned width = ptx_type_bits(type);
    const uint64_t a = oracle_source(s, 1, type);
    uint64_t result = 0;

    for (unsigned i = 0; i < width; i++)
        result |= (uint64_t)bit(a, i) << (width - 1 - i);
    oracle_result(s, type, result);
}

void oracle_do_bfe(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);
    const unsigned top = ptx_type_bits(type) - 1;
    const uint64_t a = oracle_source(s, 1, type);
    const unsigned at = oracle_source(s, 2, PTX_U32) & 255, length = oracle_source(s, 3, PTX_U32) & 255;
    const unsigned last = length ? at + length - 1 : 0;
    const bool sign = ptx_type_is_signed(type) && length && bit(a, last < top ? last : top);
    uint64_t result = 0;

    for (unsigned i = 0; i <= top; i++)
        result |= (uint64_t)(i < length && at + i <= top ? bit(a, at + i) : sign) << i;
    oracle_result(s, type, result);
}

void oracle_do_bfi(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);
    const unsigned top = ptx_type_bits(type) - 1;
    const uint64_t a = oracle_source(s, 1, type);
    const unsigned at = oracle_source(s, 3, PTX_U32) & 255, length = oracle_source(s, 4, PTX_U32) & 255;
    uint64_t result = oracle_source(s, 2, type);

    for (unsigned i = 0; i < length && at + i <= top; i++)
        result = (result & ~(UINT64_C(1) << (at + i))) | (uint64_t)bit(a, i) << (at + i);
    oracle_result(s, type, result);
}

void oracle_do_szext(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);
    const uint64_t a = oracle_source(s, 1, type);
    const uint32_t asked = (uint32_t)oracle_source(s, 2, PTX_U32);
    const unsigned length = s->insn->mods.mode2 == PTX_MODE_WRAP ? asked & 31 : asked > 32 ? 32 : asked;
    const bool sign = ptx_type_is_signed(type) && length && bit(a, length - 1);
    uint64_t result = 0;

    for (unsigned i = 0; i < 32; i++)
        result |= (uint64_t)(i < length ? bit(a, i) : sign) << i;
    oracle_result(s, type, result);
}

/* `length` ones from bit `at` on; bits beyond bit 31 are discarded. */
void oracle_do_bmsk(struct oracle_step *s)
{
    const bool wraps = s->insn->mods.mode2 == PTX_MODE_WRAP;
    const uint64_t a = oracle_source(s, 1, PTX_U32), b = oracle_source(s, 2, PTX_U32);
    const uint64_t at = wraps ? a & 31 : a, length = wraps ? b & 31 : b;
    uint64_t result = 0;

    for (unsigned i = 0; i < 32; i++)
        result |= (uint64_t)(i >= at && i < at + length) << i;
    oracle_result(s, PTX_B32, result);
}

/* ---- logic ---- */

void oracle_do_logic(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);
    const uint64_t a = oracle_source(s, 1, type);

    switch (s->insn->opcode) {
    case PTX_OP_AND:
        oracle_result(s, type, a & oracle_source(s, 2, type));
        return;
    case PTX_OP_OR:
        oracle_result(s, type, a | oracle_source(s, 2, type));
        return;
    case PTX_OP_XOR:
        oracle_result(s, type, a ^ oracle_source(s, 2, type));
        return;
    case PTX_OP_NOT:
        oracle_result(s, type, ~a);
        return;
    default: /* cnot */
        oracle_result(s, type, a == 0);
        return;
    }
}

/* Bit by bit the table `immLut` at index (a, b, c); lop3.BoolOp d|p: the result is not zero, combined with q. */
void oracle_do_lop3(struct oracle_step *s)
{
    const uint64_t a = oracle_source(s, 1, PTX_B32), b = oracle_source(s, 2, PTX_B32), c = oracle_source(s, 3, PTX_B32);
    const uint64_t table = oracle_source(s, 4, PTX_B32);
    uint64_t result = 0;
    const struct ptx_operand *to;
    uint32_t n;

    for (unsigned i = 0; i < 32; i++)
        result |= (uint64_t)bit(table, bit(a, i) * 4 + bit(b, i) * 2 + bit(c, i)) << i;
    if (s->insn->mods.operation) {
        const bool q = oracle_source(s, 5, PTX_PRED), some = result != 0;

        to = oracle_items(&s->insn->operands[0], &n);
        if (n > 1)
            oracle_write(s, &to[1], PTX_PRED, s->insn->mods.operation == PTX_OR ? some || q : some && q);
    }
    to = oracle_items(&s->insn->operands[0], &n);
    oracle_write(s, &to[0], PTX_B32, result);
}

/* ---- shifts ---- */

/* Shift amounts beyond the width are clamped to the width. */
void oracle_do_shift(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);
    const unsigned width = ptx_type_bits(type);
    const uint64_t a = oracle_source(s, 1, type), amount = oracle_source(s, 2, PTX_U32);
    uint64_t result = a;

    for (uint64_t i = 0; i < amount && i < width; i++) {
        if (s->insn->opcode == PTX_OP_SHL)
            result <<= 1;
        else
            result = ptx_type_is_signed(type) ? (uint64_t)(oracle_signed(result, type) >> 1) : oracle_cut(result, type) >> 1;
    }
    oracle_result(s, type, result);
}

/* The upper (.l) or lower (.r) half of {b, a} shifted. */
void oracle_do_shf(struct oracle_step *s)
{
    const uint64_t both = oracle_source(s, 1, PTX_B32) | oracle_source(s, 2, PTX_B32) << 32;
    const uint64_t asked = oracle_source(s, 3, PTX_U32);
    const unsigned amount = s->insn->mods.mode2 == PTX_MODE_WRAP ? asked & 31 : asked > 32 ? 32 : (unsigned)asked;

    oracle_result(s, PTX_B32, s->insn->mods.mode == PTX_MODE_L ? both << amount >> 32 : both >> amount);
}

/* ---- prmt ---- */

/* The bytes of {b, a} that the modes of prmt select, the lowest first, by the low two bits of the selector. */
static const struct {
    uint8_t mode;
    uint8_t bytes[4][4];
} selections[] = {
    {PTX_MODE_F4E, {{0, 1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4, 5}, {3, 4, 5, 6}}},
    {PTX_MODE_B4E, {{0, 7, 6, 5}, {1, 0, 7, 6}, {2, 1, 0, 7}, {3, 2, 1, 0}}},
    {PTX_MODE_RC8, {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}},
    {PTX_MODE_ECL, {{0, 1, 2, 3}, {1, 1, 2, 3}, {2, 2, 2, 3}, {3, 3, 3, 3}}},
    {PTX_MODE_ECR, {{0, 0, 0, 0}, {0, 1, 1, 1}, {0, 1, 2, 2}, {0, 1, 2, 3}}},
    {PTX_MODE_RC16, {{0, 1, 0, 1}, {2, 3, 2, 3}, {0, 1, 0, 1}, {2, 3, 2, 3}}},
};

/* A selector: three bits for the byte, the fourth replicates its sign. */
static uint64_t selected(uint64_t both, unsigned selector)
{
    const uint64_t byte = both >> (selector & 7) * 8 & 255;

    return selector & 8 ? (byte & 128 ? 255 : 0) : byte;
}

void oracle_do_prmt(struct oracle_step *s)
{
    const uint64_t both = oracle_source(s, 1, PTX_B32) | oracle_source(s, 2, PTX_B32) << 32;
    const uint64_t control = oracle_source(s, 3, PTX_U32);
    uint64_t result = 0;

    for (unsigned i = 0; i < 4; i++) {
        unsigned selector = control >> i * 4 & 15;

        for (unsigned m = 0; m < sizeof selections / sizeof *selections; m++)
            if (s->insn->mods.mode == selections[m].mode)
                selector = selections[m].bytes[control & 3][i];
        result |= selected(both, selector) << i * 8;
    }
    oracle_result(s, PTX_B32, result);
}
