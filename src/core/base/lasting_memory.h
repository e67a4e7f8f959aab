/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is taken and never given back: for structures whose readers take no lock, and so may come late to what was removed. */
#ifndef CT_CORE_LASTING_MEMORY_H
#define CT_CORE_LASTING_MEMORY_H

#include <stddef.h>

#define CT_LASTING_ALIGN 128u /* two lines of the cache, which many processors fetch together */

/* All zero: nothing taken. Whoever owns it guards it. */
struct ct_lasting_memory {
    char *next;         /* of the newest block: what is not taken of it */
    size_t left_bytes;  /* the same */
    size_t block_bytes; /* size of the newest block */
};

/* `size_bytes`, up to 64 KiB, aligned to CT_LASTING_ALIGN, of any content. NULL: out of memory. */
void *ct_lasting_take(struct ct_lasting_memory *memory, size_t size_bytes);

#endif
