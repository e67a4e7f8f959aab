/* SPDX-License-Identifier: Apache-2.0 */
/* Watches for accesses of the program's own code to memory, for `cuttle check --host-accesses`: while a command of a stream waits to be executed, the pages that
 * it will use are protected, and the handler of kernel_faults.c notes who accesses them. */
#ifndef CT_CORE_HOST_WATCH_H
#define CT_CORE_HOST_WATCH_H

#include "address_history.h"

#include <signal.h>
#include <ucontext.h>

/* Memory that a command uses, and the pages of it that are protected. */
struct ct_watched_range {
    uintptr_t start, end;
    uintptr_t first_page, end_page;
    bool is_written; /* else the command only reads it, and the host may, too */
};

struct ct_host_access {
    uintptr_t address;
    bool is_write;
    struct ct_host_stack stack;
};

enum { CT_WATCHED_RANGES_MAX = 32, CT_HOST_ACCESSES_MAX = 16 };
struct ct_host_watch {
    struct ct_host_watch *next;
    struct ct_watched_range ranges[CT_WATCHED_RANGES_MAX];
    unsigned n_ranges;
    struct ct_host_access accesses[CT_HOST_ACCESSES_MAX]; /* the first one to each page */
    unsigned n_accesses;
};

/* Adds memory to a watch that has not begun. Nothing is added that the host cannot access or that is not in the map. */
void ct_host_watch_add(struct ct_host_watch *watch, uint64_t address, uint64_t size_bytes, bool is_written);
/* Between these, accesses are noted. */
void ct_host_watch_begin(struct ct_host_watch *watch);
void ct_host_watch_end(struct ct_host_watch *watch);
/* Its accesses have been looked at. Each watch that has begun needs this. */
void ct_host_watch_finish(struct ct_host_watch *watch);
/* At exit: waits until all watches are finished, but for a second at most. */
void ct_host_watches_await(void);

/* In the handler of SIGSEGV: whether the fault was one of a watch, so that the instruction is to be executed again. */
bool ct_host_watch_takes(const siginfo_t *info, const ucontext_t *state, void *instruction);

#endif
