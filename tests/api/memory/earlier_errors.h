/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of earlier errors call: tables of functions, and memory of every kind for them. */
#ifndef CUTTLE_TESTS_MEMORY_EARLIER_ERRORS_H
#define CUTTLE_TESTS_MEMORY_EARLIER_ERRORS_H

#include "virtual_memory.h"

#define BYTES ((size_t)8192)

/* A context with memory of every kind in it. */
struct broken {
    CUcontext context;
    CUmodule module;
    CUfunction stops;
    CUstream stream;
    CUdeviceptr device, second, managed, pooled;
    CUmemoryPool pool, other_pool;
    CUarray array, other_array;
    CUmipmappedArray mipmapped;
    CUmemGenericAllocationHandle handle; /* 0 where there is no virtual memory */
    CUdeviceptr reserved, mapped;
    size_t granule;
    void *host, *pages;
    unsigned char plain[BYTES];
    /* for what functions give back */
    CUdeviceptr pointer;
    size_t size, other_size;
    unsigned number;
    void *address;
};

/* A call of one function. What it makes and nobody owns it gives back. */
struct errors_row {
    const char *name;
    CUresult (*call)(struct broken *broken);
    bool waits;   /* it does not come back before earlier work is done */
    bool goes_on; /* NVIDIA's driver does it in a context where a kernel failed, too */
};

struct errors_table {
    const struct errors_row *rows;
    size_t count;
};

/* CALLS(CALL, WAITS, GOES_ON) lists name and call of each row by one of its three arguments. */
#define ERRORS_FUNCTION(name, call)                                                                                                        \
    static CUresult name(struct broken *b)                                                                                                 \
    {                                                                                                                                      \
        (void)b;                                                                                                                           \
        return call;                                                                                                                       \
    }
#define ERRORS_CALL(name, call) {#name, name, false, false},
#define ERRORS_WAITS(name, call) {#name, name, true, false},
#define ERRORS_GOES_ON(name, call) {#name, name, false, true},
#define ERRORS_TABLE(table, CALLS)                                                                                                         \
    CALLS(ERRORS_FUNCTION, ERRORS_FUNCTION, ERRORS_FUNCTION)                                                                               \
    static const struct errors_row table##_rows[] = {CALLS(ERRORS_CALL, ERRORS_WAITS, ERRORS_GOES_ON)};                                    \
    const struct errors_table table = {table##_rows, sizeof table##_rows / sizeof *table##_rows};

extern const struct errors_table errors_linear, errors_objects, errors_virtual;

static inline CUdeviceptr unified(void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

/* Pools, arrays and virtual memory of a context, and their end, which takes what rows have destroyed. */
void errors_make_objects(struct broken *b);
void errors_destroy_objects(struct broken *b);

#endif
