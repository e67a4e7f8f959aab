/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrite rules that simplify one instruction; each is sketched next to its code. x, y: values; c, d: constants. The rules hold for all
 * values of their operands. There are none for float arithmetic, since few identities hold for signed zeros and NaNs. */
#include "ptx2spv/ir/builder.h"
#include "simplify.h"

#define MAX_NARROW_DEPTH 6 /* instructions that are looked through for the low half of a value */

static const struct ct_insn *definition(const struct ct_fn *fn, ct_value value)
{
    return fn->values.v[value.i].def;
}

/* The definition of the value if it is this operation, else NULL. */
static const struct ct_insn *definition_by(const struct ct_fn *fn, ct_value value, enum ct_op op)
{
    const struct ct_insn *def = definition(fn, value);

    return def && def->op == op ? def : NULL;
}

static bool is_constant(const struct ct_fn *fn, ct_value value, uint64_t bits)
{
    const struct ct_insn *constant = ct_constant_or_null(fn, value);

    return constant && constant->imm == bits;
}

static uint64_t all_ones(const struct ct_fn *fn, ct_value value)
{
    return UINT64_MAX >> (64 - ct_width_bits(ct_width_of_value(fn, value)));
}

static struct ct_cursor cursor_before(struct ct_fn *fn, struct ct_insn *insn)
{
    return (struct ct_cursor){.fn = fn, .block = insn->block, .before = insn, .where = insn->where};
}

static ct_value constant_like(struct ct_fn *fn, struct ct_insn *insn, ct_value like, uint64_t bits)
{
    struct ct_cursor at = cursor_before(fn, insn);

    return ct_emit_const(&at, ct_width_of_value(fn, like), bits);
}

static ct_value replace_by_const(struct ct_fn *fn, struct ct_insn *insn, uint64_t bits, bool *changed)
{
    const uint64_t ones = all_ones(fn, insn->results[0]);

    insn->op = CT_OP_CONST;
    insn->n_operands = 0;
    insn->imm = bits & ones;
    insn->type = ct_bits_type(ct_width_of_value(fn, insn->results[0]));
    insn->compare = 0;
    *changed = true;
    return CT_NO_VALUE;
}

static ct_value replace_by_binary(struct ct_insn *insn, enum ct_op op, ct_value a, ct_value b, bool *changed)
{
    insn->op = op;
    insn->operands[0] = a;
    insn->operands[1] = b;
    *changed = true;
    return CT_NO_VALUE;
}

static bool is_commutative(const struct ct_insn *insn)
{
    switch (insn->op) {
    case CT_OP_ADD:
    case CT_OP_MUL:
    case CT_OP_MULHI:
    case CT_OP_MULWIDE:
    case CT_OP_AND:
    case CT_OP_OR:
    case CT_OP_XOR:
    case CT_OP_MIN:
    case CT_OP_MAX:
        return true;
    case CT_OP_ICMP:
        return insn->compare == PTX_EQ || insn->compare == PTX_NE;
    default:
        return false;
    }
}

/* c op x => x op c; otherwise the older value comes first, so that equal expressions have equal operands. */
static void order_operands(const struct ct_fn *fn, struct ct_insn *insn)
{
    const ct_value a = insn->operands[0], b = insn->operands[1];
    const bool ca = ct_constant_or_null(fn, a) != NULL, cb = ct_constant_or_null(fn, b) != NULL;

    if (ca > cb || (ca == cb && a.i > b.i)) {
        insn->operands[0] = b;
        insn->operands[1] = a;
    }
}

static ct_value rule_add(struct ct_fn *fn, struct ct_insn *insn, bool *changed)
{
    const ct_value a = insn->operands[0], b = insn->operands[1];
    const struct ct_insn *c = ct_constant_or_null(fn, b), *inner = definition_by(fn, a, CT_OP_ADD);

    if (is_constant(fn, b, 0)) /* x + 0 */
        return a;
    if (c && inner && ct_constant_or_null(fn, inner->operands[1])) { /* (x + d) + c => x + (d + c) */
        const uint64_t sum = c->imm + ct_constant_or_null(fn, inner->operands[1])->imm;

        return replace_by_binary(insn, CT_OP_ADD, inner->operands[0], constant_like(fn, insn, b, sum), changed);
    }
    return CT_NO_VALUE;
}

