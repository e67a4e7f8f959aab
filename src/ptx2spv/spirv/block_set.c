/* SPDX-License-Identifier: Apache-2.0 */
/* block_set: ranges are kept in order, and joined where no number is between them. */
#include "block_set.h"

#include <string.h>

enum { WORD_BITS = 64 };

void ct_block_mark(struct ct_block_marks *marks, uint32_t number)
{
    const uint32_t word = number / WORD_BITS;

    marks->first = !marks->n || word < marks->first ? word : marks->first;
    marks->last = !marks->n || word > marks->last ? word : marks->last;
    marks->words[word] |= UINT64_C(1) << number % WORD_BITS;
    marks->n++;
}

/* Appends a range that begins at or behind the first number of the last one. */
static void append(struct ct_block_range *ranges, uint32_t *n, struct ct_block_range range)
{
    struct ct_block_range *last = *n ? &ranges[*n - 1] : NULL;

    if (!last || (last->last < range.first && last->last + 1 != range.first))
        ranges[(*n)++] = range;
    else if (last->last < range.last)
        last->last = range.last;
}

/* Removes the lowest run of ones from a word, and returns its place. */
static struct ct_block_range take_run(uint64_t *word)
{
    const uint32_t first = (uint32_t)__builtin_ctzll(*word);
    const uint64_t behind = ~(*word >> first); /* 0 if all bits of the word are set */
    const uint32_t n = behind ? (uint32_t)__builtin_ctzll(behind) : WORD_BITS;

    *word = first + n < WORD_BITS ? *word & UINT64_MAX << (first + n) : 0;
    return (struct ct_block_range){first, first + n - 1};
}

struct ct_block_set ct_block_set_make(struct ct_arena *arena, struct ct_block_marks *marks)
{
    struct ct_block_set set = {0};

    for (uint32_t w = marks->first; marks->n && w <= marks->last; w++) /* runs end where the next bit is zero, at worst at the word's end */
        set.cap += (uint32_t)__builtin_popcountll(marks->words[w] & ~(marks->words[w] >> 1));
    set.v = CT_ARENA_ARRAY(arena, struct ct_block_range, set.cap);
    for (uint32_t w = marks->first; marks->n && w <= marks->last; w++)
        while (marks->words[w]) {
            const struct ct_block_range run = take_run(&marks->words[w]);

            append(set.v, &set.n, (struct ct_block_range){w * WORD_BITS + run.first, w * WORD_BITS + run.last});
        }
    marks->first = marks->last = marks->n = 0;
    return set;
}

bool ct_block_set_has(const struct ct_block_set *set, uint32_t number)
{
    uint32_t low = 0, high = set->n; /* the ranges before `low` end before the number, those from `high` on begin behind it */

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (set->v[middle].last < number)
            low = middle + 1;
        else if (set->v[middle].first > number)
            high = middle;
        else
            return true;
    }
    return false;
}

bool ct_block_sets_meet(const struct ct_block_set *a, const struct ct_block_set *b)
{
    uint32_t i = 0, j = 0;

    while (i < a->n && j < b->n) {
        if (a->v[i].last < b->v[j].first)
            i++;
        else if (b->v[j].last < a->v[i].first)
            j++;
        else
            return true;
    }
    return false;
}

void ct_block_set_unite(struct ct_arena *arena, struct ct_block_set *set, const struct ct_block_set *other)
{
    const uint32_t most = set->n + other->n;
    const struct ct_block_range *old = set->v;
    uint32_t i = 0, j = 0, n = 0;

    if (most > set->cap) {
        set->cap = 2 * most;
        set->v = CT_ARENA_ARRAY(arena, struct ct_block_range, set->cap);
    }
    /* The old ranges move to the end, out of the way of the new ones. */
    if (set->n)
        memmove(set->v + set->cap - set->n, old, set->n * sizeof *old);
    old = set->v + set->cap - set->n;
    while (i < set->n || j < other->n)
        append(set->v, &n, j >= other->n || (i < set->n && old[i].first <= other->v[j].first) ? old[i++] : other->v[j++]);
    set->n = n;
}
