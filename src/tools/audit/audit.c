/* SPDX-License-Identifier: Apache-2.0 */
/* libcuttle-audit.so, an auditing library of the loader (rtld-audit(7)) for `cuttle run`: whatever path leads to a libcuda.so or a
 * libnvidia-ml.so is replaced by that of the library beside this one: names in DT_NEEDED whatever DT_RPATH and DT_RUNPATH say, and arguments of
 * dlopen, absolute paths included. It defines no function that would be called for each call of a symbol, so programs run at full speed.
 *
 * Under `cuttle trace` a libcuda.so is replaced by the library that traces (src/tools/interpose), which itself opens the one that it calls. If that is not
 * the library beside this one, NVIDIA's say, then libnvidia-ml.so stays what it is, too. */
#include "tools/trace/record.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

enum { CUDA, NVML, LIBRARY_COUNT };
static struct {
    const char *name;
    char path[PATH_MAX]; /* set by la_version, which the loader calls first; empty: it is not replaced */
} libraries[] = {
    [CUDA] = {.name = "libcuda.so"},
    [NVML] = {.name = "libnvidia-ml.so"},
};

/* Whether a path ends in this name, or in the name and a version. */
static bool leads_to(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const size_t length = strlen(name);
    const char *rest = base + length;

    return !strncmp(base, name, length) && (!*rest || (*rest == '.' && rest[1] >= '0' && rest[1] <= '9'));
}

static bool set_path(int library, const char *folder, int folder_length, const char *subfolder)
{
    return snprintf(libraries[library].path, PATH_MAX, "%.*s%s/%s.1", folder_length, folder, subfolder, libraries[library].name) < PATH_MAX;
}

EXPORTED unsigned la_version(unsigned version)
{
    const char *driver = getenv(TRACE_DRIVER_VARIABLE), *slash;
    bool is_ours = true;
    Dl_info info;
    int length;

    if (!dladdr(libraries, &info) || !info.dli_fname || !(slash = strrchr(info.dli_fname, '/')))
        return 0; /* the loader then ignores this library */
    length = (int)(slash - info.dli_fname);
    if (!set_path(CUDA, info.dli_fname, length, "") || !set_path(NVML, info.dli_fname, length, ""))
        return 0;
    if (driver) {
        is_ours = !strcmp(driver, libraries[CUDA].path);
        if (!set_path(CUDA, info.dli_fname, length, "/" TRACE_LIBRARY_FOLDER))
            return 0;
    }
    if (!is_ours)
        *libraries[NVML].path = 0;
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}

EXPORTED char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag)
{
    const struct link_map *from = (const struct link_map *)*cookie; /* who searches: what the loader sets if la_objopen does not */

    if (from && from->l_name && !strcmp(from->l_name, libraries[CUDA].path))
        return (char *)name; /* what the library opens itself */
    for (int i = 0; flag == LA_SER_ORIG && i < LIBRARY_COUNT; i++)
        if (*libraries[i].path && leads_to(name, libraries[i].name))
            return libraries[i].path;
    return (char *)name;
}
