/* SPDX-License-Identifier: Apache-2.0 */
/* What Cuttle offers to the library that traces calls (src/tools/interpose), beyond the API: a table of cuGetExportTable. Other drivers do not know its id. */
#ifndef CT_API_TRACE_TABLE_H
#define CT_API_TRACE_TABLE_H

#include "cuda.h"

#include <stddef.h>
#include <stdint.h>

#define CT_TRACE_TABLE_ID {'C', 'u', 't', 't', 'l', 'e', '\'', 's', ' ', 't', 'r', 'a', 'c', 'i', 'n', 'g'} /* a UUID */

/* Tells of a compilation that took place in the calling thread. Times are nanoseconds of CLOCK_MONOTONIC. */
typedef void (*ct_compilation_observer)(const char *compiler, const char *kernel, uint64_t begin_ns, uint64_t end_ns);

struct ct_trace_table {
    size_t size_bytes; /* of this table */
    /* The event will be recorded by the next command that this thread enqueues in a stream of the event's context, right before that command: behind
     * compilations in the same call. NULL: no more; then SUCCESS if an event was recorded since it was given, or NOT_READY. INVALID_HANDLE: no such event. */
    CUresult (*record_before_next)(CUevent event);
    /* The function is called after each compilation, until another one takes its place; NULL: none. */
    CUresult (*observe_compilations)(ct_compilation_observer observer);
    /* This thread's calls count as those of the code at the address, until NULL is given: what some functions do depends on the library that calls. */
    void (*call_for)(const void *caller);
};

#endif
