/* SPDX-License-Identifier: Apache-2.0 */
/* guard: runs of multiply-adds for which everything that may be too small is known before the run get a second version without guards.
 * Branches after every few multiply-adds would keep a driver from moving later loads up.
 *
 *     load.shared, fma, load.shared, ...      =>      if (something is small && it is not a zero)    the check of guard.c for the whole run
 *                                                         the run, which guard.c divides into segments
 *                                                     else
 *                                                         the run, unguarded
 *                                                     phis
 *
 * What the run itself loads from shared memory is known if shared memory is tracked: a run contains nothing that may make stores of other
 * threads visible, so the flag that covers its loads can be read at its start.
 *
 * Accumulators to which a loop adds by such a run are not checked in each iteration: after an unguarded run they are terms
 * (guard_flags.c). Therefore a loop-carried flag says whether the last run was guarded, in which case the accumulators are checked;
 * their initial values are checked before the loop. */
#include "guard.h"
#include "ptx2spv/sync/sync.h"

enum { FFMAS_MIN = 8 };

/* From its first load or multiply-add to its last multiply-add. */
struct run {
    struct ct_insn *first, *last;
    uint32_t n_ffmas;
};

static bool ends_run(const struct ct_insn *insn)
{
    return insn == insn->block->last || !ct_guard_leaves_shared_alone(insn);
}

static bool begins_run(const struct ct_fn *fn, const struct ct_insn *insn)
{
    return ct_is_guarded(insn) || (insn->op == CT_OP_LOAD && ct_is_shared_word(fn, insn));
}

/* The first run at or after `insn` in the block that is long enough; else one without multiply-adds. */
static struct run find_run(const struct ct_fn *fn, struct ct_insn *insn)
{
    struct run run = {.n_ffmas = 0};

    for (; insn; insn = insn->next) {
        if (!run.first && begins_run(fn, insn))
            run.first = insn;
        if (ct_is_guarded(insn)) {
            run.last = insn;
            run.n_ffmas++;
        }
        if (ends_run(insn)) {
            if (run.n_ffmas >= FFMAS_MIN)
                return run;
            run = (struct run){.n_ffmas = 0};
        }
    }
    return run;
}

/* ---- what is known before the run ---- */

static bool is_in(const struct run *run, const struct ct_insn *def)
{
    for (const struct ct_insn *insn = run->first; def && def->block == run->first->block && insn != run->last->next; insn = insn->next)
        if (insn == def)
            return true;
    return false;
}

static bool are_available(const struct ct_guard *g, const struct run *run, const ct_value_list *values)
{
    for (uint32_t i = 0; i < values->n; i++)
        if (is_in(run, g->fn->values.v[values->v[i].i].def))
            return false;
    return true;
}

static struct ct_guard_checks find_checks(struct ct_guard *g, const struct run *run)
{
    struct ct_segment all = {.number = 0};

    for (struct ct_insn *insn = run->first; insn != run->last->next; insn = insn->next)
        if (ct_is_guarded(insn))
            *CT_PUSH(g->scratch, &all.dependents) = insn;
    return ct_guard_find_checks(g, &all);
}

/* ---- the copy ---- */

static ct_value copied(const struct ct_guard *g, ct_value x)
{
    return g->copied[x.i].i ? g->copied[x.i] : x;
}

static void copy_run(struct ct_guard *g, const struct ct_block *from, struct ct_block *to)
{
    struct ct_cursor at = {.fn = g->fn, .block = to};

    for (const struct ct_insn *insn = from->first; insn; insn = insn->next) {
        struct ct_insn *copy = ct_emit_copy_of(&at, insn);

        for (uint32_t i = 0; i < insn->n_operands; i++)
            copy->operands[i] = copied(g, insn->operands[i]);
        for (uint32_t r = 0; r < insn->n_results; r++)
            g->copied[insn->results[r].i] = copy->results[r];
    }
}

/* Phis at the head of `tail`, whose first edge comes from the run and whose second edge comes from its copy. */
static void merge_run(struct ct_guard *g, const struct ct_block *run, struct ct_block *tail)
{
    struct ct_cursor at = {.fn = g->fn, .block = tail, .before = tail->first, .where = tail->first->where};

    for (const struct ct_insn *insn = run->first; insn != run->last; insn = insn->next) /* a jump follows the last one */
        for (uint32_t r = 0; r < insn->n_results; r++) {
            const ct_value x = insn->results[r];

            g->merged[x.i] = ct_emit2(&at, CT_OP_PHI, PTX_NONE, ct_width_of_value(g->fn, x), x, g->copied[x.i]);
        }
}

