/* SPDX-License-Identifier: Apache-2.0 */
/* LD_AUDIT reaches programs whatever their RPATH says and however they open the library, also in child processes. LD_LIBRARY_PATH alone is beaten
 * by DT_RPATH and by absolute paths; it is set, too, for what only searches its folders. */
#include "launch.h"

#include "library_folder.h"
#include "tools/trace/record.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

static bool path_of(char out[PATH_MAX], const char *folder, const char *name)
{
    return snprintf(out, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
}

/* Makes Triton run the stand-in for `ptxas`, unless the variable is set already. */
static bool set_ptxas(const char *folder)
{
    char path[PATH_MAX];

    return !path_of(path, folder, "ptx/bin/ptxas") || access(path, X_OK) != 0 || setenv("TRITON_PTXAS_PATH", path, 0) == 0;
}

/* Variables for the loader, and for compilers; folder is that of the library. */
static bool set_variables(enum tool_launch_method method, const char *folder, const struct tool_launch_tracing *tracing)
{
    char library[PATH_MAX], audit[PATH_MAX], trace_folder[PATH_MAX], trace_library[PATH_MAX];
    const bool is_preloaded = method == TOOL_PRELOAD;

    if (!path_of(library, folder, TOOL_LIBRARY) || !path_of(audit, folder, TOOL_AUDIT_LIBRARY) ||
        !path_of(trace_folder, folder, TRACE_LIBRARY_FOLDER) || !path_of(trace_library, trace_folder, TOOL_LIBRARY))
        return false;
    if (tracing && (setenv(TRACE_FOLDER_VARIABLE, tracing->folder, 1) != 0 ||
                    setenv(TRACE_DRIVER_VARIABLE, tracing->driver ? tracing->driver : library, 1) != 0))
        return false;
    if (!prepend(is_preloaded ? "LD_PRELOAD" : "LD_AUDIT", !is_preloaded ? audit : tracing ? trace_library : library))
        return false;
    if (!(tracing && tracing->driver)) {                               /* the program runs on Cuttle's library */
        if (!prepend("LD_LIBRARY_PATH", folder) || !set_ptxas(folder)) /* libnvidia-ml.so.1 is in the folder, too */
            return false;
    }
    return !tracing || prepend("LD_LIBRARY_PATH", trace_folder);
}

bool tool_launch_environment(enum tool_launch_method method, const struct tool_launch_tracing *tracing)
{
    char folder[PATH_MAX];

    if (!tool_library_folder(folder))
        return false;
    if (strchr(folder, ':')) {
        fprintf(stderr, "cuttle: the loader has no way to name libraries in %s, which contains a colon\n", folder);
        return false;
    }
    if (set_variables(method, folder, tracing))
        return true;
    fprintf(stderr, "cuttle: no memory for the environment\n");
    return false;
}

int tool_execute(const char *verb, char *const *command)
{
    int error;

    execvp(command[0], command);
    error = errno;
    fprintf(stderr, "%s: %s: %s\n", verb, command[0], strerror(error));
    return error == ENOENT ? RUN_NOT_FOUND : RUN_NOT_EXECUTABLE;
}

int tool_run(const char *verb, char *const *command)
{
    const struct sigaction ignored = {.sa_handler = SIG_IGN};
    struct sigaction interrupt, quit;
    pid_t child, ended;
    int status = 0;

    fflush(NULL);
    child = fork();
    if (child == 0)
        _exit(tool_execute(verb, command));
    if (child < 0) {
        fprintf(stderr, "%s: cannot start a process: %s\n", verb, strerror(errno));
        return RUN_FAILED;
    }
    sigaction(SIGINT, &ignored, &interrupt);
    sigaction(SIGQUIT, &ignored, &quit);
    do
        ended = waitpid(child, &status, 0);
    while (ended < 0 && errno == EINTR);
    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGQUIT, &quit, NULL);
    if (ended < 0)
        return RUN_FAILED;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool tool_temporary_file(const char *prefix, char out[PATH_MAX])
{
    const char *folder = getenv("TMPDIR");
    int file;

    if (snprintf(out, PATH_MAX, "%s/%s-XXXXXX", folder && *folder ? folder : "/tmp", prefix) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    if ((file = mkstemp(out)) < 0)
        return false;
    close(file);
    return true;
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
