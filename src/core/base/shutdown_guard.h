/* SPDX-License-Identifier: Apache-2.0 */
/* The shutdown guard: protects driver calls of background threads at process exit. Drivers have exit handlers, and crash or hang if they
 * are called after these or concurrently. So background threads enter the guard before such a call; it closes before these handlers run,
 * and then waits until no thread is inside. */
#ifndef CT_CORE_SHUTDOWN_GUARD_H
#define CT_CORE_SHUTDOWN_GUARD_H

#include <stdbool.h>

/* The action of a forked child when its exit reaches the guard's handler. */
enum ct_exit_child {
    CT_CHILD_CONTINUES,
    CT_CHILD_ENDS, /* the driver's earlier handlers would wait for threads of the parent */
};

/* Makes the guard close before all exit handlers that are registered so far. Handlers run in reverse order, so this is called after each
 * step in which a driver may register one. False: the process is exiting. */
bool ct_shutdown_guard_arm(enum ct_exit_child child);
/* False: the guard is closed. True: the caller must call ct_shutdown_guard_leave, in any thread; exit waits for it for a limited time. */
bool ct_shutdown_guard_enter(void);
void ct_shutdown_guard_leave(void);

#endif
