/* SPDX-License-Identifier: Apache-2.0 */
/* guard: whether flushing can change the multiply-adds of a loop if its inputs have ordinary magnitudes.
 *
 * Each f32 of the loop has a range (guard_ranges.c). The analysis starts with unknown ranges and lets them grow until a fixed point is
 * reached. Then each range holds by induction on the steps of the loop: an instruction whose operands are in their ranges gives a result in
 * its range; this includes multiply-adds, since each of them is shown to be unaffected by flushing. Phis that do not converge soon are
 * widened.
 *
 * Inputs are assumed to have the ranges of one level of the table below. An input that is added to an unknown product is assumed to be
 * nonzero, so that it absorbs the product's error (guard_ranges.c). */
#include "guard_proof.h"

#include <string.h>

enum { ROUNDS_MAX = 40, ROUNDS_BEFORE_WIDENING = 3, INPUTS_MAX = 24, BLOCKS_MAX = 64 };

/* 0, or from 2^least to 2^most: loop invariants, and initial values of loop-carried values */
static const struct level {
    struct {
        int16_t least, most;
    } invariant, initial;
} levels[] = {
    {{-40, CT_POWER_ANY}, {-103, CT_POWER_ANY}},
    {{-40, 40}, {-103, 40}},
};
enum { N_LEVELS = sizeof levels / sizeof *levels };
enum { SHARED_LEAST = -40 }; /* numbers in shared memory are 0 or factors (guard_shared.c), that is at least 2^SHARED_LEAST */

ct_value ct_guard_original(const struct ct_guard_proof *proof, ct_value x)
{
    while (ct_guard_definition(proof, x)->op == CT_OP_COPY)
        x = ct_guard_definition(proof, x)->operands[0];
    return x;
}

static bool is_inside(const struct ct_guard_proof *proof, ct_value x)
{
    return ct_loop_contains(proof->header, ct_guard_definition(proof, x)->block);
}

/* ---- inputs ---- */

static struct ct_guard_input *input(struct ct_guard_proof *proof, ct_value x)
{
    if (!proof->input_of[x.i]) {
        *CT_PUSH(proof->g->scratch, &proof->inputs) = (struct ct_guard_input){.value = x, .is_initial = true};
        proof->input_of[x.i] = proof->inputs.n;
    }
    return &proof->inputs.v[proof->input_of[x.i] - 1];
}

/* The index of the first operand on which the range of the result depends. */
static uint32_t first_relevant_operand(const struct ct_insn *insn)
{
    switch ((unsigned)insn->op) {
    case CT_OP_FADD:
    case CT_OP_FSUB:
    case CT_OP_FMUL:
    case CT_OP_FDIV:
    case CT_OP_FRSQRT:
        return insn->type == PTX_F32 ? 0 : insn->n_operands;
    case CT_OP_FFMA:
        return insn->guarded ? 0 : insn->n_operands;
    case CT_OP_SELECT:
        return 1;
    case CT_OP_PHI:
    case CT_OP_COPY:
    case CT_OP_AND:
    case CT_OP_XOR:
        return 0;
    default:
        return insn->n_operands;
    }
}

typedef CT_VEC(struct ct_insn *) insn_list;

/* Follows an operand to its definition. */
static void follow(struct ct_guard_proof *proof, insn_list *work, const struct ct_insn *user, ct_value x)
{
    struct ct_insn *def = ct_guard_definition(proof, ct_guard_original(proof, x));

    if (ct_width_of_value(proof->g->fn, x) != CT_W_32 || def->op == CT_OP_CONST)
        return;
    if (is_inside(proof, def->results[0])) {
        if (!proof->is_known[def->results[0].i]) /* used as a mark here */
            *CT_PUSH(proof->g->scratch, work) = def;
        proof->is_known[def->results[0].i] = true;
    } else if (def->op != CT_OP_ITOF) {
        struct ct_guard_input *in = input(proof, ct_guard_original(proof, x));

        in->is_initial &= user->op == CT_OP_PHI;
    }
}

