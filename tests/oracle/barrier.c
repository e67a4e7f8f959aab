/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers of a block (PTX ISA, "bar, barrier"). A thread waits for the non-exited threads of its warp, then the warp has arrived and
 * counts as 32 threads; .arrive continues at once, .sync and .red when the barrier completes. bar.warp.sync is in warp.c. */
#include "machine.h"

#include <string.h>

static bool is_aligned(const struct ptx_instruction *insn)
{
    return insn->opcode == PTX_OP_BAR || insn->mods.aligned;
}

/* bar.sync a {, b}; bar.arrive a, b; bar.red d, a {, b}, {!}c */
void oracle_do_barrier(struct oracle_step *s)
{
    const struct ptx_instruction *insn = s->insn;
    const bool is_red = insn->mods.mode == PTX_MODE_RED;
    const unsigned first = is_red, n = insn->n_operands - first - is_red;
    struct oracle_thread *thread = s->thread;

    if (insn->mods.mode == PTX_MODE_WARP) {
        oracle_do_warp(s);
        return;
    }
    if (insn->mods.scope == PTX_CLUSTER || n < 1 || n > 2) {
        oracle_fail(s, ORACLE_UNSUPPORTED, "this form of barrier");
        return;
    }
    thread->barrier = (uint32_t)oracle_source(s, first, PTX_U32);
    thread->expected = n > 1 ? (uint32_t)oracle_source(s, first + 1, PTX_U32) : 0;
    thread->predicate = is_red && oracle_source(s, insn->n_operands - 1, PTX_PRED);
    if (thread->barrier >= ORACLE_BARRIERS || thread->expected % ORACLE_LANES) {
        oracle_fail(s, ORACLE_UNDEFINED, "barrier %u for %u threads", thread->barrier, thread->expected);
        return;
    }
    if (n > 1 && thread->expected == 0) {
        oracle_fail(s, ORACLE_UNDEFINED, "a barrier for no threads");
        return;
    }
    thread->wait = ORACLE_AT_BARRIER;
    thread->waits_at = insn;
    thread->is_counted = false;
}

struct oracle_thread *oracle_thread_at(struct oracle_block *block, uint32_t warp, uint32_t lane)
{
    const uint32_t index = warp * ORACLE_LANES + lane;

    return index < block->n_threads && block->threads[index].wait != ORACLE_EXITED ? &block->threads[index] : NULL;
}

static void fail_at(struct oracle_step *s, struct oracle_thread *thread, enum oracle_status status, const char *what)
{
    struct oracle_step at = *s;

    at.thread = thread;
    at.insn = thread->waits_at;
    oracle_fail(&at, status, "%s", what);
}

/* ---- the arrival of a warp ---- */

/* The first thread of a warp all of whose threads wait at one barrier and have not been counted yet; else NULL. */
static struct oracle_thread *complete_warp(struct oracle_step *s, uint32_t warp)
{
    struct oracle_thread *first = NULL;

    for (uint32_t lane = 0; lane < ORACLE_LANES; lane++) {
        struct oracle_thread *thread = oracle_thread_at(s->block, warp, lane);

        if (!thread)
            continue;
        if (thread->wait != ORACLE_AT_BARRIER || thread->is_counted || (first && first->barrier != thread->barrier))
            return NULL;
        first = first ? first : thread;
    }
    return first;
}

/* What PTX requires of the threads of a warp at one barrier. */
static bool check_warp(struct oracle_step *s, uint32_t warp, const struct oracle_thread *first)
{
    for (uint32_t lane = 0; lane < ORACLE_LANES; lane++) {
        struct oracle_thread *thread = oracle_thread_at(s->block, warp, lane);

        if (!thread || thread->waits_at == first->waits_at)
            continue;
        if (is_aligned(thread->waits_at) && !s->grid->launch->allow_divergent) {
            fail_at(s, thread, ORACLE_DIVERGENT_BARRIER, "other threads of the warp are at another barrier instruction");
            return false;
        }
        if (thread->waits_at->mods.mode != first->waits_at->mods.mode || thread->expected != first->expected ||
            thread->waits_at->mods.operation != first->waits_at->mods.operation) {
            fail_at(s, thread, ORACLE_UNDEFINED, "threads of one warp meet the barrier in different ways");
            return false;
        }
    }
    return true;
}

