/* SPDX-License-Identifier: Apache-2.0 */
/* Which symbol a name means for a program: cuGetProcAddress, here and in the library that traces calls of another libcuda.so.1 (src/tools/interpose). */
#ifndef CT_API_ENTRY_LOOKUP_H
#define CT_API_ENTRY_LOOKUP_H

#include "entry_points.h"

struct ct_entry_query {
    const char *name;
    size_t name_length;
    int version; /* 1000 * major + 10 * minor, of the CUDA that the program was built for */
    bool per_thread;
};

/* The result of a look-up: the best symbol or NULL, and why there is none. */
struct ct_entry_answer {
    const struct ct_entry_point *entry;
    CUdriverProcAddressQueryResult status;
};

/* Of the whole table, which begins at `entries`. */
struct ct_entry_answer ct_entry_point_find(const struct ct_entry_point *entries, const struct ct_entry_query *query);

#endif
