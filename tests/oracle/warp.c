/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperation of the threads of a warp (PTX ISA, "shfl.sync", "vote.sync", "match.sync", "redux.sync", "elect.sync", "activemask",
 * "bar.warp.sync"). With .sync a thread waits for all non-exited threads of its mask at the same instruction and mask; it need not be
 * the same place in the code. Without .sync, and for activemask, the threads that happen to be converged take part: here as many as
 * possible. */
#include "machine.h"

#include <string.h>

#define PATIENCE 1000 /* number of turns for which a group waits for lanes of its warp that are still running */

/* Lanes of a mask that do not take part have no value: this value makes results that depend on them differ from correct ones. */
#define NO_VALUE 0xdeadbeef

static unsigned mask_operand(const struct ptx_instruction *insn)
{
    return insn->n_operands ? insn->n_operands - 1 : 0; /* it is always the last operand */
}

static bool has_mask(const struct ptx_instruction *insn)
{
    return insn->opcode != PTX_OP_ACTIVEMASK && (insn->mods.sync || insn->opcode == PTX_OP_BAR || insn->opcode == PTX_OP_BARRIER);
}

void oracle_do_warp(struct oracle_step *s)
{
    struct oracle_thread *thread = s->thread;

    thread->waits_at = s->insn;
    thread->patience = 0;
    thread->wait = has_mask(s->insn) ? ORACLE_AT_WARP : ORACLE_AT_GROUP;
    if (thread->wait == ORACLE_AT_GROUP)
        return;
    thread->mask = (uint32_t)oracle_source(s, mask_operand(s->insn), PTX_B32);
    if (!(thread->mask >> oracle_lane(thread) & 1))
        oracle_fail(s, ORACLE_UNDEFINED, "lane %u is not in its mask 0x%08x", oracle_lane(thread), thread->mask);
}

void oracle_resume(struct oracle_thread *thread)
{
    thread->wait = ORACLE_RUNNING;
    thread->waits_at = NULL;
    thread->is_counted = false;
    thread->frame->pc++;
}

/* ---- which threads meet ---- */

static bool same_instruction(const struct ptx_instruction *a, const struct ptx_instruction *b)
{
    return a == b || (a->opcode == b->opcode && a->types[0] == b->types[0] && strcmp(a->text, b->text) == 0);
}

/* The members of `first`'s mask if all that have not exited are at its instruction. Returns their mask, 0: not yet. */
static uint32_t gather(struct oracle_block *block, uint32_t warp, const struct oracle_thread *first, struct oracle_thread **members)
{
    uint32_t mask = 0;

    for (uint32_t lane = 0; lane < ORACLE_LANES; lane++) {
        struct oracle_thread *thread = first->mask >> lane & 1 ? oracle_thread_at(block, warp, lane) : NULL;

        members[lane] = thread;
        if (!thread)
            continue;
        if (thread->wait != ORACLE_AT_WARP || thread->mask != first->mask || !same_instruction(thread->waits_at, first->waits_at))
            return 0;
        mask |= UINT32_C(1) << lane;
    }
    return mask;
}

static void meet(struct oracle_step *s, struct oracle_thread **members, uint32_t mask)
{
    oracle_collective(s, members, mask);
    for (uint32_t lane = 0; lane < ORACLE_LANES; lane++)
        if (members[lane])
            oracle_resume(members[lane]);
}

void oracle_warp_advance(struct oracle_step *s, uint32_t warp)
{
    struct oracle_thread *members[ORACLE_LANES];

    for (uint32_t lane = 0; lane < ORACLE_LANES && !oracle_failed(s); lane++) {
        const struct oracle_thread *thread = oracle_thread_at(s->block, warp, lane);
        const uint32_t mask = thread && thread->wait == ORACLE_AT_WARP ? gather(s->block, warp, thread, members) : 0;

        if (mask)
            meet(s, members, mask);
    }
}

