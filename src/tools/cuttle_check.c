/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle check`: starts a program like `cuttle run`, with the library's checks, and waits for it, since reports may change the exit status. The
 * library appends a byte to a temporary file for each report; other processes of the program do the same. */
#include "verbs.h"

#include "launch.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
    const char *const *values = arguments->values;
    bool ok = setenv("CUTTLE_CHECK", "1", 1) == 0 && setenv("CUTTLE_CHECK_TALLY", tally, 1) == 0;

    if (values[CUTTLE_CHECK_KERNEL])
        ok = ok && setenv("CUTTLE_CHECK_KERNEL", values[CUTTLE_CHECK_KERNEL], 1) == 0;
    if (values[CUTTLE_CHECK_JSON])
        ok = ok && setenv("CUTTLE_CHECK_JSON", "1", 1) == 0;
    if (values[CUTTLE_CHECK_RACES])
        ok = ok && setenv("CUTTLE_CHECK_RACES", "1", 1) == 0;
    if (values[CUTTLE_CHECK_NO_LEAKS])
        ok = ok && setenv("CUTTLE_CHECK_LEAKS", "0", 1) == 0;
    if (values[CUTTLE_CHECK_LOG])
        ok = ok && set_path("CUTTLE_CHECK_OUTPUT", values[CUTTLE_CHECK_LOG]);
    if (values[CUTTLE_CHECK_SUPPRESSIONS])
        ok = ok && set_path("CUTTLE_CHECK_SUPPRESSIONS", values[CUTTLE_CHECK_SUPPRESSIONS]);
    if (!ok)
        fprintf(stderr, "cuttle check: no memory for the environment\n");
    return ok;
}

/* Creates the file to which the library adds; false after a message. */
static bool make_tally(char *path, size_t size)
{
    const char *folder = getenv("TMPDIR");
    int file;

    if (snprintf(path, size, "%s/cuttle-check-XXXXXX", folder && *folder ? folder : "/tmp") < (int)size && (file = mkstemp(path)) >= 0) {
        close(file);
        return true;
    }
    fprintf(stderr, "cuttle check: no temporary file: %s\n", strerror(errno));
    return false;
}

/* Signals of the terminal reach the program, too: it decides what they mean. */
static int wait_for(pid_t child)
{
    int status;

    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return RUN_FAILED;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int run(const struct tool_arguments *arguments)
{
    const pid_t child = fork();

    if (child == 0)
        _exit(tool_execute("check", arguments->operands));
    if (child > 0)
        return wait_for(child);
    fprintf(stderr, "cuttle check: cannot start a process: %s\n", strerror(errno));
    return RUN_FAILED;
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
    if (!tool_launch_environment(method, NULL) || !make_tally(path, sizeof path))
        return RUN_FAILED;
    status = set_environment(arguments, path) ? run(arguments) : RUN_FAILED;
    if (reported && stat(path, &tally) == 0 && tally.st_size > 0)
        status = reported;
    unlink(path);
    return status;
}
