/* SPDX-License-Identifier: Apache-2.0 */
/* Arena allocator: a list of chunks, each filled from its start. */
#include "arena.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES ((size_t)64 * 1024)

struct ct_arena_chunk {
    struct ct_arena_chunk *next;
    size_t used_bytes, size_bytes;
    alignas(max_align_t) unsigned char bytes[];
};

static struct ct_arena_chunk *chunk_create(struct ct_arena *arena, size_t size_bytes)
{
    struct ct_arena_chunk *chunk = malloc(sizeof *chunk + size_bytes);

    if (!chunk)
        longjmp(*arena->on_exhausted, 1);
    chunk->used_bytes = 0;
    chunk->size_bytes = size_bytes;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    return chunk;
}

void *ct_arena_alloc(struct ct_arena *arena, size_t size_bytes)
{
    const size_t align = alignof(max_align_t);
    struct ct_arena_chunk *chunk = arena->chunks;
    size_t rounded;
    void *memory;

    if (size_bytes > SIZE_MAX / 2)
        longjmp(*arena->on_exhausted, 1);
    rounded = ((size_bytes ? size_bytes : 1) + align - 1) / align * align;
    if (!chunk || chunk->size_bytes - chunk->used_bytes < rounded)
        chunk = chunk_create(arena, rounded > CHUNK_BYTES ? rounded : CHUNK_BYTES);
    memory = chunk->bytes + chunk->used_bytes;
    chunk->used_bytes += rounded;
    return memset(memory, 0, rounded);
}

void *ct_arena_alloc_array(struct ct_arena *arena, size_t count, size_t item_bytes)
{
    size_t total;

    if (__builtin_mul_overflow(count, item_bytes, &total))
        longjmp(*arena->on_exhausted, 1);
    return ct_arena_alloc(arena, total);
}

char *ct_arena_strndup(struct ct_arena *arena, const char *text, size_t length)
{
    char *copy = ct_arena_alloc(arena, length + 1);

    memcpy(copy, text, length);
    return copy;
}

char *ct_arena_printf(struct ct_arena *arena, const char *format, ...)
{
    va_list arguments;
    char *text;
    int length;

    va_start(arguments, format);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    text = ct_arena_alloc(arena, (size_t)(length < 0 ? 0 : length) + 1);
    va_start(arguments, format);
    vsnprintf(text, (size_t)(length < 0 ? 0 : length) + 1, format, arguments);
    va_end(arguments);
    return text;
}

void ct_arena_grow(struct ct_arena *arena, void **items, uint32_t *capacity, uint32_t used, size_t item_bytes)
{
    const uint32_t more = *capacity ? *capacity * 2 : 8;
    void *grown;

    if (more < *capacity)
        longjmp(*arena->on_exhausted, 1);
    grown = ct_arena_alloc_array(arena, more, item_bytes);
    if (used)
        memcpy(grown, *items, used * item_bytes);
    *items = grown;
    *capacity = more;
}

void ct_arena_reset(struct ct_arena *arena)
{
    struct ct_arena_chunk *kept = arena->chunks;

    if (!kept)
        return;
    while (kept->next) {
        struct ct_arena_chunk *rest = kept->next;

        kept->next = rest->next;
        free(rest);
    }
    kept->used_bytes = 0;
}

void ct_arena_finish(struct ct_arena *arena)
{
    while (arena->chunks) {
        struct ct_arena_chunk *chunk = arena->chunks;

        arena->chunks = chunk->next;
        free(chunk);
    }
}