static ct_value rule_sub(struct ct_fn *fn, struct ct_insn *insn, bool *changed)
{
    const ct_value a = insn->operands[0], b = insn->operands[1];
    const struct ct_insn *c = ct_constant_or_null(fn, b);

    if (a.i == b.i) /* x - x */
        return replace_by_const(fn, insn, 0, changed);
    if (c) /* x - c => x + -c */
        return replace_by_binary(insn, CT_OP_ADD, a, constant_like(fn, insn, b, 0 - c->imm), changed);
    return CT_NO_VALUE;
}

static ct_value rule_mul(struct ct_fn *fn, struct ct_insn *insn, bool *changed)
{
    const ct_value a = insn->operands[0];
    const struct ct_insn *c = ct_constant_or_null(fn, insn->operands[1]);

    if (!c)
        return CT_NO_VALUE;
    if (c->imm == 0) /* x * 0 */
        return replace_by_const(fn, insn, 0, changed);
    if (c->imm == 1) /* x * 1 */
        return a;
    if ((c->imm & (c->imm - 1)) == 0) { /* x * 2^n => x << n */
        struct ct_cursor at = cursor_before(fn, insn);
        const ct_value amount = ct_emit_const(&at, CT_W_32, (uint64_t)__builtin_ctzll(c->imm));

        return replace_by_binary(insn, CT_OP_SHL, a, amount, changed);
    }
    return CT_NO_VALUE;
}

static ct_value rule_and(struct ct_fn *fn, struct ct_insn *insn, bool *changed)
{
    const ct_value a = insn->operands[0], b = insn->operands[1];
    const struct ct_insn *c = ct_constant_or_null(fn, b), *inner = definition_by(fn, a, CT_OP_AND);

    if (a.i == b.i || is_constant(fn, b, all_ones(fn, b))) /* x & x, x & ~0 */
        return a;
    if (is_constant(fn, b, 0)) /* x & 0 */
        return replace_by_const(fn, insn, 0, changed);
    if (c && inner && ct_constant_or_null(fn, inner->operands[1])) { /* (x & d) & c => x & (d & c) */
        const uint64_t both = c->imm & ct_constant_or_null(fn, inner->operands[1])->imm;

        return replace_by_binary(insn, CT_OP_AND, inner->operands[0], constant_like(fn, insn, b, both), changed);
    }
    return CT_NO_VALUE;
}

static ct_value rule_or(struct ct_fn *fn, struct ct_insn *insn, bool *changed)
{
    const ct_value a = insn->operands[0], b = insn->operands[1];

    if (a.i == b.i || is_constant(fn, b, 0)) /* x | x, x | 0 */
        return a;
    if (is_constant(fn, b, all_ones(fn, b))) /* x | ~0 */
        return replace_by_const(fn, insn, UINT64_MAX, changed);
    return CT_NO_VALUE;
}

static ct_value rule_xor(struct ct_fn *fn, struct ct_insn *insn, bool *changed)
{
    const ct_value a = insn->operands[0], b = insn->operands[1];

    if (is_constant(fn, b, 0)) /* x ^ 0 */
        return a;
    if (a.i == b.i) /* x ^ x */
        return replace_by_const(fn, insn, 0, changed);
    if (is_constant(fn, b, all_ones(fn, b))) { /* x ^ ~0 => not x */
        insn->op = CT_OP_NOT;
        insn->n_operands = 1;
        *changed = true;
    }
    return CT_NO_VALUE;
}

uint8_t ct_opposite_comparison(const struct ct_insn *comparison)
{
    static const uint8_t opposites[] = {
        [PTX_EQ] = PTX_NE, [PTX_NE] = PTX_EQ, [PTX_LT] = PTX_GE, [PTX_LE] = PTX_GT, [PTX_GT] = PTX_LE, [PTX_GE] = PTX_LT};
    static const uint8_t float_opposites[] = {
        [PTX_EQ] = PTX_NEU, [PTX_NE] = PTX_EQU, [PTX_LT] = PTX_GEU,  [PTX_LE] = PTX_GTU, [PTX_GT] = PTX_LEU,
        [PTX_GE] = PTX_LTU, [PTX_EQU] = PTX_NE, [PTX_NEU] = PTX_EQ,  [PTX_LTU] = PTX_GE, [PTX_LEU] = PTX_GT,
        [PTX_GTU] = PTX_LE, [PTX_GEU] = PTX_LT, [PTX_NUM] = PTX_NAN, [PTX_NAN] = PTX_NUM};

    if (comparison->op == CT_OP_FCMP)
        return comparison->compare < sizeof float_opposites ? float_opposites[comparison->compare] : PTX_CMP_NONE;
    return comparison->compare < sizeof opposites ? opposites[comparison->compare] : PTX_CMP_NONE;
}

