/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of functions for the tests of earlier errors, and memory of every kind for them. */
#ifndef CUTTLE_TESTS_MEMORY_EARLIER_ERRORS_H
#define CUTTLE_TESTS_MEMORY_EARLIER_ERRORS_H

#include "virtual_memory.h"

#define BYTES ((size_t)8192)

/* A context with memory of every kind. */
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
    /* outputs of the functions */
    CUdeviceptr pointer;
    size_t size, other_size;
    unsigned number;
    void *address;
};

/* A call of one function. The call frees an object that it creates and that has no owner. */
struct errors_row {
    const char *name;
    CUresult (*call)(struct broken *broken);
    bool waits;     /* it returns only after earlier work is done */
    bool continues; /* NVIDIA's driver executes it in a context where a kernel failed, too */
};

struct errors_table {
    const struct errors_row *rows;
    size_t count;
};

/* CALLS(CALL, WAITS, CONTINUES) lists the name and the call of each row with one of its three arguments. */
#define ERRORS_FUNCTION(name, call)                                                                                                        \
    static CUresult name(struct broken *b)                                                                                                 \
    {                                                                                                                                      \
        (void)b;                                                                                                                           \
        return call;                                                                                                                       \
    }
#define ERRORS_CALL(name, call) {#name, name, false, false},
#define ERRORS_WAITS(name, call) {#name, name, true, false},
#define ERRORS_CONTINUES(name, call) {#name, name, false, true},
#define ERRORS_TABLE(table, CALLS)                                                                                                         \
    CALLS(ERRORS_FUNCTION, ERRORS_FUNCTION, ERRORS_FUNCTION)                                                                               \
    static const struct errors_row table##_rows[] = {CALLS(ERRORS_CALL, ERRORS_WAITS, ERRORS_CONTINUES)};                                  \
    const struct errors_table table = {table##_rows, sizeof table##_rows / sizeof *table##_rows};

extern const struct errors_table errors_linear, errors_objects, errors_virtual;

static inline CUdeviceptr unified(void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

/* Creates the pools, arrays and virtual memory of a context, and destroys them, including what rows have destroyed already. */
void errors_make_objects(struct broken *b);
void errors_destroy_objects(struct broken *b);

#endif
