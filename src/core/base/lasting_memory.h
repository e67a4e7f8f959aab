/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is never freed: for structures whose readers take no lock, and so may still read removed elements. */
#ifndef CT_CORE_LASTING_MEMORY_H
#define CT_CORE_LASTING_MEMORY_H

#include <stddef.h>

#define CT_LASTING_ALIGN 128u /* two cache lines, which many processors fetch together */

/* All zero initially. The owner serializes access. */
struct ct_lasting_memory {
    char *next;         /* the unused rest of the newest block */
    size_t left_bytes;  /* size of that rest */
    size_t block_bytes; /* size of the newest block */
};

/* `size_bytes`, up to 64 KiB, aligned to CT_LASTING_ALIGN, with undefined content. NULL: out of memory. */
void *ct_lasting_take(struct ct_lasting_memory *memory, size_t size_bytes);

#endif
