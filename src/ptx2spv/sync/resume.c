/* SPDX-License-Identifier: Apache-2.0 */
/* The resumed form: a kernel is cut at its synchronization points into segments and becomes one loop, which all threads of the block
 * execute together until the last one has ended:
 *
 *   entry   initialize the exchange area; point = 0, ready
 *   head    if ready: switch (point) to the segment after that point. A segment ends at the next point: it posts, sets `point` and clears
 *           `ready`; or it ends the thread, which is then counted as ended
 *   post    block barrier; everything that was posted is visible
 *           switch (point): have all threads arrived that this thread waits for? Then take the results and set `ready`
 *           have all threads ended? which barriers are complete?
 *           block barrier; all threads have read
 *           thread 0 advances the START words of completed barriers; ballots are cleared; next iteration or return
 *
 * This is correct for any control flow: early exits, one barrier that is reached from two branches, loops with different numbers of
 * iterations, groups of lanes that meet from different branches. The state of a thread is in its registers, since this is register form.
 * A loop that spins on memory which another thread writes is a point without a condition, so that the other threads make progress. In
 * kernels of cooperative launches, such a loop may wait for another block: if the threads of a block can continue from such points only,
 * the block is suspended (grid.c). Points of kernels that have many of them share registers and code (resume_points.c). */
#include "resume_points.h"

#include <inttypes.h>
#include <string.h>

enum { KIND_ENDED = 0xffff };

struct resume {
    struct ct_fn *fn;
    struct ct_exchange *x;
    struct ct_arena *scratch;
    struct ct_resume_points points;
    CT_VEC(struct ct_block *) segments;    /* segments.v[i]: where the thread continues after point i; 0 is the start */
    CT_VEC(struct ct_block *) evaluations; /* like segments */
    uint32_t barriers;                     /* mask of the barrier numbers in use */
    bool votes;
    bool counts;                  /* there are barriers with a thread count */
    bool ends_early;              /* threads may end in several places */
    ct_value point, ready, clear; /* registers; clear: the thread's bit of the ballot is to be cleared */
    ct_value rounds;              /* a register, which differs between lanes that reach an activemask in different rounds of loops */
    struct ct_block *head, *post, *after;
    bool waits_for_grid;
    ct_value spins;    /* the thread waits in a loop that spins */
    ct_value any_slot; /* for ct_exchange_any */
    struct ct_grid_blocks grid;
};

static ct_value constant_predicate(struct ct_cursor *at, bool value)
{
    return ct_emit_const(at, CT_W_PRED, value);
}

/* ---- what a thread does before it waits ---- */

static bool has_count(const struct ct_insn *insn)
{
    return insn->n_operands - (insn->mode == PTX_MODE_RED) > 1;
}

static void count_arrival(struct ct_cursor *at, const struct ct_insn *insn)
{
    const ct_value number = insn->operands[0];

    if (has_count(insn))
        ct_exchange_atomic(at, PTX_OR, ct_exchange_bar_word(at, number, CT_BAR_ARRIVED_WARPS),
                           ct_bits2(at, CT_OP_SHL, ct_const32(at, 1), ct_shr_imm(at, ct_sysval(at, CT_SYS_TID_LINEAR), 5)));
    ct_exchange_store(at, ct_exchange_bar_word(at, number, CT_BAR_EXPECTED), has_count(insn) ? insn->operands[1] : ct_const32(at, 0));
    if (insn->mode == PTX_MODE_RED)
        ct_exchange_atomic(at, PTX_ADD, ct_exchange_bar_word(at, number, CT_BAR_PRED_TOTAL), ct_exchange_predicate(at, insn));
    ct_exchange_atomic(at, PTX_ADD, ct_exchange_bar_word(at, number, CT_BAR_TOTAL), ct_const32(at, 1));
}

/* Nothing if no thread asks for it. */
static void post_kind(struct ct_cursor *at, struct resume *rs, ct_value value)
{
    if (rs->x->column[CT_COLUMN_KIND])
        ct_exchange_store(at, ct_exchange_own(at, rs->x, CT_COLUMN_KIND), value);
}

