/* SPDX-License-Identifier: Apache-2.0 */
/* A count of those inside. */
#include "exit_gate.h"

#include "locks.h"
#include "process.h"

#include <stdlib.h>
#include <time.h>

#define PATIENCE_S 5 /* who is inside may be the thread that ends the process, in a signal handler */

static struct {
    struct ct_mutex lock; /* rank CT_RANK_EXIT_GATE; guards the rest */
    pthread_cond_t left;
    unsigned inside;
    bool closed;
} gate = {CT_MUTEX_INITIALIZER(CT_RANK_EXIT_GATE), PTHREAD_COND_INITIALIZER, 0, false};

static void close_gate(void)
{
    struct timespec deadline;
    bool in_time;

    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += PATIENCE_S;
    ct_mutex_lock(&gate.lock);
    in_time = !gate.closed; /* patience is for once */
    gate.closed = true;
    while (gate.inside && in_time)
        in_time = ct_mutex_wait_until(&gate.lock, &gate.left, &deadline);
    ct_mutex_unlock(&gate.lock);
}

/* In a forked child nobody is inside, though the count, and perhaps the lock, say so. */
static void at_exit(int status, void *child_ends)
{
    if (!ct_process_is_child())
        close_gate();
    else if (child_ends)
        ct_process_end_child(status);
}

bool ct_exit_gate_arm(enum ct_exit_child child)
{
    bool open;

    ct_mutex_lock(&gate.lock);
    open = !gate.closed;
    ct_mutex_unlock(&gate.lock);
    return open && on_exit(at_exit, child == CT_CHILD_ENDS ? &gate : NULL) == 0;
}

bool ct_exit_gate_enter(void)
{
    bool open;

    ct_mutex_lock(&gate.lock);
    open = !gate.closed;
    gate.inside += open;
    ct_mutex_unlock(&gate.lock);
    return open;
}

void ct_exit_gate_leave(void)
{
    ct_mutex_lock(&gate.lock);
    if (--gate.inside == 0)
        pthread_cond_broadcast(&gate.left);
    ct_mutex_unlock(&gate.lock);
}
