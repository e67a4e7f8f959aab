/* SPDX-License-Identifier: Apache-2.0 */
/* libcuttle-audit.so, an auditing library of the loader (rtld-audit(7)) for `cuttle run`: whatever path leads to a libcuda.so is replaced by that
 * of the libcuda.so.1 beside this library: names in DT_NEEDED whatever DT_RPATH and DT_RUNPATH say, and arguments of dlopen, absolute paths
 * included. It defines no function that would be called for each call of a symbol, so programs run at full speed. */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

static char library[PATH_MAX]; /* set by la_version, which the loader calls first */

/* Whether a path ends in libcuda.so, or in libcuda.so and a version. */
static bool is_driver(const char *path)
{
    static const char name[] = "libcuda.so";
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *rest = base + sizeof name - 1;

    return !strncmp(base, name, sizeof name - 1) && (!*rest || (*rest == '.' && rest[1] >= '0' && rest[1] <= '9'));
}

EXPORTED unsigned la_version(unsigned version)
{
    static const char name[] = "libcuda.so.1";
    Dl_info info;
    const char *slash;

    if (!dladdr(library, &info) || !info.dli_fname || !(slash = strrchr(info.dli_fname, '/')) ||
        (size_t)(slash - info.dli_fname) + sizeof name >= sizeof library)
        return 0; /* the loader then ignores this library */
    memcpy(library, info.dli_fname, (size_t)(slash + 1 - info.dli_fname));
    memcpy(library + (slash + 1 - info.dli_fname), name, sizeof name);
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}

EXPORTED char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag)
{
    (void)cookie;
    return flag == LA_SER_ORIG && is_driver(name) ? library : (char *)name;
}
