/* SPDX-License-Identifier: Apache-2.0 */
/* collective: turns synchronization points into instructions that the device has.
 * In:  register form, calls inlined, laid out.   Out: barriers have number 0 and are for the whole block, and every thread of the block
 *      reaches them together, except on native devices; native devices also have LANEREAD, BALLOT, WARPSYNC.
 *
 * Native form (GPUs whose subgroup instructions and barriers are correct in divergent code): warp instructions become reads of other lanes'
 * registers, named and counted barriers become counters on which threads wait, bar.red becomes an exchange.
 * Collective form (all other devices, and kernels with loops that wait for other threads): a point that the whole block reaches together
 * becomes an exchange in place; the other points are predicated if possible (predicate.c); otherwise the kernel is cut at all of its points
 * (resume.c).
 * The target's sync_form can force one of the latter two. */
#include "sync.h"

#include <string.h>

/* A barrier of all threads of the block, at which the threads wait: any number, no thread count. */
static bool is_full(const struct ct_insn *insn)
{
    const bool red = insn->mode == PTX_MODE_RED;

    return insn->mode != PTX_MODE_ARRIVE && insn->n_operands - red <= 1;
}

static bool is_plain(const struct ct_insn *insn)
{
    return insn->op == CT_OP_BARRIER && is_full(insn) && insn->mode != PTX_MODE_RED;
}

/* Whether the pass must rewrite the instruction, and whether that needs the exchange area. */
static bool is_rewritten(const struct ct_insn *insn, bool native)
{
    return ct_is_sync(insn->op) && !is_plain(insn) && !(native && (insn->op == CT_OP_WARPSYNC || insn->op == CT_OP_CONVERGE));
}

static bool needs_exchange(const struct ct_insn *insn, bool native)
{
    return is_rewritten(insn, native) && insn->op != CT_OP_CONVERGE && !(native && ct_is_warp_op(insn->op));
}

static void note_columns(struct ct_exchange *x, struct ct_insn *insn)
{
    struct ct_shuffle_run run;

    ct_shuffle_run_at(insn, x->run_max, &run);
    for (uint32_t i = 1; i < run.n; i++)
        x->column[CT_COLUMN_RUN + i - 1] = true;
    if (insn->op == CT_OP_SHFL || insn->op == CT_OP_REDUX || insn->op == CT_OP_MATCH)
        x->column[CT_COLUMN_LOW] = true;
    if (insn->op == CT_OP_MATCH && ct_width_of_value(x->fn, insn->operands[0]) == CT_W_64)
        x->column[CT_COLUMN_HIGH] = true;
}

/* ---- in place ---- */

/* A barrier of the whole block needs no number of its own: the block is at one barrier at a time. */
static void make_barrier_zero(struct ct_fn *fn, struct ct_insn *insn)
{
    struct ct_cursor at = {.fn = fn, .block = insn->block, .before = insn, .where = insn->where};

    insn->operands[0] = ct_const32(&at, 0);
    insn->mode = PTX_MODE_SYNC;
}

static void reduce_in_place(struct ct_cursor *at, const struct ct_insn *insn)
{
    const ct_value word = ct_exchange_bar_word(at, ct_const32(at, 0), CT_BAR_PRED_TOTAL), mine = ct_exchange_predicate(at, insn);
    ct_value sum;

    ct_exchange_atomic(at, PTX_ADD, word, mine);
    ct_exchange_barrier(at);
    sum = ct_exchange_load(at, word);
    ct_assign(at, insn->results[0], ct_exchange_bar_result(at, insn, sum));
    ct_exchange_barrier(at);
    ct_exchange_atomic(at, PTX_ADD, word, ct_sub(at, ct_const32(at, 0), mine));
}

static void exchange_in_place(struct ct_cursor *at, struct ct_exchange *x, const struct ct_shuffle_run *run)
{
    const struct ct_insn *insn = run->insns[0];

    if (insn->op == CT_OP_BARRIER) {
        reduce_in_place(at, insn);
        return;
    }
    if (insn->op == CT_OP_CONVERGE) {
        ct_exchange_barrier(at);
        return;
    }
    ct_exchange_post_run(at, x, run);
    ct_exchange_barrier(at);
    if (insn->op == CT_OP_WARPSYNC)
        return;
    ct_exchange_results_of_run(at, x, run, ct_and(at, ct_exchange_mask(at, insn), x->lanes_of_warp));
    ct_exchange_barrier(at);
    ct_exchange_retract(at, x, insn);
}

