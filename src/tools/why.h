/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle run --why`: looks for what will not work, without running the program. */
#ifndef CT_TOOLS_WHY_H
#define CT_TOOLS_WHY_H

#include "launch.h"

/* Prints what was found about a program, as execvp finds it, and about the libraries that it is linked with. target: see tool_device_target.
 * Returns the exit status: 0, 1 (something will not work), or one of enum RUN_.. */
int tool_why(const char *program, enum tool_launch_method method, const char *target);

#endif
