/* SPDX-License-Identifier: Apache-2.0 */
/* The end of the process, for threads that call a driver on their own. Drivers have handlers that take them down at exit, and crash or hang
 * if they are called behind those or beside. So who calls goes through a gate, which closes before these handlers run, and waits until
 * nobody is inside. */
#ifndef CT_CORE_EXIT_GATE_H
#define CT_CORE_EXIT_GATE_H

#include <stdbool.h>

/* What a forked child does at exit when it comes to where the gate was armed. */
enum ct_exit_child {
    CT_CHILD_GOES_ON,
    CT_CHILD_ENDS, /* a driver's handlers that stand before that would wait for threads of the parent */
};

/* From now on the gate closes before whatever handler stands by now; handlers run in reverse order, so this is called after each step in
 * which a driver may register one. False: the process is ending. */
bool ct_exit_gate_arm(enum ct_exit_child child);
/* False: the gate is closed. True: ct_exit_gate_leave follows, in any thread; exit waits for it, if not for ever. */
bool ct_exit_gate_enter(void);
void ct_exit_gate_leave(void);

#endif
