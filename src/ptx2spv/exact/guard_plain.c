/* SPDX-License-Identifier: Apache-2.0 */
/* guard: runs of multiply-adds of which all that can go wrong is known before they begin get a copy without guards. Diamonds after every
 * few multiply-adds would keep a driver from fetching early what comes after them.
 *
 *     load.shared, fma, load.shared, ...      =>      if (something is small && it was not a zero)    as in guard.c, of what is there
 *                                                         the run, which guard.c is to cut
 *                                                     else
 *                                                         the run
 *                                                     phis
 *
 * What the run itself loads from shared memory is known where that is watched: a run holds nothing by which a thread may learn of what
 * others store in the meantime, so the flag that answers for its loads can be asked at its start.
 *
 * Sums that a loop adds up, by such a run, are not asked each time: after a run that had no guards they are terms (guard_flags.c). So
 * whether the last run had some goes round with them, and asks for them to be looked at; before the loop, what they begin with is. */
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

/* The first run in a block at or behind `insn` that is long enough; else one of no multiply-adds. */
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

/* ---- what is known before it ---- */

static bool is_in(const struct run *run, const struct ct_insn *def)
{
    for (const struct ct_insn *insn = run->first; def && def->block == run->first->block && insn != run->last->next; insn = insn->next)
        if (insn == def)
            return true;
    return false;
}

static bool is_there(const struct ct_guard *g, const struct run *run, const ct_value_list *values)
{
    for (uint32_t i = 0; i < values->n; i++)
        if (is_in(run, g->fn->values.v[values->v[i].i].def))
            return false;
    return true;
}

static struct ct_looks look_at_run(struct ct_guard *g, const struct run *run)
{
    struct ct_segment all = {.number = 0};

    for (struct ct_insn *insn = run->first; insn != run->last->next; insn = insn->next)
        if (ct_is_guarded(insn))
            *CT_PUSH(g->scratch, &all.dependents) = insn;
    return ct_guard_look(g, &all);
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

/* Phis at the head of `tail`, the first edge of which comes from the run, the second from its copy. */
static void merge_run(struct ct_guard *g, const struct ct_block *run, struct ct_block *tail)
{
    struct ct_cursor at = {.fn = g->fn, .block = tail, .before = tail->first, .where = tail->first->where};

    for (const struct ct_insn *insn = run->first; insn != run->last; insn = insn->next) /* behind its last, a jump */
        for (uint32_t r = 0; r < insn->n_results; r++) {
            const ct_value x = insn->results[r];

            g->merged[x.i] = ct_emit2(&at, CT_OP_PHI, PTX_NONE, ct_width_of_value(g->fn, x), x, g->copied[x.i]);
        }
}

/* Whoever stands elsewhere reads what is merged. */
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

/* ---- sums that go round ---- */

/* Whether x comes into a loop only as what the run has made of it; where it begins does not matter. */
static bool goes_round(const struct ct_guard *g, const struct run *run, const struct ct_block *block, ct_value x)
{
    const struct ct_insn *phi = g->fn->values.v[x.i].def;

    if (phi->op != CT_OP_PHI || !g->header || phi->block != g->header)
        return false;
    for (uint32_t p = 0; p < phi->n_operands; p++) {
        const struct ct_block *from = g->header->preds.v[p];
        const struct ct_insn *def = g->fn->values.v[phi->operands[p].i].def;
        const bool is_behind = from == run->first->block || (from->id < g->n_blocks && ct_block_dominates(block, from));

        if (from->id < g->n_blocks && !ct_block_dominates(g->header, from))
            continue;
        if (!is_behind || !ct_is_guarded(def) || !is_in(run, def))
            return false;
    }
    return true;
}

/* Takes those sums out of what is asked each time. */
static ct_value_list take_sums(struct ct_guard *g, const struct run *run, const struct ct_block *block, struct ct_looks *looks)
{
    ct_value_list sums = {0}, others = {0};

    for (uint32_t i = 0; i < looks->terms[0].n; i++) {
        const ct_value x = looks->terms[0].v[i];

        *CT_PUSH(g->scratch, goes_round(g, run, block, x) ? &sums : &others) = x;
    }
    looks->terms[0] = others;
    return sums;
}

/* Whether one of them begins as no term, at the end of the block before the loop. */
static ct_value begins_wrong(struct ct_guard *g, const ct_value_list *sums, uint32_t p)
{
    struct ct_block *from = g->header->preds.v[p];
    struct ct_cursor at = {.fn = g->fn, .block = from, .before = from->last, .where = from->last->where};
    struct ct_looks looks = {.hopeless = false};
    ct_value wrong;

    for (uint32_t i = 0; i < sums->n; i++) {
        const ct_value x = g->fn->values.v[sums->v[i].i].def->operands[p];
        const struct ct_insn *def = g->fn->values.v[x.i].def;

        if (def->op != CT_OP_CONST || def->imm << 33)
            *CT_PUSH(g->scratch, &looks.terms[0]) = x;
    }
    wrong = ct_guard_doubt(g, &looks, &at);
    return wrong.i ? wrong : ct_emit_const(&at, CT_W_PRED, 0);
}

/* A phi at the loop's head of whether they may be no terms. What the run says goes to its other operands, later. */
static struct ct_insn *make_flag(struct ct_guard *g, const ct_value_list *sums)
{
    struct ct_block *header = g->header;
    struct ct_cursor at = {.fn = g->fn, .block = header, .before = header->first, .where = header->first->where};
    struct ct_insn *phi = ct_emit_insn(&at, CT_OP_PHI, PTX_NONE, 1, header->preds.n);

