/* SPDX-License-Identifier: Apache-2.0 */
/* jump_threading: removes blocks that only branch on a condition whose outcome is known in every predecessor; each predecessor then jumps
 * directly to the successor that this outcome selects.
 * In:  SSA, reducible.   Out: the same, simplified again if anything changed.
 *
 *     loop:  ...; if (s > 4) go test                      loop:  ...; if (s > 4) go out
 *            ...                                     =>          ...
 *     test:  x = phi ...; if (s <= 4 or NaN) go loop             go loop
 *     out:   ...                                          out:   ...
 *
 * clang writes a loop with a `break` like that, and a driver that unrolls the loop keeps both tests in each iteration.
 *
 * The outcome is known from a branch on the same condition, or on its negation, that dominates the predecessor, or from a constant
 * operand of the phi that is tested. A block is removed only if all of its predecessors know the outcome: otherwise some paths would
 * still go through the block, and threads that reconverge at it now would reconverge later. A removed block is never a loop header, so
 * no loop gets another entry: each new edge replaces two consecutive edges. */
#include "ptx2spv/ir/ssa_repair.h"
#include "ptx2spv/ir/builder.h"
#include "simplify.h"

enum { INSNS_MAX = 8, PREDS_MAX = 8, DEPTH_MAX = 16, BLOCKS_MAX = 2000, THREADED_MAX = 100 };

enum outcome { UNKNOWN, NO, YES };

/* The condition that a block branches on, as seen from one of its predecessors. In a loop a predecessor may follow the block; what the block
 * itself computes then has the value of the previous iteration there, which says nothing about the next one. */
struct condition {
    ct_value value;                   /* the predicate */
    bool is_known;                    /* it is not computed in the block */
    const struct ct_insn *comparison; /* the comparison that computes it, or NULL, */
    ct_value operands[2];             /* and the operands of the comparison, which are not computed in the block */
    bool negated;
};

static struct ct_insn *definition(const struct ct_fn *fn, ct_value x)
{
    return fn->values.v[x.i].def;
}

static ct_value through_not(const struct ct_fn *fn, ct_value x, bool *negated)
{
    for (; definition(fn, x)->op == CT_OP_NOT; x = definition(fn, x)->operands[0])
        *negated = !*negated;
    return x;
}

/* The value that x has in the block if control comes from predecessor number p. */
static ct_value value_from_pred(const struct ct_fn *fn, const struct ct_block *block, uint32_t p, ct_value x)
{
    const struct ct_insn *def = definition(fn, x);

    return def->op == CT_OP_PHI && def->block == block ? def->operands[p] : x;
}

static bool is_computed_in(const struct ct_fn *fn, const struct ct_block *block, ct_value x)
{
    const struct ct_insn *def = definition(fn, x);

    return def->block == block && def->op != CT_OP_CONST && def->op != CT_OP_PHI;
}

static struct condition condition_at(const struct ct_fn *fn, const struct ct_block *block, uint32_t p)
{
    struct condition q = {.negated = false};
    const struct ct_insn *def;

    q.value = through_not(fn, block->last->operands[0], &q.negated);
    q.is_known = !is_computed_in(fn, block, q.value);
    q.value = through_not(fn, value_from_pred(fn, block, p, q.value), &q.negated);
    def = definition(fn, q.value);
    if (def->op != CT_OP_ICMP && def->op != CT_OP_FCMP)
        return q;
    if (q.is_known || (!is_computed_in(fn, block, def->operands[0]) && !is_computed_in(fn, block, def->operands[1]))) {
        q.comparison = def;
        for (int i = 0; i < 2; i++)
            q.operands[i] = q.is_known ? def->operands[i] : value_from_pred(fn, block, p, def->operands[i]);
    }
    return q;
}

/* ---- known outcomes ---- */

static enum outcome outcome(bool yes)
{
    return yes ? YES : NO;
}

static bool compares_the_same(const struct condition *q, const struct ct_insn *other)
{
    return q->comparison && other->op == q->comparison->op && other->type == q->comparison->type && other->ftz == q->comparison->ftz &&
           other->operands[0].i == q->operands[0].i && other->operands[1].i == q->operands[1].i;
}

