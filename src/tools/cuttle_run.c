/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle run`: starts a program so that it, and what it starts, use Cuttle. */
#include "verbs.h"

#include "launch.h"
#include "why.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int verb_run(const struct tool_arguments *arguments)
{
    const enum tool_launch_method method = arguments->values[CUTTLE_RUN_PRELOAD] ? TOOL_PRELOAD : TOOL_AUDIT;
    char *const *command = arguments->operands;
    int error;

    if (arguments->values[CUTTLE_RUN_WHY])
        return tool_why(command[0], method, arguments->values[CUTTLE_RUN_TARGET]);
    if (arguments->values[CUTTLE_RUN_TARGET])
        return tool_wrong_usage(arguments, "--target is for --why", "");
    if (!tool_launch_environment(method, NULL))
        return RUN_FAILED;
    execvp(command[0], command);
    error = errno;
    fprintf(stderr, "cuttle run: %s: %s\n", command[0], strerror(error));
    return error == ENOENT ? RUN_NOT_FOUND : RUN_NOT_EXECUTABLE;
}
