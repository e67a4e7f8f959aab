/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of shuffles: where threads exchange through work-group memory, shuffles that follow one another share the two barriers that each of them
 * needs, and have a word per thread each.
 *
 * Compilers put other instructions between shuffles. They are moved, so that runs become longer: those that depend on the result of a shuffle behind
 * the run, all others before it.
 *
 *     y = shfl x                      v = x
 *     s = s + y         -->           z = s' * 2;  w = z
 *     z = s' * 2                      t = shfl v;  u = shfl w
 *     y = shfl z                      y = t;  s = s + y;  y = u
 *
 * In register form: operands are copied where the shuffle stood, results too. Nothing is moved across memory accesses, barriers and branches. The
 * shuffles of a run have one mask, so that lockstep.c may take them for one point. */
#include "sync.h"

enum { FIXED_BYTES = 4096 /* the fixed part of the exchange area, generously */ };

/* What the kernel's own memory leaves room for, whatever the number of threads. */
uint32_t ct_shuffle_run_max(const struct ct_fn *fn)
{
    const struct ptx_function *source = fn->source;
    const uint32_t *limit = source->req_ntid[0] ? source->req_ntid : source->max_ntid;
    const uint64_t limited = (uint64_t)limit[0] * (limit[1] ? limit[1] : 1) * (limit[2] ? limit[2] : 1);
    const uint64_t threads = limited && limited < fn->target->max_block_threads ? limited : fn->target->max_block_threads;
    const uint64_t taken = (uint64_t)fn->shared_bytes + FIXED_BYTES, words = threads * CT_COLUMN_RUN;
    uint32_t n = 1;

    if (fn->uses_dynamic_shared || fn->matrix_words)
        return 1;
    while (n < CT_RUN_MAX && taken + 4 * (words + threads * n) <= fn->target->shared_bytes)
        n++;
    return n;
}

void ct_shuffle_run_at(struct ct_insn *first, uint32_t max, struct ct_shuffle_run *out)
{
    *out = (struct ct_shuffle_run){{first}, 1};
    if (first->op != CT_OP_SHFL)
        return;
    for (struct ct_insn *insn = first->next; out->n < max && insn && insn->op == CT_OP_SHFL; insn = insn->next) {
        if (ct_mask_of(insn).i != ct_mask_of(first).i)
            return;
        out->insns[out->n++] = insn;
    }
}

/* ---- gathering ---- */

struct gatherer {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    bool *full;                     /* by value: a mask of all lanes */
    uint32_t *written, *read;       /* by value: the last run behind whose beginning a moved instruction does so */
    uint32_t number;                /* of the current run */
    CT_VEC(struct ct_insn *) moved; /* the shuffles, and what goes behind them, in their order */
};

static void move(struct gatherer *g, struct ct_insn *insn)
{
    *CT_PUSH(g->scratch, &g->moved) = insn;
    for (uint32_t i = 0; i < insn->n_results; i++)
        g->written[insn->results[i].i] = g->number;
    for (uint32_t i = 0; i < insn->n_operands && insn->op != CT_OP_SHFL; i++)
        g->read[insn->operands[i].i] = g->number;
}

/* Whether it reads what a moved instruction writes. */
static bool reads_moved(const struct gatherer *g, const struct ct_insn *insn)
{
    bool reads = false;

    for (uint32_t i = 0; i < insn->n_operands; i++)
        reads |= insn->operands[i].i && g->written[insn->operands[i].i] == g->number;
    return reads;
}

static bool must_follow(const struct gatherer *g, const struct ct_insn *insn)
{
    bool follows = reads_moved(g, insn);

    for (uint32_t i = 0; i < insn->n_results; i++)
        follows |= g->written[insn->results[i].i] == g->number || g->read[insn->results[i].i] == g->number;
    return follows;
}

static bool is_written_between(const struct ct_insn *insn, const struct ct_insn *end, ct_value value)
{
    for (; insn != end; insn = insn->next)
        for (uint32_t i = 0; i < insn->n_results; i++)
            if (insn->results[i].i == value.i)
                return true;
    return false;
}