static void wait_at(struct ct_cursor *at, struct resume *rs, uint32_t point)
{
    if (rs->waits_for_grid)
        ct_assign(at, rs->spins, constant_predicate(at, point <= rs->points.all.n && rs->points.all.v[point - 1].insn->op == CT_OP_YIELD));
    ct_assign(at, rs->point, ct_const32(at, point));
    ct_assign(at, rs->ready, constant_predicate(at, false));
}

static void post_insn(struct ct_cursor *at, struct resume *rs, const struct ct_insn *insn, uint32_t number)
{
    const struct ct_point_kind *kind = ct_resume_points_kind(&rs->points, insn);

    if (insn->op == CT_OP_BARRIER) {
        post_kind(at, rs, ct_const32(at, 0));
        count_arrival(at, insn);
    } else if (kind && kind->is_counted) {
        ct_exchange_post(at, rs->x, insn);
        ct_exchange_atomic(at, PTX_ADD, ct_exchange_counter(at, rs->x, kind->counter), ct_const32(at, 1));
        post_kind(at, rs, ct_const32(at, 0));
    } else if (ct_is_warp_op(insn->op)) {
        const ct_value mask = insn->op == CT_OP_ACTIVEMASK ? rs->rounds : ct_exchange_mask(at, insn);

        ct_exchange_post(at, rs->x, insn);
        if (rs->x->column[CT_COLUMN_MASK])
            ct_exchange_store(at, ct_exchange_own(at, rs->x, CT_COLUMN_MASK), mask);
        post_kind(at, rs, ct_const32(at, number));
    } else {
        post_kind(at, rs, ct_const32(at, 0)); /* a loop that spins, or CONVERGE: all threads that are there in the same iteration */
    }
}

static void stop_at(struct ct_cursor *at, struct resume *rs, uint32_t number)
{
    const struct ct_point *point = &rs->points.all.v[number - 1];
    const struct ct_point_group *group = &rs->points.groups.v[point->group];

    if (!group->posting)
        post_insn(at, rs, point->insn, group->kind);
    ct_resume_points_store(at, &rs->points, point);
    wait_at(at, rs, number);
    ct_cursor_jump(at, group->posting ? group->posting : rs->post);
}

static void end_thread(struct resume *rs, struct ct_block *block)
{
    struct ct_cursor at = {.fn = rs->fn, .block = block, .where = block->last->where};
    const ct_value bit = (ct_insn_remove(block->last), ct_bits2(&at, CT_OP_SHL, ct_const32(&at, 1), rs->x->lane));

    ct_block_set_succs(rs->fn, block, 0, NULL);
    post_kind(&at, rs, ct_const32(&at, KIND_ENDED));
    ct_exchange_atomic(&at, PTX_OR, ct_exchange_lanes_word(&at, rs->x->warp), bit);
    ct_exchange_atomic(&at, PTX_ADD, ct_exchange_ended_word(&at), ct_const32(&at, 1));
    wait_at(&at, rs, rs->points.all.n + 1);
    ct_cursor_jump(&at, rs->post);
}

/* ---- whether all threads have arrived that a thread waits for ---- */

/* The number of lanes of these warps that have ended. */
static ct_value ended_lanes(struct ct_cursor *at, ct_value warps)
{
    const ct_value sum = ct_copy(at, ct_const32(at, 0));
    struct ct_lane_loop loop;
    ct_value ended;

    ct_lane_loop_begin(at, warps, &loop);
    ended = ct_exchange_load(at, ct_exchange_lanes_word(at, loop.lane));
    ct_assign(at, sum, ct_add(at, sum, ct_bits1(at, CT_OP_POPC, ended)));
    ct_lane_loop_end(at, &loop);
    return sum;
}

/* For barriers with a thread count, a warp that has arrived counts as 32: this adds the lanes that the block's last warp does not have,
 * and those that have ended. */
