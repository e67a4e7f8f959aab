/* SPDX-License-Identifier: Apache-2.0 */
/* shortcut: a block that only asks what everybody who comes to it knows goes, and they go on where the answer leads.
 * In:  SSA, reducible.   Out: the same, simplified again if anything changed.
 *
 *     loop:  ...; if (s > 4) go ask                       loop:  ...; if (s > 4) go out
 *            ...                                     =>          ...
 *     ask:   x = phi ...; if (s <= 4 or NaN) go loop              go loop
 *     out:   ...                                          out:   ...
 *
 * clang writes a loop with a `break` like that, and a driver that unrolls it keeps both questions of each round.
 *
 * The answer is known from a branch on the same question, or its opposite, that dominates the predecessor, or by the phi that is asked.
 * Only if all predecessors know it: otherwise the ways would cross, and what meets now would meet later. Such a block is no loop's
 * header, so no loop gets another entry: an edge past it is as good as the two that it stands for. */
#include "ptx2spv/ir/ssa_repair.h"
#include "ptx2spv/ir/builder.h"
#include "simplify.h"

enum { INSNS_MAX = 8, PREDS_MAX = 8, DEPTH_MAX = 16, BLOCKS_MAX = 2000, TAKEN_MAX = 100 };

enum answer { UNKNOWN, NO, YES };

/* What a block branches on, as one of its predecessors has it. */
struct question {
    ct_value value;                   /* the predicate, if it is not computed in the block */
    const struct ct_insn *comparison; /* that makes it, if one does; */
    ct_value operands[2];             /* of these */
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

/* What x is for those who come by a predecessor. */
static ct_value translated(const struct ct_fn *fn, const struct ct_block *block, uint32_t p, ct_value x)
{
    const struct ct_insn *def = definition(fn, x);

    return def->op == CT_OP_PHI && def->block == block ? def->operands[p] : x;
}

static struct question question_of(const struct ct_fn *fn, const struct ct_block *block, uint32_t p)
{
    struct question q = {.negated = false};
    const struct ct_insn *def;

    q.value = translated(fn, block, p, through_not(fn, block->last->operands[0], &q.negated));
    q.value = through_not(fn, q.value, &q.negated);
    def = definition(fn, q.value);
    if (def->op == CT_OP_ICMP || def->op == CT_OP_FCMP) {
        q.comparison = def;
        for (int i = 0; i < 2; i++)
            q.operands[i] = translated(fn, block, p, def->operands[i]);
    }
    return q;
}

/* ---- who knows ---- */

static enum answer answer(bool yes)
{
    return yes ? YES : NO;
}

static bool asks_the_same(const struct question *q, const struct ct_insn *other)
{
    return q->comparison && other->op == q->comparison->op && other->type == q->comparison->type && other->ftz == q->comparison->ftz &&
           other->operands[0].i == q->operands[0].i && other->operands[1].i == q->operands[1].i;
}

/* By the edge between two blocks, if it is a branch's. */
static enum answer answer_of_edge(const struct ct_fn *fn, const struct question *q, const struct ct_block *from, const struct ct_block *to)
{
    const struct ct_insn *other;
    bool holds;
    ct_value x;

    if (from->last->op != CT_OP_CBR || from->succs[0] == from->succs[1])
        return UNKNOWN;
    holds = (from->succs[0] == to) != q->negated;
    x = through_not(fn, from->last->operands[0], &holds);
    other = definition(fn, x);
    if (x.i == q->value.i || (asks_the_same(q, other) && other->compare == q->comparison->compare))
        return answer(holds);
    return asks_the_same(q, other) && other->compare == ct_opposite_comparison(q->comparison) ? answer(!holds) : UNKNOWN;
}

static enum answer answer_for(const struct ct_fn *fn, const struct ct_block *block, uint32_t p)
{
    const struct question q = question_of(fn, block, p);
    const struct ct_insn *def = definition(fn, q.value);
    const struct ct_block *from = block->preds.v[p], *to = block;

