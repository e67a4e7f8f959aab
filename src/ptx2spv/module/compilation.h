/* SPDX-License-Identifier: Apache-2.0 */
/* The state that all parts of one compilation share: memory, options, diagnostics. Only one thread may use it at a time. */
#ifndef PTX2SPV_COMPILATION_H
#define PTX2SPV_COMPILATION_H

#include "arena.h"
#include "cuttle/ptx2spv.h"

#include <stdbool.h>
#include <stdint.h>

/* The next multiple of `align`, or the value itself; 0 and 1: any value is one. */
static inline uint64_t ct_round_up(uint64_t value, uint64_t align)
{
    return align > 1 ? (value + align - 1) / align * align : value;
}

struct ct_location {
    uint32_t line;   /* from 1; 0 is unknown */
    uint16_t column; /* likewise; UINT16_MAX: that column or a later one */
    uint16_t source; /* index in compilation->sources */
};

/* One of the PTX texts that make up a module. */
struct ct_source {
    const char *name; /* for messages; NULL: it is the only text, or has no name */
    const char *text; /* NUL-terminated */
    size_t length;
};

struct ptx_names;

struct ct_compilation {
    struct ct_arena arena;   /* memory that lives as long as the result */
    struct ct_arena scratch; /* temporary tables of one pass: the pass driver resets it after each pass */
    struct ct_arena bodies;  /* of a module: the body that is being parsed for the first time */
    jmp_buf exhausted;       /* set by the entry point before the first allocation */
    struct ptx2spv_options options;
    enum ptx2spv_status status; /* status of the first error */
    unsigned n_errors;
    struct ptx_names *names;         /* of the bodies that are parsed again; NULL: none yet */
    bool avoids_native_warps;        /* the kernel turned out to have no native warps: see pipeline.c */
    const struct ct_source *sources; /* borrowed: for the source line that an error shows; may be NULL */
    uint32_t n_sources;
};

/* Reports an error: a message, and the offending source line with a caret. The first error determines compilation->status. At most 20
 * errors are reported. Always returns false, so that a failing function can return the result. */
bool ct_error(struct ct_compilation *compilation, struct ct_location where, enum ptx2spv_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void ct_note(struct ct_compilation *compilation, struct ct_location where, enum ptx2spv_severity severity, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
