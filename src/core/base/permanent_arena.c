/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator for memory that is never freed. It uses blocks: small ones at first, so that small processes stay small, each eight times as
 * large as the one before, up to the size of a huge page. A random read of a small page costs a TLB miss in addition to the cache miss, and
 * under a hypervisor a walk of two sets of page tables. If the system refuses huge pages, small ones are used.
 *
 * Blocks come from malloc's arenas, not from mmap, since LeakSanitizer looks for pointers in the former only. */
#include "permanent_arena.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#define FIRST_BLOCK ((size_t)64 << 10)
#define HUGE_PAGE ((size_t)2 << 20)

/* The rest of the previous block, which is less than one piece, is wasted. */
static bool add_block(struct ct_permanent_arena *memory)
{
    size_t larger = 8 * memory->block_bytes, size_bytes = larger == 0 ? FIRST_BLOCK : larger < HUGE_PAGE ? larger : HUGE_PAGE;
    char *block = aligned_alloc(size_bytes == HUGE_PAGE ? HUGE_PAGE : CT_PERMANENT_ALIGN, size_bytes);

    if (!block)
        return false;
    if (size_bytes == HUGE_PAGE)
        (void)madvise(block, size_bytes, MADV_HUGEPAGE);
    *memory = (struct ct_permanent_arena){.next = block, .left_bytes = size_bytes, .block_bytes = size_bytes};
    return true;
}

void *ct_permanent_arena_alloc(struct ct_permanent_arena *memory, size_t size_bytes)
{
    size_t taken_bytes = (size_bytes + CT_PERMANENT_ALIGN - 1) & ~(size_t)(CT_PERMANENT_ALIGN - 1);
    char *piece;

    assert(taken_bytes <= FIRST_BLOCK);
    if (memory->left_bytes < taken_bytes && !add_block(memory))
        return NULL;
    piece = memory->next;
    memory->next += taken_bytes;
    memory->left_bytes -= taken_bytes;
    return piece;
}
