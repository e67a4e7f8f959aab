/* SPDX-License-Identifier: Apache-2.0 */
/* collective: synchronization points become what the device can do.
 * In:  register form, calls inlined, laid out.   Out: barriers 0 of the whole block, which, but on native devices, every thread of the
 *      block reaches together; native devices also LANEREAD, BALLOT, WARPSYNC.
 *
 * Native (GPUs whose subgroup instructions and barriers are right in divergent code): warp instructions become reads of other lanes'
 * registers, named and counted barriers counters that threads wait on, bar.red an exchange.
 * Collective (everything else, and kernels with loops that wait for other threads): a point that the whole block reaches together becomes
 * an exchange in place; the others are predicated if they can be (predicate.c); if not, the kernel is cut at all of its points (resume.c).
 * Target: sync_form asks for one of the latter two. */
#include "sync.h"

#include <string.h>

/* A barrier of all threads of the block that waits: any number, no count. */
static bool is_full(const struct ct_insn *insn)
{
    const bool red = insn->mode == PTX_MODE_RED;

    return insn->mode != PTX_MODE_ARRIVE && insn->n_operands - red <= 1;
}

static bool is_plain(const struct ct_insn *insn)
{
    return insn->op == CT_OP_BARRIER && is_full(insn) && insn->mode != PTX_MODE_RED;
}

/* What the pass must rewrite, and whether that takes the exchange area. */
static bool is_rewritten(const struct ct_insn *insn, bool native)
{
    return ct_is_sync(insn->op) && !is_plain(insn) && !(native && (insn->op == CT_OP_WARPSYNC || insn->op == CT_OP_CONVERGE));
}

static bool needs_exchange(const struct ct_insn *insn, bool native)
{
    return is_rewritten(insn, native) && insn->op != CT_OP_CONVERGE && !(native && ct_is_warp_op(insn->op));
}

static void note_columns(struct ct_exchange *x, const struct ct_insn *insn)
{
    if (insn->op == CT_OP_SHFL || insn->op == CT_OP_REDUX || insn->op == CT_OP_MATCH)
        x->column[CT_COLUMN_LOW] = true;
    if (insn->op == CT_OP_MATCH && ct_width_of_value(x->fn, insn->operands[0]) == CT_W_64)
        x->column[CT_COLUMN_HIGH] = true;
}

/* ---- in place ---- */

/* A barrier of the whole block needs no number of its own: the block meets at one at a time. */
static void make_barrier_zero(struct ct_fn *fn, struct ct_insn *insn)
{
    struct ct_cursor at = {.fn = fn, .block = insn->block, .before = insn, .where = insn->where};

    insn->operands[0] = ct_const32(&at, 0);
    insn->mode = PTX_MODE_SYNC;
}

static void reduce_in_place(struct ct_cursor *at, const struct ct_insn *insn)
{
    const ct_value word = ct_exchange_bar_word(at, ct_const32(at, 0), CT_BAR_PRED_TOTAL), mine = ct_exchange_predicate(at, insn);
    ct_value held;

    ct_exchange_atomic(at, PTX_ADD, word, mine);
    ct_exchange_barrier(at);
    held = ct_exchange_load(at, word);
    ct_assign(at, insn->results[0], ct_exchange_bar_result(at, insn, held));
    ct_exchange_barrier(at);
    ct_exchange_atomic(at, PTX_ADD, word, ct_sub(at, ct_const32(at, 0), mine));
}

static void exchange_in_place(struct ct_cursor *at, struct ct_exchange *x, const struct ct_insn *insn)
{
    if (insn->op == CT_OP_BARRIER) {
        reduce_in_place(at, insn);
        return;
    }
    if (insn->op == CT_OP_CONVERGE) {
        ct_exchange_barrier(at);
        return;
    }
    ct_exchange_post(at, x, insn);
    ct_exchange_barrier(at);
    if (insn->op == CT_OP_WARPSYNC)
        return;
    ct_exchange_results(at, x, insn, ct_and(at, ct_exchange_mask(at, insn), x->existing));
    ct_exchange_barrier(at);
    ct_exchange_unpost(at, x, insn);
}

