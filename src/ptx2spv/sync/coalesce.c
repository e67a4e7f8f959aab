/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps the number of registers that live across points independent of the number of points. In register form.
 *
 * Constants that points read are made again before each point. Registers that hold their values across points, but never at the same time,
 * become one register.
 *
 * In the resumed form (resume.c) all points of a kernel lead through one basic block. Each register that lives across a point needs a phi
 * there, with an operand for each point: n registers that live across n points would take n * n operands. Compilers name a register for
 * each value, so n is large in long kernels, though few values live at any one time.
 *
 * How: linear scan (Poletto and Sarkar, "Linear Scan Register Allocation", 1999) over the blocks in reverse postorder. The range of a
 * register is from its first access to its last one, and is made longer where it meets a cycle, that is an edge from a block to one that
 * is not behind it: to the whole cycle, but for a register with one definition, which dominates its uses, only to the end of cycles that
 * begin behind the definition. */
#include "sync.h"

#include <stdlib.h>

struct range {
    uint32_t first, last; /* numbers of instructions in reverse postorder, from 1; 0: there is no access */
    uint32_t n_defs;
    bool general; /* false: the register has one definition, which dominates every use */
    struct ct_block *block;
    ct_value value;
};

struct slot { /* a register that is in use, or was: a heap, the least `last` first */
    uint32_t last;
    ct_value value;
};

struct slots {
    CT_VEC(struct slot) heap;
};

struct constant {
    enum { NOT_WRITTEN, IS_CONSTANT, VARIES } state;
    uint64_t bits;
};

struct coalescer {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    struct ct_block **order;
    uint32_t n, n_insns;
    uint32_t *begin;     /* indexed by number in reverse postorder: number of the block's first instruction; one more entry at the end */
    uint32_t *points;    /* indexed by instruction: number of points up to it */
    uint32_t **furthest; /* furthest[k][i]: the last block with an edge to one of the blocks i .. i + 2^k - 1 that is not behind it */
    uint32_t *cover_begin, *cover_end; /* the first and the last block of the overlapping cycles around a block */
    struct range *ranges;              /* indexed by value */
};

/* ---- constants ---- */

static struct constant constant_written_by(const struct ct_insn *insn, const struct constant *constants)
{
    if (insn->op == CT_OP_CONST)
        return (struct constant){IS_CONSTANT, insn->imm};
    if (insn->op == CT_OP_COPY)
        return constants[insn->operands[0].i];
    return (struct constant){.state = VARIES};
}

/* Whether what is known of the register has changed. */
static bool merge_constant(struct constant *into, struct constant from)
{
    if (from.state == NOT_WRITTEN || into->state == VARIES)
        return false;
    if (into->state == IS_CONSTANT && from.state == IS_CONSTANT && into->bits == from.bits)
        return false;
    *into = into->state == NOT_WRITTEN ? from : (struct constant){.state = VARIES};
    return true;
}

/* Finds the registers to which nothing but one constant is written. */
static const struct constant *find_constants(struct ct_fn *fn)
{
    struct constant *constants = CT_ARENA_ARRAY(&fn->compilation->scratch, struct constant, fn->values.n);

    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = 0; b < fn->blocks.n; b++)
            for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
                for (uint32_t r = 0; r < insn->n_results; r++)
                    if (insn->results[r].i)
                        changed |= merge_constant(&constants[insn->results[r].i], constant_written_by(insn, constants));
    }
    return constants;
}

static void repeat_constants(struct ct_fn *fn)
{
    const struct constant *constants = find_constants(fn);
    struct ct_cursor at = {.fn = fn};

    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next) {
            at.block = fn->blocks.v[b];
            at.before = insn;
            at.where = insn->where;
            for (uint32_t i = 0; ct_is_sync(insn->op) && i < insn->n_operands; i++)
                if (constants[insn->operands[i].i].state == IS_CONSTANT)
                    insn->operands[i] = ct_emit_const(&at, ct_width_at(&at, insn->operands[i]), constants[insn->operands[i].i].bits);
        }
}

/* ---- accesses ---- */

static void note_access(struct coalescer *c, ct_value value, uint32_t number)
{
    struct range *range = &c->ranges[value.i];

    if (!value.i)
        return;
    range->value = value;
    range->first = range->first ? range->first : number;
    range->last = number;
}

static void note_use(struct coalescer *c, ct_value value, struct ct_block *block, uint32_t number)
{
    struct range *range = &c->ranges[value.i];

    range->general |= !range->n_defs || !ct_block_dominates(range->block, block);
    note_access(c, value, number);
}

