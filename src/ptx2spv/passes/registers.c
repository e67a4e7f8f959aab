/* SPDX-License-Identifier: Apache-2.0 */
/* registers: estimates the register pressure, that is how many 32-bit registers a thread needs, without knowing the driver's compiler.
 * In:  SSA, before anything is rewritten for the target.   Out: fn->registers; the code is unchanged.
 *
 * The estimate is the largest number of 32-bit words that are live at once. Values that a compiler rematerializes where they are used,
 * constants and kernel parameters, do not count; neither do predicates, which have registers of their own. Each value's live range is
 * followed from its uses back to its definition (Boissinot et al., "Computing Liveness Sets for SSA-Form Programs", by use). No sets are
 * kept: for each block only the number of words that are live-in, and for each instruction by how many words it changes that number. */
#include "ptx2spv/ir/ir.h"

#define REGISTERS_MAX 255u /* that a thread can have; a kernel that needs more gets the estimate UINT32_MAX at once */

struct use {
    struct ct_block *block;
    uint32_t position; /* UINT32_MAX: a use by a phi, at the end of the predecessor */
};

struct liveness {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    uint32_t *first_position; /* indexed by block: position of its first instruction */
    uint32_t *first_use;      /* indexed by value: its uses are uses[first_use[v]] to uses[first_use[v + 1] - 1] */
    struct use *uses;
    int64_t *live_in_words;   /* indexed by block: number of live-in words */
    int64_t *changes;         /* indexed by position: number of words that are live after the instruction minus those before it */
    uint32_t *in, *out;       /* indexed by block: the value that was last found to be live-in, live-out */
    uint32_t *last, *last_of; /* indexed by block: position of the last use of the value last_of */
    struct ct_block **stack;
    uint64_t n_live_in; /* of all blocks and values together */
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

/* Assigns positions, and counts the uses of each value in the element after its own. */
static uint32_t number_instructions(struct liveness *l)
{
    uint32_t position = 0;

    for (uint32_t b = 0; b < l->fn->blocks.n; b++) {
        l->first_position[b] = position;
        for (const struct ct_insn *insn = l->fn->blocks.v[b]->first; insn; insn = insn->next, position++)
            for (uint32_t i = 0; i < insn->n_operands; i++)
                l->first_use[insn->operands[i].i + 1]++;
    }
    l->first_position[l->fn->blocks.n] = position;
    return position;
}

static void list_uses(struct liveness *l)
{
    uint32_t *next = CT_ARENA_ARRAY(l->scratch, uint32_t, l->fn->values.n + 1);

    for (uint32_t v = 0; v < l->fn->values.n; v++)
        l->first_use[v + 1] += l->first_use[v];
    l->uses = CT_ARENA_ARRAY(l->scratch, struct use, l->first_use[l->fn->values.n] + 1);
    for (uint32_t v = 0; v < l->fn->values.n; v++)
        next[v] = l->first_use[v];
    for (uint32_t b = 0; b < l->fn->blocks.n; b++) {
        struct ct_block *block = l->fn->blocks.v[b];
        uint32_t position = l->first_position[b];

        for (const struct ct_insn *insn = block->first; insn; insn = insn->next, position++)
            for (uint32_t i = 0; i < insn->n_operands; i++)
                l->uses[next[insn->operands[i].i]++] =
                    insn->op == CT_OP_PHI ? (struct use){block->preds.v[i], UINT32_MAX} : (struct use){block, position};
    }
}

/* ---- one value ---- */

/* Marks the value live-out of the block, hence live-in of it and live-out of its predecessors, up to the definition. */
static void live_out(struct liveness *l, struct ct_block *block, uint32_t value, unsigned words)
{
    const struct ct_block *home = l->fn->values.v[value].def->block;
    uint32_t n = 0;

    if (l->out[block->id] != value) {
        l->out[block->id] = value;
        l->stack[n++] = block;
    }
    while (n > 0) {
        block = l->stack[--n];
        if (block == home || l->in[block->id] == value)
            continue;
        l->in[block->id] = value;
        l->n_live_in++;
        l->live_in_words[block->id] += words;
        for (uint32_t i = 0; i < block->preds.n; i++) {
            struct ct_block *before = block->preds.v[i];

            if (l->out[before->id] == value)
                continue;
            l->out[before->id] = value;
            l->stack[n++] = before;
        }
    }
}

static void live_in(struct liveness *l, struct ct_block *block, uint32_t value, unsigned words)
{
    if (block == l->fn->values.v[value].def->block || l->in[block->id] == value)
        return;
    l->in[block->id] = value;
    l->n_live_in++;
    l->live_in_words[block->id] += words;
    for (uint32_t i = 0; i < block->preds.n; i++)
        live_out(l, block->preds.v[i], value, words);
}

/* Records where the live range starts and, in blocks that the value is not live-out of, where it ends: at the last use, whose result may
 * take over the register. */
static void record_live_range(struct liveness *l, uint32_t value, uint32_t begin, unsigned words)
{
    const uint32_t first = l->first_use[value], end = l->first_use[value + 1];
    const struct ct_block *home = l->fn->values.v[value].def->block;
    bool is_read = false; /* in the block of its definition */

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
            l->last_of[use->block->id] = 0; /* counted once, even if an instruction uses the value twice */
        }
    }
    l->changes[begin] += words;
    if (!is_read && l->out[home->id] != value)
        l->changes[begin + 1] -= words; /* it has no use */
}