static ct_value rule_not(struct ct_fn *fn, struct ct_insn *insn, bool *changed)
{
    const struct ct_insn *inner = definition_by(fn, insn->operands[0], CT_OP_NOT);

    if (inner) /* not not x */
        return inner->operands[0];
    inner = definition_by(fn, insn->operands[0], CT_OP_ICMP);
    if (inner && ct_opposite_comparison(inner)) { /* not (x < y) => x >= y */
        struct ct_cursor at = cursor_before(fn, insn);

        *changed = true;
        return ct_emit_compare(&at, CT_OP_ICMP, inner->type, ct_opposite_comparison(inner), inner->operands[0], inner->operands[1]);
    }
    /* The same for floats: the negated comparison is true for NaNs if this one is false for them. This saves an instruction; besides,
     * Intel's GPU compiler (IGC 1.0.12504) terminates the process if it needs the negation of a float comparison in addition to the
     * comparison. */
    inner = definition_by(fn, insn->operands[0], CT_OP_FCMP);
    if (inner && !inner->ftz && ct_opposite_comparison(inner)) {
        struct ct_cursor at = cursor_before(fn, insn);
        const ct_value opposite =
            ct_emit_compare(&at, CT_OP_FCMP, inner->type, ct_opposite_comparison(inner), inner->operands[0], inner->operands[1]);

        fn->values.v[opposite.i].def->refined = inner->refined;
        *changed = true;
        return opposite;
    }
    return CT_NO_VALUE;
}

static ct_value rule_shift(struct ct_fn *fn, struct ct_insn *insn, bool *changed)
{
    const ct_value a = insn->operands[0], b = insn->operands[1];
    const struct ct_insn *c = ct_constant_or_null(fn, b), *inner = definition_by(fn, a, insn->op);
    const struct ct_insn *d = inner ? ct_constant_or_null(fn, inner->operands[1]) : NULL;

    if (is_constant(fn, b, 0)) /* x << 0 */
        return a;
    if (c && d && insn->op == CT_OP_SHL && c->imm + d->imm < ct_width_bits(ct_width_of_value(fn, a))) /* (x << d) << c => x << (d + c) */
        return replace_by_binary(insn, CT_OP_SHL, inner->operands[0], constant_like(fn, insn, b, c->imm + d->imm), changed);
    return CT_NO_VALUE;
}

static ct_value rule_min_max(struct ct_fn *fn, struct ct_insn *insn, bool *changed)
{
    (void)fn;
    (void)changed;
    return insn->operands[0].i == insn->operands[1].i ? insn->operands[0] : CT_NO_VALUE; /* min(x, x) */
}

/* A predicate that was converted to a number and is compared with 0:  select(p, c, 0) != 0 => p,  == 0 => not p   (c not 0) */
static ct_value rule_compare(struct ct_fn *fn, struct ct_insn *insn, bool *changed)
{
    const ct_value a = insn->operands[0], b = insn->operands[1];
    const struct ct_insn *choice = definition_by(fn, a, CT_OP_SELECT);
    const bool equal = insn->compare == PTX_EQ || insn->compare == PTX_LE || insn->compare == PTX_GE;

    if (a.i == b.i) /* x == x, x < x */
        return replace_by_const(fn, insn, equal, changed);
    if ((insn->compare != PTX_EQ && insn->compare != PTX_NE) || !is_constant(fn, b, 0) || !choice)
        return CT_NO_VALUE;
    if (!is_constant(fn, choice->operands[2], 0) || !ct_constant_or_null(fn, choice->operands[1]) ||
        is_constant(fn, choice->operands[1], 0))
        return CT_NO_VALUE;
    if (insn->compare == PTX_NE)
        return choice->operands[0];
    insn->op = CT_OP_NOT;
    insn->type = PTX_PRED;
    insn->compare = 0;
    insn->operands[0] = choice->operands[0];
    insn->n_operands = 1;
    *changed = true;
    return CT_NO_VALUE;
}