static ct_value absent_lanes(struct ct_cursor *at, const struct resume *rs, ct_value number, ct_value ended)
{
    const ct_value zero = ct_const32(at, 0), arrived_warps = ct_exchange_load(at, ct_exchange_bar_word(at, number, CT_BAR_ARRIVED_WARPS));
    const ct_value last = ct_and_imm(at, ct_shr_imm(at, rs->x->threads, 5), 31); /* the last warp, if it is not full */
    const ct_value last_arrived = ct_and_imm(at, ct_op2(at, CT_OP_SHR, PTX_U32, arrived_warps, last), 1);
    const ct_value missing = ct_and_imm(at, ct_sub(at, zero, rs->x->threads), 31);
    const ct_value absent = ct_select(at, ct_equals(at, last_arrived, 0), zero, missing);

    if (!rs->ends_early)
        return absent;
    return ct_add(at, absent, ended_lanes(at, ct_select(at, ct_equals(at, ended, 0), zero, arrived_warps)));
}

/* Whether enough threads have arrived. */
static ct_value is_complete(struct ct_cursor *at, const struct resume *rs, ct_value number, ct_value arrived)
{
    const ct_value expected = ct_exchange_load(at, ct_exchange_bar_word(at, number, CT_BAR_EXPECTED));
    const ct_value ended = ct_exchange_load(at, ct_exchange_ended_word(at)), all = ct_equals(at, expected, 0);
    const ct_value absent = rs->counts ? absent_lanes(at, rs, number, ended) : ct_const32(at, 0);
    const ct_value need = ct_select(at, all, ct_sub(at, rs->x->threads, ended), expected);

    return ct_icmp(at, PTX_U32, PTX_GE, ct_add(at, arrived, ct_select(at, all, ct_const32(at, 0), absent)), need);
}

static ct_value since_start(struct ct_cursor *at, ct_value number, enum ct_bar_word total, enum ct_bar_word start)
{
    return ct_sub(at, ct_exchange_load(at, ct_exchange_bar_word(at, number, total)),
                  ct_exchange_load(at, ct_exchange_bar_word(at, number, start)));
}

static void evaluate_barrier(struct ct_cursor *at, struct resume *rs, const struct ct_insn *insn)
{
    const ct_value number = insn->operands[0];
    const ct_value arrived = since_start(at, number, CT_BAR_TOTAL, CT_BAR_START);

    ct_assign(at, rs->ready, is_complete(at, rs, number, arrived));
    if (insn->n_results) {
        const ct_value counted = since_start(at, number, CT_BAR_PRED_TOTAL, CT_BAR_PRED_START);

        ct_assign(at, insn->results[0], ct_exchange_bar_result(at, insn, counted));
    }
}

/* activemask: the lanes that reached this very point in the same iteration, and that are in the same rounds of the loops around it. */
static void evaluate_activemask(struct ct_cursor *at, struct resume *rs, const struct ct_insn *insn, uint32_t kind)
{
    const ct_value here = ct_copy(at, ct_const32(at, 0));
    struct ct_lane_loop loop;
    ct_value same, bit, rounds;

    ct_lane_loop_begin(at, rs->x->lanes_of_warp, &loop);
    same = ct_equals(at, ct_exchange_of_lane(at, rs->x, CT_COLUMN_KIND, loop.lane), kind);
    rounds = ct_exchange_of_lane(at, rs->x, CT_COLUMN_MASK, loop.lane);
    same = ct_and(at, same, ct_icmp(at, PTX_B32, PTX_EQ, rounds, rs->rounds));
    bit = ct_bits2(at, CT_OP_SHL, ct_const32(at, 1), loop.lane);
    ct_assign(at, here, ct_or(at, here, ct_select(at, same, bit, ct_const32(at, 0))));
    ct_lane_loop_end(at, &loop);
    ct_exchange_results(at, rs->x, insn, here);
    ct_assign(at, rs->ready, constant_predicate(at, true));
}