static void note_definition(struct coalescer *c, ct_value value, struct ct_block *block, uint32_t number)
{
    struct range *range = &c->ranges[value.i];

    range->general |= range->n_defs++ > 0;
    range->block = block;
    note_access(c, value, number);
}

/* A block that dominates another one precedes it in reverse postorder, so uses that come before the definition are found, too. */
static void find_accesses(struct coalescer *c)
{
    uint32_t number = 0, points = 0;

    for (uint32_t i = 0; i < c->n; i++) {
        c->begin[i] = number + 1;
        for (const struct ct_insn *insn = c->order[i]->first; insn; insn = insn->next) {
            points += ct_is_sync(insn->op) || insn->op == CT_OP_YIELD;
            c->points[++number] = points;
            for (uint32_t o = 0; o < insn->n_operands; o++)
                note_use(c, insn->operands[o], c->order[i], number);
            for (uint32_t r = 0; r < insn->n_results; r++)
                note_definition(c, insn->results[r], c->order[i], number);
        }
    }
    c->begin[c->n] = number + 1;
}

/* ---- cycles ---- */

/* furthest[0] from the edges, then each row from the one above it. */
static void find_cycles(struct coalescer *c)
{
    uint32_t rows = 1;

    while (c->n >> rows)
        rows++;
    c->furthest = CT_ARENA_ARRAY(c->scratch, uint32_t *, rows);
    c->furthest[0] = CT_ARENA_ARRAY(c->scratch, uint32_t, c->n);
    for (uint32_t i = 0; i < c->n; i++)
        for (uint32_t s = 0; s < c->order[i]->n_succs; s++)
            if (c->order[i]->succs[s]->rpo <= i)
                c->furthest[0][c->order[i]->succs[s]->rpo] = i;
    for (uint32_t k = 1; k < rows; k++) {
        c->furthest[k] = CT_ARENA_ARRAY(c->scratch, uint32_t, c->n);
        for (uint32_t i = 0; i + (1u << k) <= c->n; i++) {
            const uint32_t low = c->furthest[k - 1][i], high = c->furthest[k - 1][i + (1u << (k - 1))];

            c->furthest[k][i] = low > high ? low : high;
        }
    }
}

/* Blocks that are in no cycle cover themselves. */
static void find_covers(struct coalescer *c)
{
    for (uint32_t i = 0, next; i < c->n; i = next) {
        uint32_t end = i;

        for (uint32_t b = i; b <= end; b++)
            end = c->furthest[0][b] > end ? c->furthest[0][b] : end;
        next = end + 1;
        for (uint32_t b = i; b <= end; b++) {
            c->cover_begin[b] = i;
            c->cover_end[b] = end;
        }
    }
}

/* The last block with an edge to one of the blocks from `from` to `to` that is not behind it; 0 if there is none. */
static uint32_t furthest_in(const struct coalescer *c, uint32_t from, uint32_t to)
{
    uint32_t k = 0, low, high;

    if (from > to)
        return 0;
    while ((2u << k) <= to - from + 1)
        k++;
    low = c->furthest[k][from];
    high = c->furthest[k][to + 1 - (1u << k)];
    return low > high ? low : high;
}

