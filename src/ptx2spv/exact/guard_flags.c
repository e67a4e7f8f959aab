/* SPDX-License-Identifier: Apache-2.0 */
/* guard: whether an Fma that flushes may have given a wrong result. Flushing replaces subnormal operands by zeros, and a nonzero result
 * that is below 2^-126 before rounding by zero.
 *
 * The first test is cheap, and covers a whole segment. A *factor* is a multiple of 2^-63, a *term* a multiple of 2^-126. The product of two
 * factors is a term; so is the sum of two terms, and so is its rounded value, since rounding keeps multiples of a power of two: f32 above
 * such a multiple are multiples of it themselves. A term is 0 or at least 2^-126, hence not subnormal, and if all multiplicands are factors
 * and all addends are terms, nothing is flushed. By induction it suffices to check operands from elsewhere, and results that are
 * multiplied: f32 of at least 2^-40 are factors, of at least 2^-103 terms (the unit in the last place of x is above |x| * 2^-24). Zero is
 * both, but the minimum of magnitudes, the coarse check, does not take that into account; where it is too small, the fine check excludes
 * zeros. The minimum ignores NaNs, which give NaN in either case, and may itself flush.
 * Values that are invariant in the innermost loop are checked before it.
 * What was checked by an earlier segment of the block holds if its flag is not set; therefore each flag includes those of the earlier
 * segments.
 *
 * The second test is for each FFMA r = a * b + c when it is recomputed, with correct operands:
 *  - Is a, b or c subnormal? If none is,
 *  - is r zero, c below 2^-78, and neither a nor b zero? Only then can r be wrong: a nonzero result was not flushed. If a or b is zero,
 *    r is c. If r is zero and |c| >= 2^-78, then |a * b| >= 2^-78 - 2^-126, so the units in the last places of a and b have a product above
 *    that times 2^-48, a power of two and so at least 2^-126; that of c is at least 2^-101; the exact sum is a term, and is not flushed. */
#include "guard.h"

#define SIGN UINT32_C(0x80000000)
#define MAGNITUDE UINT32_C(0x7fffffff)
#define LEAST_NORMAL UINT32_C(0x00800000)    /* 2^-126; this and the next three are encodings of magnitudes */
#define LEAST_TERM UINT32_C(0x0c000000)      /* 2^-103 */
#define LEAST_CANCELLED UINT32_C(0x18800000) /* 2^-78 */
#define LEAST_FACTOR UINT32_C(0x2b800000)    /* 2^-40 */
#define DEPTH_MAX 4                          /* how many operations back sums are analyzed */

static const struct ct_insn *definition(const struct ct_guard *g, ct_value x)
{
    return g->fn->values.v[x.i].def;
}

static bool is_constant(const struct ct_guard *g, ct_value x, uint32_t bits)
{
    const struct ct_insn *def = definition(g, x);

    return def->op == CT_OP_CONST && def->imm == bits;
}

static bool keeps_magnitude(const struct ct_guard *g, const struct ct_insn *insn)
{
    if (insn->op == CT_OP_XOR)
        return is_constant(g, insn->operands[1], SIGN);
    if (insn->op == CT_OP_AND)
        return is_constant(g, insn->operands[1], MAGNITUDE);
    return insn->op == CT_OP_COPY;
}

/* The value of the same magnitude in front of copies and changes of sign. */
static ct_value same_magnitude(const struct ct_guard *g, ct_value x)
{
    while (keeps_magnitude(g, definition(g, x)))
        x = definition(g, x)->operands[0];
    return x;
}

/* ---- the first test ---- */

static void note(struct ct_guard *g, ct_value x, enum ct_grade grade)
{
    if (g->graded_in[x.i] == g->block && g->grade[x.i] >= grade)
        return;
    g->graded_in[x.i] = g->block;
    g->grade[x.i] = (uint8_t)grade;
}

static enum ct_grade lesser(enum ct_grade a, enum ct_grade b)
{
    return a < b ? a : b;
}