static void open_barrier(struct oracle_barrier *barrier, uint32_t expected)
{
    uint32_t *clock = barrier->clock;

    *barrier = (struct oracle_barrier){.is_open = true, .expected = expected, .all = true, .clock = clock};
}

static void count_thread(struct oracle_step *s, struct oracle_barrier *barrier, struct oracle_thread *thread)
{
    if (thread->waits_at->mods.mode == PTX_MODE_RED) {
        barrier->all &= thread->predicate;
        barrier->any |= thread->predicate;
        barrier->count += thread->predicate;
    }
    oracle_release_to(s->block, thread, &barrier->clock);
    thread->is_counted = true;
    if (thread->waits_at->mods.mode == PTX_MODE_ARRIVE)
        oracle_resume(thread);
}

static void arrive(struct oracle_step *s, uint32_t warp, struct oracle_thread *first)
{
    struct oracle_barrier *barrier = &s->block->barriers[first->barrier];
    const uint32_t all = s->block->n_warps * ORACLE_LANES;
    const uint32_t expected = first->expected == all ? 0 : first->expected;

    if (!check_warp(s, warp, first))
        return;
    if (!barrier->is_open)
        open_barrier(barrier, expected);
    if (barrier->expected != expected) {
        fail_at(s, first, ORACLE_UNDEFINED, "warps disagree on the number of the barrier's threads");
        return;
    }
    barrier->arrivals++;
    barrier->warps |= UINT32_C(1) << warp;
    for (uint32_t lane = 0; lane < ORACLE_LANES; lane++) {
        struct oracle_thread *thread = oracle_thread_at(s->block, warp, lane);

        if (thread)
            count_thread(s, barrier, thread);
    }
}

/* ---- completion ---- */

static bool is_complete(struct oracle_step *s, const struct oracle_barrier *barrier)
{
    if (!barrier->is_open)
        return false;
    if (barrier->expected)
        return barrier->arrivals * ORACLE_LANES >= barrier->expected;
    for (uint32_t warp = 0; warp < s->block->n_warps; warp++) {
        bool is_alive = false;

        for (uint32_t lane = 0; lane < ORACLE_LANES; lane++)
            is_alive |= oracle_thread_at(s->block, warp, lane) != NULL;
        if (is_alive && !(barrier->warps >> warp & 1))
            return false;
    }
    return true;
}

static void release(struct oracle_step *s, const struct oracle_barrier *barrier, struct oracle_thread *thread)
{
    struct oracle_step at = *s;
    const struct ptx_instruction *insn = thread->waits_at;

    at.thread = thread;
    at.frame = thread->frame;
    at.insn = insn;
    oracle_acquire_from(s->block, thread, barrier->clock);
    if (insn->mods.mode == PTX_MODE_RED && insn->mods.operation == PTX_POPC)
        oracle_result(&at, PTX_U32, barrier->count);
    else if (insn->mods.mode == PTX_MODE_RED)
        oracle_result(&at, PTX_PRED, insn->mods.operation == PTX_AND ? barrier->all : barrier->any);
    oracle_resume(thread);
}

static void complete(struct oracle_step *s, uint32_t number)
{
    struct oracle_barrier *barrier = &s->block->barriers[number];

    for (uint32_t i = 0; i < s->block->n_threads; i++) {
        struct oracle_thread *thread = &s->block->threads[i];

        if (thread->wait == ORACLE_AT_BARRIER && thread->is_counted && thread->barrier == number)
            release(s, barrier, thread);
    }
    barrier->is_open = false;
    if (barrier->clock)
        memset(barrier->clock, 0, s->block->n_threads * sizeof *barrier->clock);
}

void oracle_barriers_advance(struct oracle_step *s)
{
    for (uint32_t warp = 0; warp < s->block->n_warps && !oracle_failed(s); warp++) {
        struct oracle_thread *first = complete_warp(s, warp);

        if (first)
            arrive(s, warp, first);
    }
    for (uint32_t number = 0; number < ORACLE_BARRIERS; number++)
        if (is_complete(s, &s->block->barriers[number]))
            complete(s, number);
}
