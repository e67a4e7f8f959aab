/* SPDX-License-Identifier: Apache-2.0 */
/* registers: how many 32-bit registers a thread needs, as far as one can tell without the driver's own compiler.
 * In: SSA, before anything is rewritten for the target.   Out: fn->registers; the code is as it was.
 *
 * It is the largest number of words that are alive at once. What a compiler makes anew where it is wanted counts nothing: constants and
 * parameters of the kernel; nor do predicates, which have registers of their own. Each value's life is followed from its uses back to its
 * definition (Boissinot et al., "Computing Liveness Sets for SSA-Form Programs", by use), which needs no sets: of a block only the words
 * that come alive into it are kept, and of an instruction by how many words it changes the number. */
#include "ptx2spv/ir/ir.h"

#define STEPS_MOST (1u << 26) /* blocks visited; about a second. Past it the kernel is one of those that take all there are */

struct use {
    struct ct_block *block;
    uint32_t position; /* UINT32_MAX: of a phi, at the end of the block that it comes from */
};

struct lives {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    uint32_t *begins;    /* by block: position of its first instruction */
    uint32_t *first_use; /* by value: its uses are uses[first_use[v]] to [first_use[v + 1] - 1] */
    struct use *uses;
    int64_t *into;            /* by block: words alive at its begin */
    int64_t *changes;         /* by position: words by which there are more behind the instruction than before it */
    uint32_t *in, *out;       /* by block: the value that was last found to live into it, out of it */
    uint32_t *last, *last_of; /* by block: position of the last use of value last_of */
    struct ct_block **stack;
    uint32_t steps;
};

static unsigned words_of(const struct ct_fn *fn, ct_value value)
{
    const struct ct_value_info *info = &fn->values.v[value.i];

    if (!info->def || info->width == CT_W_PRED || info->def->op == CT_OP_CONST || info->def->op == CT_OP_UNDEF)
        return 0;
    if (info->def->op == CT_OP_LOAD && info->def->space == CT_SPACE_PARAM)
        return 0;
    return info->width == CT_W_64 ? 2 : 1;
}

/* ---- uses ---- */

/* Gives positions, and counts the uses of each value at the place behind its own. */
static uint32_t number_instructions(struct lives *l)
{
    uint32_t position = 0;

    for (uint32_t b = 0; b < l->fn->blocks.n; b++) {
        l->begins[b] = position;
        for (const struct ct_insn *insn = l->fn->blocks.v[b]->first; insn; insn = insn->next, position++)
            for (uint32_t i = 0; i < insn->n_operands; i++)
                l->first_use[insn->operands[i].i + 1]++;
    }
    l->begins[l->fn->blocks.n] = position;
    return position;
}

static void list_uses(struct lives *l)
{
    uint32_t *next = CT_ARENA_ARRAY(l->scratch, uint32_t, l->fn->values.n + 1);

    for (uint32_t v = 0; v < l->fn->values.n; v++)
        l->first_use[v + 1] += l->first_use[v];
    l->uses = CT_ARENA_ARRAY(l->scratch, struct use, l->first_use[l->fn->values.n] + 1);
    for (uint32_t v = 0; v < l->fn->values.n; v++)
        next[v] = l->first_use[v];
    for (uint32_t b = 0; b < l->fn->blocks.n; b++) {
        struct ct_block *block = l->fn->blocks.v[b];
        uint32_t position = l->begins[b];

        for (const struct ct_insn *insn = block->first; insn; insn = insn->next, position++)
            for (uint32_t i = 0; i < insn->n_operands; i++)
                l->uses[next[insn->operands[i].i]++] =
                    insn->op == CT_OP_PHI ? (struct use){block->preds.v[i], UINT32_MAX} : (struct use){block, position};
    }
}

/* ---- one value ---- */

/* The value lives out of the block, and so into it and out of those before it, up to the definition. */
static void live_out(struct lives *l, struct ct_block *block, uint32_t value, unsigned words)
{
    const struct ct_block *home = l->fn->values.v[value].def->block;
    uint32_t n = 0;

    if (l->out[block->id] != value) {
        l->out[block->id] = value;
        l->stack[n++] = block;
    }
    while (n > 0) {
        block = l->stack[--n];
        l->steps++;
        if (block == home || l->in[block->id] == value)
            continue;
        l->in[block->id] = value;
        l->into[block->id] += words;
        for (uint32_t i = 0; i < block->preds.n; i++) {
            struct ct_block *before = block->preds.v[i];

            if (l->out[before->id] == value)
                continue;
            l->out[before->id] = value;
            l->stack[n++] = before;
        }
    }
}