static enum ct_grade grade_of_constant(uint64_t bits)
{
    const uint32_t magnitude = (uint32_t)bits & MAGNITUDE;

    if (!magnitude || magnitude >= LEAST_FACTOR)
        return CT_GRADE_FACTOR;
    return magnitude >= LEAST_TERM ? CT_GRADE_TERM : CT_GRADE_NONE;
}

static enum ct_grade grade_of(const struct ct_guard *g, ct_value x, unsigned depth)
{
    const ct_value from = same_magnitude(g, x);
    const struct ct_insn *def = definition(g, from);
    enum ct_grade a, b;

    if (g->graded_in[from.i] == g->block)
        return g->grade[from.i];
    if (def->op == CT_OP_CONST)
        return grade_of_constant(def->imm);
    if (def->op == CT_OP_ITOF)
        return def->type2 == PTX_F32 ? CT_GRADE_FACTOR : CT_GRADE_NONE;
    if (!depth || (def->op != CT_OP_SELECT && def->type != PTX_F32))
        return CT_GRADE_NONE;
    if (def->op != CT_OP_SELECT && def->op != CT_OP_FADD && def->op != CT_OP_FSUB && def->op != CT_OP_FMUL)
        return CT_GRADE_NONE;
    a = grade_of(g, def->operands[def->n_operands - 2], depth - 1);
    b = grade_of(g, def->operands[def->n_operands - 1], depth - 1);
    if (def->op == CT_OP_FMUL)
        return lesser(a, b) == CT_GRADE_FACTOR ? CT_GRADE_TERM : CT_GRADE_NONE;
    return lesser(a, b);
}

static bool is_loop_invariant(const struct ct_guard *g, ct_value x)
{
    return g->header && g->home[x.i] != g->header && ct_block_dominates(g->home[x.i], g->header);
}

static bool is_tracked(const struct ct_guard *g, ct_value x)
{
    return g->shared_is_tracked && ct_is_shared_word(g->fn, definition(g, x));
}

/* The grade that the last two operands of an instruction must have so that its result has the wanted grade; NONE: there is none. */
static enum ct_grade wanted_of_operands(const struct ct_insn *insn, enum ct_grade wanted)
{
    if (insn->op == CT_OP_FMUL && insn->type == PTX_F32)
        return wanted == CT_GRADE_TERM ? CT_GRADE_FACTOR : CT_GRADE_NONE;
    if (insn->op == CT_OP_SELECT || ((insn->op == CT_OP_FADD || insn->op == CT_OP_FSUB) && insn->type == PTX_F32))
        return wanted;
    return CT_GRADE_NONE;
}

/* Whether it can be known without cost inside the loop that x has the wanted grade. */
static bool is_free(const struct ct_guard *g, ct_value x, enum ct_grade wanted, unsigned depth)
{
    const ct_value from = same_magnitude(g, x);
    const struct ct_insn *def = definition(g, from);
    const enum ct_grade of_operands = wanted_of_operands(def, wanted);

    if (grade_of(g, from, DEPTH_MAX) >= wanted || is_tracked(g, from))
        return true;
    if (def->op == CT_OP_CONST)
        return false;
    if (is_loop_invariant(g, from))
        return true;
    return depth && of_operands && is_free(g, def->operands[def->n_operands - 2], of_operands, depth - 1) &&
           is_free(g, def->operands[def->n_operands - 1], of_operands, depth - 1);
}

/* Sums and products of operands that are free are not checked themselves. */
static void add_checks(struct ct_guard *g, struct ct_guard_checks *checks, ct_value x, enum ct_grade wanted, unsigned depth)
{
    const ct_value from = same_magnitude(g, x);
    const struct ct_insn *def = definition(g, from);
    ct_value_list *lists = wanted == CT_GRADE_FACTOR ? checks->factors : checks->terms;

    if (grade_of(g, from, DEPTH_MAX) >= wanted)
        return;
    if (def->op == CT_OP_CONST) {
        checks->always_fails = true;
    } else if (is_tracked(g, from)) {
        *CT_PUSH(g->scratch, &checks->tracked) = from;
        wanted = CT_GRADE_FACTOR;
    } else if (depth && !is_loop_invariant(g, from) && is_free(g, from, wanted, depth)) {
        add_checks(g, checks, def->operands[def->n_operands - 2], wanted_of_operands(def, wanted), depth - 1);
        add_checks(g, checks, def->operands[def->n_operands - 1], wanted_of_operands(def, wanted), depth - 1);
    } else {
        *CT_PUSH(g->scratch, &lists[is_loop_invariant(g, from)]) = from;
    }
    note(g, from, wanted);
}

