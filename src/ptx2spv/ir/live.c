/* SPDX-License-Identifier: Apache-2.0 */
/* Live-in registers of a block, for IR in register form: the usual backward data-flow analysis over bit sets. Only registers with an
 * upward-exposed use (read in some block before that block writes them) have a bit. */
#include "ptx2spv/sync/sync.h"

struct sets { /* one row of bits for each block */
    uint64_t *uses, *defs, *live_in;
    uint32_t row; /* words of 64 bits */
};

struct search {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    uint32_t *number;        /* by value: 1 + its bit; 0 has no bit */
    CT_VEC(ct_value) values; /* by bit */
    struct sets sets;
};

static void find_upward_exposed(struct search *s)
{
    uint32_t *defined_in = CT_ARENA_ARRAY(s->scratch, uint32_t, s->fn->values.n); /* 1 + the last block that defined it */

    for (uint32_t b = 0; b < s->fn->blocks.n; b++)
        for (const struct ct_insn *insn = s->fn->blocks.v[b]->first; insn; insn = insn->next) {
            for (uint32_t i = 0; i < insn->n_operands; i++) {
                const ct_value value = insn->operands[i];

                if (!value.i || defined_in[value.i] == b + 1 || s->number[value.i])
                    continue;
                *CT_PUSH(s->scratch, &s->values) = value;
                s->number[value.i] = s->values.n;
            }
            for (uint32_t r = 0; r < insn->n_results; r++)
                defined_in[insn->results[r].i] = b + 1;
        }
}

static bool has_bit(const uint64_t *row, uint32_t bit)
{
    return row[bit / 64] >> bit % 64 & 1;
}

static void set_bit(uint64_t *row, uint32_t bit)
{
    row[bit / 64] |= UINT64_C(1) << bit % 64;
}

static void fill_sets(struct search *s, const struct ct_block *block)
{
    uint64_t *uses = s->sets.uses + (size_t)block->id * s->sets.row, *defs = s->sets.defs + (size_t)block->id * s->sets.row;

    for (const struct ct_insn *insn = block->first; insn; insn = insn->next) {
        for (uint32_t i = 0; i < insn->n_operands; i++) {
            const uint32_t number = s->number[insn->operands[i].i];

            if (number && !has_bit(defs, number - 1))
                set_bit(uses, number - 1);
        }
        for (uint32_t r = 0; r < insn->n_results; r++)
            if (s->number[insn->results[r].i])
                set_bit(defs, s->number[insn->results[r].i] - 1);
    }
}

/* live_in = uses, and what is live into a successor and not defined here. Whether the set changed. */
static bool update(struct search *s, const struct ct_block *block)
{
    const size_t at = (size_t)block->id * s->sets.row;
    bool changed = false;

    for (uint32_t w = 0; w < s->sets.row; w++) {
        uint64_t bits = 0;

        for (uint32_t i = 0; i < block->n_succs; i++)
            bits |= s->sets.live_in[(size_t)block->succs[i]->id * s->sets.row + w];
        bits = s->sets.uses[at + w] | (bits & ~s->sets.defs[at + w]);
        changed |= bits != s->sets.live_in[at + w];
        s->sets.live_in[at + w] = bits;
    }
    return changed;
}

ct_value *ct_find_live(struct ct_fn *fn, const struct ct_block *block, uint32_t *out_count)
{
    struct search s = {.fn = fn, .scratch = &fn->compilation->scratch};
    const size_t n = fn->blocks.n;
    ct_value *live;

    s.number = CT_ARENA_ARRAY(s.scratch, uint32_t, fn->values.n);
    find_upward_exposed(&s);
    s.sets.row = (s.values.n + 63) / 64;
    s.sets.uses = CT_ARENA_ARRAY(s.scratch, uint64_t, n *s.sets.row);
    s.sets.defs = CT_ARENA_ARRAY(s.scratch, uint64_t, n *s.sets.row);
    s.sets.live_in = CT_ARENA_ARRAY(s.scratch, uint64_t, n *s.sets.row);
    for (uint32_t b = 0; b < n; b++)
        fill_sets(&s, fn->blocks.v[b]);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = fn->blocks.n; b-- > 0;)
            changed |= update(&s, fn->blocks.v[b]);
    }
    live = CT_ARENA_ARRAY(s.scratch, ct_value, s.values.n + 1);
    *out_count = 0;
    for (uint32_t i = 0; i < s.values.n; i++)
        if (has_bit(s.sets.live_in + (size_t)block->id * s.sets.row, i))
            live[(*out_count)++] = s.values.v[i];
    return live;
}
