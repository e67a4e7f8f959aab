/* SPDX-License-Identifier: Apache-2.0 */
/* What orders the accesses of a block's threads, for the races that blocks.c looks for: a thread's turn. It is a word with
 *     bits 0 to 9     the number of the thread
 *     bits 10 to 21   the number of barriers that it has passed
 *     bits 22 to 30   the number of warp instructions since then
 *     bit 31          only where turns of loads are remembered: threads of several warps have loaded the bytes
 * Both numbers stop at their greatest value, after which no more races are found. Accesses of two threads are ordered if the first numbers differ or, in one
 * warp, the second ones.
 *
 * Turns change before `check` runs, since `collective` replaces barriers before that, so each thread keeps its own in a word behind the rest of shared memory
 * (shared_shadow.c). A kernel without barriers and warp instructions needs none: there the turn is the thread's number. */
#include "check.h"

#include "ptx2spv/sync/sync.h"

enum { THREAD_BITS = 10, EPOCH_BITS = 12, STEP_BITS = 9, STEP_SHIFT = THREAD_BITS + EPOCH_BITS, WARP_LANES_SHIFT = 5 };
enum { MOST_THREADS = (1 << THREAD_BITS) - 1, MOST_EPOCHS = (1 << EPOCH_BITS) - 1, MOST_STEPS = (1 << STEP_BITS) - 1 };
#define SEVERAL 0x80000000u

bool ct_turns_are_known(const struct ct_fn *fn)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (ct_check_synchronizes_otherwise(insn) ||
                (insn->op == CT_OP_LOAD && insn->space == CT_SPACE_SHARED && insn->semantics == PTX_VOLATILE))
                return false;
    return true;
}

bool ct_turns_change(const struct ct_fn *fn)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (ct_check_orders_threads(insn))
                return true;
    return false;
}

static ct_value place_of_turn(struct ct_cursor *at)
{
    const ct_value threads = ct_sysval(at, CT_SYS_BLOCK_THREADS);
    const ct_value bytes = ct_op2(at, CT_OP_MUL, PTX_U32, threads, ct_const32(at, at->fn->check_thread_bytes));

    return ct_add(at, ct_sub(at, ct_sysval(at, CT_SYS_SHARED_BYTES), bytes), ct_shl_imm(at, ct_sysval(at, CT_SYS_TID_LINEAR), 2));
}

/* ---- before `collective`: the words in shared memory ---- */

static void post(struct ct_cursor *at, ct_value place, ct_value epoch, ct_value steps)
{
    const ct_value numbers = ct_or(at, ct_shl_imm(at, epoch, THREAD_BITS), ct_shl_imm(at, steps, STEP_SHIFT));

    ct_exchange_store(at, place, ct_or(at, ct_sysval(at, CT_SYS_TID_LINEAR), numbers));
}

static ct_value one_more(struct ct_cursor *at, ct_value number, uint32_t most)
{
    return ct_select(at, ct_equals(at, number, most), number, ct_add_imm(at, number, 1));
}

void ct_turns_examine(struct ct_check *check, struct ct_cursor *entry)
{
    struct ct_fn *fn = check->fn;
    const ct_value epoch = ct_value_create(fn, CT_W_32), steps = ct_value_create(fn, CT_W_32);
    CT_VEC(struct ct_insn *) points = {0};
    ct_value place;

    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (ct_check_orders_threads(insn))
                *CT_PUSH(&fn->compilation->scratch, &points) = insn;
    place = place_of_turn(entry);
    ct_assign(entry, epoch, ct_const32(entry, 0));
    ct_assign(entry, steps, ct_const32(entry, 0));
    for (uint32_t i = 0; i < points.n; i++) {
        struct ct_insn *insn = points.v[i];
        struct ct_cursor at = {.fn = fn, .block = insn->block, .before = insn->next, .where = insn->where};
        const bool is_barrier = insn->op == CT_OP_BARRIER;

        ct_assign(&at, steps, is_barrier ? ct_const32(&at, 0) : one_more(&at, steps, MOST_STEPS));
        if (is_barrier)
            ct_assign(&at, epoch, one_more(&at, epoch, MOST_EPOCHS));
        post(&at, place, epoch, steps);
    }
}

