/* SPDX-License-Identifier: Apache-2.0 */
/* guard: whether the multiply-adds of a loop can be hurt by flushing, if what comes into it has ordinary sizes.
 *
 * Each f32 of the loop has a range (guard_ranges.c). They start with nothing known and grow, round by round, until none changes; then each
 * holds by induction on the steps of the loop: a step that is computed from what its range says gives what its range says, for a
 * multiply-add because none that is found to be harmless is hurt. Phis that do not settle soon are given up.
 *
 * What comes from outside is assumed to have the range of a level of the table below. An addend of a product that is not known is assumed
 * not to be 0, if it comes from outside: it absorbs (guard_ranges.c). */
#include "guard_proof.h"

#include <string.h>

enum { ROUNDS_MAX = 40, ROUNDS_OF_PATIENCE = 3, INPUTS_MAX = 24, BLOCKS_MAX = 64 };

/* 0, or of 2^least to 2^most: what does not change in the loop, and what begins there. */
static const struct level {
    struct {
        int16_t least, most;
    } fixed, beginning;
} levels[] = {
    {{-40, CT_POWER_ANY}, {-103, CT_POWER_ANY}},
    {{-40, 40}, {-103, 40}},
};
enum { N_LEVELS = sizeof levels / sizeof *levels };
enum { SHARED_LEAST = -40 }; /* numbers in shared memory are 0 or factors (guard_shared.c): of 2^SHARED_LEAST or more */

bool ct_guard_is_inside(const struct ct_block *header, const struct ct_block *block)
{
    const struct ct_block *head = block->loop_head;

    while (head && head != header)
        head = head->loop_parent;
    return head == header;
}

ct_value ct_guard_original(const struct ct_guard_proof *proof, ct_value x)
{
    while (ct_guard_definition(proof, x)->op == CT_OP_COPY)
        x = ct_guard_definition(proof, x)->operands[0];
    return x;
}

static bool is_inside(const struct ct_guard_proof *proof, ct_value x)
{
    return ct_guard_is_inside(proof->header, ct_guard_definition(proof, x)->block);
}

/* ---- what it depends on ---- */

static struct ct_guard_input *input(struct ct_guard_proof *proof, ct_value x)
{
    if (!proof->input_of[x.i]) {
        *CT_PUSH(proof->g->scratch, &proof->inputs) = (struct ct_guard_input){.value = x, .begins = true};
        proof->input_of[x.i] = proof->inputs.n;
    }
    return &proof->inputs.v[proof->input_of[x.i] - 1];
}

/* Operands that say something of the result, from the first one on. */
static uint32_t first_that_matters(const struct ct_insn *insn)
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

/* Follows an operand to where it comes from. */
static void follow(struct ct_guard_proof *proof, insn_list *work, const struct ct_insn *user, ct_value x)
{
    struct ct_insn *def = ct_guard_definition(proof, ct_guard_original(proof, x));

    if (ct_width_of_value(proof->g->fn, x) != CT_W_32 || def->op == CT_OP_CONST)
        return;
    if (is_inside(proof, def->results[0])) {
        if (!proof->is_known[def->results[0].i]) /* a mark, for now */
            *CT_PUSH(proof->g->scratch, work) = def;
        proof->is_known[def->results[0].i] = true;
    } else if (def->op != CT_OP_ITOF) {
        struct ct_guard_input *in = input(proof, ct_guard_original(proof, x));

        in->begins &= user->op == CT_OP_PHI;
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

        for (uint32_t i = first_that_matters(insn); i < insn->n_operands; i++)
            follow(proof, &work, insn, insn->operands[i]);
    }
}

static void assume(struct ct_guard_proof *proof)
{
    const struct level *level = &levels[proof->level];

    for (uint32_t i = 0; i < proof->inputs.n; i++) {
        struct ct_guard_input *in = &proof->inputs.v[i];
        const int least = in->begins ? level->beginning.least : level->fixed.least;

        in->assumed = ct_range_between(in->must_absorb ? CT_POWER_ABSORBING : least, in->begins ? level->beginning.most : level->fixed.most);
        in->assumed.nonzero = in->must_absorb;
    }
}

/* ---- steps ---- */

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

    if (comparison && ct_guard_is_inside(proof->header, comparison->block) && ct_guard_is_never(proof, comparison))
        return negated ? a : b;
    return ct_range_joined(a, b);
}

static struct ct_range loaded(struct ct_guard_proof *proof, const struct ct_insn *insn)
{
    if (!proof->g->shared_is_watched || !ct_is_shared_word(proof->g->fn, insn))
        return ct_range_any();
    proof->reads_shared = true;
    return ct_range_between(SHARED_LEAST, CT_POWER_ANY);
}

