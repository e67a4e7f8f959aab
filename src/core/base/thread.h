/* SPDX-License-Identifier: Apache-2.0 */
/* The library's own threads in the application's process. */
#ifndef CT_CORE_THREAD_H
#define CT_CORE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Starts a thread with all signals but SIGSEGV blocked, so that signal handlers run on the application's threads. Returns 0 or an errno. */
int ct_thread_start(pthread_t *out, void *(*run)(void *), void *argument);
/* The same for a detached thread. */
int ct_thread_start_detached(void *(*run)(void *), void *argument);

/* Whether the calling thread runs a host function of a stream, which may only call the functions in host_functions.def of src/api. */
void ct_thread_set_in_host_function(bool is_in);
bool ct_thread_is_in_host_function(void);

/* Around each call of the CUDA API under `cuttle check`. In host functions they do nothing. */
void ct_thread_enter_call(void);
void ct_thread_leave_call(void);
/* Whether the calling thread has called the CUDA API before, and executes code of the program now. Called by signal handlers. */
bool ct_thread_is_in_program(void);

/* An address in the code that made the calling thread's last call of a function that asks for it (src/api/exports.c). Not the return address of the
 * function that implements the call: that is in this library where the compiler makes no tail call of it. */
void ct_thread_set_caller(const void *address);
/* The address that ct_thread_caller returns instead, until NULL is given: the library that traces calls is not who made them. */
void ct_thread_call_for(const void *address);
const void *ct_thread_caller(void);

/* Whether the calling thread compiles kernels before the application launches them (compile_ahead.h). A failure there is not an error of the
 * application: the thread's warnings are logged at level debug, and the launch compiles the kernel again and reports the failure. */
void ct_thread_set_compiles_ahead(void);
bool ct_thread_compiles_ahead(void);

/* Whether the calling thread probes what a driver can do. A failure is then no error, and the thread's warnings are logged at level debug. */
void ct_thread_set_tries(bool tries);
bool ct_thread_tries(void);

#endif
