/* SPDX-License-Identifier: Apache-2.0 */
/* The process: the one mutable global of the library. cuInit makes it; it is never taken down, since other threads and exit handlers
 * of the application may still call us. */
#ifndef CT_CORE_PROCESS_H
#define CT_CORE_PROCESS_H

#include "locks.h"
#include "object.h"

struct ct_device;

/*   NEW ──cuInit──> READY ──exit──> GONE
 *    │ no device: stays NEW, the next cuInit gives the same error
 *    READY ──fork──> FORKED (in the child): drivers do not survive a fork, so every call fails there */
enum ct_process_state { CT_PROCESS_NEW, CT_PROCESS_READY, CT_PROCESS_FORKED, CT_PROCESS_GONE };

struct ct_process {
    struct ct_mutex lock;      /* start-up */
    atomic_int state;          /* enum ct_process_state; release by cuInit pairs with the acquire in ct_process_check */
    atomic_bool fork_told;     /* of state FORKED: the log says once that nothing works there */
    struct ct_device *devices; /* best first; fixed once READY (setup/startup.c) */
    unsigned n_devices;
    struct ct_handle_table handles;
    atomic_ullong next_id;    /* of contexts, streams, allocations: unique in the process, never 0 */
    atomic_ullong host_bytes; /* page-locked memory given out: memory_budget.c */
};
extern struct ct_process ct_process;

/* NOT_INITIALIZED before cuInit and in a forked child, DEINITIALIZED at exit. Every entry point passes here first. */
CUresult ct_process_check(void);
unsigned long long ct_process_new_id(void);
/* Notices from now on that the process forks or ends; once, when it becomes READY. */
void ct_process_watch(void);
/* Whether this is a process that was forked after cuInit. */
bool ct_process_is_child(void);
/* Ends it at exit: no more handlers run. */
void ct_process_end_child(int status) __attribute__((noreturn));

#endif
