/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of ours in the application's process. */
#ifndef CT_CORE_THREAD_H
#define CT_CORE_THREAD_H

#include <pthread.h>

/* Starts one that gets no signals: the application's handlers run on its own threads. attributes may be NULL. 0, or an errno. */
int ct_thread_start(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

#endif
