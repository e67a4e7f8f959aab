/* SPDX-License-Identifier: Apache-2.0 */
/* What copy_runtime_stub.c counts, and what it can be told to do. */
#ifndef CUTTLE_TESTS_COPY_RUNTIME_STUB_H
#define CUTTLE_TESTS_COPY_RUNTIME_STUB_H

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct copy_stub {
    int uploads, downloads; /* made */
    int imports, pins;      /* that live */
    int faults;             /* calls that the protocol forbids */
    atomic_int refuses_imports, fails_copies;
    atomic_int starts, contexts;  /* begun; that live */
    atomic_int start_ms, copy_ms; /* how long it takes */
    atomic_int fails_start;
};
/* At exit it ends the process with one of these where it comes to harm. */
enum { COPY_STUB_IN_USE = 3, COPY_STUB_USED_LATE, COPY_STUB_IN_CHILD };

/* Of the library that CUTTLE_COPY_RUNTIME names. */
struct copy_stub *copy_stub_state(void);

/* For the tests. NULL: the runtime is a real one. */
static inline struct copy_stub *copy_stub_or_null(void)
{
    const char *name = getenv("CUTTLE_COPY_RUNTIME");
    void *library = name ? dlopen(name, RTLD_NOW) : NULL, *symbol = library ? dlsym(library, "copy_stub_state") : NULL;
    struct copy_stub *(*get)(void);

    memcpy(&get, &symbol, sizeof get);
    return symbol ? get() : NULL;
}

#endif