/* The outcome that the edge between two blocks implies, if the edge is one of a conditional branch. */
static enum outcome outcome_of_edge(const struct ct_fn *fn, const struct condition *q, const struct ct_block *from,
                                    const struct ct_block *to)
{
    const struct ct_insn *other;
    bool holds;
    ct_value x;

    if (from->last->op != CT_OP_CBR || from->succs[0] == from->succs[1])
        return UNKNOWN;
    holds = (from->succs[0] == to) != q->negated;
    x = through_not(fn, from->last->operands[0], &holds);
    other = definition(fn, x);
    if ((q->is_known && x.i == q->value.i) || (compares_the_same(q, other) && other->compare == q->comparison->compare))
        return outcome(holds);
    return compares_the_same(q, other) && other->compare == ct_opposite_comparison(q->comparison) ? outcome(!holds) : UNKNOWN;
}

static enum outcome outcome_for_pred(const struct ct_fn *fn, const struct ct_block *block, uint32_t p)
{
    const struct condition q = condition_at(fn, block, p);
    const struct ct_insn *def = definition(fn, q.value);
    const struct ct_block *from = block->preds.v[p], *to = block;

    if (def->op == CT_OP_CONST)
        return outcome((def->imm != 0) != q.negated);
    for (uint32_t depth = 0; from && depth < DEPTH_MAX; depth++) {
        const enum outcome found = to ? outcome_of_edge(fn, &q, from, to) : UNKNOWN;

        if (found)
            return found;
        to = from->preds.n == 1 ? from : NULL; /* with several predecessors the edge that was taken is unknown */
        from = from->idom;
    }
    return UNKNOWN;
}

/* Indexed by predecessor; NULL if the outcome is unknown in one of them. */
static const enum outcome *outcomes_or_null(const struct ct_fn *fn, const struct ct_block *block)
{
    enum outcome *outcomes = CT_ARENA_ARRAY(&fn->compilation->scratch, enum outcome, block->preds.n);

    for (uint32_t p = 0; p < block->preds.n; p++)
        if (!(outcomes[p] = outcome_for_pred(fn, block, p)))
            return NULL;
    return outcomes;
}

/* ---- the choice of blocks ---- */

static bool branches(const struct ct_block *block)
{
    return block->last->op == CT_OP_CBR && block->preds.n && block->succs[0] != block->succs[1];
}

static bool all_agree(const struct ct_block *block, const enum outcome *outcomes)
{
    for (uint32_t p = 1; p < block->preds.n; p++)
        if (outcomes[p] != outcomes[0])
            return false;
    return true;
}

static bool has_one_edge_to(const struct ct_block *from, const struct ct_block *to)
{
    uint32_t n = 0;

    for (uint32_t s = 0; s < from->n_succs; s++)
        n += from->succs[s] == to;
    return n == 1;
}

static bool only_tests(const struct ct_block *block)
{
    uint32_t n = 0;

    if (block->preds.n > PREDS_MAX)
        return false;
    for (uint32_t p = 0; p < block->preds.n; p++)
        if (ct_block_dominates(block, block->preds.v[p]) || !has_one_edge_to(block->preds.v[p], block))
            return false;
    for (const struct ct_insn *insn = block->first; insn != block->last; insn = insn->next)
        if (!ct_insn_is_pure(insn) || (n += insn->op != CT_OP_PHI) > INSNS_MAX)
            return false;
    return true;
}

/* ---- removing a block ---- */

struct threading {
    struct ct_fn *fn;
    struct ct_block *block, **copies; /* indexed by predecessor: the block that replaces it */
    ct_value **copied_values;         /* indexed by predecessor and value: the copy of the value */
};

static ct_value value_in_copy(const struct threading *s, uint32_t p, ct_value x)
{
    return s->copied_values[p][x.i].i ? s->copied_values[p][x.i] : x;
}

static void copy_block(struct threading *s, uint32_t p)
{
    struct ct_cursor at = {.fn = s->fn, .block = s->copies[p]};

    for (const struct ct_insn *insn = s->block->first; insn != s->block->last; insn = insn->next) {
        struct ct_insn *copy;

        at.where = insn->where;
        if (insn->op == CT_OP_PHI) {
            s->copied_values[p][insn->results[0].i] = insn->operands[p];
            continue;
        }
        copy = ct_emit_copy_of(&at, insn);
        for (uint32_t i = 0; i < insn->n_operands; i++)
            copy->operands[i] = value_in_copy(s, p, insn->operands[i]);
        for (uint32_t r = 0; r < insn->n_results; r++)
            s->copied_values[p][insn->results[r].i] = copy->results[r];
    }
}