static ct_value rule_select(struct ct_fn *fn, struct ct_insn *insn, bool *changed)
{
    const ct_value p = insn->operands[0], a = insn->operands[1], b = insn->operands[2];
    const struct ct_insn *c = ct_constant_or_null(fn, p), *inverse = definition_by(fn, p, CT_OP_NOT);
    const bool of_predicates = ct_width_of_value(fn, a) == CT_W_PRED;

    if (a.i == b.i) /* select(p, x, x) */
        return a;
    if (c) /* select(true, x, y) */
        return c->imm ? a : b;
    if (of_predicates && is_constant(fn, a, 1) && is_constant(fn, b, 0)) /* select(p, true, false) */
        return p;
    if (inverse) { /* select(not p, x, y) => select(p, y, x) */
        insn->operands[0] = inverse->operands[0];
        insn->operands[1] = b;
        insn->operands[2] = a;
        *changed = true;
    }
    return CT_NO_VALUE;
}

/* ---- pack, unpack, extend, truncate ---- */

/* pack(unpack(x)) => x */
static ct_value rule_pack(struct ct_fn *fn, struct ct_insn *insn, bool *changed)
{
    const struct ct_insn *pieces = definition_by(fn, insn->operands[0], CT_OP_UNPACK);

    (void)changed;
    if (!pieces || pieces->n_results != insn->n_operands)
        return CT_NO_VALUE;
    for (uint32_t i = 0; i < insn->n_operands; i++)
        if (insn->operands[i].i != pieces->results[i].i)
            return CT_NO_VALUE;
    return pieces->operands[0];
}

static ct_value rule_ext(struct ct_fn *fn, struct ct_insn *insn, bool *changed)
{
    const struct ct_insn *inner = definition_by(fn, insn->operands[0], CT_OP_EXT);

    /* ext(ext(x)) with zero extension inside, where the outer one reads at least the bits that the inner one produces => one ext */
    if (!inner || ptx_type_is_signed(inner->type) || ptx_type_bits(insn->type) <= ptx_type_bits(inner->type) ||
        ct_width_bits(ct_width_of_value(fn, inner->operands[0])) >= ct_width_bits(ct_width_of_value(fn, insn->results[0])))
        return CT_NO_VALUE;
    insn->type = inner->type;
    insn->operands[0] = inner->operands[0];
    *changed = true;
    return CT_NO_VALUE;
}

/* Whether the low 32 bits of a 64-bit value can be computed from 32-bit values, with one operation for each instruction that is looked
 * through. */
static bool can_narrow(const struct ct_fn *fn, ct_value value, int depth)
{
    const struct ct_insn *def = definition(fn, value);

    if (!def || depth > MAX_NARROW_DEPTH)
        return false;
    switch (def->op) {
    case CT_OP_CONST:
        return true;
    case CT_OP_EXT:
        return ct_width_of_value(fn, def->operands[0]) == CT_W_32 && ptx_type_bits(def->type) == 32;
    case CT_OP_MULWIDE:
        return true;
    case CT_OP_PACK:
        return def->n_operands == 2;
    case CT_OP_SHL:
        return ct_constant_or_null(fn, def->operands[1]) && ct_constant_or_null(fn, def->operands[1])->imm < 32 &&
               can_narrow(fn, def->operands[0], depth + 1);
    case CT_OP_ADD:
    case CT_OP_SUB:
    case CT_OP_AND:
    case CT_OP_OR:
    case CT_OP_XOR:
        return can_narrow(fn, def->operands[0], depth + 1) && can_narrow(fn, def->operands[1], depth + 3);
    default:
        return false;
    }
}