static void find_inputs(struct ct_guard_proof *proof)
{
    insn_list work = {0};

    for (uint32_t b = 0; b < proof->blocks.n; b++)
        for (struct ct_insn *insn = proof->blocks.v[b]->first; insn; insn = insn->next)
            if (ct_is_guarded(insn))
                *CT_PUSH(proof->g->scratch, &work) = insn;
    while (work.n) {
        const struct ct_insn *insn = work.v[--work.n];

        for (uint32_t i = first_relevant_operand(insn); i < insn->n_operands; i++)
            follow(proof, &work, insn, insn->operands[i]);
    }
}

static void assume(struct ct_guard_proof *proof)
{
    const struct level *level = &levels[proof->level];

    for (uint32_t i = 0; i < proof->inputs.n; i++) {
        struct ct_guard_input *in = &proof->inputs.v[i];
        const int least = in->is_initial ? level->initial.least : level->invariant.least;

        in->assumed =
            ct_range_between(in->must_absorb ? CT_POWER_ABSORBING : least, in->is_initial ? level->initial.most : level->invariant.most);
        in->assumed.nonzero = in->must_absorb;
    }
}

/* ---- transfer functions ---- */

static struct ct_range masked(const struct ct_guard_proof *proof, const struct ct_insn *insn)
{
    const struct ct_insn *mask = ct_guard_definition(proof, insn->operands[1]);
    const struct ct_range x = ct_guard_range_at(proof, insn->operands[0], insn->block);

    if (mask->op != CT_OP_CONST || mask->imm != (insn->op == CT_OP_AND ? UINT32_C(0x7fffffff) : UINT32_C(0x80000000)))
        return ct_range_any();
    return insn->op == CT_OP_AND ? ct_range_of_magnitude(x) : ct_range_of_negative(x);
}

static struct ct_range selected(const struct ct_guard_proof *proof, const struct ct_insn *insn)
{
    const struct ct_range a = ct_guard_range_at(proof, insn->operands[1], insn->block);
    const struct ct_range b = ct_guard_range_at(proof, insn->operands[2], insn->block);
    bool negated = false;
    const struct ct_insn *comparison = ct_guard_comparison_or_null(proof, insn->operands[0], &negated);

    if (comparison && ct_loop_contains(proof->header, comparison->block) && ct_guard_is_never(proof, comparison))
        return negated ? a : b;
    return ct_range_joined(a, b);
}

static struct ct_range loaded(struct ct_guard_proof *proof, const struct ct_insn *insn)
{
    if (!proof->g->shared_is_tracked || !ct_is_shared_word(proof->g->fn, insn))
        return ct_range_any();
    proof->reads_shared = true;
    return ct_range_between(SHARED_LEAST, CT_POWER_ANY);
}

/* The ranges of an instruction's operands at its place. */
struct operands {
    struct ct_range x[3];
    bool same; /* the first two are the same value */
};

static struct operands operands_of(const struct ct_guard_proof *proof, const struct ct_insn *insn)
{
    const ct_value *const x = insn->operands;
    struct operands of = {.same = insn->n_operands > 1 && ct_guard_original(proof, x[0]).i == ct_guard_original(proof, x[1]).i};

    for (uint32_t i = 0; i < insn->n_operands; i++)
        of.x[i] = ct_guard_range_at(proof, x[i], insn->block);
    return of;
}

static struct ct_range computed(const struct ct_guard_proof *proof, const struct ct_insn *insn)
{
    const struct operands of = operands_of(proof, insn);

