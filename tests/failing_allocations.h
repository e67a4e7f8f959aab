/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations that fail: malloc, calloc and realloc, wrapped by the linker (cuttle_test's WRAP), for the calling thread only, and only those of
 * what is linked into the program statically. One source of a program includes this. */
#ifndef CUTTLE_TESTS_FAILING_ALLOCATIONS_H
#define CUTTLE_TESTS_FAILING_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>

static _Thread_local long allocations_left = -1; /* until one fails; negative: all succeed */

void *__real_malloc(size_t size_bytes);
void *__real_calloc(size_t count, size_t size_bytes);
void *__real_realloc(void *old, size_t size_bytes);
void *__wrap_malloc(size_t size_bytes);
void *__wrap_calloc(size_t count, size_t size_bytes);
void *__wrap_realloc(void *old, size_t size_bytes);

static inline bool allocation_fails(void)
{
    return allocations_left >= 0 && allocations_left-- == 0;
}

void *__wrap_malloc(size_t size_bytes)
{
    return allocation_fails() ? NULL : __real_malloc(size_bytes);
}

void *__wrap_calloc(size_t count, size_t size_bytes)
{
    return allocation_fails() ? NULL : __real_calloc(count, size_bytes);
}

void *__wrap_realloc(void *old, size_t size_bytes)
{
    return allocation_fails() ? NULL : __real_realloc(old, size_bytes);
}

#endif
