/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of the library, from the path of this command, so that an installed tree may be moved. */
#include "library_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether it contains the libraries. NVIDIA's libcuda.so.1 has no audit library beside it. */
static bool is_folder(const char *folder)
{
    static const char *const names[] = {TOOL_LIBRARY, TOOL_AUDIT_LIBRARY};
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (snprintf(path, sizeof path, "%s/%s", folder, names[i]) >= (int)sizeof path || access(path, R_OK) != 0)
            return false;
    return true;
}

bool tool_library_folder(char out[PATH_MAX])
{
    /* from the folder of this command: as CMake installs them, and as they are in a build */
    static const char *const places[] = {CUTTLE_LIBRARY_PLACE, "../lib"};
    char self[PATH_MAX], path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;

    if (length > 0) {
        self[length] = 0;
        slash = strrchr(self, '/');
        *slash = 0;
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            const bool is_absolute = *places[i] == '/';

            if (snprintf(path, sizeof path, "%s%s%s", is_absolute ? "" : self, is_absolute ? "" : "/", places[i]) < (int)sizeof path &&
                realpath(path, out) && is_folder(out))
                return true;
        }
    }
    fprintf(stderr, "cuttle: no folder with %s and %s belongs to this command (Debian's package libcuttle1)\n", TOOL_LIBRARY,
            TOOL_AUDIT_LIBRARY);
    return false;
}