    switch ((unsigned)insn->op) {
    case CT_OP_FADD:
        return ct_range_of_sum(of.x[0], of.x[1]);
    case CT_OP_FSUB:
        return ct_range_of_difference(of.x[0], of.x[1]);
    case CT_OP_FMUL:
        return ct_range_of_product(of.x[0], of.x[1], of.same);
    case CT_OP_FFMA:
        return ct_range_of_fused(of.x[0], of.x[1], of.x[2], of.same);
    case CT_OP_FDIV:
        return ct_range_of_quotient(of.x[0], of.x[1]);
    default: /* FRSQRT */
        return ct_range_of_inverse_root(of.x[0]);
    }
}

/* Nothing is known of constants and converted integers here: ct_guard_range handles them. */
static struct ct_range step(struct ct_guard_proof *proof, const struct ct_insn *insn)
{
    switch ((unsigned)insn->op) {
    case CT_OP_COPY:
        return ct_guard_range(proof, insn->operands[0]);
    case CT_OP_AND:
    case CT_OP_XOR:
        return masked(proof, insn);
    case CT_OP_SELECT:
        return selected(proof, insn);
    case CT_OP_LOAD:
        return loaded(proof, insn);
    default:
        return first_relevant_operand(insn) < insn->n_operands ? computed(proof, insn) : ct_range_any();
    }
}

/* ---- iteration ---- */

/* Whether ranges are recorded for the results of an instruction. */
static bool is_tracked(const struct ct_guard_proof *proof, const struct ct_insn *insn)
{
    return insn->n_results && ct_width_of_value(proof->g->fn, insn->results[0]) == CT_W_32;
}

/* Whether nothing is known of a value of the loop yet. */
static bool is_pending(const struct ct_guard_proof *proof, ct_value x)
{
    const struct ct_insn *def = ct_guard_definition(proof, x);

    return is_inside(proof, x) && is_tracked(proof, def) && def->op != CT_OP_CONST && !proof->is_known[x.i];
}

/* The range of a phi from the operands known so far. False: there are none. */
static bool merged(const struct ct_guard_proof *proof, const struct ct_insn *phi, struct ct_range *out)
{
    bool found = false;

    for (uint32_t i = 0; i < phi->n_operands; i++) {
        const ct_value x = ct_guard_original(proof, phi->operands[i]);
        struct ct_range r;

        if (is_pending(proof, x))
            continue;
        r = ct_loop_contains(proof->header, phi->block->preds.v[i]) ? ct_guard_range_at(proof, x, phi->block->preds.v[i])
                                                                    : ct_guard_range(proof, x);
        *out = found ? ct_range_joined(*out, r) : r;
        found = true;
    }
    return found;
}

/* Widening: bounds that still grow are given up. */
static struct ct_range widened(struct ct_range old, struct ct_range new)
{
    new.least = new.least < old.least ? CT_POWER_LEAST : new.least;
    new.most = new.most > old.most ? CT_POWER_ANY : new.most;
    new.quantum = new.quantum < old.quantum ? CT_POWER_LEAST : new.quantum;
    return new;
}

static bool update(struct ct_guard_proof *proof, const struct ct_insn *insn, unsigned round)
{
    const uint32_t x = insn->results[0].i;
    struct ct_range r;

    if (insn->op == CT_OP_PHI) {
        if (!merged(proof, insn, &r))
            return false;
        r = proof->is_known[x] ? ct_range_joined(proof->known[x], r) : r;
        if (proof->is_known[x] && round > ROUNDS_BEFORE_WIDENING)
            r = widened(proof->known[x], r);
    } else {
        r = step(proof, insn);
    }
    if (proof->is_known[x] && ct_ranges_are_equal(r, proof->known[x]))
        return false;
    for (uint32_t i = 0; i < insn->n_results; i++) {
        proof->known[insn->results[i].i] = r;
        proof->is_known[insn->results[i].i] = true;
    }
    return true;
}