/* The block that contains an instruction. */
static uint32_t block_at(const struct coalescer *c, uint32_t number)
{
    uint32_t low = 0, high = c->n;

    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;

        if (c->begin[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static bool is_in_cycle(const struct coalescer *c, uint32_t block)
{
    return c->cover_begin[block] < block || c->cover_end[block] > block || c->furthest[0][block] == block;
}

static void extend_general(const struct coalescer *c, struct range *range)
{
    const uint32_t first = block_at(c, range->first), last = block_at(c, range->last);

    if (is_in_cycle(c, first))
        range->first = c->begin[c->cover_begin[first]];
    if (is_in_cycle(c, last))
        range->last = c->begin[c->cover_end[last] + 1] - 1;
}

/* The register is live into no cycle that begins before its definition, since that does not dominate the cycle's first block. */
static void extend_dominating(const struct coalescer *c, struct range *range)
{
    const uint32_t first = block_at(c, range->first);
    uint32_t last = block_at(c, range->last), end = furthest_in(c, first + 1, last);

    for (; end > last; end = furthest_in(c, first + 1, last))
        last = end;
    if (end == last && last > first)
        range->last = c->begin[last + 1] - 1;
}

/* ---- slots ---- */

static void swap(struct slot *a, struct slot *b)
{
    const struct slot other = *a;

    *a = *b;
    *b = other;
}

static void sift_up(struct slots *slots)
{
    for (uint32_t i = slots->heap.n - 1; i && slots->heap.v[i].last < slots->heap.v[(i - 1) / 2].last; i = (i - 1) / 2)
        swap(&slots->heap.v[i], &slots->heap.v[(i - 1) / 2]);
}

static void sift_down(struct slots *slots)
{
    for (uint32_t i = 0, least; 2 * i + 1 < slots->heap.n; i = least) {
        least = 2 * i + 1;
        if (least + 1 < slots->heap.n && slots->heap.v[least + 1].last < slots->heap.v[least].last)
            least++;
        if (slots->heap.v[i].last <= slots->heap.v[least].last)
            return;
        swap(&slots->heap.v[i], &slots->heap.v[least]);
    }
}

/* The register that takes the place of this one. */
static ct_value take_slot(const struct coalescer *c, struct slots *slots, const struct range *range)
{
    if (slots->heap.n && slots->heap.v[0].last < range->first) {
        const ct_value value = slots->heap.v[0].value;

        slots->heap.v[0].last = range->last;
        sift_down(slots);
        return value;
    }
    *CT_PUSH(c->scratch, &slots->heap) = (struct slot){range->last, range->value};
    sift_up(slots);
    return range->value;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct range *x = a, *y = b;

    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->value.i > y->value.i) - (x->value.i < y->value.i);
}

/* Whether the register holds a value while threads wait at a point. */
static bool lives_across_a_point(const struct coalescer *c, const struct range *range)
{
    return c->points[range->last - 1] > c->points[range->general ? range->first - 1 : range->first];
}

static void choose_registers(struct coalescer *c, ct_value *chosen)
{
    struct slots slots[CT_W_64 + 1] = {0};
    CT_VEC(struct range) candidates = {0};

    for (uint32_t v = 1; v < c->fn->values.n; v++) {
        struct range *range = &c->ranges[v];

        chosen[v].i = v;
        if (!range->first)
            continue;
        if (range->general)
            extend_general(c, range);
        else
            extend_dominating(c, range);
        if (lives_across_a_point(c, range))
            *CT_PUSH(c->scratch, &candidates) = *range;
    }
    if (candidates.n)
        qsort(candidates.v, candidates.n, sizeof *candidates.v, compare_ranges);
    for (uint32_t i = 0; i < candidates.n; i++) {
        const struct range *range = &candidates.v[i];

        chosen[range->value.i] = take_slot(c, &slots[ct_width_of_value(c->fn, range->value)], range);
    }
}

static uint32_t count_insns(const struct coalescer *c)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->n; i++)
        for (const struct ct_insn *insn = c->order[i]->first; insn; insn = insn->next)
            n++;
    return n;
}

static void coalesce(struct ct_fn *fn)
{
    struct coalescer c = {.fn = fn, .scratch = &fn->compilation->scratch};
    ct_value *chosen = CT_ARENA_ARRAY(c.scratch, ct_value, fn->values.n);

    c.order = ct_fn_rpo_blocks(fn, &c.n);
    c.n_insns = count_insns(&c);
    c.begin = CT_ARENA_ARRAY(c.scratch, uint32_t, (size_t)c.n + 1);
    c.points = CT_ARENA_ARRAY(c.scratch, uint32_t, (size_t)c.n_insns + 1);
    c.cover_begin = CT_ARENA_ARRAY(c.scratch, uint32_t, c.n);
    c.cover_end = CT_ARENA_ARRAY(c.scratch, uint32_t, c.n);
    c.ranges = CT_ARENA_ARRAY(c.scratch, struct range, fn->values.n);
    find_accesses(&c);
    find_cycles(&c);
    find_covers(&c);
    choose_registers(&c, chosen);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next) {
            for (uint32_t i = 0; i < insn->n_operands; i++)
                insn->operands[i] = chosen[insn->operands[i].i];
            for (uint32_t r = 0; r < insn->n_results; r++)
                insn->results[r] = chosen[insn->results[r].i];
        }
}

void ct_coalesce_registers(struct ct_fn *fn)
{
    repeat_constants(fn);
    ct_fn_remove_unreachable(fn);
    ct_fn_compute_dominators(fn);
    coalesce(fn);
}
