/* SPDX-License-Identifier: Apache-2.0 */
/* check_shared: gives shared memory a shadow, which says what threads have done there.
 * In:  register form, laid out.   Out: the same; with options.check, check_races and check_written, where that is needed and possible: the shadow is
 *      cleared at the kernel's start, and what races.c, barriers.c and turns.c say.
 *
 * Shared memory becomes fn->shared_copies times as large as the program asked for (a multiple of 16 bytes, S):
 *     what the program has            S
 *     the shadow of races.c       4 * S   if fn->checks_races
 *     the written bytes               S   if fn->checks_written: a byte of ones for each byte that was written; written.c reads and writes it
 *     the words of turns.c                if fn->turns_change: one for each thread
 *     the words of barriers.c             if fn->checks_barriers: two for each thread. fn->check_thread_bytes counts those of both
 * (With the last two only, the size is not rounded.)
 *
 * Left alone are clusters, whose blocks access each other's shared memory, and kernels that read the size of shared memory. This comes before
 * `collective`, which replaces barriers. */
#include "check.h"

#include "ptx2spv/sync/sync.h"

enum { RACE_COPIES = 4 };

static bool reads_size(const struct ct_insn *insn)
{
    return insn->op == CT_OP_SYSVAL && (insn->sreg == CT_SYS_SHARED_BYTES || insn->sreg == CT_SYS_DYNAMIC_SHARED_BYTES);
}

bool ct_check_shared_is_unseen(const struct ct_fn *fn)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if ((insn->op == CT_OP_STORE || insn->op == CT_OP_ATOM) && !insn->is_checked && insn->space == CT_SPACE_SHARED)
                return true;
    return false;
}

static bool reads_shared(const struct ct_fn *fn)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if ((insn->op == CT_OP_LOAD || insn->op == CT_OP_ATOM) && insn->is_checked &&
                (insn->space == CT_SPACE_SHARED || insn->space == CT_SPACE_GENERIC))
                return true;
    return false;
}

static bool size_is_free(const struct ct_fn *fn)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (reads_size(insn))
                return false;
    return true;
}

static void emit_barrier(struct ct_cursor *at)
{
    const ct_value number = ct_const32(at, 0);
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_BARRIER, PTX_PRED, 0, 1);

    insn->mode = PTX_MODE_SYNC;
    insn->aligned = true;
    insn->operands[0] = number;
    at->fn->uses_barrier = true;
}

/* The threads of the block clear the shadow together. */
static void clear(struct ct_cursor *at)
{
    struct ct_block *head = ct_block_create(at->fn), *body = ct_block_create(at->fn), *done = ct_block_create(at->fn);
    const ct_value end = ct_sysval(at, CT_SYS_SHARED_BYTES), place = ct_value_create(at->fn, CT_W_32);
    const ct_value step = ct_shl_imm(at, ct_sysval(at, CT_SYS_BLOCK_THREADS), 2);

    ct_assign(at, place, ct_add(at, ct_check_shared_size(at), ct_shl_imm(at, ct_sysval(at, CT_SYS_TID_LINEAR), 2)));
    ct_cursor_jump(at, head);
    ct_cursor_enter(at, head);
    ct_cursor_branch(at, ct_icmp(at, PTX_U32, PTX_LT, place, end), body, done);
    ct_cursor_enter(at, body);
    ct_exchange_store(at, place, ct_const32(at, 0));
    ct_assign(at, place, ct_add(at, place, step));
    ct_cursor_jump(at, head);
    ct_cursor_enter(at, done);
    emit_barrier(at);
}

enum ct_pass_result ct_pass_check_shared(struct ct_fn *fn)
{
    const struct ptx2spv_options *options = &fn->compilation->options;
    struct ct_check check = {.fn = fn};
    struct ct_cursor at = {.fn = fn, .where = fn->source->where};
    struct ct_block *rest;
    struct ct_insn *first;

    fn->checks_blocks = options->check_blocks && ct_blocks_are_unordered(fn); /* before other passes add fences, as for the next one */
    fn->checks_launches = options->check_launches && ct_launch_is_unobserved(fn);
    if (fn->clusters || !size_is_free(fn))
        return CT_PASS_UNCHANGED;
    fn->checks_races = options->check_races && ct_races_are_possible(fn);
    fn->checks_written = options->check_written && ct_fn_uses_shared(fn) && reads_shared(fn) && !ct_check_shared_is_unseen(fn);
    fn->checks_barriers = options->check && ct_barriers_may_diverge(fn);
    fn->checks_turns = fn->checks_blocks && ct_turns_are_known(fn);
    fn->turns_change = fn->checks_turns && ct_turns_change(fn);
    if (!fn->checks_races && !fn->checks_written && !fn->checks_barriers && !fn->turns_change)
        return CT_PASS_UNCHANGED;
    fn->check_thread_bytes = (uint8_t)(CT_BARRIER_THREAD_BYTES * fn->checks_barriers + CT_TURN_THREAD_BYTES * fn->turns_change);
    fn->shared_copies = (uint8_t)(1 + RACE_COPIES * fn->checks_races + fn->checks_written);
    ct_fn_compute_preds(fn);
    ct_fn_detach_entry(fn);
    first = fn->blocks.v[0]->first;
    ct_check_begin(&check, first);
    rest = ct_block_split(fn, fn->blocks.v[0], first);
    ct_cursor_enter(&at, fn->blocks.v[0]);
    if (fn->checks_races)
        ct_races_examine(&check, &at);
    if (fn->checks_barriers)
        ct_barriers_examine(&check, &at);
    if (fn->turns_change)
        ct_turns_examine(&check, &at);
    clear(&at);
    if (fn->turns_change)
        ct_turns_post_first(&at);
    ct_cursor_jump(&at, rest);
    ct_fn_compute_preds(fn);
    return CT_PASS_CHANGED;
}