/* Whether these lanes wait at points of the same kind with the same mask. */
static ct_value compare_lanes(struct ct_cursor *at, struct resume *rs, ct_value members, ct_value mask, uint32_t number)
{
    const ct_value missing = ct_copy(at, ct_const32(at, 0));
    struct ct_lane_loop loop;
    ct_value differs;

    ct_lane_loop_begin(at, members, &loop);
    differs = ct_or(at, ct_xor_imm(at, ct_exchange_of_lane(at, rs->x, CT_COLUMN_KIND, loop.lane), number),
                    ct_xor(at, ct_exchange_of_lane(at, rs->x, CT_COLUMN_MASK, loop.lane), mask));
    ct_assign(at, missing, ct_or(at, missing, differs));
    ct_lane_loop_end(at, &loop);
    return ct_equals(at, missing, 0);
}

/* The same by the counter of their kind: no lane can go on before all have arrived, and all see that in the same iteration. */
static ct_value count_lanes(struct ct_cursor *at, struct resume *rs, ct_value members, const struct ct_point_kind *kind)
{
    const ct_value all = ct_add(at, kind->passed, ct_bits1(at, CT_OP_POPC, members));
    const ct_value arrived = ct_icmp(at, PTX_B32, PTX_EQ, ct_exchange_load(at, ct_exchange_counter(at, rs->x, kind->counter)), all);

    ct_assign(at, kind->passed, ct_select(at, arrived, all, kind->passed));
    return arrived;
}

/* Whether all lanes of the mask that have not ended have arrived. */
static void evaluate_warp_op(struct ct_cursor *at, struct resume *rs, const struct ct_insn *insn, uint32_t number)
{
    const struct ct_point_kind *kind = ct_resume_points_kind(&rs->points, insn);
    const ct_value ended = ct_exchange_load(at, ct_exchange_lanes_word(at, rs->x->warp));
    const ct_value lanes = ct_and(at, rs->x->lanes_of_warp, ct_not(at, ended)), mask = ct_exchange_mask(at, insn);
    const ct_value members = kind->is_counted ? lanes : ct_and(at, mask, lanes);
    struct ct_block *arrived = ct_block_create(rs->fn);
    const ct_value all = kind->is_counted ? count_lanes(at, rs, members, kind) : compare_lanes(at, rs, members, mask, number);

    ct_cursor_branch(at, all, arrived, rs->after);
    ct_cursor_enter(at, arrived);
    ct_exchange_results(at, rs->x, insn, members);
    ct_assign(at, rs->ready, constant_predicate(at, true));
    if (insn->op == CT_OP_VOTE)
        ct_assign(at, rs->clear, constant_predicate(at, true));
}

static void make_posting(struct resume *rs, const struct ct_point_group *group)
{
    struct ct_cursor at = {.fn = rs->fn, .block = group->posting, .where = group->insn->where};

    post_insn(&at, rs, ct_resume_points_insn(&at, &rs->points, group), group->kind);
    ct_cursor_jump(&at, rs->post);
}

static void make_evaluation(struct resume *rs, const struct ct_point_group *group)
{
    struct ct_cursor at = {.fn = rs->fn, .block = group->evaluation, .where = group->insn->where};
    const struct ct_insn *insn = ct_resume_points_insn(&at, &rs->points, group);

    if (insn->op == CT_OP_BARRIER)
        evaluate_barrier(&at, rs, insn);
    else if (insn->op == CT_OP_ACTIVEMASK)
        evaluate_activemask(&at, rs, insn, group->kind);
    else if (ct_is_warp_op(insn->op))
        evaluate_warp_op(&at, rs, insn, group->kind);
    else
        ct_assign(&at, rs->ready, constant_predicate(&at, true));
    ct_cursor_jump(&at, rs->after);
}

static void make_code_of_groups(struct resume *rs)
{
    for (uint32_t i = 0; i < rs->points.groups.n; i++) {
        const struct ct_point_group *group = &rs->points.groups.v[i];

        if (group->posting)
            make_posting(rs, group);
        make_evaluation(rs, group);
    }
}

/* ---- kinds ---- */

/* Decides what the points need of the exchange area: a counter for each kind whose lanes are counted, and for all others the columns that say where each lane
 * waits. */
