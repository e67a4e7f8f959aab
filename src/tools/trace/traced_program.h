/* SPDX-License-Identifier: Apache-2.0 */
/* What `cuttle trace`, `cuttle profile` and `cuttle run --trace --profile` have in common: a program is run, and its trace, its profile or both are written. */
#ifndef CT_TOOLS_TRACED_PROGRAM_H
#define CT_TOOLS_TRACED_PROGRAM_H

#include "profile.h"
#include "tools/launch.h"

struct traced_outputs {
    const char *trace; /* path of a trace; NULL: none */
    const char *text;  /* path of a profile as text; NULL: none */
    const char *html;  /* path of a profile as a page; NULL: none */
    enum profile_extent extent;
    bool is_text_on_stderr; /* the profile as text goes to standard error if `text` is NULL */
};

struct traced_program {
    const char *verb;     /* for messages: "cuttle trace" */
    char *const *command; /* ends with NULL */
    const char *driver;   /* struct traced_run */
    enum tool_launch_method method;
    struct traced_outputs outputs;
};

/* Returns the exit status: that of the program, or RUN_FAILED, RUN_NOT_EXECUTABLE or RUN_NOT_FOUND with a message. */
int traced_program(const struct traced_program *program);
/* Writes profiles of a trace. False, with a message. */
bool traced_profile(const char *verb, const char *trace, const struct traced_outputs *outputs);

#endif
