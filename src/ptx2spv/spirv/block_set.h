/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of blocks, by their numbers in reverse postorder, as ranges of these: what is live for long takes few. */
#ifndef PTX2SPV_BLOCK_SET_H
#define PTX2SPV_BLOCK_SET_H

#include "ptx2spv/module/arena.h"

#include <stdbool.h>

struct ct_block_range {
    uint32_t first, last;
};

struct ct_block_set {
    struct ct_block_range *v; /* in order, with other numbers between them */
    uint32_t n, cap;
};

/* Collects the numbers of a set. */
struct ct_block_marks {
    uint64_t *words;         /* CT_BLOCK_MARK_WORDS(number of blocks), at first zeros */
    uint32_t first, last, n; /* the first and the last word with marks; how many marks were made */
};
#define CT_BLOCK_MARK_WORDS(n_blocks) ((n_blocks) / 64 + 1)

void ct_block_mark(struct ct_block_marks *marks, uint32_t number);
/* The set of the marked numbers, whose marks are removed. */
struct ct_block_set ct_block_set_make(struct ct_arena *arena, struct ct_block_marks *marks);
bool ct_block_set_has(const struct ct_block_set *set, uint32_t number);
bool ct_block_sets_meet(const struct ct_block_set *a, const struct ct_block_set *b);
/* Adds the numbers of another set to one. */
void ct_block_set_unite(struct ct_arena *arena, struct ct_block_set *set, const struct ct_block_set *other);

#endif
