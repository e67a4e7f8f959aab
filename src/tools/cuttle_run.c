/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle run`: starts a program so that it, and what it starts, use Cuttle. */
#include "verbs.h"

#include "launch.h"
#include "trace/traced_program.h"
#include "why.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int run_traced(const struct tool_arguments *arguments, enum tool_launch_method method)
{
    const char *profile = arguments->values[CUTTLE_RUN_PROFILE], *dot = profile ? strrchr(profile, '.') : NULL;
    const bool is_page = dot && !strcmp(dot, ".html");

    return traced_program(&(struct traced_program){
        .verb = "cuttle run",
        .command = arguments->operands,
        .method = method,
        .outputs = {.trace = arguments->values[CUTTLE_RUN_TRACE], .text = is_page ? NULL : profile, .html = is_page ? profile : NULL}});
}

int verb_run(const struct tool_arguments *arguments)
{
    const enum tool_launch_method method = arguments->values[CUTTLE_RUN_PRELOAD] ? TOOL_PRELOAD : TOOL_AUDIT;
    char *const *command = arguments->operands;

    if (arguments->values[CUTTLE_RUN_WHY] &&
        (arguments->values[CUTTLE_RUN_TRACE] || arguments->values[CUTTLE_RUN_PROFILE] || arguments->values[CUTTLE_RUN_CHECK]))
        return tool_wrong_usage(arguments, "--why does not run the program, so there is nothing for --check, --trace or --profile", "");
    if (arguments->values[CUTTLE_RUN_WHY])
        return tool_why(command[0], method, arguments->values[CUTTLE_RUN_TARGET]);
    if (arguments->values[CUTTLE_RUN_TARGET])
        return tool_wrong_usage(arguments, "--target is for --why", "");
    if (arguments->values[CUTTLE_RUN_CHECK] && setenv("CUTTLE_CHECK", "1", 1) != 0) { /* core/base/config.def */
        fprintf(stderr, "cuttle run: no memory for the environment\n");
        return RUN_FAILED;
    }
    if (arguments->values[CUTTLE_RUN_TRACE] || arguments->values[CUTTLE_RUN_PROFILE])
        return run_traced(arguments, method);
    if (!tool_launch_environment(method, NULL))
        return RUN_FAILED;
    return tool_execute("cuttle run", command);
}