static ct_value narrow(struct ct_cursor *at, ct_value value)
{
    const struct ct_insn *def = definition(at->fn, value);

    switch (def->op) {
    case CT_OP_CONST:
        return ct_emit_const(at, CT_W_32, def->imm);
    case CT_OP_EXT:
    case CT_OP_PACK:
        return def->operands[0];
    case CT_OP_MULWIDE:
        return ct_emit2(at, CT_OP_MUL, PTX_B32, CT_W_32, def->operands[0], def->operands[1]);
    case CT_OP_SHL:
        return ct_emit2(at, CT_OP_SHL, PTX_B32, CT_W_32, narrow(at, def->operands[0]), def->operands[1]);
    default: { /* the operations with two operands */
        const enum ct_op op = def->op;
        const ct_value a = def->operands[0], b = def->operands[1];
        const ct_value low = narrow(at, a);

        return ct_emit2(at, op, PTX_B32, CT_W_32, low, narrow(at, b));
    }
    }
}

/* trunc(ext(x)) => x; trunc(x ^ tag) => trunc(x); the low half of 64-bit address arithmetic, as for shared memory, becomes 32-bit
 * arithmetic. */
static ct_value rule_trunc(struct ct_fn *fn, struct ct_insn *insn, bool *changed)
{
    const ct_value a = insn->operands[0];
    const struct ct_insn *flip = definition_by(fn, a, CT_OP_XOR);
    const struct ct_insn *flipped = flip ? ct_constant_or_null(fn, flip->operands[1]) : NULL;
    const struct ct_insn *inner = definition_by(fn, a, CT_OP_EXT);
    const enum ct_width to = ct_width_of_value(fn, insn->results[0]);
    struct ct_cursor at = cursor_before(fn, insn);

    if (inner && ct_width_of_value(fn, inner->operands[0]) == to && ptx_type_bits(inner->type) == ct_width_bits(to))
        return inner->operands[0];
    if (flipped && to == CT_W_32 && (uint32_t)flipped->imm == 0) {
        insn->operands[0] = flip->operands[0];
        *changed = true;
        return CT_NO_VALUE;
    }
    if (to != CT_W_32 || ct_width_of_value(fn, a) != CT_W_64 || !can_narrow(fn, a, 0))
        return CT_NO_VALUE;
    *changed = true;
    return narrow(&at, a);
}

/* All operands are the same value, or the phi itself. */
static ct_value rule_phi(struct ct_fn *fn, struct ct_insn *insn, bool *changed)
{
    ct_value only = CT_NO_VALUE;

    (void)fn;
    (void)changed;
    for (uint32_t i = 0; i < insn->n_operands; i++) {
        if (insn->operands[i].i == insn->results[0].i || insn->operands[i].i == only.i)
            continue;
        if (only.i)
            return CT_NO_VALUE;
        only = insn->operands[i];
    }
    return only;
}

static ct_value rule_copy(struct ct_fn *fn, struct ct_insn *insn, bool *changed)
{
    (void)fn;
    (void)changed;
    return insn->operands[0];
}

typedef ct_value (*rule_fn)(struct ct_fn *fn, struct ct_insn *insn, bool *changed);
static const rule_fn rules[CT_OP_COUNT] = {
    [CT_OP_COPY] = rule_copy,   [CT_OP_PHI] = rule_phi,     [CT_OP_SELECT] = rule_select, [CT_OP_PACK] = rule_pack,
    [CT_OP_ADD] = rule_add,     [CT_OP_SUB] = rule_sub,     [CT_OP_MUL] = rule_mul,       [CT_OP_AND] = rule_and,
    [CT_OP_OR] = rule_or,       [CT_OP_XOR] = rule_xor,     [CT_OP_NOT] = rule_not,       [CT_OP_SHL] = rule_shift,
    [CT_OP_SHR] = rule_shift,   [CT_OP_MIN] = rule_min_max, [CT_OP_MAX] = rule_min_max,   [CT_OP_ICMP] = rule_compare,
    [CT_OP_TRUNC] = rule_trunc, [CT_OP_EXT] = rule_ext,
};

ct_value ct_apply_rules(struct ct_fn *fn, struct ct_insn *insn, bool *changed)
{
    uint64_t bits;

    if (insn->n_results != 1 || insn->op == CT_OP_CONST)
        return CT_NO_VALUE;
    if (ct_fold(fn, insn, &bits))
        return replace_by_const(fn, insn, bits, changed);
    if (is_commutative(insn))
        order_operands(fn, insn);
    return rules[insn->op] ? rules[insn->op](fn, insn, changed) : CT_NO_VALUE;
}
