/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle check`: starts a program like `cuttle run`, with the library's checks, and waits for it, since reports may change the exit status. The
 * library appends a byte to a temporary file for each report; other processes of the program do the same. */
#include "verbs.h"

#include "launch.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A number from 1 to 255. */
static bool read_status(const char *text, int *out)
{
    char *end;
    const long value = strtol(text, &end, 10);

    if (*text < '0' || *text > '9' || *end || value < 1 || value > 255)
        return false;
    *out = (int)value;
    return true;
}

/* Sets what the library reads (core/base/config.def). A path is made absolute, since the program may change its folder. */
static bool set_path(const char *variable, const char *path)
{
    char *folder, *joined;
    bool is_set;

    if (*path == '/')
        return setenv(variable, path, 1) == 0;
    folder = getcwd(NULL, 0);
    if (!folder || asprintf(&joined, "%s/%s", folder, path) < 0) {
        free(folder);
        return false;
    }
    is_set = setenv(variable, joined, 1) == 0;
    free(joined);
    free(folder);
    return is_set;
}

static bool set_environment(const struct tool_arguments *arguments, const char *tally)
{
    static const struct {
        unsigned option;
        const char *variable, *value; /* NULL: what is given is a path */
    } rows[] = {
        {CUTTLE_CHECK_JSON, "CUTTLE_CHECK_JSON", "1"},
        {CUTTLE_CHECK_RACES, "CUTTLE_CHECK_RACES", "1"},
        {CUTTLE_CHECK_GLOBAL_RACES, "CUTTLE_CHECK_GLOBAL_RACES", "1"},
        {CUTTLE_CHECK_WRITTEN, "CUTTLE_CHECK_WRITTEN", "1"},
        {CUTTLE_CHECK_HOST_ACCESSES, "CUTTLE_CHECK_HOST_ACCESSES", "1"},
        {CUTTLE_CHECK_NO_LEAKS, "CUTTLE_CHECK_LEAKS", "0"},
        {CUTTLE_CHECK_LOG, "CUTTLE_CHECK_OUTPUT", NULL},
        {CUTTLE_CHECK_SUPPRESSIONS, "CUTTLE_CHECK_SUPPRESSIONS", NULL},
    };
    const char *const *values = arguments->values;
    bool ok = setenv("CUTTLE_CHECK", "1", 1) == 0 && setenv("CUTTLE_CHECK_TALLY", tally, 1) == 0;

    if (values[CUTTLE_CHECK_KERNEL])
        ok = ok && setenv("CUTTLE_CHECK_KERNEL", values[CUTTLE_CHECK_KERNEL], 1) == 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *value = values[rows[i].option];

        if (value)
            ok = ok && (rows[i].value ? setenv(rows[i].variable, rows[i].value, 1) == 0 : set_path(rows[i].variable, value));
    }
    if (!ok)
        fprintf(stderr, "cuttle check: no memory for the environment\n");
    return ok;
}

int verb_check(const struct tool_arguments *arguments)
{
    const char *const *values = arguments->values;
    const enum tool_launch_method method = values[CUTTLE_CHECK_PRELOAD] ? TOOL_PRELOAD : TOOL_AUDIT;
    int status, reported = 0;
    struct stat tally;
    char path[PATH_MAX];

    if (values[CUTTLE_CHECK_EXITCODE] && !read_status(values[CUTTLE_CHECK_EXITCODE], &reported))
        return tool_wrong_usage(arguments, "--error-exitcode is a number from 1 to 255, not ", values[CUTTLE_CHECK_EXITCODE]);
    if (values[CUTTLE_CHECK_SUPPRESSIONS] && access(values[CUTTLE_CHECK_SUPPRESSIONS], R_OK) != 0)
        return tool_wrong_usage(arguments, "no such file: ", values[CUTTLE_CHECK_SUPPRESSIONS]);
    if (!tool_launch_environment(method, NULL))
        return RUN_FAILED;
    if (!tool_temporary_file("cuttle-check", path)) {
        fprintf(stderr, "cuttle check: no temporary file: %s\n", strerror(errno));
        return RUN_FAILED;
    }
    status = set_environment(arguments, path) ? tool_run("cuttle check", arguments->operands) : RUN_FAILED;
    if (reported && stat(path, &tally) == 0 && tally.st_size > 0)
        status = reported;
    unlink(path);
    return status;
}
