/* SPDX-License-Identifier: Apache-2.0 */
/* Live-in registers of a block, for IR in register form. For each register with an upward-exposed use (read in some block before that block
 * writes it), its live range is followed from these uses back to its definitions. No sets of registers are kept, so the memory is in
 * proportion to the kernel. */
#include "ptx2spv/sync/sync.h"

struct block_list {
    struct block_list *next;
    struct ct_block *block;
};

struct search {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    struct block_list **defs, **exposed; /* indexed by value: blocks that write it; blocks that read it before they write it */
    CT_VEC(ct_value) values;             /* those with an upward-exposed use */
    uint32_t *writes, *live;             /* indexed by block id: the last register that the block writes, that is live-in there */
    struct ct_block **work;
};

/* Blocks are visited one after the other, so a block that is in the list already is its first item. */
static void add_block(struct search *s, struct block_list **list, struct ct_block *block)
{
    struct block_list *item;

    if (*list && (*list)->block == block)
        return;
    item = CT_ARENA_NEW(s->scratch, struct block_list);
    *item = (struct block_list){*list, block};
    *list = item;
}

static void list_accesses(struct search *s, struct ct_block *block)
{
    for (const struct ct_insn *insn = block->first; insn; insn = insn->next) {
        for (uint32_t i = 0; i < insn->n_operands; i++) {
            const ct_value value = insn->operands[i];

            if (!value.i || (s->defs[value.i] && s->defs[value.i]->block == block))
                continue;
            if (!s->exposed[value.i])
                *CT_PUSH(s->scratch, &s->values) = value;
            add_block(s, &s->exposed[value.i], block);
        }
        for (uint32_t r = 0; r < insn->n_results; r++)
            if (insn->results[r].i)
                add_block(s, &s->defs[insn->results[r].i], block);
    }
}

static bool is_live_in(struct search *s, ct_value value, const struct ct_block *block)
{
    uint32_t n = 0;

    for (const struct block_list *item = s->defs[value.i]; item; item = item->next)
        s->writes[item->block->id] = value.i;
    for (const struct block_list *item = s->exposed[value.i]; item; item = item->next) {
        s->live[item->block->id] = value.i;
        s->work[n++] = item->block;
    }
    while (n && s->live[block->id] != value.i) {
        const struct ct_block *at = s->work[--n];

        for (uint32_t p = 0; p < at->preds.n; p++) {
            struct ct_block *pred = at->preds.v[p];

            if (s->writes[pred->id] == value.i || s->live[pred->id] == value.i)
                continue;
            s->live[pred->id] = value.i;
            s->work[n++] = pred;
        }
    }
    return s->live[block->id] == value.i;
}

ct_value *ct_find_live(struct ct_fn *fn, const struct ct_block *block, uint32_t *out_count)
{
    struct search s = {.fn = fn, .scratch = &fn->compilation->scratch};
    ct_value *live;

    ct_fn_compute_preds(fn);
    s.defs = CT_ARENA_ARRAY(s.scratch, struct block_list *, fn->values.n);
    s.exposed = CT_ARENA_ARRAY(s.scratch, struct block_list *, fn->values.n);
    s.writes = CT_ARENA_ARRAY(s.scratch, uint32_t, fn->blocks.n);
    s.live = CT_ARENA_ARRAY(s.scratch, uint32_t, fn->blocks.n);
    s.work = CT_ARENA_ARRAY(s.scratch, struct ct_block *, fn->blocks.n);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        list_accesses(&s, fn->blocks.v[b]);
    live = CT_ARENA_ARRAY(s.scratch, ct_value, s.values.n + 1);
    *out_count = 0;
    for (uint32_t i = 0; i < s.values.n; i++)
        if (is_live_in(&s, s.values.v[i], block))
            live[(*out_count)++] = s.values.v[i];
    return live;
}