/* ---- native form ---- */

static void native_warp_op(struct ct_cursor *at, struct ct_exchange *x, const struct ct_insn *insn)
{
    const ct_value mask = ct_emit1(at, CT_OP_BALLOT, PTX_B32, CT_W_32, ct_emit_const(at, CT_W_PRED, true));

    x->native = true;
    ct_exchange_post(at, x, insn);
    ct_exchange_results(at, x, insn, ct_and(at, ct_exchange_mask(at, insn), mask));
    x->native = false;
}

static void fence(struct ct_cursor *at)
{
    ct_emit_fence(at, PTX_ACQ_REL, PTX_CTA);
}

/* A barrier's word: the lower half counts the threads that have arrived, the upper half counts how often the barrier was completed. */
enum { BAR_PHASE = 1 << 16 };

static void arrive(struct ct_cursor *at, ct_value word, ct_value weight, ct_value count, bool waits)
{
    struct ct_block *last = ct_block_create(at->fn), *wait = ct_block_create(at->fn), *done = ct_block_create(at->fn);
    const ct_value before = ct_exchange_atomic(at, PTX_ADD, word, weight);
    const ct_value arrived = ct_add(at, ct_and_imm(at, before, BAR_PHASE - 1), weight);
    ct_value now;

    ct_cursor_branch(at, ct_icmp(at, PTX_U32, PTX_GE, arrived, count), last, waits ? wait : done);
    ct_cursor_enter(at, last);
    ct_exchange_atomic(at, PTX_ADD, word, ct_sub(at, ct_const32(at, BAR_PHASE), arrived));
    ct_cursor_jump(at, done);
    if (waits) {
        ct_cursor_enter(at, wait);
        now = ct_exchange_atomic(at, PTX_ADD, word, ct_const32(at, 0));
        ct_cursor_branch(at, ct_icmp_imm(at, PTX_U32, PTX_GE, ct_xor(at, now, before), BAR_PHASE), done, wait);
    }
    ct_cursor_enter(at, done);
}

/* The active lanes, and one of them that acts for all. The ballot also makes them reconverge: if some lanes of a warp waited in a loop
 * for others of the same warp, those might never make progress (seen with NVIDIA 580, after loops that lanes left in different
 * iterations). */
struct active_lanes {
    ct_value mask, leader, is_leader;
};

static struct active_lanes find_active_lanes(struct ct_cursor *at, const struct ct_exchange *x)
{
    struct active_lanes active_lanes;

    active_lanes.mask = ct_emit1(at, CT_OP_BALLOT, PTX_B32, CT_W_32, ct_emit_const(at, CT_W_PRED, true));
    active_lanes.leader = ct_op1(at, CT_OP_CLZ, PTX_B32, ct_op1(at, CT_OP_BREV, PTX_B32, active_lanes.mask));
    active_lanes.is_leader = ct_icmp(at, PTX_B32, PTX_EQ, active_lanes.leader, x->lane);
    return active_lanes;
}

/* How many threads an arrival counts for. A warp counts as 32, even one that has fewer lanes or of which some have ended. If a warp may
 * arrive in several parts, the part with lane 0 also counts for the lanes that do not exist. */
static ct_value weight_of(struct ct_cursor *at, const struct ct_exchange *x, const struct active_lanes *active_lanes, bool aligned)
{
    ct_value missing;

    if (aligned)
        return ct_const32(at, 32);
    missing = ct_select(at, ct_equals(at, ct_and_imm(at, active_lanes->mask, 1), 0), ct_const32(at, 0), ct_not(at, x->lanes_of_warp));
    return ct_bits1(at, CT_OP_POPC, ct_or(at, active_lanes->mask, missing));
}

static ct_value votes_of(struct ct_cursor *at, const struct ct_insn *insn)
{
    const ct_value counts = ct_icmp_imm(at, PTX_B32, PTX_NE, ct_exchange_predicate(at, insn), 0);

    return ct_bits1(at, CT_OP_POPC, ct_emit1(at, CT_OP_BALLOT, PTX_B32, CT_W_32, counts));
}