static void prepare_kinds(struct resume *rs)
{
    struct ct_exchange *x = rs->x;

    for (uint32_t i = 0; i < rs->points.all.n; i++) {
        const struct ct_insn *insn = rs->points.all.v[i].insn;
        const struct ct_point_kind *kind = ct_resume_points_kind(&rs->points, insn);

        if (!ct_is_warp_op(insn->op) || (kind && kind->is_counted))
            continue;
        x->column[CT_COLUMN_KIND] = x->column[CT_COLUMN_MASK] = true;
    }
    x->n_counters = ct_resume_points_number_counters(&rs->points);
}

static void clear_passed(struct ct_cursor *at, const struct resume *rs)
{
    for (uint32_t i = 0; i < rs->points.kinds.n; i++)
        if (rs->points.kinds.v[i].is_counted)
            ct_assign(at, rs->points.kinds.v[i].passed, ct_const32(at, 0));
}

/* ---- rounds ----
 * Lanes that skip an activemask may be in a later round of a loop already when others arrive there. A GPU's lanes have met at the end of the round before:
 * RAFT, for example, adds the number of active lanes to a counter of the round. So each loop with an activemask counts its rounds, from 0 on where it
 * is entered, and each activemask combines the counts of the loops around it to one number, which lanes compare. Graphs with loops of several entries have no such counts. */

enum { ROUNDS_FACTOR = 0x9e3779b1 };

/* Sets the counter before the loop, and adds to it where a round ends. Either may happen where the loop is not entered or left, too: it does not matter. */
static ct_value count_rounds_of(struct resume *rs, const struct ct_block *head)
{
    const ct_value counter = ct_value_create(rs->fn, CT_W_32);

    for (uint32_t i = 0; i < head->preds.n; i++) {
        struct ct_block *pred = head->preds.v[i];
        struct ct_cursor at = {.fn = rs->fn, .block = pred, .before = pred->last, .where = pred->last->where};

        ct_assign(&at, counter, ct_loop_contains(head, pred) ? ct_add_imm(&at, counter, 1) : ct_const32(&at, 0));
    }
    return counter;
}

static void number_rounds(struct resume *rs, struct ct_insn *activemask, const struct ct_block *head, ct_value *counters)
{
    struct ct_cursor at = {.fn = rs->fn, .block = activemask->block, .before = activemask, .where = activemask->where};
    ct_value number = ct_const32(&at, 0);

    for (; head; head = head->loop_parent) {
        if (!counters[head->id].i)
            counters[head->id] = count_rounds_of(rs, head);
        number = ct_add(&at, ct_op2(&at, CT_OP_MUL, PTX_U32, number, ct_const32(&at, ROUNDS_FACTOR)), counters[head->id]);
    }
    ct_assign(&at, rs->rounds, number);
}

static bool has_activemask(const struct ct_fn *fn)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (insn->op == CT_OP_ACTIVEMASK)
                return true;
    return false;
}

static void count_rounds(struct resume *rs)
{
    struct ct_fn *fn = rs->fn;
    ct_value *counters; /* by the id of a loop's header */
    bool has_loops;

    rs->rounds = ct_value_create(fn, CT_W_32);
    ct_fn_remove_unreachable(fn);
    ct_fn_compute_dominators(fn);
    has_loops = ct_fn_is_reducible(fn);
    if (has_loops)
        ct_fn_compute_loops(fn);
    counters = CT_ARENA_ARRAY(rs->scratch, ct_value, fn->blocks.n);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (insn->op == CT_OP_ACTIVEMASK)
                number_rounds(rs, insn, has_loops ? fn->blocks.v[b]->loop_head : NULL, counters);
}

/* ---- cutting ---- */

/* `writer`: the last instruction before this one that wrote the barrier's number, or NULL. */
static void note_barrier(struct resume *rs, const struct ct_insn *insn, const struct ct_insn *writer)
{
    const bool is_constant = writer && writer->block == insn->block && writer->op == CT_OP_CONST;

    /* Compilers put a constant number right before the barrier; a register may hold any number. */
    rs->barriers |= is_constant ? 1u << (writer->imm % CT_MAX_BARRIERS) : (1u << CT_MAX_BARRIERS) - 1;
}