struct ct_guard_checks ct_guard_find_checks(struct ct_guard *g, const struct ct_segment *segment)
{
    struct ct_guard_checks checks = {.always_fails = false};

    for (uint32_t i = 0; i < segment->dependents.n; i++) {
        const struct ct_insn *insn = segment->dependents.v[i];

        if (!ct_is_guarded(insn))
            continue;
        add_checks(g, &checks, insn->operands[0], CT_GRADE_FACTOR, DEPTH_MAX);
        add_checks(g, &checks, insn->operands[1], CT_GRADE_FACTOR, DEPTH_MAX);
        note(g, insn->results[0], CT_GRADE_TERM);
    }
    for (uint32_t i = 0; i < segment->dependents.n; i++)
        if (ct_is_guarded(segment->dependents.v[i]))
            add_checks(g, &checks, segment->dependents.v[i]->operands[2], CT_GRADE_TERM, DEPTH_MAX);
    return checks;
}

ct_value ct_guard_or(struct ct_cursor *at, ct_value a, ct_value b)
{
    return !a.i ? b : !b.i ? a : ct_or(at, a, b);
}

ct_value ct_guard_least_of(struct ct_cursor *at, enum ct_op op, enum ptx_type type, ct_value *v, uint32_t n)
{
    for (; n > 1; n = (n + 1) / 2) {
        for (uint32_t i = 0; i + 1 < n; i += 2)
            v[i / 2] = ct_op2(at, op, type, v[i], v[i + 1]);
        if (n % 2)
            v[n / 2] = v[n - 1];
    }
    return v[0];
}

/* Whether the least magnitude is below `least`. */
static ct_value one_is_below(struct ct_cursor *at, const ct_value_list *values, uint32_t least)
{
    ct_value *v = CT_ARENA_ARRAY(&at->fn->compilation->scratch, ct_value, values->n + 1);

    if (!values->n)
        return CT_NO_VALUE;
    for (uint32_t i = 0; i < values->n; i++)
        v[i] = ct_op1(at, CT_OP_FABS, PTX_F32, values->v[i]);
    return ct_fcmp(at, PTX_F32, PTX_LT, ct_guard_least_of(at, CT_OP_FMIN, PTX_F32, v, values->n), ct_const32(at, least));
}

/* Orders magnitudes so that zero is the greatest: shifts out the sign and subtracts one. */
static ct_value zero_last(struct ct_cursor *at, ct_value x)
{
    return ct_add_imm(at, ct_shl_imm(at, x, 1), UINT32_MAX);
}

static ct_value is_between(struct ct_cursor *at, ct_value zero_last, uint32_t least)
{
    return ct_icmp_imm(at, PTX_U32, PTX_LT, zero_last, 2 * least - 1);
}

/* The encoding of 2^power. */
static uint32_t power_bits(int power)
{
    return power >= CT_POWER_NORMAL ? (uint32_t)(power + 127) << 23 : UINT32_C(1) << (power - CT_POWER_LEAST);
}

ct_value ct_guard_is_out_of_range(struct ct_cursor *at, ct_value x, struct ct_range range)
{
    const uint32_t least = power_bits(range.least), most = range.most < CT_POWER_ANY ? power_bits(range.most) : MAGNITUDE;
    ct_value below;

    if (range.nonzero)
        return ct_icmp_imm(at, PTX_U32, PTX_GT, ct_add_imm(at, ct_shl_imm(at, x, 1), 0 - 2 * least), 2 * (most - least));
    below = is_between(at, zero_last(at, x), least);
    if (range.most == CT_POWER_ANY)
        return below;
    return ct_or(at, below, ct_icmp_imm(at, PTX_U32, PTX_GT, ct_shl_imm(at, x, 1), 2 * most));
}