/* Uses in other blocks read the merged values. */
static void use_merged(struct ct_guard *g)
{
    for (uint32_t b = 0; b < g->fn->blocks.n; b++)
        for (struct ct_insn *insn = g->fn->blocks.v[b]->first; insn; insn = insn->next)
            for (uint32_t i = 0; i < insn->n_operands; i++) {
                const ct_value x = insn->operands[i], merged = x.i < g->n_values ? g->merged[x.i] : CT_NO_VALUE;
                const struct ct_block *tail = merged.i ? g->fn->values.v[merged.i].def->block : NULL;

                if (tail && insn->block != g->fn->values.v[x.i].def->block && !(insn->op == CT_OP_PHI && insn->block == tail))
                    insn->operands[i] = merged;
            }
}

/* ---- accumulators ---- */

/* Whether x enters an iteration of the loop only as a result of the run; its initial value does not matter. */
static bool is_accumulator(const struct ct_guard *g, const struct run *run, const struct ct_block *block, ct_value x)
{
    const struct ct_insn *phi = g->fn->values.v[x.i].def;

    if (phi->op != CT_OP_PHI || !g->header || phi->block != g->header)
        return false;
    for (uint32_t p = 0; p < phi->n_operands; p++) {
        const struct ct_block *from = g->header->preds.v[p];
        const struct ct_insn *def = g->fn->values.v[phi->operands[p].i].def;
        const bool is_dominated = from == run->first->block || (from->id < g->n_blocks && ct_block_dominates(block, from));

        if (from->id < g->n_blocks && !ct_block_dominates(g->header, from))
            continue;
        if (!is_dominated || !ct_is_guarded(def) || !is_in(run, def))
            return false;
    }
    return true;
}

/* Removes those accumulators from what is checked in each iteration. */
static ct_value_list take_accumulators(struct ct_guard *g, const struct run *run, const struct ct_block *block,
                                       struct ct_guard_checks *checks)
{
    ct_value_list accumulators = {0}, others = {0};

    for (uint32_t i = 0; i < checks->terms[0].n; i++) {
        const ct_value x = checks->terms[0].v[i];

        *CT_PUSH(g->scratch, is_accumulator(g, run, block, x) ? &accumulators : &others) = x;
    }
    checks->terms[0] = others;
    return accumulators;
}

/* Whether one of their initial values is no term, at the end of the block before the loop. */
static ct_value check_initial_values(struct ct_guard *g, const ct_value_list *accumulators, uint32_t p)
{
    struct ct_block *from = g->header->preds.v[p];
    struct ct_cursor at = {.fn = g->fn, .block = from, .before = from->last, .where = from->last->where};
    struct ct_guard_checks checks = {.always_fails = false};
    ct_value wrong;

    for (uint32_t i = 0; i < accumulators->n; i++) {
        const ct_value x = g->fn->values.v[accumulators->v[i].i].def->operands[p];
        const struct ct_insn *def = g->fn->values.v[x.i].def;

        if (def->op != CT_OP_CONST || def->imm << 33)
            *CT_PUSH(g->scratch, &checks.terms[0]) = x;
    }
    wrong = ct_guard_fine_check(g, &checks, &at);
    return wrong.i ? wrong : ct_emit_const(&at, CT_W_PRED, 0);
}

/* A phi at the loop's head that says whether they may be no terms. The run's result becomes its other operands later. */
static struct ct_insn *make_flag(struct ct_guard *g, const ct_value_list *accumulators)
{
    struct ct_block *header = g->header;
    struct ct_cursor at = {.fn = g->fn, .block = header, .before = header->first, .where = header->first->where};
    struct ct_insn *phi = ct_emit_insn(&at, CT_OP_PHI, PTX_NONE, 1, header->preds.n);

    phi->results[0] = ct_value_create(g->fn, CT_W_PRED);
    g->fn->values.v[phi->results[0].i].def = phi;
    for (uint32_t p = 0; p < header->preds.n; p++)
        if (header->preds.v[p]->id < g->n_blocks && !ct_block_dominates(header, header->preds.v[p]))
            phi->operands[p] = check_initial_values(g, accumulators, p);
    return phi;
}