static void arrive_only(struct resume *rs, struct ct_insn *insn)
{
    struct ct_cursor at = {.fn = rs->fn, .block = insn->block, .before = insn, .where = insn->where};

    count_arrival(&at, insn);
    ct_insn_remove(insn);
}

static bool is_point(const struct ct_insn *insn)
{
    return insn->op == CT_OP_YIELD || (ct_is_sync(insn->op) && !(insn->op == CT_OP_BARRIER && insn->mode == PTX_MODE_ARRIVE));
}

static void collect_insn(struct resume *rs, struct ct_insn *insn, const struct ct_insn *const *writers)
{
    if (insn->op == CT_OP_BARRIER) {
        note_barrier(rs, insn, insn->operands[0].i ? writers[insn->operands[0].i] : NULL);
        rs->counts |= has_count(insn);
    }
    rs->votes |= insn->op == CT_OP_VOTE;
    rs->waits_for_grid |= rs->fn->cooperative && insn->op == CT_OP_YIELD;
    if (is_point(insn))
        ct_resume_points_add(&rs->points, insn, writers);
    else if (insn->op == CT_OP_BARRIER)
        arrive_only(rs, insn);
}

static void collect_points(struct resume *rs)
{
    const struct ct_insn **writers = CT_ARENA_ARRAY(rs->scratch, const struct ct_insn *, rs->fn->values.n); /* by value: the last one */
    bool *full = CT_ARENA_ARRAY(rs->scratch, bool, rs->fn->values.n);
    struct ct_insn *next;
    uint32_t ends = 0;

    ct_find_full_masks(rs->fn, full);
    rs->points.full = full;
    for (uint32_t b = 0; b < rs->fn->blocks.n; b++)
        for (struct ct_insn *insn = rs->fn->blocks.v[b]->first; insn; insn = next) {
            next = insn->next;
            ends += insn->op == CT_OP_RET || insn->op == CT_OP_EXIT;
            collect_insn(rs, insn, writers);
            for (uint32_t i = 0; i < insn->n_results; i++)
                writers[insn->results[i].i] = insn;
        }
    rs->ends_early = ends > 1;
}

static void cut_at_points(struct resume *rs)
{
    struct ct_cutter cutter = {0};

    for (uint32_t point = 1; point <= rs->points.all.n; point++) {
        struct ct_insn *insn = rs->points.all.v[point - 1].insn;
        struct ct_cursor at = {.fn = rs->fn, .where = insn->where};

        ct_cutter_go_to(&cutter, insn);
        at.block = insn->block;
        *CT_PUSH(rs->scratch, &rs->segments) = ct_cutter_cut(rs->fn, &cutter, insn);
        ct_resume_points_load(&(struct ct_cursor){.fn = rs->fn, .block = insn->block, .before = insn, .where = insn->where}, &rs->points,
                              &rs->points.all.v[point - 1]);
        ct_insn_remove(insn);
        stop_at(&at, rs, point);
    }
    ct_cutter_finish(&cutter);
}

/* ---- the loop ---- */

static void make_switch(struct ct_cursor *at, const struct resume *rs, struct ct_block *const *targets, uint32_t n)
{
    ct_emit_insn(at, CT_OP_SWITCH, PTX_U32, 0, 1)->operands[0] = rs->point;
    ct_block_set_succs(rs->fn, at->block, n, targets);
}

struct update { /* a barrier's new START words, computed before the second block barrier and stored after it */
    ct_value complete, start, pred_start;
};

static struct update prepare_update(struct ct_cursor *at, struct resume *rs, uint32_t number)
{
    const ct_value which = ct_const32(at, number);
    const ct_value total = ct_exchange_load(at, ct_exchange_bar_word(at, which, CT_BAR_TOTAL));
    const ct_value arrived = ct_sub(at, total, ct_exchange_load(at, ct_exchange_bar_word(at, which, CT_BAR_START)));
    const ct_value any = ct_icmp_imm(at, PTX_B32, PTX_NE, arrived, 0), first = ct_equals(at, rs->x->thread, 0);

