/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is never freed: for structures whose readers take no lock, and so may still read removed elements. */
#ifndef CT_CORE_PERMANENT_ARENA_H
#define CT_CORE_PERMANENT_ARENA_H

#include <stddef.h>

#define CT_PERMANENT_ALIGN 128u /* two cache lines, which many processors fetch together */

/* All zero initially. The owner serializes access. */
struct ct_permanent_arena {
    char *next;         /* the unused rest of the newest block */
    size_t left_bytes;  /* size of that rest */
    size_t block_bytes; /* size of the newest block */
};

/* Allocates `size_bytes`, up to 64 KiB, aligned to CT_PERMANENT_ALIGN, with undefined content. NULL: out of memory. */
void *ct_permanent_arena_alloc(struct ct_permanent_arena *memory, size_t size_bytes);

#endif
