/* SPDX-License-Identifier: Apache-2.0 */
/* Arena allocator for the memory of a compilation: bump allocation, freed as a whole. When memory is exhausted, allocation does not
 * return: it leaves by longjmp to the compilation's entry point (see compilation.h). This is the only longjmp of the tree. */
#ifndef PTX2SPV_ARENA_H
#define PTX2SPV_ARENA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct ct_arena_chunk;

struct ct_arena {
    struct ct_arena_chunk *chunks; /* newest first */
    jmp_buf *on_exhausted;         /* borrowed: must be set before the first allocation, and outlive all of them */
};

/* Allocates zeroed memory, aligned for any type. Size 0 gives a unique non-NULL pointer. */
void *ct_arena_alloc(struct ct_arena *arena, size_t size_bytes);
void *ct_arena_alloc_array(struct ct_arena *arena, size_t count, size_t item_bytes);
char *ct_arena_strndup(struct ct_arena *arena, const char *text, size_t length);
char *ct_arena_printf(struct ct_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Frees all memory except one chunk, which is kept for the next use. */
void ct_arena_reset(struct ct_arena *arena);
void ct_arena_finish(struct ct_arena *arena);

#define CT_ARENA_NEW(arena, type) ((type *)ct_arena_alloc((arena), sizeof(type)))
#define CT_ARENA_ARRAY(arena, type, count) ((type *)ct_arena_alloc_array((arena), (count), sizeof(type)))

/* A growable array in an arena: struct { T *v; uint32_t n, cap; }. CT_PUSH evaluates to a pointer to the new last item (zeroed). */
#define CT_VEC(type)                                                                                                                       \
    struct {                                                                                                                               \
        type *v;                                                                                                                           \
        uint32_t n, cap;                                                                                                                   \
    }
#define CT_PUSH(arena, vec)                                                                                                                \
    ((vec)->n == (vec)->cap ? ct_arena_grow((arena), (void **)&(vec)->v, &(vec)->cap, (vec)->n, sizeof *(vec)->v) : (void)0,               \
     &(vec)->v[(vec)->n++])
void ct_arena_grow(struct ct_arena *arena, void **items, uint32_t *capacity, uint32_t used, size_t item_bytes);

#endif
