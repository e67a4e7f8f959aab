/* SPDX-License-Identifier: Apache-2.0 */
/* libcuttle-audit.so, an auditing library of the loader (rtld-audit(7)) for `cuttle run`: whatever path leads to a libcuda.so or a
 * libnvidia-ml.so is replaced by that of the library beside this one: names in DT_NEEDED whatever DT_RPATH and DT_RUNPATH say, and arguments of
 * dlopen, absolute paths included. It defines no function that would be called for each call of a symbol, so programs run at full speed. */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

static struct {
    const char *name;
    char path[PATH_MAX]; /* set by la_version, which the loader calls first */
} libraries[] = {
    {.name = "libcuda.so"},
    {.name = "libnvidia-ml.so"},
};
enum { LIBRARY_COUNT = sizeof libraries / sizeof *libraries };

/* Whether a path ends in this name, or in the name and a version. */
static bool leads_to(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const size_t length = strlen(name);
    const char *rest = base + length;

    return !strncmp(base, name, length) && (!*rest || (*rest == '.' && rest[1] >= '0' && rest[1] <= '9'));
}

EXPORTED unsigned la_version(unsigned version)
{
    Dl_info info;
    const char *slash;

    if (!dladdr(libraries, &info) || !info.dli_fname || !(slash = strrchr(info.dli_fname, '/')))
        return 0; /* the loader then ignores this library */
    for (int i = 0; i < LIBRARY_COUNT; i++)
        if (snprintf(libraries[i].path, PATH_MAX, "%.*s/%s.1", (int)(slash - info.dli_fname), info.dli_fname, libraries[i].name) >=
            PATH_MAX)
            return 0;
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}

EXPORTED char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag)
{
    (void)cookie;
    for (int i = 0; flag == LA_SER_ORIG && i < LIBRARY_COUNT; i++)
        if (leads_to(name, libraries[i].name))
            return libraries[i].path;
    return (char *)name;
}