/* The sum of the votes. The barrier is passed twice, so that all threads have read the sum before the votes are subtracted again. */
static ct_value sum_votes(struct ct_cursor *at, ct_value sums, ct_value votes, ct_value word, ct_value weight, ct_value count)
{
    ct_value sum;

    ct_exchange_atomic(at, PTX_ADD, sums, votes);
    fence(at);
    arrive(at, word, weight, count, true);
    fence(at);
    sum = ct_exchange_load(at, sums);
    fence(at);
    arrive(at, word, weight, count, true);
    ct_exchange_atomic(at, PTX_ADD, sums, ct_sub(at, ct_const32(at, 0), votes));
    return sum;
}

static void native_barrier(struct ct_cursor *at, struct ct_exchange *x, const struct ct_insn *insn)
{
    const bool red = insn->mode == PTX_MODE_RED;
    const ct_value number = insn->operands[0], threads = ct_and_imm(at, ct_add_imm(at, x->threads, 31), ~UINT32_C(31));
    const ct_value requested = insn->n_operands - red > 1 ? insn->operands[1] : threads;
    const ct_value count = ct_select(at, ct_equals(at, requested, 0), threads, requested), sum = ct_copy(at, ct_const32(at, 0));
    const ct_value word = ct_exchange_bar_word(at, number, CT_BAR_TOTAL), sums = ct_exchange_bar_word(at, number, CT_BAR_PRED_TOTAL);
    struct ct_block *lead = ct_block_create(at->fn), *joined = ct_block_create(at->fn);
    struct active_lanes active_lanes;
    ct_value weight, votes;

    fence(at);
    active_lanes = find_active_lanes(at, x);
    weight = weight_of(at, x, &active_lanes, insn->aligned);
    votes = red ? votes_of(at, insn) : CT_NO_VALUE;
    ct_cursor_branch(at, active_lanes.is_leader, lead, joined);
    ct_cursor_enter(at, lead);
    if (red)
        ct_assign(at, sum, sum_votes(at, sums, votes, word, weight, count));
    else
        arrive(at, word, weight, count, insn->mode != PTX_MODE_ARRIVE);
    ct_cursor_jump(at, joined);
    ct_cursor_enter(at, joined);
    if (insn->mode == PTX_MODE_ARRIVE)
        return;
    ct_emit_insn(at, CT_OP_WARPSYNC, PTX_B32, 0, 1)->operands[0] = active_lanes.mask;
    fence(at);
    if (red)
        ct_assign(at, insn->results[0],
                  ct_exchange_bar_result(at, insn, ct_emit2(at, CT_OP_LANEREAD, PTX_B32, CT_W_32, sum, active_lanes.leader)));
}

/* ---- the pass ---- */

struct points {
    CT_VEC(struct ct_insn *) list;
    bool rewritten, exchange;
    bool divergent;         /* some points are not reached by the whole block together */
    bool divergent_barrier; /* one of those is a barrier */
    bool parts;             /* there are barriers of parts of a block */
};

static struct points find_points(struct ct_fn *fn, const bool *divergent, bool native)
{
    struct points points = {0};

    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next) {
            if (!ct_is_sync(insn->op))
                continue;
            *CT_PUSH(&fn->compilation->scratch, &points.list) = insn;
            points.rewritten |= is_rewritten(insn, native);
            points.exchange |= needs_exchange(insn, native);
            points.parts |= insn->op == CT_OP_BARRIER && !is_full(insn);
            points.divergent |= divergent && divergent[b];
            points.divergent_barrier |= divergent && divergent[b] && insn->op == CT_OP_BARRIER;
        }
    return points;
}

/* Whether the run at the head of the block has this instruction, too. */
static bool is_in_first_run(const struct ct_block *block, const struct ct_insn *insn, uint32_t run_max)
{
    struct ct_shuffle_run run;
    bool is_in = false;

    ct_shuffle_run_at(block->first, run_max, &run);
    for (uint32_t i = 0; i < run.n; i++)
        is_in |= run.insns[i] == insn;
    return is_in;
}

