/* SPDX-License-Identifier: Apache-2.0 */
/* async_copies: cp.async loads at once, and stores to shared memory when the copy is waited for.
 * In:  register form, no CALL.   Out: the same, without ASYNCWAIT and without stores that are marked is_async.
 *
 * `build` makes of each cp.async a load from global memory and a store to shared memory. A store in its place would wait for the load, and loads
 * behind it would wait for the store. As the copy has no effect on the program until it is waited for, the store moves
 *
 *   - to the next wait in its basic block; else, if the block runs again only after a wait (a loop that fetches the next tile while it works on
 *     this one), to the waits of the function: the words stay in registers, and a flag says that there are some;
 *   - else to the end of its basic block.
 *
 * Registers pay off on GPUs only. Elsewhere, and in kernels whose registers might have to be saved at barriers, stores stay where they are. */
#include "ptx2spv/ir/builder.h"

#include <string.h>

enum { WORDS_MAX = 40 /* kept in registers */, STORES_MAX = 64 /* added at waits */ };

/* Stores of one block that move to the waits of the function. */
struct group {
    CT_VEC(struct ct_insn *) stores; /* in no block; their operands are registers of their own */
    ct_value is_pending;
    struct group *next;
};

struct pass {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    CT_VEC(struct ct_insn *) waits;
    bool *has_wait; /* by block id */
    uint32_t *seen; /* by block id: the last search that reached it */
    uint32_t search;
    struct group *groups;
    unsigned n_words;
};

static unsigned words_of(const struct ct_insn *store)
{
    return (store->n_operands - 1) * ptx_type_bits(store->type) / 32;
}

/* ---- where stores may go ---- */

/* Whether `to` is reached from `from`'s successors without a wait; or at all. */
static bool reaches(struct pass *p, const struct ct_block *from, const struct ct_block *to, bool passes_waits)
{
    CT_VEC(const struct ct_block *) stack = {0};

    p->search++;
    *CT_PUSH(p->scratch, &stack) = from;
    while (stack.n) {
        const struct ct_block *block = stack.v[--stack.n];

        for (uint32_t s = 0; s < block->n_succs; s++) {
            const struct ct_block *next = block->succs[s];

            if (next == to && (passes_waits || !p->has_wait[next->id]))
                return true;
            if (p->seen[next->id] == p->search || (p->has_wait[next->id] && !passes_waits))
                continue;
            p->seen[next->id] = p->search;
            *CT_PUSH(p->scratch, &stack) = next;
        }
    }
    return false;
}

static bool is_loop_with_wait(struct pass *p, const struct ct_block *block)
{
    for (uint32_t i = 0; i < p->waits.n; i++)
        if (p->waits.v[i]->block == block ? reaches(p, block, block, true)
                                          : reaches(p, block, p->waits.v[i]->block, true) && reaches(p, p->waits.v[i]->block, block, true))
            return true;
    return false;
}

static bool may_wait_in_registers(struct pass *p, const struct ct_block *block, struct ct_insn *const *stores, uint32_t n)
{
    unsigned words = p->n_words;

    for (uint32_t i = 0; i < n; i++)
        words += words_of(stores[i]);
    return words <= WORDS_MAX && n * p->waits.n <= STORES_MAX && is_loop_with_wait(p, block) && !reaches(p, block, block, false);
}

/* ---- moving stores ---- */

/* The registers that a store reads may change before it is executed. */
static void keep_operands(struct ct_fn *fn, struct ct_insn *store)
{
    struct ct_cursor at = {.fn = fn, .block = store->block, .before = store, .where = store->where};

    for (uint32_t i = 0; i < store->n_operands; i++)
        store->operands[i] = ct_copy(&at, store->operands[i]);
}

static void put_before(struct ct_insn *place, struct ct_insn *const *stores, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        ct_insn_insert_before(place, stores[i]);
}

static void add_group(struct pass *p, const struct ct_block *block, struct ct_insn *const *stores, uint32_t n)
{
    struct ct_cursor at = {.fn = p->fn, .block = (struct ct_block *)block, .before = block->last, .where = block->last->where};
    struct group *group = CT_ARENA_NEW(p->scratch, struct group);

    group->is_pending = ct_value_create(p->fn, CT_W_PRED);
    ct_assign(&at, group->is_pending, ct_emit_const(&at, CT_W_PRED, true));
    for (uint32_t i = 0; i < n; i++) {
        *CT_PUSH(p->scratch, &group->stores) = stores[i];
        p->n_words += words_of(stores[i]);
    }
    group->next = p->groups;
    p->groups = group;
}

