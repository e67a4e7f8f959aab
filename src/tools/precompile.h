/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle cache precompile`. */
#ifndef CT_TOOLS_PRECOMPILE_H
#define CT_TOOLS_PRECOMPILE_H

/* Compiles all kernels of a file for device 0 into the disk cache, with a line of progress on a terminal. Returns the exit status of the verb. */
int tool_precompile(const char *path);

#endif