static void live_in(struct lives *l, struct ct_block *block, uint32_t value, unsigned words)
{
    if (block == l->fn->values.v[value].def->block || l->in[block->id] == value)
        return;
    l->in[block->id] = value;
    l->into[block->id] += words;
    for (uint32_t i = 0; i < block->preds.n; i++)
        live_out(l, block->preds.v[i], value, words);
}

/* Where it begins and, in blocks that it does not leave, ends: with its last use, whose result may have its register. */
static void follow(struct lives *l, uint32_t value, uint32_t begin, unsigned words)
{
    const uint32_t first = l->first_use[value], end = l->first_use[value + 1];
    const struct ct_block *home = l->fn->values.v[value].def->block;
    bool is_read = false; /* in its own block */

    for (uint32_t u = first; u < end; u++) {
        const struct use *use = &l->uses[u];

        if (use->position == UINT32_MAX)
            live_out(l, use->block, value, words);
        else
            live_in(l, use->block, value, words);
    }
    for (uint32_t u = first; u < end; u++) {
        const struct use *use = &l->uses[u];

        if (use->position == UINT32_MAX)
            continue;
        if (l->last_of[use->block->id] != value || l->last[use->block->id] < use->position)
            l->last[use->block->id] = use->position;
        l->last_of[use->block->id] = value;
        is_read |= use->block == home;
    }
    for (uint32_t u = first; u < end; u++) {
        const struct use *use = &l->uses[u];

        if (use->position != UINT32_MAX && l->last[use->block->id] == use->position && l->last_of[use->block->id] == value &&
            l->out[use->block->id] != value) {
            l->changes[use->position] -= words;
            l->last_of[use->block->id] = 0; /* once, also where an instruction reads it twice */
        }
    }
    l->changes[begin] += words;
    if (!is_read && l->out[home->id] != value)
        l->changes[begin + 1] -= words; /* nobody reads it */
}

/* ---- all of them ---- */

static uint32_t most_alive(const struct lives *l)
{
    int64_t most = 0;

    for (uint32_t b = 0; b < l->fn->blocks.n; b++) {
        int64_t alive = l->into[b];

        most = alive > most ? alive : most;
        for (uint32_t position = l->begins[b]; position < l->begins[b + 1]; position++) {
            alive += l->changes[position];
            most = alive > most ? alive : most;
        }
    }
    return most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
}

enum ct_pass_result ct_pass_registers(struct ct_fn *fn)
{
    struct lives l = {.fn = fn, .scratch = &fn->compilation->scratch};
    uint32_t n_blocks, positions;

    ct_fn_compute_preds(fn);
    n_blocks = fn->blocks.n;
    l.begins = CT_ARENA_ARRAY(l.scratch, uint32_t, n_blocks + 1);
    l.first_use = CT_ARENA_ARRAY(l.scratch, uint32_t, fn->values.n + 2);
    positions = number_instructions(&l);
    list_uses(&l);
    l.into = CT_ARENA_ARRAY(l.scratch, int64_t, n_blocks + 1);
    l.changes = CT_ARENA_ARRAY(l.scratch, int64_t, positions + 2);
    l.in = CT_ARENA_ARRAY(l.scratch, uint32_t, n_blocks);
    l.out = CT_ARENA_ARRAY(l.scratch, uint32_t, n_blocks);
    l.last = CT_ARENA_ARRAY(l.scratch, uint32_t, n_blocks);
    l.last_of = CT_ARENA_ARRAY(l.scratch, uint32_t, n_blocks);
    l.stack = CT_ARENA_ARRAY(l.scratch, struct ct_block *, n_blocks + 1);
    for (uint32_t b = 0; b < n_blocks; b++) {
        uint32_t position = l.begins[b];

        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn && l.steps < STEPS_MOST; insn = insn->next, position++)
            for (uint32_t r = 0; r < insn->n_results; r++)
                if (words_of(fn, insn->results[r]) > 0)
                    follow(&l, insn->results[r].i, position, words_of(fn, insn->results[r]));
    }
    fn->registers = l.steps < STEPS_MOST ? most_alive(&l) : UINT32_MAX;
    return CT_PASS_UNCHANGED;
}
