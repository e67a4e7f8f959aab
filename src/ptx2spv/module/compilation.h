/* SPDX-License-Identifier: Apache-2.0 */
/* What every part of one compilation shares: memory, options, diagnostics. Never two threads at once. */
#ifndef PTX2SPV_COMPILATION_H
#define PTX2SPV_COMPILATION_H

#include "arena.h"
#include "cuttle/ptx2spv.h"

#include <stdbool.h>
#include <stdint.h>

struct ct_location {
    uint32_t line;   /* from 1; 0 is unknown */
    uint16_t column; /* the same; UINT16_MAX: that or more */
    uint16_t source; /* in compilation->sources */
};

/* One PTX text of those that a module is made of. */
struct ct_source {
    const char *name; /* for messages; NULL: the only one, or without a name */
    const char *text; /* ends with NUL */
    size_t length;
};

struct ct_compilation {
    struct ct_arena arena;   /* lives as long as the result */
    struct ct_arena scratch; /* tables of one pass: reset by the pass driver between passes */
    jmp_buf exhausted;       /* set by the entry point before anything is allocated */
    struct ptx2spv_options options;
    enum ptx2spv_status status; /* of the first error */
    unsigned n_errors;
    const struct ct_source *sources; /* borrowed: for the line that an error shows; may be NULL */
    uint32_t n_sources;
};

/* Reports an error: "message" plus the offending source line with a caret. The first one decides compilation->status.
 * At most 20 are passed on. Always returns false, so that a failing function may end with it. */
bool ct_error(struct ct_compilation *compilation, struct ct_location where, enum ptx2spv_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void ct_note(struct ct_compilation *compilation, struct ct_location where, enum ptx2spv_severity severity, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