static bool may_release(struct oracle_block *block, uint32_t warp)
{
    bool waits = false, runs = false, impatient = false;

    for (uint32_t lane = 0; lane < ORACLE_LANES; lane++) {
        struct oracle_thread *thread = oracle_thread_at(block, warp, lane);

        if (thread && thread->wait == ORACLE_AT_GROUP) {
            waits = true;
            impatient |= ++thread->patience > PATIENCE;
        }
        runs |= thread && thread->wait == ORACLE_RUNNING;
    }
    return waits && (!runs || impatient);
}

/* Lets the threads without a mask continue, each with those at the same place, once the rest of the warp waits. */
bool oracle_groups_release(struct oracle_step *s, uint32_t warp)
{
    if (!may_release(s->block, warp))
        return false;
    for (uint32_t lane = 0; lane < ORACLE_LANES; lane++) {
        const struct oracle_thread *first = oracle_thread_at(s->block, warp, lane);
        struct oracle_thread *members[ORACLE_LANES] = {NULL};
        uint32_t mask = 0;

        if (!first || first->wait != ORACLE_AT_GROUP)
            continue;
        for (uint32_t other = lane; other < ORACLE_LANES; other++) {
            struct oracle_thread *thread = oracle_thread_at(s->block, warp, other);

            if (thread && thread->wait == ORACLE_AT_GROUP && thread->waits_at == first->waits_at && thread->depth == first->depth) {
                members[other] = thread;
                mask |= UINT32_C(1) << other;
            }
        }
        meet(s, members, mask);
    }
    return true;
}

/* ---- what they compute ---- */

static struct oracle_step step_of(const struct oracle_step *s, struct oracle_thread *thread)
{
    struct oracle_step step = *s;

    step.thread = thread;
    step.frame = thread->frame;
    step.insn = thread->waits_at;
    return step;
}

/* All sources are read before any result is written: a destination may be the source of another lane. */
struct sources {
    uint64_t values[ORACLE_LANES], second[ORACLE_LANES], third[ORACLE_LANES];
};

/* {d}|{p}: either may be omitted. */
static void write_pair(struct oracle_step *s, enum ptx_type type, uint64_t bits, bool predicate)
{
    uint32_t n;
    const struct ptx_operand *to = oracle_items(&s->insn->operands[0], &n);

    oracle_write(s, &to[0], type, bits);
    if (n > 1)
        oracle_write(s, &to[1], PTX_PRED, predicate);
}

static void shfl(struct oracle_step *s, const struct sources *in, uint32_t mask)
{
    const int lane = (int)oracle_lane(s->thread);
    const int b = in->second[lane] & 31, limit = in->third[lane] & 31, segment = in->third[lane] >> 8 & 31;
    const int lowest = lane & segment, greatest = (lane & segment) | (limit & ~segment);
    bool in_range;
    int from;

    switch (s->insn->mods.mode) {
    case PTX_MODE_UP:
        from = lane - b;
        in_range = from >= greatest;
        break;
    case PTX_MODE_DOWN:
        from = lane + b;
        in_range = from <= greatest;
        break;
    case PTX_MODE_BFLY:
        from = lane ^ b;
        in_range = from <= greatest;
        break;
    default:
        from = lowest | (b & ~segment);
        in_range = from <= greatest;
        break;
    }
    if (!in_range)
        from = lane;
    write_pair(s, PTX_B32, mask >> from & 1 ? in->values[from] : NO_VALUE, in_range);
}

static void vote(struct oracle_step *s, const struct sources *in, uint32_t mask)
{
    uint32_t ballot = 0;

    for (uint32_t lane = 0; lane < ORACLE_LANES; lane++)
        if (mask >> lane & 1)
            ballot |= (uint32_t)in->values[lane] << lane;
    if (s->insn->mods.mode == PTX_MODE_BALLOT)
        oracle_result(s, PTX_B32, ballot);
    else if (s->insn->mods.mode == PTX_MODE_ANY)
        oracle_result(s, PTX_PRED, ballot != 0);
    else
        oracle_result(s, PTX_PRED, ballot == mask || (s->insn->mods.mode == PTX_MODE_UNI && ballot == 0));
}