void ct_turns_post_first(struct ct_cursor *at)
{
    ct_exchange_store(at, place_of_turn(at), ct_sysval(at, CT_SYS_TID_LINEAR));
}

/* ---- in `check` ---- */

void ct_turns_begin(struct ct_check *check)
{
    check->turn = check->fn->turns_change ? place_of_turn(&check->entry) : ct_sysval(&check->entry, CT_SYS_TID_LINEAR);
}

ct_value ct_turn(struct ct_check *check, struct ct_cursor *at)
{
    return check->fn->turns_change ? ct_exchange_load(at, check->turn) : check->turn;
}

static ct_value of_several_warps(struct ct_cursor *at, ct_value turn)
{
    return ct_not(at, ct_equals(at, ct_and_imm(at, turn, SEVERAL), 0));
}

ct_value ct_turn_thread(struct ct_cursor *at, ct_value turn)
{
    return ct_select(at, of_several_warps(at, turn), ct_const32(at, PTX2SPV_CHECK_SEVERAL), ct_and_imm(at, turn, MOST_THREADS));
}

static ct_value same_epochs(struct ct_cursor *at, ct_value differences)
{
    return ct_equals(at, ct_and_imm(at, differences, (uint32_t)MOST_EPOCHS << THREAD_BITS), 0);
}

static ct_value other_warps(struct ct_cursor *at, ct_value differences)
{
    return ct_not(at, ct_equals(at, ct_shr_imm(at, ct_and_imm(at, differences, MOST_THREADS), WARP_LANES_SHIFT), 0));
}

ct_value ct_turns_conflict(struct ct_cursor *at, ct_value turn, ct_value other)
{
    const uint32_t epochs = (uint32_t)MOST_EPOCHS << THREAD_BITS, steps = (uint32_t)MOST_STEPS << STEP_SHIFT;
    const ct_value differences = ct_xor(at, turn, other), several = of_several_warps(at, other);
    const ct_value is_other = ct_or(at, several, ct_not(at, ct_equals(at, ct_and_imm(at, differences, MOST_THREADS), 0)));
    const ct_value counts = ct_not(at, ct_equals(at, ct_and_imm(at, turn, epochs), epochs));
    const ct_value other_warp = ct_or(at, several, other_warps(at, differences));
    const ct_value same_step = ct_equals(at, ct_and_imm(at, differences, steps), 0);
    const ct_value step_counts = ct_not(at, ct_equals(at, ct_and_imm(at, turn, steps), steps));
    const ct_value unordered = ct_check_runs_in_step(at->fn) ? other_warp : ct_or(at, other_warp, ct_and(at, same_step, step_counts));

    return ct_and(at, ct_and(at, is_other, unordered), ct_and(at, same_epochs(at, differences), counts));
}

ct_value ct_have_common_bytes(struct ct_cursor *at, ct_value upper, ct_value other)
{
    return ct_not(at, ct_equals(at, ct_shr_imm(at, ct_and(at, upper, other), CT_MARK_BYTES_SHIFT), 0));
}

struct ct_turn_bytes ct_turns_join(struct ct_cursor *at, struct ct_turn_bytes own, struct ct_turn_bytes last)
{
    const ct_value differences = ct_xor(at, own.turn, last.turn);
    const ct_value same_epoch = same_epochs(at, differences), is_same = ct_equals(at, differences, 0);
    const ct_value was_several = ct_and(at, same_epoch, of_several_warps(at, last.turn));
    const ct_value several =
        ct_and(at, ct_and(at, same_epoch, ct_have_common_bytes(at, own.upper, last.upper)), other_warps(at, differences));
    struct ct_turn_bytes joined;

    joined.turn = ct_select(at, several, ct_or_imm(at, own.turn, SEVERAL), own.turn);
    joined.upper = ct_select(at, is_same, ct_or(at, own.upper, last.upper), own.upper);
    joined.upper = ct_select(at, several, ct_and(at, own.upper, last.upper), joined.upper);
    return (struct ct_turn_bytes){ct_select(at, was_several, last.turn, joined.turn), ct_select(at, was_several, last.upper, joined.upper)};
}