    phi->results[0] = ct_value_create(g->fn, CT_W_PRED);
    g->fn->values.v[phi->results[0].i].def = phi;
    for (uint32_t p = 0; p < header->preds.n; p++)
        if (header->preds.v[p]->id < g->n_blocks && !ct_block_dominates(header, header->preds.v[p]))
            phi->operands[p] = begins_wrong(g, sums, p);
    return phi;
}

static void complete_flag(struct ct_insn *phi, ct_value of_run)
{
    for (uint32_t p = 0; p < phi->n_operands; p++)
        if (!phi->operands[p].i)
            phi->operands[p] = of_run;
}

/* ---- whether to ---- */

/* Whether the run has to be guarded, at the end of the block before it; `at` goes on in a block of its own behind that. Sums are looked at
 * in doubt only. */
static ct_value ask(struct ct_guard *g, struct ct_looks *looks, const ct_value_list *sums, struct ct_cursor *at)
{
    struct ct_block *doubting = ct_block_create(g->fn), *deciding = ct_block_create(g->fn);
    struct ct_cursor in_doubt = {.fn = g->fn, .block = doubting, .where = at->where};
    const bool watched = looks->watched.n;
    const ct_value no = ct_emit_const(at, CT_W_PRED, 0), suspicion = ct_guard_suspect(g, looks, at);
    ct_value grounds;

    ct_ssa_branch(at, suspicion, doubting, deciding);
    looks->watched.n = 0; /* not loaded yet */
    for (uint32_t i = 0; i < sums->n; i++)
        *CT_PUSH(g->scratch, &looks->terms[0]) = sums->v[i];
    g->flag = CT_NO_VALUE;
    grounds = ct_guard_doubt(g, looks, &in_doubt);
    if (watched)
        grounds = ct_guard_either(&in_doubt, grounds, ct_guard_shared_flag(&in_doubt));
    ct_ssa_jump(g->fn, doubting, deciding);
    at->block = deciding;
    return ct_emit2(at, CT_OP_PHI, PTX_NONE, CT_W_PRED, no, grounds);
}

/* What is left of the block behind the run. */
static struct ct_block *make_plain(struct ct_guard *g, const struct run *run, const struct ct_block *block, struct ct_looks *looks)
{
    struct ct_fn *fn = g->fn;
    const ct_value_list sums = take_sums(g, run, block, looks);
    struct ct_insn *flag = sums.n ? make_flag(g, &sums) : NULL;
    ct_value guards;
    struct ct_cursor at = {.fn = fn, .block = run->first->block, .where = run->first->where};
    struct ct_block *tail = ct_block_split(fn, at.block, run->last->next), *guarded = ct_block_split(fn, at.block, run->first);
    struct ct_block *plain = ct_block_create(fn);

    *CT_PUSH(g->scratch, &g->plain) = plain;
    copy_run(g, guarded, plain);
    g->flag = flag ? flag->results[0] : CT_NO_VALUE;
    guards = ask(g, looks, &sums, &at);
    ct_ssa_branch(&at, guards, guarded, plain);
    if (flag)
        complete_flag(flag, guards);
    ct_ssa_jump(fn, guarded, tail);
    ct_ssa_jump(fn, plain, tail);
    merge_run(g, guarded, tail);
    return tail;
}

static void find_runs(struct ct_guard *g, struct ct_block *block)
{
    struct run run = find_run(g->fn, block->first);

    g->flag = CT_NO_VALUE;
    g->header = ct_guard_header_or_null(block);
    for (g->block = block->id + 1; run.n_ffmas; g->block += g->n_blocks) { /* a number that no other run has */
        struct ct_looks looks = look_at_run(g, &run);
        struct ct_insn *next = run.last->next;

        if (looks.watched.n && !looks.hopeless && is_there(g, &run, &looks.factors[0]) && is_there(g, &run, &looks.terms[0]))
            next = (g->tail[block->id] = make_plain(g, &run, block, &looks))->first;
        run = find_run(g->fn, next);
    }
}

void ct_guard_make_plain_copies(struct ct_guard *g)
{
    const uint32_t n_blocks = g->fn->blocks.n;

    for (uint32_t b = 0; b < n_blocks; b++)
        if (!ct_guard_is_plain(g, g->fn->blocks.v[b]))
            find_runs(g, g->fn->blocks.v[b]);
    use_merged(g);
}
