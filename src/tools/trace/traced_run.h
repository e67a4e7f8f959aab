/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program whose calls are traced, and makes a trace of what it and its child processes recorded. */
#ifndef CT_TOOLS_TRACED_RUN_H
#define CT_TOOLS_TRACED_RUN_H

#include "tools/launch.h"

#include <stdio.h>

struct traced_run {
    const char *verb;     /* for messages: "cuttle trace" */
    char *const *command; /* ends with NULL */
    const char *driver;   /* the libcuda.so.1 to call, a path or a name for the loader to search; NULL: Cuttle's */
    const char *folder;   /* where records may be until the program has ended */
    enum tool_launch_method method;
};

/* Writes the trace to `to`. Returns the status of the program (128 and its number if a signal ended it), or RUN_FAILED, RUN_NOT_EXECUTABLE or
 * RUN_NOT_FOUND with a message; *is_written says whether the trace is complete. */
int traced_run(const struct traced_run *run, FILE *to, bool *is_written);

#endif
