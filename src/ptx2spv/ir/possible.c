/* SPDX-License-Identifier: Apache-2.0 */
/* possible: the bits and the values that an integer can have. Both look at definitions only, never at the way by which control got there. */
#include "possible.h"

#include "ptx2spv/passes/simplify.h"

enum {
    DEPTH_MAX = 8, /* definitions that are followed */
    BITS_MAX = 4,  /* whose combinations are tried */
};
_Static_assert(1 << BITS_MAX == CT_POSSIBLE_MAX, "all combinations are listed");

static const struct ct_insn *definition(const struct ct_fn *fn, ct_value value)
{
    return fn->values.v[value.i].def;
}

static uint64_t bits_of_width(const struct ct_fn *fn, ct_value value)
{
    return UINT64_MAX >> (64 - ct_width_bits(ct_width_of_value(fn, value)));
}

/* ---- bits ---- */

static uint64_t possible_bits(const struct ct_fn *fn, ct_value value, unsigned depth);

/* A shift by a constant, of bits that are not a sign's. */
static uint64_t shifted_bits(const struct ct_fn *fn, const struct ct_insn *shift, unsigned depth)
{
    const struct ct_insn *amount = ct_constant_or_null(fn, shift->operands[1]);
    const uint64_t all = bits_of_width(fn, shift->results[0]);

    if (!amount || amount->imm > 63 || (shift->op == CT_OP_SHR && ptx_type_is_signed(shift->type)))
        return all;
    if (shift->op == CT_OP_SHL)
        return possible_bits(fn, shift->operands[0], depth) << amount->imm & all;
    return possible_bits(fn, shift->operands[0], depth) >> amount->imm;
}

static uint64_t possible_bits(const struct ct_fn *fn, ct_value value, unsigned depth)
{
    const struct ct_insn *def = definition(fn, value);
    const uint64_t all = bits_of_width(fn, value);

    if (!def || !depth)
        return all;
    switch (def->op) {
    case CT_OP_CONST:
        return def->imm & all;
    case CT_OP_COPY:
        return possible_bits(fn, def->operands[0], depth - 1);
    case CT_OP_AND:
        return possible_bits(fn, def->operands[0], depth - 1) & possible_bits(fn, def->operands[1], depth - 1);
    case CT_OP_OR:
    case CT_OP_XOR:
        return possible_bits(fn, def->operands[0], depth - 1) | possible_bits(fn, def->operands[1], depth - 1);
    case CT_OP_SELECT:
        return possible_bits(fn, def->operands[1], depth - 1) | possible_bits(fn, def->operands[2], depth - 1);
    case CT_OP_SHL:
    case CT_OP_SHR:
        return shifted_bits(fn, def, depth - 1);
    default:
        return all;
    }
}

uint64_t ct_possible_bits(const struct ct_fn *fn, ct_value value)
{
    return possible_bits(fn, value, DEPTH_MAX);
}

/* ---- values ---- */

/* The first value on the way that keeps few bits of another one, or none. */
static ct_value find_few_bits(const struct ct_fn *fn, ct_value value, unsigned depth, uint64_t *mask)
{
    const struct ct_insn *def = definition(fn, value);
    const struct ct_insn *kept = def && def->op == CT_OP_AND ? ct_constant_or_null(fn, def->operands[1]) : NULL;
    ct_value found = CT_NO_VALUE;

    if (kept && __builtin_popcountll(kept->imm) <= BITS_MAX) {
        *mask = kept->imm;
        return value;
    }
    for (uint32_t i = 0; def && depth && ct_insn_is_pure(def) && def->op != CT_OP_PHI && !found.i && i < def->n_operands; i++)
        found = find_few_bits(fn, def->operands[i], depth - 1, mask);
    return found;
}

struct substitution {
    const struct ct_fn *fn;
    ct_value variable;
    uint64_t bits; /* its value */
};

/* The value if the variable has the given one. False: it depends on something else. */
static bool evaluate(const struct substitution *s, ct_value value, unsigned depth, uint64_t *out)
{
    const struct ct_insn *def = definition(s->fn, value);
    uint64_t operands[2] = {0};

    if (value.i == s->variable.i) {
        *out = s->bits;
        return true;
    }
    if (!def || !depth)
        return false;
    if (def->op == CT_OP_CONST) {
        *out = def->imm;
        return true;
    }
    if (def->op == CT_OP_SELECT) {
        if (!evaluate(s, def->operands[0], depth - 1, &operands[0]))
            return false;
        return evaluate(s, def->operands[operands[0] ? 1 : 2], depth - 1, out);
    }
    if (def->op == CT_OP_PHI || !ct_insn_is_pure(def) || def->n_operands < 1 || def->n_operands > 2)
        return false;
    for (uint32_t i = 0; i < def->n_operands; i++)
        if (!evaluate(s, def->operands[i], depth - 1, &operands[i]))
            return false;
    return ct_fold_values(s->fn, def, operands, out);
}

uint32_t ct_possible_values(const struct ct_fn *fn, ct_value value, uint64_t values[CT_POSSIBLE_MAX])
{
    uint64_t mask = 0;
    struct substitution s = {.fn = fn, .variable = find_few_bits(fn, value, DEPTH_MAX, &mask)};
    uint32_t n = 0;

    if (!s.variable.i)
        return 0;
    do {
        if (!evaluate(&s, value, DEPTH_MAX, &values[n++]))
            return 0;
        s.bits = (s.bits - mask) & mask; /* the next one of the mask's subsets */
    } while (s.bits);
    return n;
}
