/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of loads that a loop can examine: of shared memory, in one block, from one address, whose offsets are those of a few nested loops. Unrolled
 * loops have hundreds of such loads, and with a test for each one of them drivers take minutes to compile a kernel.
 *
 *     the offsets 0 4 8 12, 272 276 280 284, ..., 4080 4084 4088 4092        are        i * 4 + i / 4 * 256, i = 0 ... 63
 *
 * All loads of a group are examined before the first one. The caller tells by its points which instructions do not permit that.
 *
 * Values in a block that copies and truncations show to be equal have the same number. (Clang computes 64-bit addresses of shared memory; each load
 * truncates its address.) */
#include "check.h"

#include <stdlib.h>

enum { GROUP_MIN = 4 }; /* a loop costs more than fewer tests */

/* A load among which there may be groups. */
struct candidate {
    struct ct_check_point *point;
    uint32_t address; /* number */
};

/* Loads from one address lie next to each other, and those of one size. */
static int compare(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    const uint32_t x_bytes = ct_check_access_bytes(x->point->insn), y_bytes = ct_check_access_bytes(y->point->insn);
    const int64_t x_offset = x->point->insn->offset, y_offset = y->point->insn->offset;

    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    if (x_bytes != y_bytes)
        return x_bytes < y_bytes ? -1 : 1;
    return (x_offset > y_offset) - (x_offset < y_offset);
}

/* Neighbours in that order may be in one group: if one is aligned, so is the other, and reports name the same PTX text. */
static bool belong_together(const struct candidate *a, const struct candidate *b)
{
    return a->address == b->address && ct_check_access_bytes(a->point->insn) == ct_check_access_bytes(b->point->insn) &&
           (b->point->insn->offset - a->point->insn->offset) % ct_check_access_bytes(a->point->insn) == 0 &&
           a->point->insn->where.source == b->point->insn->where.source;
}

static int64_t offset_of(const struct ct_load_group *group, uint32_t number)
{
    int64_t offset = group->loads[0]->offset;

    for (uint32_t i = 0; i < group->n_levels; i++)
        offset += number / group->levels[i].period * group->levels[i].step;
    return offset;
}

/* Takes the distance of the first two offsets for the stride of the innermost loop, and so on. False: the offsets are others, or two are equal. */
static bool find_levels(struct ct_load_group *group)
{
    int64_t inner = 0; /* how far the inner loop gets */

    group->n_levels = 0;
    for (uint32_t period = 1; period < group->n && group->n_levels < CT_LOAD_GROUP_LEVELS;) {
        const int64_t stride = group->loads[period]->offset - group->loads[0]->offset;
        uint32_t count = 2;

        while (count * period < group->n && group->loads[count * period]->offset - group->loads[(count - 1) * period]->offset == stride)
            count++;
        group->levels[group->n_levels++] = (struct ct_load_level){period, stride - inner};
        period *= count;
        inner = stride * count;
    }
    for (uint32_t i = 1; i < group->n; i++)
        if (group->loads[i]->offset == group->loads[i - 1]->offset || offset_of(group, i) != group->loads[i]->offset)
            return false;
    return true;
}

/* A pattern whose first iteration lacks loads is then one whose last iteration does, which find_levels recognizes. */
static void reverse(struct ct_insn **loads, uint32_t n)
{
    for (uint32_t i = 0; i < n / 2; i++) {
        struct ct_insn *other = loads[n - 1 - i];

        loads[n - 1 - i] = loads[i];
        loads[i] = other;
    }
}

