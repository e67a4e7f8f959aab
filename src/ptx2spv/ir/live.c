/* SPDX-License-Identifier: Apache-2.0 */
/* Live-in registers of blocks, for IR in register form. For each register with an upward-exposed use (read in some block before that block
 * writes it), its live range is followed once, from these uses back to its definitions. No sets of registers are kept but those that are asked
 * for, so the memory is in proportion to the kernel. */
#include "live.h"

struct block_list {
    struct block_list *next;
    struct ct_block *block;
};

struct live_values {
    CT_VEC(ct_value) list;
};

struct ct_liveness {
    struct ct_arena *scratch;
    struct block_list **defs, **exposed; /* indexed by value: blocks that write it; blocks that read it before they write it */
    CT_VEC(ct_value) values;             /* those with an upward-exposed use */
    /* Indexed by block id. Live ranges are followed one after the other; these are numbers of the last registers (ct_value.i) that were found */
    uint32_t *writes;           /* to be written by the block */
    uint32_t *live;             /* to be live-in of the block */
    struct live_values **asked; /* the registers that are live-in, of the blocks that ct_liveness_create is called for; NULL for others */
    struct ct_block **work;
};

/* Blocks are visited one after the other, so a block that is in the list already is its first item. */
static void add_block(struct ct_liveness *s, struct block_list **list, struct ct_block *block)
{
    struct block_list *item;

    if (*list && (*list)->block == block)
        return;
    item = CT_ARENA_NEW(s->scratch, struct block_list);
    *item = (struct block_list){*list, block};
    *list = item;
}

static void list_accesses(struct ct_liveness *s, struct ct_block *block)
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

/* The register is live-in of the block, which is to be visited. */
static void reach(struct ct_liveness *s, ct_value value, struct ct_block *block, uint32_t *n_work)
{
    if (s->live[block->id] == value.i)
        return;
    s->live[block->id] = value.i;
    s->work[(*n_work)++] = block;
    if (s->asked[block->id])
        *CT_PUSH(s->scratch, &s->asked[block->id]->list) = value;
}

static void find_range(struct ct_liveness *s, ct_value value)
{
    uint32_t n = 0;

    for (const struct block_list *item = s->defs[value.i]; item; item = item->next)
        s->writes[item->block->id] = value.i;
    for (const struct block_list *item = s->exposed[value.i]; item; item = item->next)
        reach(s, value, item->block, &n);
    while (n) {
        const struct ct_block *at = s->work[--n];

        for (uint32_t p = 0; p < at->preds.n; p++)
            if (s->writes[at->preds.v[p]->id] != value.i)
                reach(s, value, at->preds.v[p], &n);
    }
}

struct ct_liveness *ct_liveness_create(struct ct_fn *fn, const struct ct_block *const *blocks, uint32_t n)
{
    struct ct_arena *scratch = &fn->compilation->scratch;
    struct ct_liveness *s = CT_ARENA_NEW(scratch, struct ct_liveness);

    s->scratch = scratch;
    ct_fn_compute_preds(fn);
    s->defs = CT_ARENA_ARRAY(scratch, struct block_list *, fn->values.n);
    s->exposed = CT_ARENA_ARRAY(scratch, struct block_list *, fn->values.n);
    s->writes = CT_ARENA_ARRAY(scratch, uint32_t, fn->blocks.n);
    s->live = CT_ARENA_ARRAY(scratch, uint32_t, fn->blocks.n);
    s->work = CT_ARENA_ARRAY(scratch, struct ct_block *, fn->blocks.n);
    s->asked = CT_ARENA_ARRAY(scratch, struct live_values *, fn->blocks.n);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        list_accesses(s, fn->blocks.v[b]);
    for (uint32_t i = 0; i < n; i++)
        s->asked[blocks[i]->id] = CT_ARENA_NEW(scratch, struct live_values);
    for (uint32_t i = 0; i < s->values.n; i++)
        find_range(s, s->values.v[i]);
    return s;
}

ct_value *ct_live_in(struct ct_liveness *s, const struct ct_block *block, uint32_t *out_count)
{
    *out_count = s->asked[block->id]->list.n;
    return s->asked[block->id]->list.v;
}