    if (def->op == CT_OP_CONST)
        return answer((def->imm != 0) != q.negated);
    for (uint32_t depth = 0; from && depth < DEPTH_MAX; depth++) {
        const enum answer found = to ? answer_of_edge(fn, &q, from, to) : UNKNOWN;

        if (found)
            return found;
        to = from->preds.n == 1 ? from : NULL; /* else nobody knows by which edge */
        from = from->idom;
    }
    return UNKNOWN;
}

/* By predecessor; NULL if one does not know. */
static const enum answer *answers_or_null(const struct ct_fn *fn, const struct ct_block *block)
{
    enum answer *answers = CT_ARENA_ARRAY(&fn->compilation->scratch, enum answer, block->preds.n);

    for (uint32_t p = 0; p < block->preds.n; p++)
        if (!(answers[p] = answer_for(fn, block, p)))
            return NULL;
    return answers;
}

/* ---- which blocks ---- */

static bool branches(const struct ct_block *block)
{
    return block->last->op == CT_OP_CBR && block->preds.n && block->succs[0] != block->succs[1];
}

static bool all_agree(const struct ct_block *block, const enum answer *answers)
{
    for (uint32_t p = 1; p < block->preds.n; p++)
        if (answers[p] != answers[0])
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

static bool only_asks(const struct ct_block *block)
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

/* ---- the way past one ---- */

struct shortcut {
    struct ct_fn *fn;
    struct ct_block *block, **ways; /* by predecessor: the block that stands for it */
    ct_value **copied;              /* by predecessor: what its values are there, by value */
};

static ct_value there(const struct shortcut *s, uint32_t p, ct_value x)
{
    return s->copied[p][x.i].i ? s->copied[p][x.i] : x;
}

static void copy_block(struct shortcut *s, uint32_t p)
{
    struct ct_cursor at = {.fn = s->fn, .block = s->ways[p]};

    for (const struct ct_insn *insn = s->block->first; insn != s->block->last; insn = insn->next) {
        struct ct_insn *copy;

        at.where = insn->where;
        if (insn->op == CT_OP_PHI) {
            s->copied[p][insn->results[0].i] = insn->operands[p];
            continue;
        }
        copy = ct_emit_copy_of(&at, insn);
        for (uint32_t i = 0; i < insn->n_operands; i++)
            copy->operands[i] = there(s, p, insn->operands[i]);
        for (uint32_t r = 0; r < insn->n_results; r++)
            s->copied[p][insn->results[r].i] = copy->results[r];
    }
}

/* The edge from the way of predecessor `p` to a successor of the block. */
static void lead_on(struct shortcut *s, uint32_t p, struct ct_block *to)
{
    uint32_t entry = 0;

    while (to->preds.v[entry] != s->block)
        entry++;
    for (struct ct_insn *phi = to->first; phi->op == CT_OP_PHI; phi = phi->next)
        ct_phi_add_operand(s->fn, phi, there(s, p, phi->operands[entry]));
    ct_ssa_jump(s->fn, s->ways[p], to);
}

static void make_way(struct shortcut *s, uint32_t p, struct ct_block *to, uint32_t n_values)
{
    struct ct_block *from = s->block->preds.v[p], *way = s->ways[p] = ct_block_create(s->fn);

    for (uint32_t i = 0; i < from->n_succs; i++)
        if (from->succs[i] == s->block)
            from->succs[i] = way;
    *CT_PUSH(&s->fn->compilation->arena, &way->preds) = from;
    s->copied[p] = CT_ARENA_ARRAY(&s->fn->compilation->scratch, ct_value, n_values);
    copy_block(s, p);
    lead_on(s, p, to);
}

/* By value: whether it is computed in the block and read elsewhere. */
static bool *list_leaving(const struct shortcut *s, uint32_t n_values)
{
    bool *leaves = CT_ARENA_ARRAY(&s->fn->compilation->scratch, bool, n_values);

    for (uint32_t b = 0; b < s->fn->blocks.n; b++)
        for (const struct ct_insn *insn = s->fn->blocks.v[b]->first; insn; insn = insn->next)
            for (uint32_t i = 0; i < insn->n_operands; i++)
                if (insn->operands[i].i < n_values && insn->block != s->block && s->copied[0][insn->operands[i].i].i)
                    leaves[insn->operands[i].i] = true;
    return leaves;
}

/* Whoever read a value of the block, which is not there any more. */
static void repair_values(const struct shortcut *s, uint32_t n_ways, uint32_t n_values)
{
    const bool *leaves = list_leaving(s, n_values);

    for (uint32_t x = 1; x < n_values; x++) {
        struct ct_ssa_repair repair;

        if (!leaves[x])
            continue;
        repair = ct_ssa_repair_begin(s->fn, (ct_value){x});
        for (uint32_t p = 0; p < n_ways; p++)
            repair.at_end[s->ways[p]->id] = there(s, p, repair.x);
        for (uint32_t b = 0; b < s->fn->blocks.n; b++)
            if (s->fn->blocks.v[b] != s->block)
                ct_ssa_repair_block(&repair, s->fn->blocks.v[b]);
    }
}

static void take_out(struct ct_fn *fn, struct ct_block *block, const enum answer *answers)
{
    const uint32_t n = block->preds.n, n_values = fn->values.n;
    struct shortcut s = {.fn = fn, .block = block};

    s.ways = CT_ARENA_ARRAY(&fn->compilation->scratch, struct ct_block *, n);
    s.copied = CT_ARENA_ARRAY(&fn->compilation->scratch, ct_value *, n);
    for (uint32_t p = 0; p < n; p++)
        make_way(&s, p, block->succs[answers[p] == NO], n_values);
    while (block->n_succs)
        ct_block_remove_edge(fn, block, 0);
    repair_values(&s, n, n_values);
    fn->props &= ~(uint32_t)CT_PROP_GRAPH;
    ct_fn_remove_unreachable(fn);
}

static bool try_block(struct ct_fn *fn, struct ct_block *block)
{
    const enum answer *answers = branches(block) ? answers_or_null(fn, block) : NULL;
    struct ct_cursor at = {.fn = fn, .block = block, .before = block->last, .where = block->last->where};

    if (!answers)
        return false;
    if (all_agree(block, answers)) {
        block->last->operands[0] = ct_emit_const(&at, CT_W_PRED, answers[0] == YES);
        return true;
    }
    if (!only_asks(block))
        return false;
    take_out(fn, block, answers);
    ct_fn_compute_dominators(fn);
    return true;
}

enum ct_pass_result ct_pass_shortcut(struct ct_fn *fn)
{
    uint32_t n = 0;

    if (fn->blocks.n > BLOCKS_MAX)
        return CT_PASS_UNCHANGED;
    ct_fn_compute_dominators(fn);
    for (uint32_t b = 1; b < fn->blocks.n && n < TAKEN_MAX; b++)
        n += try_block(fn, fn->blocks.v[b]);
    if (n)
        ct_simplify(fn);
    return n ? CT_PASS_CHANGED : CT_PASS_UNCHANGED;
}