static void move_stores(struct pass *p, struct ct_block *block)
{
    CT_VEC(struct ct_insn *) stores = {0};
    struct ct_insn *next;

    for (struct ct_insn *insn = block->first; insn; insn = next) {
        next = insn->next;
        if (insn->op == CT_OP_ASYNCWAIT) {
            put_before(insn, stores.v, stores.n);
            stores.n = 0;
        } else if (insn->op == CT_OP_STORE && insn->is_async) {
            keep_operands(p->fn, insn);
            ct_insn_remove(insn);
            *CT_PUSH(p->scratch, &stores) = insn;
        }
    }
    if (!stores.n)
        return;
    if (may_wait_in_registers(p, block, stores.v, stores.n))
        add_group(p, block, stores.v, stores.n);
    else
        put_before(block->last, stores.v, stores.n);
}

/* ---- waits ---- */

static void store_pending(struct pass *p, struct ct_cursor *at, const struct group *group)
{
    struct ct_block *pending = ct_block_create(p->fn), *after = ct_block_create(p->fn);

    ct_cursor_branch(at, group->is_pending, pending, after);
    ct_cursor_enter(at, pending);
    for (uint32_t i = 0; i < group->stores.n; i++)
        ct_emit_copy_of(at, group->stores.v[i]);
    ct_assign(at, group->is_pending, ct_emit_const(at, CT_W_PRED, false));
    ct_cursor_jump(at, after);
    ct_cursor_enter(at, after);
}

static void expand_wait(struct pass *p, struct ct_insn *wait)
{
    struct ct_block *block = wait->block, *rest = ct_block_split(p->fn, block, wait);
    struct ct_cursor at = {.fn = p->fn, .block = block, .where = wait->where};

    for (const struct group *group = p->groups; group; group = group->next)
        store_pending(p, &at, group);
    ct_cursor_jump(&at, rest);
}

/* Nothing is pending at first. */
static void clear_flags(struct pass *p)
{
    struct ct_cursor at;

    ct_fn_compute_preds(p->fn);
    ct_fn_detach_entry(p->fn);
    at = (struct ct_cursor){.fn = p->fn, .block = p->fn->blocks.v[0], .before = p->fn->blocks.v[0]->first, .where = p->fn->source->where};
    for (const struct group *group = p->groups; group; group = group->next)
        ct_assign(&at, group->is_pending, ct_emit_const(&at, CT_W_PRED, false));
}

/* ---- the pass ---- */

static bool find_waits(struct pass *p)
{
    bool has_stores = false;

    p->has_wait = CT_ARENA_ARRAY(p->scratch, bool, p->fn->blocks.n);
    p->seen = CT_ARENA_ARRAY(p->scratch, uint32_t, p->fn->blocks.n);
    for (uint32_t b = 0; b < p->fn->blocks.n; b++)
        for (struct ct_insn *insn = p->fn->blocks.v[b]->first; insn; insn = insn->next) {
            has_stores |= insn->op == CT_OP_STORE && insn->is_async;
            if (insn->op != CT_OP_ASYNCWAIT)
                continue;
            *CT_PUSH(p->scratch, &p->waits) = insn;
            p->has_wait[b] = true;
        }
    return has_stores || p->waits.n;
}

enum ct_pass_result ct_pass_async_copies(struct ct_fn *fn)
{
    const bool pays_off = fn->target->warp_form == PTX2SPV_WARP_NATIVE && fn->target->sync_form == PTX2SPV_SYNC_CHEAPEST &&
                          !fn->target->threads_in_turn && fn->target->subgroup_size <= 32 && !fn->cooperative;
    struct pass p = {.fn = fn, .scratch = &fn->compilation->scratch};
    const uint32_t n_blocks = fn->blocks.n;

    if (!find_waits(&p))
        return CT_PASS_UNCHANGED;
    for (uint32_t b = 0; b < n_blocks && pays_off; b++)
        move_stores(&p, fn->blocks.v[b]);
    for (uint32_t i = 0; i < p.waits.n && p.groups; i++)
        expand_wait(&p, p.waits.v[i]);
    if (p.groups)
        clear_flags(&p);
    for (uint32_t i = 0; i < p.waits.n; i++)
        ct_insn_remove(p.waits.v[i]);
    return CT_PASS_CHANGED;
}
