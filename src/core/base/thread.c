/* SPDX-License-Identifier: Apache-2.0 */
/* A thread inherits the signal mask and the floating-point environment of the thread that starts it. The library's threads have all signals
 * but SIGSEGV blocked and the default environment. */
#include "thread.h"

#include "float_environment.h"

#include <signal.h>

static _Thread_local bool in_host_function, compiles_ahead, tries_driver;
static _Thread_local const void *caller, *traced_caller;

static _Thread_local enum { NO_CALL_YET, IN_CALL, IN_PROGRAM } place;

static int start(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    struct ct_float_environment environment;
    sigset_t all, before;
    int error;

    sigfillset(&all);
    sigdelset(&all, SIGSEGV); /* a fault ends the process if its signal is blocked, and memory may be watched (core/backing/host_watch.h) */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    ct_float_environment_enter(&environment);
    error = pthread_create(out, attributes, run, argument);
    ct_float_environment_restore(&environment);
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

void ct_thread_set_in_host_function(bool is_in)
{
    in_host_function = is_in;
}

bool ct_thread_is_in_host_function(void)
{
    return in_host_function;
}

void ct_thread_enter_call(void)
{
    if (!in_host_function)
        place = IN_CALL;
}

void ct_thread_leave_call(void)
{
    if (!in_host_function)
        place = IN_PROGRAM;
}

bool ct_thread_is_in_program(void)
{
    return place == IN_PROGRAM;
}

void ct_thread_set_caller(const void *address)
{
    caller = address;
}

void ct_thread_call_for(const void *address)
{
    traced_caller = address;
}

const void *ct_thread_caller(void)
{
    return traced_caller ? traced_caller : caller;
}

void ct_thread_set_compiles_ahead(void)
{
    compiles_ahead = true;
}

bool ct_thread_compiles_ahead(void)
{
    return compiles_ahead;
}

void ct_thread_set_tries(bool tries)
{
    tries_driver = tries;
}

bool ct_thread_tries(void)
{
    return tries_driver;
}