static void match(struct oracle_step *s, const struct sources *in, uint32_t mask)
{
    const uint32_t lane = oracle_lane(s->thread);
    uint32_t equal = 0;

    for (uint32_t other = 0; other < ORACLE_LANES; other++)
        if (mask >> other & 1 && in->values[other] == in->values[lane])
            equal |= UINT32_C(1) << other;
    if (s->insn->mods.mode == PTX_MODE_ALL)
        write_pair(s, PTX_B32, equal == mask ? mask : 0, equal == mask);
    else
        oracle_result(s, PTX_B32, equal);
}

static uint64_t redux_two(struct oracle_step *s, enum ptx_type type, uint64_t a, uint64_t b)
{
    switch (s->insn->mods.operation) {
    case PTX_ADD:
        return a + b;
    case PTX_AND:
        return a & b;
    case PTX_OR:
        return a | b;
    case PTX_XOR:
        return a ^ b;
    case PTX_MIN:
        return oracle_compare(type, PTX_LT, a, b) ? a : b;
    default:
        return oracle_compare(type, PTX_GT, a, b) ? a : b;
    }
}

static void redux(struct oracle_step *s, const struct sources *in, uint32_t mask)
{
    const enum ptx_type type = oracle_type(s, 0);
    uint64_t result = 0;
    bool is_first = true;

    if (ptx_type_is_float(type)) {
        oracle_fail(s, ORACLE_UNSUPPORTED, "a float type");
        return;
    }
    for (uint32_t lane = 0; lane < ORACLE_LANES; lane++) {
        if (!(mask >> lane & 1))
            continue;
        result = is_first ? in->values[lane] : oracle_cut(redux_two(s, type, result, in->values[lane]), type);
        is_first = false;
    }
    oracle_result(s, type, result);
}

static void read_sources(struct oracle_step *s, struct sources *in)
{
    const enum ptx_type type = oracle_type(s, 0);
    const uint32_t lane = oracle_lane(s->thread);

    if (s->insn->opcode == PTX_OP_VOTE) {
        in->values[lane] = oracle_source(s, 1, PTX_PRED);
    } else if (s->insn->opcode == PTX_OP_SHFL) {
        in->values[lane] = oracle_source(s, 1, PTX_B32);
        in->second[lane] = oracle_source(s, 2, PTX_B32);
        in->third[lane] = oracle_source(s, 3, PTX_B32);
    } else if (s->insn->opcode == PTX_OP_MATCH || s->insn->opcode == PTX_OP_REDUX) {
        in->values[lane] = oracle_source(s, 1, type);
    }
}

static void write_result(struct oracle_step *s, const struct sources *in, uint32_t mask)
{
    switch (s->insn->opcode) {
    case PTX_OP_SHFL:
        shfl(s, in, mask);
        break;
    case PTX_OP_VOTE:
        vote(s, in, mask);
        break;
    case PTX_OP_MATCH:
        match(s, in, mask);
        break;
    case PTX_OP_REDUX:
        redux(s, in, mask);
        break;
    case PTX_OP_ELECT: /* any one lane; the lowest */
        write_pair(s, PTX_B32, (uint32_t)__builtin_ctz(mask), (uint32_t)__builtin_ctz(mask) == oracle_lane(s->thread));
        break;
    case PTX_OP_ACTIVEMASK:
        oracle_result(s, PTX_B32, mask);
        break;
    default: /* bar.warp.sync */
        break;
    }
}

void oracle_collective(struct oracle_step *s, struct oracle_thread **members, uint32_t mask)
{
    struct sources in = {0};
    struct oracle_thread *present[ORACLE_LANES];
    uint32_t n = 0;

    for (uint32_t lane = 0; lane < ORACLE_LANES; lane++) {
        struct oracle_step step;

        if (!members[lane])
            continue;
        step = step_of(s, members[lane]);
        read_sources(&step, &in);
        present[n++] = members[lane];
    }
    for (uint32_t i = 0; i < n; i++) {
        struct oracle_step step = step_of(s, present[i]);

        write_result(&step, &in, mask);
        if (i == 0 && (step.insn->opcode == PTX_OP_BAR || step.insn->opcode == PTX_OP_BARRIER))
            oracle_synchronize(s->block, present, n);
    }
}
