/* SPDX-License-Identifier: Apache-2.0 */
/* Integer comparisons.
 *
 * NVIDIA's driver (580.159.04) infers the outcome of a comparison under a branch on the same comparison, and ignores whether it is signed:
 * in `if (a <u b) { .. if (a <s b) .. }` of 32 bits the inner comparison is assumed to be true. Therefore, if a kernel compares two values
 * both ways, the signed comparisons become comparisons of their difference with zero, which share no operand with the unsigned ones.
 * Measured on an H200: wrong are lt under lt and ge under ge, whichever of them is signed, with the same operands in the same order,
 * also with constants; correct are le and gt under lt, exchanged operands, 16 and 64 bits. Signed types, the negated comparison and
 * comparing in 64 bits do not help; exclusive or with the sign bit does, but not with constants. This is done where the target has
 * PTX2SPV_WORKAROUND_COMPARISONS. */
#include "emit.h"

#include "ptx2spv/passes/simplify.h"

/* ---- values that are compared both ways ---- */

enum { OF_UNSIGNED = 1, OF_SIGNED = 2 };

struct pair {
    uint64_t low, high; /* key_of */
    unsigned signs;     /* 0: an empty slot */
};

struct ct_gen_pairs {
    struct pair *places;
    uint32_t mask;
};

static bool is_order(const struct ct_gen *g, const struct ct_insn *insn)
{
    return insn->op == CT_OP_ICMP && insn->compare != PTX_EQ && insn->compare != PTX_NE && ct_gen_bits(g, insn->operands[0]) == 32;
}

static unsigned sign_of(const struct ct_insn *insn)
{
    return ptx_type_is_signed(insn->type) ? OF_SIGNED : OF_UNSIGNED;
}

/* Equal constants have the same key. */
static uint64_t key_of(const struct ct_gen *g, ct_value value)
{
    const struct ct_insn *constant = ct_constant_or_null(g->fn, value);

    return constant ? UINT64_C(1) << 32 | (uint32_t)constant->imm : value.i;
}

/* The hash table's slot for a comparison's operands, in either order: the existing one, or an empty one. */
static struct pair *place_of(const struct ct_gen *g, const struct ct_insn *insn)
{
    const uint64_t a = key_of(g, insn->operands[0]), b = key_of(g, insn->operands[1]);
    const uint64_t low = a < b ? a : b, high = a < b ? b : a;
    uint32_t at = (uint32_t)((low * 0x9e3779b97f4a7c15 + high) * 0x9e3779b97f4a7c15 >> 32);

    for (;; at++) {
        struct pair *place = &g->pairs->places[at & g->pairs->mask];

        if (!place->signs)
            *place = (struct pair){.low = low, .high = high};
        if (place->low == low && place->high == high)
            return place;
    }
}

void ct_gen_find_pairs(struct ct_gen *g)
{
    struct ct_arena *scratch = &g->fn->compilation->scratch;
    uint32_t n = 0, places = 2;

    for (uint32_t b = 0; b < g->fn->blocks.n; b++)
        for (const struct ct_insn *insn = g->fn->blocks.v[b]->first; insn; insn = insn->next)
            n += is_order(g, insn);
    while (places < 2 * n)
        places *= 2;
    g->pairs = CT_ARENA_ARRAY(scratch, struct ct_gen_pairs, 1);
    *g->pairs = (struct ct_gen_pairs){CT_ARENA_ARRAY(scratch, struct pair, places), places - 1};
    for (uint32_t b = 0; b < g->fn->blocks.n; b++)
        for (const struct ct_insn *insn = g->fn->blocks.v[b]->first; insn; insn = insn->next)
            if (is_order(g, insn))
                place_of(g, insn)->signs |= sign_of(insn);
}

/* ---- comparing ---- */

static const struct comparison {
    uint16_t of_unsigned, of_signed, of_bool;
} comparisons[] = {
    [PTX_EQ] = {SpvOpIEqual, SpvOpIEqual, SpvOpLogicalEqual}, [PTX_NE] = {SpvOpINotEqual, SpvOpINotEqual, SpvOpLogicalNotEqual},
    [PTX_LT] = {SpvOpULessThan, SpvOpSLessThan, 0},           [PTX_LE] = {SpvOpULessThanEqual, SpvOpSLessThanEqual, 0},
    [PTX_GT] = {SpvOpUGreaterThan, SpvOpSGreaterThan, 0},     [PTX_GE] = {SpvOpUGreaterThanEqual, SpvOpSGreaterThanEqual, 0},
    [PTX_LO] = {SpvOpULessThan, SpvOpULessThan, 0},           [PTX_LS] = {SpvOpULessThanEqual, SpvOpULessThanEqual, 0},
    [PTX_HI] = {SpvOpUGreaterThan, SpvOpUGreaterThan, 0},     [PTX_HS] = {SpvOpUGreaterThanEqual, SpvOpUGreaterThanEqual, 0},
};

/* Negative if and only if a < b: a - b, with its sign inverted on overflow, which occurs if a and b differ in sign, and a - b and a do. */
static uint32_t difference(struct ct_gen *g, uint32_t a, uint32_t b)
{
    const uint32_t type = ct_gen_int_type(g, 32), minus = GEN(g, SpvOpISub, type, a, b);
    const uint32_t overflow = GEN(g, SpvOpBitwiseAnd, type, GEN(g, SpvOpBitwiseXor, type, a, b), GEN(g, SpvOpBitwiseXor, type, minus, a));

    return GEN(g, SpvOpBitwiseXor, type, minus, overflow);
}

/* a > b is b < a, and a <= b is the negation of b < a. */
static uint32_t by_difference(struct ct_gen *g, const struct ct_insn *insn, uint32_t a, uint32_t b)
{
    const bool swapped = insn->compare == PTX_GT || insn->compare == PTX_LE, strict = insn->compare == PTX_LT || insn->compare == PTX_GT;

    return GEN(g, strict ? SpvOpSLessThan : SpvOpSGreaterThanEqual, ct_gen_int_type(g, 1),
               swapped ? difference(g, b, a) : difference(g, a, b), ct_gen_u32(g, 0));
}

void ct_gen_compare(struct ct_gen *g, const struct ct_insn *insn)
{
    const struct comparison *row = insn->compare < sizeof comparisons / sizeof *comparisons ? &comparisons[insn->compare] : NULL;
    const bool of_bool = ct_gen_bits(g, insn->operands[0]) == 1, is_signed = ptx_type_is_signed(insn->type);
    const uint16_t op = !row ? 0 : of_bool ? row->of_bool : is_signed ? row->of_signed : row->of_unsigned;
    const uint32_t a = ct_gen_use(g, insn->operands[0]), b = ct_gen_use(g, insn->operands[1]);

    if (!op)
        ct_gen_refuse(g, PTX2SPV_INTERNAL, "integer comparison %u", insn->compare);
    else if (g->pairs && is_order(g, insn) && sign_of(insn) == OF_SIGNED && place_of(g, insn)->signs == (OF_SIGNED | OF_UNSIGNED))
        ct_gen_define(g, insn->results[0], by_difference(g, insn, a, b));
    else
        ct_gen_define(g, insn->results[0], GEN(g, op, ct_gen_int_type(g, 1), a, b));
}
