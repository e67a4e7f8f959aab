/* SPDX-License-Identifier: Apache-2.0 */
/* A thread inherits the mask of who starts it. */
#include "thread.h"

#include <signal.h>

static int start(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(out, attributes, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

int ct_thread_start(pthread_t *out, void *(*run)(void *), void *argument)
{
    return start(out, NULL, run, argument);
}

int ct_thread_start_detached(void *(*run)(void *), void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int error;

    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    error = start(&thread, &attributes, run, argument);
    pthread_attr_destroy(&attributes);
    return error;
}