/* ---- native ---- */

static void native_warp_op(struct ct_cursor *at, struct ct_exchange *x, const struct ct_insn *insn)
{
    const ct_value active = ct_emit1(at, CT_OP_BALLOT, PTX_B32, CT_W_32, ct_emit_const(at, CT_W_PRED, true));

    x->native = true;
    ct_exchange_post(at, x, insn);
    ct_exchange_results(at, x, insn, ct_and(at, ct_exchange_mask(at, insn), active));
    x->native = false;
}

static void fence(struct ct_cursor *at)
{
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_FENCE, PTX_NONE, 0, 0);

    insn->semantics = PTX_ACQ_REL;
    insn->scope = PTX_CTA;
}

/* A barrier's word: its lower half is how many threads have come, its upper half how often it was complete. */
enum { BAR_COMPLETE = 1 << 16 };

static void arrive(struct ct_cursor *at, ct_value word, ct_value weight, ct_value count, bool waits)
{
    struct ct_block *last = ct_block_create(at->fn), *wait = ct_block_create(at->fn), *done = ct_block_create(at->fn);
    const ct_value before = ct_exchange_atomic(at, PTX_ADD, word, weight);
    const ct_value come = ct_add(at, ct_and_imm(at, before, BAR_COMPLETE - 1), weight);
    ct_value now;

    ct_cursor_branch(at, ct_icmp(at, PTX_U32, PTX_GE, come, count), last, waits ? wait : done);
    ct_cursor_enter(at, last);
    ct_exchange_atomic(at, PTX_ADD, word, ct_sub(at, ct_const32(at, BAR_COMPLETE), come));
    ct_cursor_jump(at, done);
    if (waits) {
        ct_cursor_enter(at, wait);
        now = ct_exchange_atomic(at, PTX_ADD, word, ct_const32(at, 0));
        ct_cursor_branch(at, ct_icmp_imm(at, PTX_U32, PTX_GE, ct_xor(at, now, before), BAR_COMPLETE), done, wait);
    }
    ct_cursor_enter(at, done);
}

/* The lanes that are here with this one, and which of them speaks for all. Asking brings them together: were some of a warp to wait in a
 * loop for others of it, those might never get on (NVIDIA 580, behind loops that lanes left in different rounds). */
struct party {
    ct_value active, speaker, speaks;
};

static struct party party_here(struct ct_cursor *at, const struct ct_exchange *x)
{
    struct party party;

    party.active = ct_emit1(at, CT_OP_BALLOT, PTX_B32, CT_W_32, ct_emit_const(at, CT_W_PRED, true));
    party.speaker = ct_op1(at, CT_OP_CLZ, PTX_B32, ct_op1(at, CT_OP_BREV, PTX_B32, party.active));
    party.speaks = ct_icmp(at, PTX_B32, PTX_EQ, party.speaker, x->lane);
    return party;
}

/* How many threads of the barrier's have come: a warp counts as 32, also one that has fewer or of which some have ended. Of a warp that may
 * come in parts, the part with lane 0 stands for the lanes that the block has not. */
static ct_value weight_of(struct ct_cursor *at, const struct ct_exchange *x, const struct party *party, bool aligned)
{
    ct_value missing;

    if (aligned)
        return ct_const32(at, 32);
    missing = ct_select(at, ct_equals(at, ct_and_imm(at, party->active, 1), 0), ct_const32(at, 0), ct_not(at, x->existing));
    return ct_bits1(at, CT_OP_POPC, ct_or(at, party->active, missing));
}

static ct_value votes_of(struct ct_cursor *at, const struct ct_insn *insn)
{
    const ct_value counts = ct_icmp_imm(at, PTX_B32, PTX_NE, ct_exchange_predicate(at, insn), 0);

    return ct_bits1(at, CT_OP_POPC, ct_emit1(at, CT_OP_BALLOT, PTX_B32, CT_W_32, counts));
}