ct_value ct_guard_one_is_no_factor(struct ct_cursor *at, const ct_value_list *values)
{
    return one_is_below(at, values, LEAST_FACTOR);
}

ct_value ct_guard_is_no_factor(struct ct_cursor *at, ct_value x)
{
    return is_between(at, zero_last(at, x), LEAST_FACTOR);
}

ct_value ct_guard_one_is_between(const struct ct_guard *g, struct ct_cursor *at, const ct_value_list *values, uint32_t least)
{
    ct_value *v = CT_ARENA_ARRAY(g->scratch, ct_value, values->n + 1);

    if (!values->n)
        return CT_NO_VALUE;
    for (uint32_t i = 0; i < values->n; i++)
        v[i] = zero_last(at, values->v[i]);
    return is_between(at, ct_guard_least_of(at, CT_OP_MIN, PTX_U32, v, values->n), least);
}

ct_value ct_guard_coarse_check(const struct ct_guard *g, const struct ct_guard_checks *checks, struct ct_cursor *at)
{
    struct ct_cursor above = {.fn = g->fn, .where = at->where};
    ct_value small = g->flag;

    if (checks->always_fails)
        return ct_emit_const(at, CT_W_PRED, 1);
    if (g->header) {
        above.block = g->tail[g->header->idom->id];
        above.before = above.block->last;
        small = ct_guard_or(at, small, one_is_below(&above, &checks->factors[1], LEAST_FACTOR));
        small = ct_guard_or(at, small, one_is_below(&above, &checks->terms[1], LEAST_TERM));
    }
    if (checks->tracked.n)
        small = ct_guard_or(at, small, ct_guard_shared_flag(at));
    small = ct_guard_or(at, small, one_is_below(at, &checks->factors[0], LEAST_FACTOR));
    return ct_guard_or(at, small, one_is_below(at, &checks->terms[0], LEAST_TERM));
}

ct_value ct_guard_fine_check(const struct ct_guard *g, const struct ct_guard_checks *checks, struct ct_cursor *at)
{
    ct_value small = g->flag;

    if (checks->always_fails)
        return ct_emit_const(at, CT_W_PRED, 1);
    small = ct_guard_or(at, small, ct_guard_one_is_between(g, at, &checks->tracked, LEAST_FACTOR));
    for (int i = 0; i < 2; i++) {
        small = ct_guard_or(at, small, ct_guard_one_is_between(g, at, &checks->factors[i], LEAST_FACTOR));
        small = ct_guard_or(at, small, ct_guard_one_is_between(g, at, &checks->terms[i], LEAST_TERM));
    }
    return small;
}

/* ---- the second test ---- */

static ct_value magnitude(struct ct_cursor *at, ct_value x)
{
    return ct_and_imm(at, x, MAGNITUDE);
}

static ct_value is_subnormal(struct ct_cursor *at, ct_value x)
{
    return ct_icmp_imm(at, PTX_U32, PTX_LT, ct_add_imm(at, magnitude(at, x), UINT32_MAX), LEAST_NORMAL - 1);
}

ct_value ct_guard_may_be_wrong(struct ct_cursor *at, const ct_value x[3], ct_value r)
{
    ct_value flushed = ct_equals(at, magnitude(at, r), 0);

    flushed = ct_and(at, flushed, ct_icmp_imm(at, PTX_U32, PTX_LT, magnitude(at, x[2]), LEAST_CANCELLED));
    for (int i = 0; i < 2; i++)
        flushed = ct_and(at, flushed, ct_icmp_imm(at, PTX_U32, PTX_NE, magnitude(at, x[i]), 0));
    for (int i = 0; i < 3; i++)
        flushed = ct_or(at, flushed, is_subnormal(at, x[i]));
    return flushed;
}
