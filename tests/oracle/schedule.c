/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a block, each with its own program counter. They run in turns of some instructions each; a thread that has to wait ends
 * its turn. A spinning thread does not prevent others from running. */
#include "machine.h"

#include <stdlib.h>

#define TURN 256 /* instructions */

static oracle_handler *const handlers[PTX_OPCODE_COUNT][2] = {
#define ORACLE_HANDLER(opcode, integer, floating) [PTX_OP_##opcode] = {oracle_do_##integer, oracle_do_##floating},
#include "handlers.def"
};

/* ---- one instruction ---- */

static bool guard_holds(const struct oracle_step *s)
{
    return !s->insn->guard || (s->frame->registers[s->insn->guard->index][0] & 1) != s->insn->guard_negated;
}

static void execute(struct oracle_step *s)
{
    const struct ptx_instruction *insn = s->insn;
    oracle_handler *handler = handlers[insn->opcode][insn->n_types && ptx_type_is_float(insn->types[0])];

    if (!guard_holds(s))
        return;
    if (!handler || insn->mods.unsupported)
        oracle_fail(s, ORACLE_UNSUPPORTED, "an instruction that the oracle does not know");
    else
        handler(s);
}

static void step(struct oracle_block *block, struct oracle_thread *thread)
{
    struct oracle_step s = {.grid = block->grid, .block = block, .thread = thread, .frame = thread->frame};
    const struct ptx_body *body = thread->frame->body;
    const uint64_t limit = block->grid->launch->step_limit ? block->grid->launch->step_limit : UINT64_C(1) << 32;

    if (thread->frame->pc >= body->instructions.n) {
        oracle_leave(&s);
        return;
    }
    s.insn = &body->instructions.v[thread->frame->pc];
    if (++block->grid->result->steps > limit) {
        oracle_fail(&s, ORACLE_STEP_LIMIT, "more than %llu instructions", (unsigned long long)limit);
        return;
    }
    execute(&s);
    if (!s.jumped && thread->wait == ORACLE_RUNNING)
        s.frame->pc++;
}

/* ---- turns ---- */

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static bool failed(const struct oracle_block *block)
{
    return block->grid->result->status != ORACLE_OK;
}

/* Returns whether the thread did anything. */
static bool run_turn(struct oracle_block *block, struct oracle_thread *thread, unsigned turn)
{
    struct oracle_step s = {.grid = block->grid, .block = block, .thread = thread};
    const bool could = thread->wait == ORACLE_RUNNING;

    for (unsigned i = 0; i < turn && thread->wait == ORACLE_RUNNING && !failed(block); i++)
        step(block, thread);
    if (could && thread->wait != ORACLE_RUNNING && !failed(block)) {
        oracle_warp_advance(&s, thread->index / ORACLE_LANES);
        oracle_barriers_advance(&s);
    }
    return could;
}

/* Runs every thread once; with a random schedule, in random order and with turns of random length. */
static bool run_round(struct oracle_block *block)
{
    const bool is_random = block->grid->launch->schedule != 0;
    const uint64_t random = is_random ? next_random(&block->grid->random) : 0;
    const uint32_t first = (uint32_t)(random % block->n_threads);
    bool progress = false;

    for (uint32_t i = 0; i < block->n_threads && !failed(block); i++) {
        const uint32_t at = (first + (random >> 40 & 1 ? block->n_threads - i : i)) % block->n_threads;

        progress |= run_turn(block, &block->threads[at], is_random ? 1 + (next_random(&block->grid->random) >> 20) % 64 : TURN);
    }
    return progress;
}

static bool release_groups(struct oracle_block *block)
{
    struct oracle_step s = {.grid = block->grid, .block = block};
    bool progress = false;

    for (uint32_t warp = 0; warp < block->n_warps && !failed(block); warp++)
        progress |= oracle_groups_release(&s, warp);
    return progress;
}

static bool is_done(struct oracle_block *block, struct oracle_thread **waiting)
{
    for (uint32_t i = 0; i < block->n_threads; i++) {
        *waiting = &block->threads[i];
        if (block->threads[i].wait != ORACLE_EXITED)
            return false;
    }
    return true;
}

static void fail_deadlock(struct oracle_block *block, struct oracle_thread *thread)
{
    struct oracle_step s = {.grid = block->grid, .block = block, .thread = thread, .insn = thread->waits_at};
    uint32_t n = 0;

    for (uint32_t i = 0; i < block->n_threads; i++)
        n += block->threads[i].wait != ORACLE_EXITED;
    if (thread->wait == ORACLE_AT_WARP)
        oracle_fail(&s, ORACLE_DEADLOCK, "no thread can go on: %u wait, this one with mask 0x%08x", n, thread->mask);
    else
        oracle_fail(&s, ORACLE_DEADLOCK, "no thread can go on: %u wait, this one at barrier %u", n, thread->barrier);
}

/* ---- a block ---- */

static void create_threads(struct oracle_block *block)
{
    const uint32_t *extent = block->grid->launch->block;

    block->threads = oracle_zalloc(block->n_threads, sizeof *block->threads);
    oracle_clocks_create(block);
    for (uint32_t i = 0; i < block->n_threads; i++) {
        struct oracle_thread *thread = &block->threads[i];
        struct oracle_step s = {.grid = block->grid, .block = block, .thread = thread};

        thread->index = i;
        thread->tid[0] = i % extent[0];
        thread->tid[1] = i / extent[0] % extent[1];
        thread->tid[2] = i / extent[0] / extent[1];
        thread->local_top = ORACLE_LOCAL_BASE;
        oracle_enter_kernel(&s);
    }
}

static void destroy_threads(struct oracle_block *block)
{
    for (uint32_t i = 0; i < block->n_threads; i++) {
        struct oracle_step s = {.grid = block->grid, .block = block, .thread = &block->threads[i]};

        oracle_thread_exit(&s);
        oracle_objects_finish(&block->threads[i].locals);
    }
    oracle_clocks_finish(block);
    free(block->threads);
}

void oracle_block_run(struct oracle_block *block)
{
    struct oracle_thread *waiting;

    create_threads(block);
    while (!failed(block) && !is_done(block, &waiting)) {
        bool progress = run_round(block);

        progress |= release_groups(block);
        if (!progress && !failed(block))
            fail_deadlock(block, waiting);
    }
    destroy_threads(block);
}
