/* SPDX-License-Identifier: Apache-2.0 */
/* The child is a fork, in which the C library has valid locks of its own (malloc, the dynamic linker), also if this process has other
 * threads. A byte in a pipe says that the function has returned: the application may reap all children before this does. */
#include "trial.h"

#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define CT_CHANNEL "process"

/* Nothing that the function does is to be seen: the application's signal handlers do not run, and no core is dumped. */
static void isolate(void)
{
    static const int fatal[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP, SIGTERM, SIGXFSZ};
    const struct rlimit none = {0, 0};
    sigset_t all;
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    atomic_store_explicit(&ct_log_threshold, CT_LOG_OFF, memory_order_relaxed);
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        (void)signal(fatal[i], SIG_DFL);
    sigemptyset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setrlimit(RLIMIT_CORE, &none);
    for (int fd = 0; nothing >= 0 && fd <= 2; fd++)
        (void)dup2(nothing, fd);
}

__attribute__((noreturn)) static void play(void (*function)(void *user), void *user, int to)
{
    isolate();
    function(user);
    _exit(write(to, "", 1) != 1);
}

static enum ct_trial_outcome await(pid_t child, int from, int patience_ms)
{
    struct pollfd polled = {.fd = from, .events = POLLIN};
    char byte;
    int ready;

    do
        ready = poll(&polled, 1, patience_ms);
    while (ready < 0 && errno == EINTR);
    if (ready <= 0) {
        (void)kill(child, SIGKILL);
        return CT_TRIAL_UNKNOWN;
    }
    return read(from, &byte, 1) == 1 ? CT_TRIAL_RETURNED : CT_TRIAL_DIED;
}

enum ct_trial_outcome ct_trial_run(void (*function)(void *user), void *user, int patience_ms)
{
    enum ct_trial_outcome outcome;
    int ends[2];
    pid_t child;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return CT_TRIAL_UNKNOWN;
    child = fork();
    if (child == 0)
        play(function, user, ends[1]);
    close(ends[1]);
    outcome = child < 0 ? CT_TRIAL_UNKNOWN : await(child, ends[0], patience_ms);
    close(ends[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return outcome;
}
