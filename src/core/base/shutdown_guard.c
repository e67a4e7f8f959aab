/* SPDX-License-Identifier: Apache-2.0 */
/* The shutdown guard counts the threads that are inside. */
#include "shutdown_guard.h"

#include "locks.h"
#include "process.h"

#include <stdlib.h>
#include <time.h>

#define WAIT_MAX_S 5 /* the exiting thread itself may be inside, in a signal handler */

static struct {
    struct ct_mutex lock; /* rank CT_RANK_SHUTDOWN_GUARD; protects the members below */
    pthread_cond_t left;
    unsigned inside;
    bool closed;
} guard = {CT_MUTEX_INITIALIZER(CT_RANK_SHUTDOWN_GUARD), PTHREAD_COND_INITIALIZER, 0, false};

static void close_guard(void)
{
    struct timespec deadline;
    bool in_time;

    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += WAIT_MAX_S;
    ct_mutex_lock(&guard.lock);
    in_time = !guard.closed; /* exit waits only once */
    guard.closed = true;
    while (guard.inside && in_time)
        in_time = ct_mutex_wait_until(&guard.lock, &guard.left, &deadline);
    ct_mutex_unlock(&guard.lock);
}

/* In a forked child no thread is inside, although the count may be above 0 and the lock may be held. */
static void at_exit(int status, void *child_ends)
{
    if (!ct_process_is_child())
        close_guard();
    else if (child_ends)
        ct_process_end_child(status);
}

bool ct_shutdown_guard_arm(enum ct_exit_child child)
{
    bool open;

    ct_mutex_lock(&guard.lock);
    open = !guard.closed;
    ct_mutex_unlock(&guard.lock);
    return open && on_exit(at_exit, child == CT_CHILD_ENDS ? &guard : NULL) == 0;
}

bool ct_shutdown_guard_enter(void)
{
    bool open;

    ct_mutex_lock(&guard.lock);
    open = !guard.closed;
    guard.inside += open;
    ct_mutex_unlock(&guard.lock);
    return open;
}

void ct_shutdown_guard_leave(void)
{
    ct_mutex_lock(&guard.lock);
    if (--guard.inside == 0)
        pthread_cond_broadcast(&guard.left);
    ct_mutex_unlock(&guard.lock);
}