    return (struct update){
        .complete = ct_and(at, ct_and(at, any, first), is_complete(at, rs, which, arrived)),
        .start = total,
        .pred_start = ct_exchange_load(at, ct_exchange_bar_word(at, which, CT_BAR_PRED_TOTAL)),
    };
}

static void apply_update(struct ct_cursor *at, struct resume *rs, uint32_t number, const struct update *update)
{
    struct ct_block *store = ct_block_create(rs->fn), *after = ct_block_create(rs->fn);

    ct_cursor_branch(at, update->complete, store, after);
    ct_cursor_enter(at, store);
    ct_exchange_store(at, ct_exchange_bar_word(at, ct_const32(at, number), CT_BAR_START), update->start);
    ct_exchange_store(at, ct_exchange_bar_word(at, ct_const32(at, number), CT_BAR_PRED_START), update->pred_start);
    if (rs->counts)
        ct_exchange_store(at, ct_exchange_bar_word(at, ct_const32(at, number), CT_BAR_ARRIVED_WARPS), ct_const32(at, 0));
    ct_cursor_jump(at, after);
    ct_cursor_enter(at, after);
}

static void clear_ballot(struct ct_cursor *at, struct resume *rs)
{
    static const struct ct_insn vote = {.op = CT_OP_VOTE};
    struct ct_block *clear = ct_block_create(rs->fn), *after = ct_block_create(rs->fn);

    ct_cursor_branch(at, rs->clear, clear, after);
    ct_cursor_enter(at, clear);
    ct_exchange_retract(at, rs->x, &vote);
    ct_assign(at, rs->clear, constant_predicate(at, false));
    ct_cursor_jump(at, after);
    ct_cursor_enter(at, after);
}

/* Continues if any thread can do more than spin. */
static void continue_or_suspend(struct ct_cursor *at, struct resume *rs)
{
    const ct_value progresses = ct_and(at, rs->ready, ct_not(at, rs->spins));

    ct_cursor_branch(at, ct_exchange_any(at, rs->any_slot, progresses), rs->head, rs->grid.wait);
}

static void make_iteration(struct resume *rs)
{
    struct ct_cursor at = {.fn = rs->fn, .block = rs->post, .where = rs->fn->source->where};
    struct ct_block *finish = rs->waits_for_grid ? rs->grid.end : ct_block_create(rs->fn);
    struct ct_block *more = rs->waits_for_grid ? ct_block_create(rs->fn) : NULL;
    struct update update[CT_MAX_BARRIERS];
    ct_value all_ended;

    ct_exchange_barrier(&at);
    make_switch(&at, rs, rs->evaluations.v, rs->evaluations.n);
    ct_cursor_enter(&at, rs->after);
    all_ended = ct_icmp(&at, PTX_U32, PTX_GE, ct_exchange_load(&at, ct_exchange_ended_word(&at)), rs->x->threads);
    for (uint32_t i = 0; i < CT_MAX_BARRIERS; i++)
        if (rs->barriers >> i & 1)
            update[i] = prepare_update(&at, rs, i);
    ct_exchange_barrier(&at);
    for (uint32_t i = 0; i < CT_MAX_BARRIERS; i++)
        if (rs->barriers >> i & 1)
            apply_update(&at, rs, i, &update[i]);
    if (rs->counts) /* a thread that continues may arrive at the barrier again, and must not be cleared with those that arrived before */
        ct_exchange_barrier(&at);
    if (rs->votes)
        clear_ballot(&at, rs);
    ct_cursor_branch(&at, all_ended, finish, rs->waits_for_grid ? more : rs->head);
    if (rs->waits_for_grid) {
        ct_cursor_enter(&at, more);
        continue_or_suspend(&at, rs);
    } else {
        ct_cursor_enter(&at, finish);
        ct_emit_insn(&at, CT_OP_RET, PTX_NONE, 0, 0);
    }
}

