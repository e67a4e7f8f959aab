/* SPDX-License-Identifier: Apache-2.0 */
/* The environment in which programs use Cuttle. */
#ifndef CT_TOOLS_LAUNCH_H
#define CT_TOOLS_LAUNCH_H

#include <limits.h>
#include <stdbool.h>

/* The exit statuses of `cuttle run` if it does not start the program: those of env(1) and timeout(1). */
enum { RUN_FAILED = 125, RUN_NOT_EXECUTABLE = 126, RUN_NOT_FOUND = 127 };

enum tool_launch_method {
    TOOL_AUDIT,   /* the loader's auditing interface */
    TOOL_PRELOAD, /* LD_PRELOAD, for programs that do not bear auditing; absolute paths are not replaced */
};

/* How calls are traced. */
struct tool_launch_tracing {
    const char *folder; /* where processes put their records */
    const char *driver; /* absolute path of the libcuda.so.1 that is called; NULL: Cuttle's */
};

/* Changes the environment of this process, for programs that it starts. `tracing` is NULL if calls are not traced. False, with a message: there is no
 * library, or no memory. */
bool tool_launch_environment(enum tool_launch_method method, const struct tool_launch_tracing *tracing);
/* Replaces this process by a program. Returns, after a message of that verb (with `cuttle` before it), only if that fails: the exit status. */
int tool_execute(const char *verb, char *const *command);
/* Starts a program and waits for it. Signals of the terminal (Ctrl-C) are for the program, which decides what they mean. Returns its exit status, or 128
 * and the number of the signal that ended it; or RUN_FAILED after a message. */
int tool_run(const char *verb, char *const *command);
/* Creates an empty file in the folder for temporary ones. False, with errno, if it cannot. */
bool tool_temporary_file(const char *prefix, char out[PATH_MAX]);
/* The file that execvp would start. False: there is none. */
bool tool_find_program(const char *name, char out[PATH_MAX]);

#endif
