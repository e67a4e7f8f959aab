/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the process. cuInit initializes it; it is never freed, since other threads and exit handlers of the application may still
 * call the library. */
#ifndef CT_CORE_PROCESS_H
#define CT_CORE_PROCESS_H

#include "locks.h"
#include "object.h"

struct ct_device;

/*   NEW ──cuInit──> READY ──exit──> GONE
 *    │ no device: stays NEW, the next cuInit returns the same error
 *    READY ──fork──> FORKED (in the child): drivers do not survive a fork, so every call fails there */
enum ct_process_state { CT_PROCESS_NEW, CT_PROCESS_READY, CT_PROCESS_FORKED, CT_PROCESS_ENDED };

struct ct_process {
    struct ct_mutex lock;                 /* start-up */
    atomic_int state;                     /* enum ct_process_state; release by cuInit pairs with the acquire in ct_process_check */
    atomic_bool fork_logged;              /* in state FORKED: the error has been logged, which happens only once */
    bool options_checked, absence_logged; /* what cuInit has reported; both under the lock */
    atomic_bool graphics_logged;          /* that graphics resources are copied, which is logged once */
    unsigned cpu_order;        /* enum ct_cpu_order; chosen by the first cuInit, since later the library itself has loaded Vulkan */
    struct ct_device *devices; /* best first; constant once READY (setup/startup.c) */
    unsigned n_devices;
    struct ct_handle_table handles;
    atomic_ullong next_id;    /* of contexts, streams, allocations: unique in the process, never 0 */
    atomic_ullong host_bytes; /* page-locked memory in use: memory_budget.c */
};
extern struct ct_process ct_process;

/* NOT_INITIALIZED before cuInit and in a forked child, DEINITIALIZED at exit. Every entry point passes here first. */
CUresult ct_process_check(void);
unsigned long long ct_process_new_id(void);
/* Registers the handlers for fork and exit. Called once, when the state becomes READY. */
void ct_process_watch(void);
/* Whether this process was forked after cuInit. */
bool ct_process_is_child(void);
/* Ends it during exit without running further handlers. */
void ct_process_end_child(int status) __attribute__((noreturn));

#endif