static void complete_flag(struct ct_insn *phi, ct_value of_run)
{
    for (uint32_t p = 0; p < phi->n_operands; p++)
        if (!phi->operands[p].i)
            phi->operands[p] = of_run;
}

/* ---- the run-time check ---- */

/* Whether the run has to be guarded, at the end of the block before it; `at` continues in a new block after that. Accumulators are
 * examined by the fine check only. */
static ct_value emit_check(struct ct_guard *g, struct ct_guard_checks *checks, const ct_value_list *accumulators, struct ct_cursor *at)
{
    struct ct_block *checking = ct_block_create(g->fn), *decided = ct_block_create(g->fn);
    struct ct_cursor in_check = {.fn = g->fn, .block = checking, .where = at->where};
    const bool tracked = checks->tracked.n;
    const ct_value no = ct_emit_const(at, CT_W_PRED, 0), coarse = ct_guard_coarse_check(g, checks, at);
    ct_value fine;

    ct_ssa_branch(at, coarse, checking, decided);
    checks->tracked.n = 0; /* not loaded yet */
    for (uint32_t i = 0; i < accumulators->n; i++)
        *CT_PUSH(g->scratch, &checks->terms[0]) = accumulators->v[i];
    g->flag = CT_NO_VALUE;
    fine = ct_guard_fine_check(g, checks, &in_check);
    if (tracked)
        fine = ct_guard_or(&in_check, fine, ct_guard_shared_flag(&in_check));
    ct_ssa_jump(g->fn, checking, decided);
    at->block = decided;
    return ct_emit2(at, CT_OP_PHI, PTX_NONE, CT_W_PRED, no, fine);
}

/* Makes the unguarded version; returns what remains of the block after the run. */
static struct ct_block *make_unguarded(struct ct_guard *g, const struct run *run, const struct ct_block *block,
                                       struct ct_guard_checks *checks)
{
    struct ct_fn *fn = g->fn;
    const ct_value_list accumulators = take_accumulators(g, run, block, checks);
    struct ct_insn *flag = accumulators.n ? make_flag(g, &accumulators) : NULL;
    ct_value needs_guards;
    struct ct_cursor at = {.fn = fn, .block = run->first->block, .where = run->first->where};
    struct ct_block *tail = ct_block_split(fn, at.block, run->last->next), *guarded = ct_block_split(fn, at.block, run->first);
    struct ct_block *unguarded = ct_block_create(fn);

    *CT_PUSH(g->scratch, &g->unguarded) = unguarded;
    copy_run(g, guarded, unguarded);
    g->flag = flag ? flag->results[0] : CT_NO_VALUE;
    needs_guards = emit_check(g, checks, &accumulators, &at);
    ct_ssa_branch(&at, needs_guards, guarded, unguarded);
    if (flag)
        complete_flag(flag, needs_guards);
    ct_ssa_jump(fn, guarded, tail);
    ct_ssa_jump(fn, unguarded, tail);
    merge_run(g, guarded, tail);
    return tail;
}

static void find_runs(struct ct_guard *g, struct ct_block *block)
{
    struct run run = find_run(g->fn, block->first);

    g->flag = CT_NO_VALUE;
    g->header = ct_guard_header_or_null(block);
    for (g->block = block->id + 1; run.n_ffmas; g->block += g->n_blocks) { /* unique for each run */
        struct ct_guard_checks checks = find_checks(g, &run);
        struct ct_insn *next = run.last->next;

        if (checks.tracked.n && !checks.always_fails && are_available(g, &run, &checks.factors[0]) &&
            are_available(g, &run, &checks.terms[0]))
            next = (g->tail[block->id] = make_unguarded(g, &run, block, &checks))->first;
        run = find_run(g->fn, next);
    }
}

void ct_guard_make_unguarded_runs(struct ct_guard *g)
{
    const uint32_t n_blocks = g->fn->blocks.n;

    for (uint32_t b = 0; b < n_blocks; b++)
        if (!ct_guard_is_unguarded(g, g->fn->blocks.v[b]))
            find_runs(g, g->fn->blocks.v[b]);
    use_merged(g);
}