/* Makes a group of candidates, which takes the place of the first of its loads. */
static void group(struct ct_arena *scratch, const struct candidate *members, uint32_t n)
{
    struct ct_insn **loads = CT_ARENA_ARRAY(scratch, struct ct_insn *, n);
    struct ct_load_group *made = CT_ARENA_ARRAY(scratch, struct ct_load_group, 1);
    struct ct_check_point *first = members[0].point;
    struct ct_insn *insn;

    for (uint32_t i = 0; i < n; i++) {
        loads[i] = members[i].point->insn;
        if (members[i].point < first)
            first = members[i].point;
    }
    *made = (struct ct_load_group){.loads = loads, .n = n};
    if (!find_levels(made)) {
        reverse(loads, n);
        if (!find_levels(made))
            return;
    }
    insn = first->insn;
    for (uint32_t i = 0; i < n; i++)
        members[i].point->insn = NULL;
    *first = (struct ct_check_point){insn, made};
}

static void find_among(struct ct_arena *scratch, struct candidate *candidates, uint32_t n)
{
    uint32_t end;

    if (n)
        qsort(candidates, n, sizeof *candidates, compare);
    for (uint32_t first = 0; first < n; first = end) {
        for (end = first + 1; end < n && belong_together(&candidates[first], &candidates[end]);)
            end++;
        if (end - first >= GROUP_MIN)
            group(scratch, candidates + first, end - first);
    }
}

/* The number of a value is its index, until the block assigns the value. */
struct numbers {
    const struct ct_block *block;
    uint32_t next;
    struct number {
        const struct ct_block *block; /* that has assigned it */
        uint32_t number;
    } *of;
};

static uint32_t number_of(const struct numbers *numbers, ct_value value)
{
    const struct number *known = &numbers->of[value.i];

    return known->block == numbers->block ? known->number : value.i;
}

static void assign_numbers(struct numbers *numbers, const struct ct_insn *insn)
{
    const bool is_equal = insn->op == CT_OP_TRUNC || insn->op == CT_OP_COPY;
    const uint32_t number = is_equal ? number_of(numbers, insn->operands[0]) : 0;

    for (uint32_t i = 0; i < insn->n_results; i++)
        numbers->of[insn->results[i].i] = (struct number){insn->block, is_equal ? number : numbers->next++};
}

void ct_load_groups_find(struct ct_fn *fn, struct ct_check_point *points, uint32_t n)
{
    struct ct_arena *scratch = &fn->compilation->scratch;
    struct candidate *candidates = CT_ARENA_ARRAY(scratch, struct candidate, n + 1);
    struct numbers numbers = {.next = fn->values.n, .of = CT_ARENA_ARRAY(scratch, struct number, fn->values.n)};
    uint32_t next = 0, count = 0;

    for (uint32_t b = 0; b < fn->blocks.n; b++) {
        numbers.block = fn->blocks.v[b];
        for (struct ct_insn *insn = numbers.block->first; insn; insn = insn->next) {
            const bool is_point = next < n && points[next].insn == insn;

            if (is_point && insn->op == CT_OP_LOAD)
                candidates[count++] = (struct candidate){&points[next], number_of(&numbers, insn->operands[0])};
            else if (is_point) {
                find_among(scratch, candidates, count);
                count = 0;
            }
            next += is_point;
            assign_numbers(&numbers, insn);
        }
        find_among(scratch, candidates, count);
        count = 0;
    }
}

ct_value ct_load_group_offset(struct ct_cursor *at, const struct ct_load_group *group, ct_value number)
{
    ct_value offset = ct_const32(at, (uint32_t)group->loads[0]->offset);

    for (uint32_t i = 0; i < group->n_levels; i++) {
        const ct_value quotient = ct_op2(at, CT_OP_UDIV, PTX_U32, number, ct_const32(at, group->levels[i].period));

        offset = ct_add(at, offset, ct_op2(at, CT_OP_MUL, PTX_U32, quotient, ct_const32(at, (uint32_t)group->levels[i].step)));
    }
    return offset;
}

ct_value ct_load_group_line(struct ct_cursor *at, const struct ct_load_group *group, ct_value number)
{
    ct_value line = ct_const32(at, group->loads[0]->where.line);

    for (uint32_t i = 1; i < group->n; i++)
        line = ct_select(at, ct_equals(at, number, i), ct_const32(at, group->loads[i]->where.line), line);
    return line;
}
