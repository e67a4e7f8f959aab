/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of ours in the application's process. */
#ifndef CT_CORE_THREAD_H
#define CT_CORE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Starts one that gets no signals: the application's handlers run on its own threads. 0, or an errno. */
int ct_thread_start(pthread_t *out, void *(*run)(void *), void *argument);
/* The same for one that nobody joins. */
int ct_thread_start_detached(void *(*run)(void *), void *argument);

/* Whether the calling thread runs a host function of a stream, which may call only what host_functions.def of src/api lists. */
void ct_thread_set_in_host_function(bool is_in);
bool ct_thread_is_in_host_function(void);

#endif
