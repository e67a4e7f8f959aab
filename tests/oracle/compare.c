/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison and selection (PTX ISA, "Comparison and Selection Instructions"). */
#include "machine.h"

#include <math.h>

static bool compare_integers(enum ptx_compare compare, bool less, bool equal)
{
    switch (compare) {
    case PTX_EQ:
        return equal;
    case PTX_NE:
        return !equal;
    case PTX_LT:
    case PTX_LO:
        return less;
    case PTX_LE:
    case PTX_LS:
        return less || equal;
    case PTX_GT:
    case PTX_HI:
        return !less && !equal;
    default: /* ge, hs */
        return !less;
    }
}

/* The ordered forms are false for a NaN, the unordered ones (with u) are true. */
static bool compare_floats(enum ptx_compare compare, double a, double b)
{
    static const uint8_t ordered[] = {
        [PTX_EQU] = PTX_EQ, [PTX_NEU] = PTX_NE, [PTX_LTU] = PTX_LT, [PTX_LEU] = PTX_LE, [PTX_GTU] = PTX_GT, [PTX_GEU] = PTX_GE};
    const bool unordered = isnan(a) || isnan(b);

    if (compare == PTX_NUM || compare == PTX_NAN)
        return unordered == (compare == PTX_NAN);
    if (compare < sizeof ordered && ordered[compare])
        return unordered || compare_integers((enum ptx_compare)ordered[compare], a < b, a == b);
    return !unordered && compare_integers(compare, a < b, a == b);
}

bool oracle_compare(enum ptx_type type, enum ptx_compare compare, uint64_t a, uint64_t b)
{
    if (ptx_type_is_float(type))
        return compare_floats(compare, oracle_to_double(type, a), oracle_to_double(type, b));
    if (ptx_type_is_signed(type))
        return compare_integers(compare, oracle_signed(a, type) < oracle_signed(b, type), a == b);
    return compare_integers(compare, a < b, a == b);
}

/* The comparison of element `at` of both sources. */
static bool compare_element(struct oracle_step *s, enum ptx_type type, unsigned at)
{
    const enum ptx_type element = oracle_element(type);
    uint64_t a = oracle_cut(oracle_source(s, 1, type) >> at, element), b = oracle_cut(oracle_source(s, 2, type) >> at, element);

    if (s->insn->mods.ftz) {
        a = oracle_flush(element, a);
        b = oracle_flush(element, b);
    }
    return oracle_compare(element, (enum ptx_compare)s->insn->mods.compare, a, b);
}

/* Combines the result with the predicate c, if the instruction has one. */
static bool combine(struct oracle_step *s, bool value)
{
    const bool c = s->insn->n_operands > 3 && oracle_source(s, 3, PTX_PRED);

    switch (s->insn->mods.operation) {
    case PTX_AND:
        return value && c;
    case PTX_OR:
        return value || c;
    case PTX_XOR:
        return value != c;
    default:
        return value;
    }
}

/* p|q: q is the comparison's complement; of packed types each element has a predicate. */
void oracle_do_setp(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0), element = oracle_element(type);
    const bool first = compare_element(s, type, 0);
    bool results[2];
    uint32_t n;
    const struct ptx_operand *to = oracle_items(&s->insn->operands[0], &n);

    results[0] = combine(s, first);
    results[1] = combine(s, element == type ? !first : compare_element(s, type, ptx_type_bits(element)));
    for (uint32_t i = 0; i < n && i < 2; i++)
        oracle_write(s, &to[i], PTX_PRED, results[i]);
}

/* True is all ones for integers, 1.0 for floating point types. */
void oracle_do_set(struct oracle_step *s)
{
    const enum ptx_type to = oracle_type(s, 0), type = oracle_type(s, 1), element = oracle_element(to);
    const unsigned width = ptx_type_bits(element), step = ptx_type_bits(oracle_element(type));
    const bool is_packed = oracle_element(type) != type;
    uint64_t result = 0;

    for (unsigned i = 0; i < (is_packed ? 2u : 1u); i++) {
        const bool value = combine(s, compare_element(s, type, i * step));
        const uint64_t yes = ptx_type_is_float(element) ? oracle_from_double(element, 1, PTX_RN) : UINT64_MAX;
        const unsigned at = is_packed && element == to ? i * 16 : i * width;

        result |= (value ? is_packed && element == to ? 0xffff : oracle_cut(yes, element) : 0) << at;
    }
    oracle_result(s, to, result);
}

void oracle_do_selp(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);

    oracle_result(s, type, oracle_source(s, oracle_source(s, 3, PTX_PRED) ? 1 : 2, type));
}

/* a if c >= 0, else b; a NaN selects b. */
void oracle_do_slct(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0), by = oracle_type(s, 1);
    uint64_t c = oracle_source(s, 3, by);
    bool takes_first;

    if (s->insn->mods.ftz)
        c = oracle_flush(by, c);
    takes_first = ptx_type_is_float(by) ? oracle_to_double(by, c) >= 0 : oracle_signed(c, by) >= 0;
    oracle_result(s, type, oracle_source(s, takes_first ? 1 : 2, type));
}
