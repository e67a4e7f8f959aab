/* SPDX-License-Identifier: Apache-2.0 */
/* Says in the log, at level info, that a compilation takes long, while it still does, and how long it took; and tells an observer of every compilation. */
#ifndef CT_CORE_PROGRESS_H
#define CT_CORE_PROGRESS_H

#include "locks.h"

#include <stdint.h>

struct ct_progress {
    struct ct_mutex lock;
    pthread_cond_t ended;
    pthread_t watcher;
    uint64_t begin_ns;             /* CLOCK_MONOTONIC */
    const char *compiler, *kernel; /* borrowed until the end */
    bool is_watched, has_ended;
};

/* Between the two calls the compiler (the words that begin the message) compiles the kernel. A thread watches if the log takes the level; without
 * one nothing is said. */
void ct_progress_begin(struct ct_progress *progress, const char *compiler, const char *kernel);
void ct_progress_end(struct ct_progress *progress);

/* Is called by the thread that compiled, after the end. */
typedef void (*ct_progress_observer)(const char *compiler, const char *kernel, uint64_t begin_ns, uint64_t end_ns);
void ct_progress_observe(ct_progress_observer observer_or_null);

#endif