/* False: no fixed point was reached. */
static bool find_ranges(struct ct_guard_proof *proof)
{
    memset(proof->is_known, 0, proof->g->fn->values.n * sizeof *proof->is_known);
    for (unsigned round = 0; round < ROUNDS_MAX; round++) {
        bool changed = false;

        for (uint32_t b = 0; b < proof->blocks.n; b++)
            for (const struct ct_insn *insn = proof->blocks.v[b]->first; insn; insn = insn->next)
                if (is_tracked(proof, insn))
                    changed |= update(proof, insn, round);
        if (!changed)
            return true;
    }
    return false;
}

static bool is_unaffected(const struct ct_guard_proof *proof, const struct ct_insn *ffma)
{
    const struct operands of = operands_of(proof, ffma);

    return ct_fused_is_unaffected(of.x[0], of.x[1], of.x[2], of.same);
}

static const struct ct_insn *affected_or_null(const struct ct_guard_proof *proof)
{
    for (uint32_t b = 0; b < proof->blocks.n; b++)
        for (const struct ct_insn *insn = proof->blocks.v[b]->first; insn; insn = insn->next)
            if (ct_is_guarded(insn) && !is_unaffected(proof, insn))
                return insn;
    return NULL;
}

/* With the assumptions of one level. */
static bool prove_at_level(struct ct_guard_proof *proof)
{
    for (uint32_t i = 0; i < proof->inputs.n; i++)
        proof->inputs.v[i].must_absorb = false;
    for (;;) {
        const struct ct_insn *affected;
        uint32_t addend;

        assume(proof);
        if (!find_ranges(proof))
            return false;
        affected = affected_or_null(proof);
        if (!affected)
            return true;
        addend = proof->input_of[ct_guard_original(proof, affected->operands[2]).i];
        if (!addend || proof->inputs.v[addend - 1].must_absorb)
            return false;
        proof->inputs.v[addend - 1].must_absorb = true;
    }
}

static bool begin(struct ct_guard_proof *proof, struct ct_block *const *order, uint32_t n_blocks)
{
    struct ct_arena *scratch = proof->g->scratch;
    const uint32_t n_values = proof->g->fn->values.n;

    for (uint32_t b = 0; b < n_blocks; b++)
        if (ct_loop_contains(proof->header, order[b]))
            *CT_PUSH(scratch, &proof->blocks) = order[b];
    if (proof->blocks.n > BLOCKS_MAX)
        return false;
    memset(proof->input_of, 0, n_values * sizeof *proof->input_of);
    memset(proof->is_known, 0, n_values * sizeof *proof->is_known);
    find_inputs(proof);
    ct_guard_find_bounds(proof);
    return proof->inputs.n <= INPUTS_MAX;
}

void ct_guard_reserve(struct ct_guard_proof *proof)
{
    const uint32_t n_values = proof->g->fn->values.n;

    proof->input_of = CT_ARENA_ARRAY(proof->g->scratch, uint32_t, n_values);
    proof->known = CT_ARENA_ARRAY(proof->g->scratch, struct ct_range, n_values);
    proof->is_known = CT_ARENA_ARRAY(proof->g->scratch, bool, n_values);
}

/* Whether inputs that must absorb may as well be 0. The ranges at the end are those without such zeros. */
static bool try_zeros(struct ct_guard_proof *proof)
{
    bool any = false, unaffected;

    for (uint32_t i = 0; i < proof->inputs.n; i++)
        if (proof->inputs.v[i].must_absorb) {
            proof->inputs.v[i].assumed = ct_range_of_constant(0);
            any = true;
        }
    if (!any)
        return false;
    unaffected = find_ranges(proof) && !affected_or_null(proof);
    assume(proof);
    (void)find_ranges(proof);
    return unaffected;
}

bool ct_guard_prove(struct ct_guard_proof *proof, struct ct_block *const *order, uint32_t n_blocks)
{
    if (!begin(proof, order, n_blocks))
        return false;
    for (proof->level = 0; proof->level < N_LEVELS; proof->level++)
        if (prove_at_level(proof)) {
            proof->zeros_allowed = try_zeros(proof);
            return true;
        }
    return false;
}