/* ---- all values ---- */

static uint32_t max_live(const struct liveness *l)
{
    int64_t most = 0;

    for (uint32_t b = 0; b < l->fn->blocks.n; b++) {
        int64_t live = l->live_in_words[b];

        most = live > most ? live : most;
        for (uint32_t position = l->first_position[b]; position < l->first_position[b + 1]; position++) {
            live += l->changes[position];
            most = live > most ? live : most;
        }
    }
    return most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
}

/* If the blocks have more live-in values on average than a thread has registers, some block has, too. */
static bool needs_all(const struct liveness *l)
{
    return l->n_live_in > (uint64_t)REGISTERS_MAX * l->fn->blocks.n;
}

enum ct_pass_result ct_pass_registers(struct ct_fn *fn)
{
    struct liveness l = {.fn = fn, .scratch = &fn->compilation->scratch};
    uint32_t n_blocks, positions;

    ct_fn_compute_preds(fn);
    n_blocks = fn->blocks.n;
    l.first_position = CT_ARENA_ARRAY(l.scratch, uint32_t, n_blocks + 1);
    l.first_use = CT_ARENA_ARRAY(l.scratch, uint32_t, fn->values.n + 2);
    positions = number_instructions(&l);
    list_uses(&l);
    l.live_in_words = CT_ARENA_ARRAY(l.scratch, int64_t, n_blocks + 1);
    l.changes = CT_ARENA_ARRAY(l.scratch, int64_t, positions + 2);
    l.in = CT_ARENA_ARRAY(l.scratch, uint32_t, n_blocks);
    l.out = CT_ARENA_ARRAY(l.scratch, uint32_t, n_blocks);
    l.last = CT_ARENA_ARRAY(l.scratch, uint32_t, n_blocks);
    l.last_of = CT_ARENA_ARRAY(l.scratch, uint32_t, n_blocks);
    l.stack = CT_ARENA_ARRAY(l.scratch, struct ct_block *, n_blocks + 1);
    for (uint32_t b = 0; b < n_blocks; b++) {
        uint32_t position = l.first_position[b];

        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn && !needs_all(&l); insn = insn->next, position++)
            for (uint32_t r = 0; r < insn->n_results; r++)
                if (words_of(fn, insn->results[r]) > 0)
                    record_live_range(&l, insn->results[r].i, position, words_of(fn, insn->results[r]));
    }
    fn->registers = needs_all(&l) ? UINT32_MAX : max_live(&l);
    return CT_PASS_UNCHANGED;
}
