/* SPDX-License-Identifier: Apache-2.0 */
/* LD_AUDIT reaches programs whatever their RPATH says and however they open the library, also in child processes. LD_LIBRARY_PATH alone is beaten
 * by DT_RPATH and by absolute paths; it is set, too, for what only searches its folders. */
#include "launch.h"

#include "library_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Puts a value before those of a variable that is a list, unless it is the first one already. */
static bool prepend(const char *variable, const char *value)
{
    const char *old = getenv(variable);
    const size_t length = strlen(value);
    char *joined;
    bool is_set;

    if (!old || !*old)
        return setenv(variable, value, 1) == 0;
    if (!strncmp(old, value, length) && (!old[length] || old[length] == ':'))
        return true;
    if (asprintf(&joined, "%s:%s", value, old) < 0)
        return false;
    is_set = setenv(variable, joined, 1) == 0;
    free(joined);
    return is_set;
}

bool tool_launch_environment(enum tool_launch_method method)
{
    static const struct {
        const char *variable, *library;
    } methods[] = {
        [TOOL_AUDIT] = {"LD_AUDIT", TOOL_AUDIT_LIBRARY},
        [TOOL_PRELOAD] = {"LD_PRELOAD", TOOL_LIBRARY},
    };
    char folder[PATH_MAX], path[PATH_MAX + 32];

    if (!tool_library_folder(folder))
        return false;
    if (strchr(folder, ':')) {
        fprintf(stderr, "cuttle: the loader has no way to name libraries in %s, which contains a colon\n", folder);
        return false;
    }
    snprintf(path, sizeof path, "%s/%s", folder, methods[method].library);
    if (prepend(methods[method].variable, path) && prepend("LD_LIBRARY_PATH", folder))
        return true;
    fprintf(stderr, "cuttle: no memory for the environment\n");
    return false;
}

static bool is_program(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

bool tool_find_program(const char *name, char out[PATH_MAX])
{
    const char *folders = getenv("PATH");

    if (strchr(name, '/'))
        return snprintf(out, PATH_MAX, "%s", name) < PATH_MAX && is_program(name);
    for (const char *at = folders ? folders : "/bin:/usr/bin"; *name;) {
        const char *end = strchrnul(at, ':');
        const int length = (int)(end - at);

        if (snprintf(out, PATH_MAX, "%.*s%s%s", length, at, length ? "/" : "", name) < PATH_MAX && is_program(out))
            return true;
        if (!*end)
            break;
        at = end + 1;
    }
    return false;
}