/* Moves every point, or run of shuffles, to the head of a basic block. */
static void isolate_points(struct ct_fn *fn, uint32_t run_max)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++) {
        struct ct_block *block = fn->blocks.v[b];
        struct ct_insn *insn = block->first;

        while (insn && (!ct_is_sync(insn->op) || is_in_first_run(block, insn, run_max)))
            insn = insn->next;
        if (insn) { /* the rest of the block is a new block, which is visited later */
            struct ct_cursor at = {.fn = fn, .block = block, .where = insn->where};

            ct_cursor_jump(&at, ct_block_cut(fn, block, insn));
        } else {
            ct_block_adopt(block);
        }
    }
}

static void add_preheader(struct ct_fn *fn, struct ct_block *head)
{
    struct ct_cursor at = {.fn = fn, .block = ct_block_create(fn), .where = head->first->where};

    ct_cursor_jump(&at, head);
    for (uint32_t i = 0; i < head->preds.n; i++) {
        struct ct_block *pred = head->preds.v[i];

        for (uint32_t s = 0; s < pred->n_succs && !ct_block_dominates(head, pred); s++)
            if (pred->succs[s] == head)
                pred->succs[s] = at.block;
    }
}

static void add_preheaders(struct ct_fn *fn)
{
    const uint32_t n = fn->blocks.n;

    for (uint32_t b = 0; b < n; b++) {
        struct ct_block *block = fn->blocks.v[b];
        uint32_t back = 0;

        for (uint32_t i = 0; i < block->preds.n; i++)
            back += ct_block_dominates(block, block->preds.v[i]);
        if (back && block->preds.n > back + 1)
            add_preheader(fn, block);
    }
}

/* Isolates points, splits off the entry, and gives loops preheaders, as predicate.c needs it. */
static void prepare(struct ct_fn *fn, uint32_t run_max)
{
    struct ct_cursor at = {.fn = fn, .block = fn->blocks.v[0], .where = fn->source->where};

    ct_cursor_jump(&at, ct_block_split(fn, at.block, at.block->first));
    isolate_points(fn, run_max);
    ct_fn_remove_unreachable(fn);
    ct_fn_compute_dominators(fn);
    add_preheaders(fn);
    fn->props &= ~CT_PROP_GRAPH;
}

/* ---- the choice ---- */

struct choice {
    bool native, predicated, resumed;
    const bool *divergent; /* indexed by block id; NULL if not needed */
    uint32_t run_max;
};

/* Whether threads may be in different iterations of a loop with several entries, or leave a loop in different iterations for different
 * blocks. */
static bool has_scattering_loop(struct ct_fn *fn, const bool *divergent)
{
    const struct ct_block **exits = CT_ARENA_ARRAY(&fn->compilation->scratch, const struct ct_block *, fn->blocks.n); /* of each header */

    ct_fn_compute_rpo(fn);
    ct_fn_compute_dominators(fn);
    if (!ct_fn_is_reducible(fn))
        return true;
    ct_fn_compute_loops(fn);
    for (uint32_t b = 0; b < fn->blocks.n; b++) {
        const struct ct_block *block = fn->blocks.v[b];

        for (uint32_t s = 0; divergent[b] && s < block->n_succs; s++)
            for (const struct ct_block *head = block->loop_head; head && !ct_loop_contains(head, block->succs[s]);
                 head = head->loop_parent) {
                if (exits[head->id] && exits[head->id] != block->succs[s])
                    return true;
                exits[head->id] = block->succs[s];
            }
    }
    return false;
}

/* For devices whose warps do not make independent progress, or that require every thread at every barrier, but not at warp instructions.
 * If a barrier is divergent, warp instructions use the exchange area, too: a kernel has one form. */
static void choose_for_barriers(struct ct_fn *fn, struct choice *choice)
{
    const struct points points = find_points(fn, choice->divergent, true);

    choice->native = !points.divergent_barrier && !points.parts;
    if (choice->native && fn->target->workarounds & PTX2SPV_WORKAROUND_SCATTERING_LOOPS)
        choice->native = !has_scattering_loop(fn, choice->divergent);
}

static const bool *all_but_the_entry(struct ct_fn *fn)
{
    bool *all = CT_ARENA_ARRAY(&fn->compilation->scratch, bool, fn->blocks.n);

    memset(all + 1, true, fn->blocks.n - 1);
    return all;
}

