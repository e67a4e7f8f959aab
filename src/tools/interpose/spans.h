/* SPDX-License-Identifier: Apache-2.0 */
/* How long devices work, measured with an event before and one after the work of a call. */
#ifndef CT_INTERPOSE_SPANS_H
#define CT_INTERPOSE_SPANS_H

#include "forward.h"

#include "tools/trace/record.h"

/* The work of a call that is being made; in the wrapper's frame. */
struct span {
    bool is_open;
    CUevent before, after;
    struct trace_work work;
};

/* When the driver has been opened. */
void spans_start(void);
/* The driver's calls that this thread makes are for the code at that address, until NULL is given. */
void spans_call_for(const void *caller);
/* Before a call. */
void spans_begin(const struct forward_call *call, struct span *span);
/* After it. */
void spans_end(const struct forward_call *call, CUresult result, struct span *span);
/* In a child process. */
void spans_after_fork(void);

#endif