static void make_head(struct ct_cursor *at, struct resume *rs)
{
    struct ct_block *run = ct_block_create(rs->fn);

    ct_assign(at, rs->point, ct_const32(at, 0));
    ct_assign(at, rs->ready, constant_predicate(at, true));
    ct_assign(at, rs->clear, constant_predicate(at, false));
    clear_passed(at, rs);
    if (rs->waits_for_grid) {
        ct_assign(at, rs->spins, constant_predicate(at, false));
        ct_assign(at, rs->any_slot, ct_const32(at, 0));
    }
    ct_cursor_jump(at, rs->waits_for_grid ? rs->grid.start : rs->head);
    ct_cursor_enter(at, rs->head);
    ct_cursor_branch(at, rs->ready, run, rs->post);
    ct_cursor_enter(at, run);
    make_switch(at, rs, rs->segments.v, rs->segments.n);
}

static void prepare_for_grid(struct resume *rs)
{
    rs->spins = ct_value_create(rs->fn, CT_W_PRED);
    rs->any_slot = ct_value_create(rs->fn, CT_W_32);
    rs->grid = (struct ct_grid_blocks){rs->head, ct_block_create(rs->fn), ct_block_create(rs->fn), ct_block_create(rs->fn)};
}

/* The number of points, in *out. The switches over them also have a case for the first segment, and one for threads that have ended. Kernels
 * with too many are refused before memory is spent on them. */
static bool count_points(struct ct_fn *fn, uint32_t *out)
{
    const uint32_t most = CT_SWITCH_TARGETS_MAX - 2;
    const struct ct_insn *beyond = NULL;
    uint32_t n = 0;

    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (is_point(insn) && n++ == most)
                beyond = insn;
    *out = n;
    return !beyond ||
           ct_error(fn->compilation, beyond->where, PTX2SPV_UNSUPPORTED,
                    "%s: %" PRIu32 " barriers and warp instructions are not supported: there may be at most %" PRIu32, fn->name, n, most);
}

bool ct_resume(struct ct_fn *fn, struct ct_exchange *x)
{
    struct resume rs = {.fn = fn, .x = x, .scratch = &fn->compilation->scratch};
    struct ct_cursor at;
    struct ct_block *entry;
    uint32_t n;

    if (!count_points(fn, &n))
        return false;
    ct_resume_points_init(&rs.points, fn, n);
    if (rs.points.shares_registers)
        ct_coalesce_registers(fn);
    ct_fn_compute_preds(fn);
    ct_fn_detach_entry(fn);
    if (has_activemask(fn))
        count_rounds(&rs);
    entry = fn->blocks.v[0];
    rs.head = ct_block_create(fn);
    rs.post = ct_block_create(fn);
    rs.after = ct_block_create(fn);
    rs.point = ct_value_create(fn, CT_W_32);
    rs.ready = ct_value_create(fn, CT_W_PRED);
    rs.clear = ct_value_create(fn, CT_W_PRED);
    *CT_PUSH(rs.scratch, &rs.segments) = ct_block_split(fn, entry, entry->first);
    collect_points(&rs);
    prepare_kinds(&rs);
    if (rs.waits_for_grid)
        prepare_for_grid(&rs);
    at = (struct ct_cursor){.fn = fn, .block = entry, .where = fn->source->where};
    ct_exchange_begin(&at, x);
    ct_resume_points_group(&rs.points);
    cut_at_points(&rs);
    n = fn->blocks.n;
    for (uint32_t b = 0; b < n; b++)
        if (fn->blocks.v[b]->last && (fn->blocks.v[b]->last->op == CT_OP_RET || fn->blocks.v[b]->last->op == CT_OP_EXIT))
            end_thread(&rs, fn->blocks.v[b]);
    *CT_PUSH(rs.scratch, &rs.evaluations) = rs.after;
    for (uint32_t i = 0; i < rs.points.all.n; i++)
        *CT_PUSH(rs.scratch, &rs.evaluations) = rs.points.groups.v[rs.points.all.v[i].group].evaluation;
    *CT_PUSH(rs.scratch, &rs.evaluations) = rs.after; /* for threads that have ended */
    make_code_of_groups(&rs);
    make_iteration(&rs);
    make_head(&at, &rs);
    if (rs.waits_for_grid)
        ct_grid_add_checkpoint(fn, x, &rs.grid);
    ct_exchange_finish(x);
    return true;
}