/* Of arithmetic, where it stands. */
struct operands {
    struct ct_range x[3];
    bool same; /* the first two are one value */
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

/* Nothing of constants and of integers that become f32, which ct_guard_range knows without. */
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
        return first_that_matters(insn) < insn->n_operands ? computed(proof, insn) : ct_range_any();
    }
}

/* ---- rounds ---- */

/* Whether ranges are kept of what an instruction gives. */
static bool is_followed(const struct ct_guard_proof *proof, const struct ct_insn *insn)
{
    return insn->n_results && ct_width_of_value(proof->g->fn, insn->results[0]) == CT_W_32;
}

/* Whether nothing is known of a value of the loop so far. */
static bool is_pending(const struct ct_guard_proof *proof, ct_value x)
{
    const struct ct_insn *def = ct_guard_definition(proof, x);

    return is_inside(proof, x) && is_followed(proof, def) && def->op != CT_OP_CONST && !proof->is_known[x.i];
}

/* What a phi is, of what is known so far. False: nothing. */
static bool merged(const struct ct_guard_proof *proof, const struct ct_insn *phi, struct ct_range *out)
{
    bool found = false;

    for (uint32_t i = 0; i < phi->n_operands; i++) {
        const ct_value x = ct_guard_original(proof, phi->operands[i]);
        struct ct_range r;

        if (is_pending(proof, x))
            continue;
        r = ct_guard_is_inside(proof->header, phi->block->preds.v[i]) ? ct_guard_range_at(proof, x, phi->block->preds.v[i])
                                                                      : ct_guard_range(proof, x);
        *out = found ? ct_range_joined(*out, r) : r;
        found = true;
    }
    return found;
}

/* What goes on growing is given up. */
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
        if (proof->is_known[x] && round > ROUNDS_OF_PATIENCE)
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

/* False: there is no end to it. */
static bool find_ranges(struct ct_guard_proof *proof)
{
    memset(proof->is_known, 0, proof->g->fn->values.n * sizeof *proof->is_known);
    for (unsigned round = 0; round < ROUNDS_MAX; round++) {
        bool changed = false;

        for (uint32_t b = 0; b < proof->blocks.n; b++)
            for (const struct ct_insn *insn = proof->blocks.v[b]->first; insn; insn = insn->next)
                if (is_followed(proof, insn))
                    changed |= update(proof, insn, round);
        if (!changed)
            return true;
    }
    return false;
}

static bool is_harmless(const struct ct_guard_proof *proof, const struct ct_insn *ffma)
{
    const struct operands of = operands_of(proof, ffma);

    return ct_fused_is_harmless(of.x[0], of.x[1], of.x[2], of.same);
}

static const struct ct_insn *harmful_or_null(const struct ct_guard_proof *proof)
{
    for (uint32_t b = 0; b < proof->blocks.n; b++)
        for (const struct ct_insn *insn = proof->blocks.v[b]->first; insn; insn = insn->next)
            if (ct_is_guarded(insn) && !is_harmless(proof, insn))
                return insn;
    return NULL;
}

/* With the assumptions of one level. */
static bool prove_at_level(struct ct_guard_proof *proof)
{
    for (uint32_t i = 0; i < proof->inputs.n; i++)
        proof->inputs.v[i].must_absorb = false;
    for (;;) {
        const struct ct_insn *harmful;
        uint32_t addend;

        assume(proof);
        if (!find_ranges(proof))
            return false;
        harmful = harmful_or_null(proof);
        if (!harmful)
            return true;
        addend = proof->input_of[ct_guard_original(proof, harmful->operands[2]).i];
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
        if (ct_guard_is_inside(proof->header, order[b]))
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

/* Whether what must absorb may as well be 0. What is known is that without such zeros, in the end. */
static bool try_zeros(struct ct_guard_proof *proof)
{
    bool any = false, harmless;

    for (uint32_t i = 0; i < proof->inputs.n; i++)
        if (proof->inputs.v[i].must_absorb) {
            proof->inputs.v[i].assumed = ct_range_of_constant(0);
            any = true;
        }
    if (!any)
        return false;
    harmless = find_ranges(proof) && !harmful_or_null(proof);
    assume(proof);
    (void)find_ranges(proof);
    return harmless;
}

bool ct_guard_prove(struct ct_guard_proof *proof, struct ct_block *const *order, uint32_t n_blocks)
{
    if (!begin(proof, order, n_blocks))
        return false;
    for (proof->level = 0; proof->level < N_LEVELS; proof->level++)
        if (prove_at_level(proof)) {
            proof->zeros_will_do = try_zeros(proof);
            return true;
        }
    return false;
}
