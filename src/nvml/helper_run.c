/* SPDX-License-Identifier: Apache-2.0 */
/* posix_spawn with a pipe and a time limit. */
#include "helper_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HIDDEN "CUDA_VISIBLE_DEVICES="

extern char **environ;

/* The environment of the helper: the same strings in an array that the caller frees. NULL: no memory. */
static char **helper_environment(void)
{
    size_t count = 0, kept = 0;
    char **copy;

    while (environ && environ[count])
        count++;
    copy = malloc((count + 1) * sizeof *copy);
    for (size_t i = 0; copy && i < count; i++)
        if (strncmp(environ[i], HIDDEN, strlen(HIDDEN)) != 0)
            copy[kept++] = environ[i];
    if (copy)
        copy[kept] = NULL;
    return copy;
}

/* What the child gets: standard input is empty, standard output is the pipe, other descriptors are closed but for standard error; no signal is
 * blocked or ignored. Zero, or an error number. */
static int spawn(pid_t *out, const char *program, char *const *arguments, char *const *environment, int write_end)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int error = posix_spawn_file_actions_init(&actions);

    if (error)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (error) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    error = posix_spawn_file_actions_adddup2(&actions, write_end, STDOUT_FILENO);
    if (!error)
        error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    if (!error)
        error = posix_spawn(out, program, &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static long long now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Reads until the end of the pipe. */
static nvmlReturn_t read_all(int read_end, int timeout_ms, char *text, size_t size)
{
    const long long deadline = now_ms() + timeout_ms;
    size_t length = 0;

    for (;;) {
        const long long left = deadline - now_ms();
        struct pollfd wait = {.fd = read_end, .events = POLLIN};
        const int ready = left > 0 ? poll(&wait, 1, (int)left) : 0;
        ssize_t n;

        if (ready == 0)
            return NVML_ERROR_TIMEOUT;
        n = ready < 0 ? -1 : read(read_end, text + length, size - 1 - length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return NVML_ERROR_OPERATING_SYSTEM;
        length += (size_t)n;
        text[length] = 0;
        if (n == 0)
            return NVML_SUCCESS;
        if (length == size - 1)
            return NVML_ERROR_DRIVER_NOT_LOADED;
    }
}

/* Waits for the end of the child. False: it failed. An application that ignores SIGCHLD, or waits for any child, may have taken the status
 * away; then what the child printed decides alone. */
static bool has_succeeded(pid_t child)
{
    int status = 0;

    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return errno == ECHILD;
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

nvmlReturn_t nvml_helper_run(const char *program, const char *first, const char *second, int timeout_ms, char *text, size_t size)
{
    char *arguments[] = {(char *)program, (char *)first, (char *)second, NULL};
    char **environment;
    int ends[2], error;
    nvmlReturn_t r;
    pid_t child;

    if (access(program, X_OK) != 0)
        return NVML_ERROR_DRIVER_NOT_LOADED;
    environment = helper_environment();
    if (!environment)
        return NVML_ERROR_MEMORY;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        free(environment);
        return NVML_ERROR_OPERATING_SYSTEM;
    }
    error = spawn(&child, program, arguments, environment, ends[1]);
    free(environment);
    close(ends[1]);
    r = error ? NVML_ERROR_OPERATING_SYSTEM : read_all(ends[0], timeout_ms, text, size);
    close(ends[0]);
    if (error)
        return r;
    if (r != NVML_SUCCESS)
        kill(child, SIGKILL);
    if (!has_succeeded(child) && r == NVML_SUCCESS)
        r = NVML_ERROR_DRIVER_NOT_LOADED;
    return r;
}