/* Whether there is a loop that threads may leave in different iterations. */
static bool has_divergent_loop(const struct ct_fn *fn, const bool *divergent)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        if (divergent[b] && fn->blocks.v[b]->loop_head)
            return true;
    return false;
}

static bool is_loop_header(const struct ct_block *block)
{
    for (uint32_t i = 0; i < block->preds.n; i++)
        if (ct_block_dominates(block, block->preds.v[i]))
            return true;
    return false;
}

/* Whether threads that have passed a point together may then leave the part of the kernel that it dominates in different ways: some of them
 * end, for example, and others go on behind the condition under which all of them reached the point. Loops that all threads enter count as
 * points (emit_control.c). The numbers are those of the points in the dominators of a block: an edge leaves the part of a point if its source
 * has more of them than the immediate dominator of its target. */
static bool is_left_in_different_ways(struct ct_fn *fn, const bool *divergent, const struct points *points)
{
    uint32_t *above = CT_ARENA_ARRAY(&fn->compilation->scratch, uint32_t, fn->blocks.n), n;
    struct ct_block **order;

    ct_fn_compute_rpo(fn);
    ct_fn_compute_dominators(fn);
    order = ct_fn_rpo_blocks(fn, &n);
    for (uint32_t i = 0; i < points->list.n; i++)
        above[points->list.v[i]->block->id]++;
    for (uint32_t i = 1; i < n; i++)
        above[order[i]->id] += above[order[i]->idom->id] + (!divergent[order[i]->id] && is_loop_header(order[i]));
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t s = 0; s < order[i]->n_succs; s++) {
            const struct ct_block *to = order[i]->succs[s];

            if (divergent[to->id] && !ct_block_dominates(to, order[i]) && above[order[i]->id] > above[to->idom->id])
                return true;
        }
    return false;
}

static void choose_collective(struct ct_fn *fn, struct choice *choice)
{
    const struct points points = find_points(fn, choice->divergent, false);
    const bool forced = fn->target->sync_form == PTX2SPV_SYNC_PREDICATED || ((fn->target->workarounds & PTX2SPV_WORKAROUND_SPLIT_TAILS) &&
                                                                             is_left_in_different_ways(fn, choice->divergent, &points));

    if (!points.list.n || !(points.divergent || points.parts || forced))
        return;
    choice->predicated = !points.parts && ct_runs_in_lockstep(fn, choice->divergent);
    if ((fn->target->workarounds & PTX2SPV_WORKAROUND_PREDICATED_LOOPS) && has_divergent_loop(fn, choice->divergent))
        choice->predicated = false;
    choice->resumed = !choice->predicated;
    if (choice->predicated && forced)
        choice->divergent = all_but_the_entry(fn);
}

/* Whether a warp may wait for another one that has not arrived yet. CPUs run warps one after the other. So do devices with two warps in
 * one subgroup, where the warps take different branches; and a barrier of the device counts both as one. */
static bool warps_progress_independently(const struct ptx2spv_target *target)
{
    return !target->threads_in_turn && target->subgroup_size <= 32;
}

static struct choice choose(struct ct_fn *fn)
{
    const bool may_be_native = fn->target->warp_form == PTX2SPV_WARP_NATIVE && fn->target->sync_form == PTX2SPV_SYNC_CHEAPEST;
    const bool in_turn = !warps_progress_independently(fn->target);
    struct choice choice = {.run_max = 1};

    if (ct_mark_spins(fn, may_be_native && !in_turn && !fn->cooperative ? CT_SPINS_FOR_LOCKS : CT_SPINS_ALL)) {
        choice.resumed = true;
        return choice;
    }
    choice.native = may_be_native && !in_turn;
    choice.resumed = fn->target->sync_form == PTX2SPV_SYNC_RESUMED && find_points(fn, NULL, false).list.n;
    if (choice.native || choice.resumed || !find_points(fn, NULL, false).list.n)
        return choice;
    choice.run_max = may_be_native ? 1 : ct_shuffle_run_max(fn);
    ct_gather_shuffles(fn, choice.run_max);
    prepare(fn, choice.run_max);
    choice.divergent = ct_find_divergent_blocks(fn);
    if (may_be_native)
        choose_for_barriers(fn, &choice);
    if (!choice.native)
        choose_collective(fn, &choice);
    return choice;
}