/* A copy of the shuffle before `end`, with registers of its own; the results are assigned when it is the shuffle's turn. */
static struct ct_insn *copy_shuffle(struct gatherer *g, struct ct_insn *insn, ct_value mask, struct ct_insn *end)
{
    struct ct_insn *copy = ct_insn_create(g->fn, CT_OP_SHFL, insn->type, insn->n_results, insn->n_operands);
    struct ct_cursor at = {.fn = g->fn, .block = insn->block, .before = insn, .where = insn->where};

    copy->mode = insn->mode;
    copy->where = insn->where;
    for (uint32_t i = 0; i < 3; i++) /* all but the mask */
        copy->operands[i] = ct_copy(&at, insn->operands[i]);
    copy->operands[3] = mask;
    for (uint32_t i = 0; i < insn->n_results; i++)
        copy->results[i] = insn->results[i].i ? ct_value_create(g->fn, ct_width_of_value(g->fn, insn->results[i])) : CT_NO_VALUE;
    ct_insn_insert_before(end, copy);
    return copy;
}

static void assign_results(struct gatherer *g, const struct ct_insn *insn, const struct ct_insn *copy, struct ct_insn *end)
{
    struct ct_cursor at = {.fn = g->fn, .block = end->block, .before = end, .where = insn->where};

    for (uint32_t i = 0; i < insn->n_results; i++)
        if (insn->results[i].i)
            ct_assign(&at, insn->results[i], copy->results[i]);
}

static void rearrange(struct gatherer *g, const struct ct_shuffle_run *run, uint32_t n_moved)
{
    struct ct_insn *end = run->insns[run->n - 1]->next, *copies[CT_RUN_MAX];

    for (uint32_t i = 0; i < run->n; i++)
        copies[i] = copy_shuffle(g, run->insns[i], ct_mask_of(run->insns[0]), end);
    for (uint32_t i = 0, shuffle = 0; i < n_moved; i++) {
        struct ct_insn *insn = g->moved.v[i];

        if (shuffle < run->n && insn == run->insns[shuffle]) {
            assign_results(g, insn, copies[shuffle++], end);
            ct_insn_remove(insn);
        } else {
            ct_insn_remove(insn);
            ct_insn_insert_before(end, insn);
        }
    }
}

/* Whether the shuffle may be in the run: with its mask, and operands that are known before it. */
static bool joins(const struct gatherer *g, const struct ct_shuffle_run *run, const struct ct_insn *insn)
{
    ct_value first;

    if (!run->n)
        return true;
    first = ct_mask_of(run->insns[0]);
    return !reads_moved(g, insn) && (ct_mask_of(insn).i == first.i || (g->full[ct_mask_of(insn).i] && g->full[first.i])) &&
           !is_written_between(run->insns[0], insn, first);
}

/* Returns the instruction behind the run. */
static struct ct_insn *gather_from(struct gatherer *g, struct ct_insn *first, uint32_t max)
{
    struct ct_shuffle_run run = {.n = 0};
    uint32_t n_moved = 0;
    struct ct_insn *end;

    g->number++;
    g->moved.n = 0;
    for (struct ct_insn *insn = first; insn && run.n < max; insn = insn->next) {
        if (insn->op == CT_OP_SHFL && joins(g, &run, insn)) {
            run.insns[run.n++] = insn;
            move(g, insn);
            n_moved = g->moved.n;
        } else if (!ct_insn_is_pure(insn)) {
            break;
        } else if (must_follow(g, insn)) {
            move(g, insn);
        }
    }
    end = run.insns[run.n - 1]->next;
    if (run.n > 1)
        rearrange(g, &run, n_moved);
    return end;
}

void ct_gather_shuffles(struct ct_fn *fn, uint32_t max)
{
    struct gatherer g = {.fn = fn, .scratch = &fn->compilation->scratch};

    if (max < 2)
        return;
    g.full = CT_ARENA_ARRAY(g.scratch, bool, fn->values.n);
    ct_find_full_masks(fn, g.full);
    g.written = CT_ARENA_ARRAY(g.scratch, uint32_t, fn->values.n);
    g.read = CT_ARENA_ARRAY(g.scratch, uint32_t, fn->values.n);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn;)
            insn = insn->op == CT_OP_SHFL ? gather_from(&g, insn, max) : insn->next;
}
