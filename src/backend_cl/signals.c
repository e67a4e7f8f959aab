/* SPDX-License-Identifier: Apache-2.0 */
/* Saves and restores the application's signal handlers around calls into OpenCL.
 *
 * Intel's CPU runtime (2023 to 2026) installs its own handlers for SEGV, ABRT, BUS, FPE, ILL, INT, TERM, HUP, USR1, USR2 and more at the
 * first clCreateContext, PoCL (6.0, 7.1) at the first clGetDeviceIDs: they are LLVM's, which print a stack trace, and kernels need none
 * of them. */
#include "cl.h"

#include <signal.h>
#include <stdlib.h>

struct ct_cl_signals {
    struct sigaction actions[NSIG];
};

struct ct_cl_signals *ct_cl_signals_save(void)
{
    struct ct_cl_signals *signals = malloc(sizeof *signals);

    for (int i = 1; signals && i < NSIG; i++)
        sigaction(i, NULL, &signals->actions[i]); /* fails for signals that the C library reserves */
    return signals;
}

static bool is_same(const struct sigaction *a, const struct sigaction *b)
{
    if ((a->sa_flags & SA_SIGINFO) != (b->sa_flags & SA_SIGINFO))
        return false;
    return a->sa_flags & SA_SIGINFO ? a->sa_sigaction == b->sa_sigaction : a->sa_handler == b->sa_handler;
}

void ct_cl_signals_restore(struct ct_cl_signals *signals)
{
    struct sigaction now;

    for (int i = 1; signals && i < NSIG; i++) {
        if (sigaction(i, NULL, &now) == 0 && !is_same(&now, &signals->actions[i]))
            sigaction(i, &signals->actions[i], NULL);
    }
    free(signals);
}
