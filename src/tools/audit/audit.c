/* SPDX-License-Identifier: Apache-2.0 */
/* libcuttle-audit.so, an auditing library of the loader (rtld-audit(7)) for `cuttle run`: whatever path leads to a libcuda.so or a
 * libnvidia-ml.so is replaced by that of the library beside this one: names in DT_NEEDED whatever DT_RPATH and DT_RUNPATH say, and arguments of
 * dlopen, absolute paths included. It defines no function that would be called for each call of a symbol, so programs run at full speed.
 *
 * Libraries that compile while the program runs get a stand-in before them (src/tools/jit), which the loader loads in their place, wherever it
 * found them. The stand-in depends on the library itself by a name of its own, for which the path is given here.
 *
 * Under `cuttle trace` a libcuda.so is replaced by the library that traces (src/tools/interpose), which itself opens the one that it calls. If that is not
 * the library beside this one, NVIDIA's say, then libnvidia-ml.so stays what it is, too. */
#include "tools/jit/real_library.h"
#include "tools/trace/record.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CUDA, NVML, LIBRARY_COUNT };
static struct {
    const char *name;
    char path[PATH_MAX]; /* set by la_version, which the loader calls first; empty: it is not replaced */
} libraries[] = {
    [CUDA] = {.name = "libcuda.so"},
    [NVML] = {.name = "libnvidia-ml.so"},
};

static struct {
    const char *soname;
    const char *name;    /* by which the stand-in depends on the library itself */
    char path[PATH_MAX]; /* of the stand-in; empty: there is none */
    char real[PATH_MAX]; /* of the library whose place it takes */
    bool loaded;         /* the stand-in is, and stays so: `real` does not change any more */
} fronted[] = {
#define FRONTED(library, own_name) {.soname = library, .name = own_name},
#include "tools/jit/fronted.def"
};
enum { FRONTED_COUNT = sizeof fronted / sizeof *fronted };

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Whether a path ends in this name, or in the name and a version. */
static bool leads_to(const char *path, const char *name)
{
    const char *base = base_of(path);
    const size_t length = strlen(name);
    const char *rest = base + length;

    return !strncmp(base, name, length) && (!*rest || (*rest == '.' && rest[1] >= '0' && rest[1] <= '9'));
}

static bool set_path(int library, const char *folder, int folder_length, const char *subfolder)
{
    return snprintf(libraries[library].path, PATH_MAX, "%.*s%s/%s.1", folder_length, folder, subfolder, libraries[library].name) < PATH_MAX;
}

static void set_front(int i, const char *folder, int folder_length)
{
    if (snprintf(fronted[i].path, PATH_MAX, "%.*s/jit/%s", folder_length, folder, fronted[i].soname) >= PATH_MAX ||
        access(fronted[i].path, R_OK) != 0)
        *fronted[i].path = 0;
}

CT_EXPORTED unsigned la_version(unsigned version)
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
    for (int i = 0; is_ours && i < FRONTED_COUNT; i++)
        set_front(i, info.dli_fname, length);
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}

/* Whether a path ends in a soname without its version, as the link for the linker does, or with any version. */
static bool is_of_family(const char *path, const char *soname)
{
    return !strncmp(base_of(path), soname, (size_t)(strstr(soname, ".so") + strlen(".so") - soname));
}

/* Whether it is a library of this soname: by its name, or by that of the file to which it is a link. */
static bool has_soname(const char *path, const char *soname)
{
    char resolved[PATH_MAX];

    return leads_to(path, soname) || (realpath(path, resolved) && leads_to(resolved, soname));
}

/* The stand-in for the library at this path, if it is there and has one; otherwise NULL. A second library of the same soname stays what it is.
 * The path of the first one is kept in another spelling: the loader knows the stand-in by the first, if it found it by searching. */
static char *front_or_null(const char *path)
{
    const char *base = base_of(path);
    char real[PATH_MAX];

    for (int i = 0; i < FRONTED_COUNT; i++) {
        if (!*fronted[i].path || !is_of_family(path, fronted[i].soname) || access(path, R_OK) != 0 || !strcmp(path, fronted[i].path) ||
            !has_soname(path, fronted[i].soname))
            continue;
        if (snprintf(real, PATH_MAX, "%.*s./%s", (int)(base - path), path, base) >= PATH_MAX ||
            (fronted[i].loaded && strcmp(real, fronted[i].real)))
            return NULL;
        strcpy(fronted[i].real, real);
        return fronted[i].path;
    }
    return NULL;
}

/* The library itself, by the name by which its stand-in depends on it; or NULL. The stand-in has been loaded then: until it is, the loader may only have
 * looked where the library is (RTLD_NOLOAD), and another one may come. */
static char *real_or_null(const char *name)
{
    for (int i = 0; i < FRONTED_COUNT; i++)
        if (*fronted[i].real && !strcmp(name, fronted[i].name)) {
            fronted[i].loaded = true;
            return fronted[i].real;
        }
    return NULL;
}

/* The loader calls this with a name as it was asked for (LA_SER_ORIG), then, if that is not a path, with each place where it looks. */
CT_EXPORTED char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag)
{
    const struct link_map *from = (const struct link_map *)*cookie; /* who searches: what the loader sets if la_objopen does not */
    char *other = NULL;

    if (from && from->l_name && !strcmp(from->l_name, libraries[CUDA].path))
        return (char *)name; /* what the library opens itself */
    for (int i = 0; flag == LA_SER_ORIG && i < LIBRARY_COUNT; i++)
        if (*libraries[i].path && leads_to(name, libraries[i].name))
            return libraries[i].path;
    if (flag == LA_SER_ORIG)
        other = real_or_null(name);
    if (!other && strchr(name, '/'))
        other = front_or_null(name);
    return other ? other : (char *)name;
}