/* ---- the work ---- */

static void expand(struct ct_fn *fn, struct ct_exchange *x, struct ct_cutter *cutter, struct ct_insn *insn, bool native)
{
    struct ct_cursor at = {.fn = fn, .block = insn->block, .where = insn->where};
    struct ct_block *rest = ct_cutter_cut(fn, cutter, insn);
    struct ct_shuffle_run run;

    ct_shuffle_run_at(insn, x->run_max, &run);
    for (uint32_t i = 0; i < run.n; i++) {
        ct_cutter_go_to(cutter, run.insns[i]);
        ct_insn_remove(run.insns[i]);
    }
    if (native && ct_is_warp_op(insn->op))
        native_warp_op(&at, x, insn);
    else if (native && !is_full(insn))
        native_barrier(&at, x, insn);
    else
        exchange_in_place(&at, x, &run);
    ct_cursor_jump(&at, rest);
}

static void expand_points(struct ct_fn *fn, struct ct_exchange *x, const struct points *points, bool native)
{
    struct ct_cutter cutter = {0};

    for (uint32_t i = 0; i < points->list.n; i++) {
        struct ct_insn *insn = points->list.v[i];

        if (!insn->block)
            continue; /* it was predicated */
        ct_cutter_go_to(&cutter, insn);
        if (is_rewritten(insn, native))
            expand(fn, x, &cutter, insn, native);
        else if (is_plain(insn))
            make_barrier_zero(fn, insn);
    }
    ct_cutter_finish(&cutter);
}

/* The entry code is created in blocks of its own, which are linked in front of the kernel at the end. */
static void expand_all(struct ct_fn *fn, const struct points *points, const struct choice *choice)
{
    struct ct_exchange x = {.fn = fn, .run_max = choice->run_max};
    struct ct_cursor at = {.fn = fn, .where = fn->source->where};
    struct ct_block *entry, *first;

    for (uint32_t i = 0; i < points->list.n && !choice->native; i++)
        note_columns(&x, points->list.v[i]);
    ct_fn_compute_preds(fn);
    ct_fn_detach_entry(fn);
    entry = fn->blocks.v[0];
    first = at.block = ct_block_create(fn);
    if (points->exchange || choice->predicated)
        ct_exchange_begin(&at, &x);
    else
        x.lane = ct_sysval(&at, CT_SYS_LANEID);
    if (choice->predicated)
        ct_predicate(&at, &x, choice->divergent);
    expand_points(fn, &x, points, choice->native);
    ct_cursor_jump(&at, ct_block_split(fn, entry, entry->first));
    at = (struct ct_cursor){.fn = fn, .block = entry, .where = at.where};
    ct_cursor_jump(&at, first);
    if (points->exchange || choice->predicated)
        ct_exchange_finish(&x);
}

static enum ct_pass_result expand_synchronization(struct ct_fn *fn)
{
    const struct choice choice = choose(fn);
    const struct points points = find_points(fn, choice.divergent, choice.native);

    fn->has_native_warps = choice.native;
    if (choice.resumed) {
        struct ct_exchange x = {.fn = fn, .run_max = 1};

        for (uint32_t i = 0; i < points.list.n; i++)
            note_columns(&x, points.list.v[i]);
        if (!ct_resume(fn, &x))
            return CT_PASS_FAILED;
    } else if (points.rewritten || choice.predicated) {
        expand_all(fn, &points, &choice);
    } else {
        for (uint32_t i = 0; i < points.list.n; i++)
            if (is_plain(points.list.v[i]))
                make_barrier_zero(fn, points.list.v[i]);
        return choice.divergent ? CT_PASS_CHANGED : CT_PASS_UNCHANGED;
    }
    ct_fn_remove_unreachable(fn);
    return CT_PASS_CHANGED;
}

enum ct_pass_result ct_pass_collective(struct ct_fn *fn)
{
    enum ct_pass_result result;

    ct_matrix_area_place(fn);
    result = expand_synchronization(fn);
    ct_matrix_area_finish(fn);
    return fn->matrix_words && result == CT_PASS_UNCHANGED ? CT_PASS_CHANGED : result;
}
