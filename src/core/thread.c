/* SPDX-License-Identifier: Apache-2.0 */
/* A thread inherits the mask of who starts it. */
#include "thread.h"

#include <signal.h>

int ct_thread_start(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(out, attributes, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}
