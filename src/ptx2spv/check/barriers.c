/* SPDX-License-Identifier: Apache-2.0 */
/* Finds threads of a warp that are at different barriers at the same time, or at the same one in another iteration, where the warp should come to one
 * together (PTX ISA, "bar, barrier": with .aligned "all threads in the warp must execute the same barrier instruction"). Threads that have ended are not
 * waited for, so they are no fault; nor are warps that come to one barrier by different instructions.
 *
 * Behind the rest of shared memory each thread has two words (shared_shadow.c). A thread that comes to its n-th barrier writes the numbers n and that of the
 * barrier instruction to word n % 2, and looks behind the barrier at the word of the next thread of its warp. If that one has the same n and another
 * barrier, they met at different ones. If it has another n, it has ended, or has not come yet: then that thread will see this one's word. The thread comes
 * back to the same word when all threads have passed the barrier in between, so a word is not overwritten too early.
 *
 * Examined are kernels that have barriers which not all threads are known to reach together, and only barriers of whole blocks. Those that are not .aligned
 * take part, but are no fault. */
#include "check.h"

#include "ptx2spv/sync/sync.h"

enum { SITE_BITS = 12, MOST_SITES = (1 << SITE_BITS) - 1, LANES = 32 };

struct barriers {
    struct ct_check *check;
    CT_VEC(struct ct_insn *) points;
    ct_value count;     /* a register: barriers that the thread has come to */
    ct_value own, next; /* the addresses of the words */
    ct_value next_thread;
};

static bool is_whole(const struct ct_insn *insn)
{
    return insn->mode != PTX_MODE_ARRIVE && insn->n_operands - (insn->mode == PTX_MODE_RED) <= 1;
}

bool ct_barriers_may_diverge(struct ct_fn *fn)
{
    const bool *divergent = NULL;
    uint32_t n = 0;
    bool found = false;

    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next) {
            if (insn->op == CT_OP_BARRIER && !is_whole(insn))
                return false;
            n += insn->op == CT_OP_BARRIER;
        }
    if (!n || n > MOST_SITES)
        return false;
    ct_fn_compute_preds(fn);
    divergent = ct_find_divergent_blocks(fn);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            found |= insn->op == CT_OP_BARRIER && divergent[b];
    return found;
}

static void begin(struct barriers *barriers, struct ct_cursor *at)
{
    const ct_value thread = ct_sysval(at, CT_SYS_TID_LINEAR), threads = ct_sysval(at, CT_SYS_BLOCK_THREADS);
    const ct_value bytes = ct_op2(at, CT_OP_MUL, PTX_U32, threads, ct_const32(at, CT_BARRIER_THREAD_BYTES));
    const ct_value area = ct_sub(at, ct_sysval(at, CT_SYS_SHARED_BYTES), bytes), after = ct_add_imm(at, thread, 1);
    ct_value is_last;

    barriers->count = ct_value_create(at->fn, CT_W_32);
    ct_assign(at, barriers->count, ct_const32(at, 0));
    is_last = ct_or(at, ct_equals(at, ct_and_imm(at, after, LANES - 1), 0), ct_icmp(at, PTX_U32, PTX_GE, after, threads));
    barriers->next_thread = ct_select(at, is_last, ct_and_imm(at, thread, ~(uint32_t)(LANES - 1)), after);
    barriers->own = ct_add(at, area, ct_shl_imm(at, thread, 3));
    barriers->next = ct_add(at, area, ct_shl_imm(at, barriers->next_thread, 3));
}

/* The line of a barrier by its number. */
static ct_value line_of(struct ct_cursor *at, const struct barriers *barriers, ct_value site)
{
    ct_value line = ct_const32(at, 0);

    for (uint32_t i = 0; i < barriers->points.n; i++)
        line = ct_select(at, ct_equals(at, site, i + 1), ct_const32(at, barriers->points.v[i]->where.line), line);
    return line;
}

static void report(const struct barriers *barriers, struct ct_cursor *at, const struct ct_insn *insn, ct_value other)
{
    ct_check_report(barriers->check, at,
                    &(struct ct_incident){
                        .where = insn->where,
                        .access = PTX2SPV_CHECK_ACCESS(insn->where.source, 0, PTX2SPV_CHECK_WARP, PTX2SPV_CHECK_GLOBAL),
                        .address = barriers->next_thread,
                        .fault = ct_const32(at, PTX2SPV_CHECK_BARRIER),
                        .other = line_of(at, barriers, ct_and_imm(at, other, MOST_SITES)),
                    });
}

static void examine(const struct barriers *barriers, uint32_t index)
{
    struct ct_insn *insn = barriers->points.v[index];
    struct ct_fn *fn = barriers->check->fn;
    struct ct_cursor at = {.fn = fn, .block = insn->block, .before = insn, .where = insn->where};
    struct ct_block *differs, *rest;
    ct_value word, place, other, same_count, is_barrier;

    ct_assign(&at, barriers->count, ct_add_imm(&at, barriers->count, 1));
    word = ct_or_imm(&at, ct_shl_imm(&at, barriers->count, SITE_BITS), insn->aligned ? index + 1 : 0);
    place = ct_shl_imm(&at, ct_and_imm(&at, barriers->count, 1), 2);
    ct_exchange_store(&at, ct_add(&at, barriers->own, place), word);
    if (!insn->aligned)
        return;
    differs = ct_block_create(fn);
    rest = ct_block_split(fn, insn->block, insn->next);
    at.before = NULL;
    other = ct_exchange_load(&at, ct_add(&at, barriers->next, place));
    same_count = ct_equals(&at, ct_shr_imm(&at, ct_xor(&at, other, word), SITE_BITS), 0);
    is_barrier = ct_not(&at, ct_equals(&at, ct_and_imm(&at, other, MOST_SITES), 0));
    ct_cursor_branch(&at, ct_and(&at, ct_and(&at, same_count, is_barrier), ct_icmp(&at, PTX_B32, PTX_NE, other, word)), differs, rest);
    at.block = differs;
    report(barriers, &at, insn, other);
    ct_cursor_jump(&at, rest);
}

void ct_barriers_examine(struct ct_check *check, struct ct_cursor *entry)
{
    struct ct_fn *fn = check->fn;
    struct barriers barriers = {.check = check};

    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (insn->op == CT_OP_BARRIER)
                *CT_PUSH(&fn->compilation->scratch, &barriers.points) = insn;
    begin(&barriers, entry);
    for (uint32_t i = barriers.points.n; i-- > 0;)
        examine(&barriers, i);
}
