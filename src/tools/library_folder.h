/* SPDX-License-Identifier: Apache-2.0 */
/* Where this command's libcuda.so.1 is: installed, or in the folder of a build. */
#ifndef CT_TOOLS_LIBRARY_FOLDER_H
#define CT_TOOLS_LIBRARY_FOLDER_H

#include <limits.h>
#include <stdbool.h>

#define TOOL_LIBRARY "libcuda.so.1"
#define TOOL_AUDIT_LIBRARY "libcuttle-audit.so"

/* The folder with both libraries, found from the path of this command. False, with a message: there is none. */
bool tool_library_folder(char out[PATH_MAX]);

#endif
