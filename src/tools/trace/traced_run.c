/* SPDX-License-Identifier: Apache-2.0 */
#include "traced_run.h"

#include "chrome.h"
#include "tools/library_folder.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Finds the driver to call. False, with a message: there is none. */
static bool find_driver(const struct traced_run *run, char out[PATH_MAX])
{
    char folder[PATH_MAX];
    struct link_map *map;
    void *library;
    bool is_found = false;

    if (!run->driver)
        return tool_library_folder(folder) && snprintf(out, PATH_MAX, "%s/%s", folder, TOOL_LIBRARY) < PATH_MAX;
    if (strchr(run->driver, '/')) {
        if (realpath(run->driver, out))
            return true;
        fprintf(stderr, "%s: %s: %s\n", run->verb, run->driver, strerror(errno));
        return false;
    }
    library = dlopen(run->driver, RTLD_LAZY | RTLD_LOCAL);
    if (library)
        is_found = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && realpath(map->l_name, out);
    if (!is_found)
        fprintf(stderr, "%s: %s\n", run->verb, library ? run->driver : dlerror());
    if (library)
        dlclose(library);
    return is_found;
}

static void remove_folder(const char *folder)
{
    DIR *directory = opendir(folder);

    for (struct dirent *entry; directory && (entry = readdir(directory));)
        unlinkat(dirfd(directory), entry->d_name, 0); /* fails for . and .. */
    if (directory)
        closedir(directory);
    rmdir(folder);
}

/* Creates a folder in `parent` for the records. Its path is absolute, since the program may change its own folder. */
static bool make_folder(const char *parent, char out[PATH_MAX])
{
    char absolute[PATH_MAX];

    if (!realpath(parent, absolute))
        return false;
    if (snprintf(out, PATH_MAX, "%s/cuttle-trace-XXXXXX", absolute) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    return mkdtemp(out);
}

int traced_run(const struct traced_run *run, FILE *to, bool *is_written)
{
    char driver[PATH_MAX], folder[PATH_MAX];
    const struct tool_launch_tracing tracing = {.folder = folder, .driver = run->driver ? driver : NULL};
    struct records records;
    int status;

    *is_written = false;
    if (!find_driver(run, driver))
        return RUN_FAILED;
    if (!make_folder(run->folder, folder)) {
        fprintf(stderr, "%s: %s: %s\n", run->verb, run->folder, strerror(errno));
        return RUN_FAILED;
    }
    if (!tool_launch_environment(run->method, &tracing)) {
        remove_folder(folder);
        return RUN_FAILED;
    }
    status = tool_run(run->verb, run->command);
    *is_written = records_read(folder, &records);
    if (!chrome_write(&records, driver, to)) {
        fprintf(stderr, "%s: no memory for the trace\n", run->verb);
        *is_written = false;
    }
    if (records.lost)
        fprintf(stderr, "%s: the trace is incomplete: the disk was full, or a process recorded more than 4 GiB\n", run->verb);
    if (records.unmeasured)
        fprintf(stderr, "%s: how long %llu launches, copies and fills took is not known: they had not ended, or too many had not\n",
                run->verb, (unsigned long long)records.unmeasured);
    records_finish(&records);
    remove_folder(folder);
    return status;
}