/* The sum of the votes; twice through the barrier, so that all have read before the votes are taken back. */
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
    const ct_value asked = insn->n_operands - red > 1 ? insn->operands[1] : threads;
    const ct_value count = ct_select(at, ct_equals(at, asked, 0), threads, asked), sum = ct_copy(at, ct_const32(at, 0));
    const ct_value word = ct_exchange_bar_word(at, number, CT_BAR_TOTAL), sums = ct_exchange_bar_word(at, number, CT_BAR_PRED_TOTAL);
    struct ct_block *speak = ct_block_create(at->fn), *together = ct_block_create(at->fn);
    struct party party;
    ct_value weight, votes;

    fence(at);
    party = party_here(at, x);
    weight = weight_of(at, x, &party, insn->aligned);
    votes = red ? votes_of(at, insn) : CT_NO_VALUE;
    ct_cursor_branch(at, party.speaks, speak, together);
    ct_cursor_enter(at, speak);
    if (red)
        ct_assign(at, sum, sum_votes(at, sums, votes, word, weight, count));
    else
        arrive(at, word, weight, count, insn->mode != PTX_MODE_ARRIVE);
    ct_cursor_jump(at, together);
    ct_cursor_enter(at, together);
    if (insn->mode == PTX_MODE_ARRIVE)
        return;
    ct_emit_insn(at, CT_OP_WARPSYNC, PTX_B32, 0, 1)->operands[0] = party.active;
    fence(at);
    if (red)
        ct_assign(at, insn->results[0], ct_exchange_bar_result(at, insn, ct_emit2(at, CT_OP_LANEREAD, PTX_B32, CT_W_32, sum, party.speaker)));
}

/* ---- the pass ---- */

struct points {
    CT_VEC(struct ct_insn *) list;
    bool rewritten, exchange;
    bool divergent;         /* some are not reached by the whole block together */
    bool divergent_barrier; /* among them a barrier */
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

/* Every point to the head of a block, and an entry and loops that nothing else comes together at: what predicate.c wants. */
static void isolate_points(struct ct_fn *fn)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (ct_is_sync(insn->op) && insn->prev) {
                struct ct_cursor at = {.fn = fn, .block = fn->blocks.v[b], .where = insn->where};

                ct_cursor_jump(&at, ct_block_split(fn, at.block, insn));
                break; /* the rest is a block of its own, further on */
            }
}

static void give_preheader(struct ct_fn *fn, struct ct_block *head)
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

static void give_preheaders(struct ct_fn *fn)
{
    const uint32_t n = fn->blocks.n;

    for (uint32_t b = 0; b < n; b++) {
        struct ct_block *block = fn->blocks.v[b];
        uint32_t back = 0;

        for (uint32_t i = 0; i < block->preds.n; i++)
            back += ct_block_dominates(block, block->preds.v[i]);
        if (back && block->preds.n > back + 1)
            give_preheader(fn, block);
    }
}

static void prepare(struct ct_fn *fn)
{
    struct ct_cursor at = {.fn = fn, .block = fn->blocks.v[0], .where = fn->source->where};

    ct_cursor_jump(&at, ct_block_split(fn, at.block, at.block->first));
    isolate_points(fn);
    ct_fn_remove_unreachable(fn);
    ct_fn_compute_dominators(fn);
    give_preheaders(fn);
    fn->props &= ~CT_PROP_GRAPH;
}

/* ---- the choice ---- */

struct choice {
    bool native, predicated, resumed;
    const bool *divergent; /* by block id; NULL where nobody asks */
};

/* On devices where warps go on together, or that want every thread at every barrier, but not at warp instructions. Where a barrier is divergent, those are exchanged, too:
 * one form for the whole kernel. */
static void choose_for_barriers(struct ct_fn *fn, struct choice *choice)
{
    const struct points points = find_points(fn, choice->divergent, true);

    choice->native = !points.divergent_barrier && !points.parts;
}

static const bool *everything_but_the_entry(struct ct_fn *fn)
{
    bool *all = CT_ARENA_ARRAY(&fn->compilation->scratch, bool, fn->blocks.n);

    memset(all + 1, true, fn->blocks.n - 1);
    return all;
}