/* Makes the edge from the copy for predecessor `p` to a successor of the block. */
static void connect_copy(struct threading *s, uint32_t p, struct ct_block *to)
{
    uint32_t entry = 0;

    while (to->preds.v[entry] != s->block)
        entry++;
    for (struct ct_insn *phi = to->first; phi->op == CT_OP_PHI; phi = phi->next)
        ct_phi_add_operand(s->fn, phi, value_in_copy(s, p, phi->operands[entry]));
    ct_ssa_jump(s->fn, s->copies[p], to);
}

static void make_copy(struct threading *s, uint32_t p, struct ct_block *to, uint32_t n_values)
{
    struct ct_block *from = s->block->preds.v[p], *copy = s->copies[p] = ct_block_create(s->fn);

    for (uint32_t i = 0; i < from->n_succs; i++)
        if (from->succs[i] == s->block)
            from->succs[i] = copy;
    *CT_PUSH(&s->fn->compilation->arena, &copy->preds) = from;
    s->copied_values[p] = CT_ARENA_ARRAY(&s->fn->compilation->scratch, ct_value, n_values);
    copy_block(s, p);
    connect_copy(s, p, to);
}

/* Indexed by value: whether it is computed in the block and used elsewhere. */
static bool *find_values_used_outside(const struct threading *s, uint32_t n_values)
{
    bool *used_outside = CT_ARENA_ARRAY(&s->fn->compilation->scratch, bool, n_values);

    for (uint32_t b = 0; b < s->fn->blocks.n; b++)
        for (const struct ct_insn *insn = s->fn->blocks.v[b]->first; insn; insn = insn->next)
            for (uint32_t i = 0; i < insn->n_operands; i++)
                if (insn->operands[i].i < n_values && insn->block != s->block && s->copied_values[0][insn->operands[i].i].i)
                    used_outside[insn->operands[i].i] = true;
    return used_outside;
}

/* Repairs SSA for the uses of values that were computed in the removed block. */
static void repair_uses(const struct threading *s, uint32_t n_copies, uint32_t n_values)
{
    const bool *used_outside = find_values_used_outside(s, n_values);

    for (uint32_t x = 1; x < n_values; x++) {
        struct ct_ssa_repair repair;

        if (!used_outside[x])
            continue;
        repair = ct_ssa_repair_begin(s->fn, (ct_value){x});
        for (uint32_t p = 0; p < n_copies; p++)
            repair.at_end[s->copies[p]->id] = value_in_copy(s, p, repair.x);
        for (uint32_t b = 0; b < s->fn->blocks.n; b++)
            if (s->fn->blocks.v[b] != s->block)
                ct_ssa_repair_block(&repair, s->fn->blocks.v[b]);
    }
}

static void thread_block(struct ct_fn *fn, struct ct_block *block, const enum outcome *outcomes)
{
    const uint32_t n = block->preds.n, n_values = fn->values.n;
    struct threading s = {.fn = fn, .block = block};

    s.copies = CT_ARENA_ARRAY(&fn->compilation->scratch, struct ct_block *, n);
    s.copied_values = CT_ARENA_ARRAY(&fn->compilation->scratch, ct_value *, n);
    for (uint32_t p = 0; p < n; p++)
        make_copy(&s, p, block->succs[outcomes[p] == NO], n_values);
    while (block->n_succs)
        ct_block_remove_edge(fn, block, 0);
    repair_uses(&s, n, n_values);
    fn->props &= ~(uint32_t)CT_PROP_GRAPH;
    ct_fn_remove_unreachable(fn);
}

static bool try_block(struct ct_fn *fn, struct ct_block *block)
{
    const enum outcome *outcomes = branches(block) ? outcomes_or_null(fn, block) : NULL;
    struct ct_cursor at = {.fn = fn, .block = block, .before = block->last, .where = block->last->where};

    if (!outcomes)
        return false;
    if (all_agree(block, outcomes)) {
        block->last->operands[0] = ct_emit_const(&at, CT_W_PRED, outcomes[0] == YES);
        return true;
    }
    if (!only_tests(block))
        return false;
    thread_block(fn, block, outcomes);
    ct_fn_compute_dominators(fn);
    return true;
}

enum ct_pass_result ct_pass_jump_threading(struct ct_fn *fn)
{
    uint32_t n = 0;

    if (fn->blocks.n > BLOCKS_MAX)
        return CT_PASS_UNCHANGED;
    ct_fn_compute_dominators(fn);
    for (uint32_t b = 1; b < fn->blocks.n && n < THREADED_MAX; b++)
        n += try_block(fn, fn->blocks.v[b]);
    if (n)
        ct_simplify(fn);
    return n ? CT_PASS_CHANGED : CT_PASS_UNCHANGED;
}