/* Loops that threads may leave in different rounds. */
static bool has_divergent_loop(const struct ct_fn *fn, const bool *divergent)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        if (divergent[b] && fn->blocks.v[b]->loop_head)
            return true;
    return false;
}

static void choose_collective(struct ct_fn *fn, struct choice *choice)
{
    const struct points points = find_points(fn, choice->divergent, false);
    const bool forced = fn->target->sync_form == PTX2SPV_SYNC_PREDICATED;

    if (!points.list.n || !(points.divergent || points.parts || forced))
        return;
    choice->predicated = !points.parts && ct_runs_in_lockstep(fn, choice->divergent);
    if ((fn->target->workarounds & PTX2SPV_WORKAROUND_PREDICATED_LOOPS) && has_divergent_loop(fn, choice->divergent))
        choice->predicated = false;
    choice->resumed = !choice->predicated;
    if (choice->predicated && forced)
        choice->divergent = everything_but_the_entry(fn);
}

/* Whether a warp may wait for another one that has not come as far. On CPUs they run one after the other; two warps of one subgroup do so
 * where they take different branches, and a barrier of the device counts both as one. */
static bool warps_go_on_by_themselves(const struct ptx2spv_target *target)
{
    return !target->threads_in_turn && target->subgroup_size <= 32;
}

static struct choice choose(struct ct_fn *fn)
{
    const bool may_be_native = fn->target->warp_form == PTX2SPV_WARP_NATIVE && fn->target->sync_form == PTX2SPV_SYNC_CHEAPEST;
    const bool in_turn = !warps_go_on_by_themselves(fn->target);
    struct choice choice = {0};

    if (ct_mark_spins(fn, may_be_native && !in_turn && !fn->cooperative ? CT_SPINS_FOR_LOCKS : CT_SPINS_ALL)) {
        choice.resumed = true;
        return choice;
    }
    choice.native = may_be_native && !in_turn;
    choice.resumed = fn->target->sync_form == PTX2SPV_SYNC_RESUMED && find_points(fn, NULL, false).list.n;
    if (choice.native || choice.resumed || !find_points(fn, NULL, false).list.n)
        return choice;
    prepare(fn);
    choice.divergent = ct_find_divergent_blocks(fn);
    if (may_be_native)
        choose_for_barriers(fn, &choice);
    if (!choice.native)
        choose_collective(fn, &choice);
    return choice;
}

/* ---- the work ---- */

static void expand(struct ct_fn *fn, struct ct_exchange *x, struct ct_insn *insn, bool native)
{
    struct ct_block *block = insn->block, *rest = ct_block_split(fn, block, insn);
    struct ct_cursor at = {.fn = fn, .block = block, .where = insn->where};

    ct_insn_remove(insn);
    if (native && ct_is_warp_op(insn->op))
        native_warp_op(&at, x, insn);
    else if (native && !is_full(insn))
        native_barrier(&at, x, insn);
    else
        exchange_in_place(&at, x, insn);
    ct_cursor_jump(&at, rest);
}

static void expand_points(struct ct_fn *fn, struct ct_exchange *x, const struct points *points, bool native)
{
    for (uint32_t i = 0; i < points->list.n; i++) {
        struct ct_insn *insn = points->list.v[i];

        if (!insn->block)
            continue; /* predicated */
        if (is_rewritten(insn, native))
            expand(fn, x, insn, native);
        else if (is_plain(insn))
            make_barrier_zero(fn, insn);
    }
}

/* What comes first is made in blocks of its own, and put in front when all is done. */
static void expand_all(struct ct_fn *fn, const struct points *points, const struct choice *choice)
{
    struct ct_exchange x = {.fn = fn};
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

enum ct_pass_result ct_pass_collective(struct ct_fn *fn)
{
    const struct choice choice = choose(fn);
    const struct points points = find_points(fn, choice.divergent, choice.native);

    if (choice.resumed) {
        struct ct_exchange x = {.fn = fn, .column[CT_COLUMN_SIGN] = true, .column[CT_COLUMN_MASK] = true};

        for (uint32_t i = 0; i < points.list.n; i++)
            note_columns(&x, points.list.v[i]);
        ct_resume(fn, &x);
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
