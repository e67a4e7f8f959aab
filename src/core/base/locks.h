/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of all locks of core. A thread takes locks in ascending order of rank only (debug builds assert it), so there is no deadlock.
 *
 * Neither a callback of the application nor a compilation nor a wait for the device happens under a lock, with one exception: a thread that
 * records into a stream holds the stream's lock while it waits for room in the stream's own ring, queue or worker. Only calls that record into the
 * same stream take that lock, and calls that wait for all work of its context; no other lock is held during the wait. Calls on other streams
 * read the data that they need of a stream (its queue's points, its order) without it. tests/api/slow_compiler_test.c and
 * tests/unit/slow_device_test.c check this. */
#ifndef CT_CORE_LOCKS_H
#define CT_CORE_LOCKS_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

enum ct_lock_rank {
    CT_RANK_PROCESS = 1,    /* startup.c */
    CT_RANK_CAPTURES,       /* capture.c: streams that are captured */
    CT_RANK_GRAPHS,         /* graph.c: the structure of all graphs */
    CT_RANK_RECORDINGS,     /* recordings.c: those of all contexts */
    CT_RANK_EXCLUSIVE,      /* exclusive.c: which thread uses an object */
    CT_RANK_BRANCHES,       /* branches_run.c: whether the commands of bodies are complete */
    CT_RANK_DEFERRED_WORK,  /* deferred_work.c */
    CT_RANK_DEVICE,         /* ct_device.lock: opening, primary context */
    CT_RANK_LIBRARY,        /* ct_library.lock: its modules in each context */
    CT_RANK_MANAGED,        /* managed_variables.c: their creation */
    CT_RANK_MODULE,         /* ct_module.lock: kernels compiled so far */
    CT_RANK_REFERENCE,      /* texture_reference.h: the settings of a reference */
    CT_RANK_TEXTURES,       /* texture_table.c: the slots of texture and surface objects */
    CT_RANK_STREAM,         /* ct_stream.lock: recording. A thread holds at most one */
    CT_RANK_CONTEXT,        /* ct_context.lock: lists of streams and modules, settings */
    CT_RANK_EVENT,          /* ct_event.lock: the last record; written while the stream is still locked */
    CT_RANK_WORKER,         /* stream_worker.c: queue of host functions */
    CT_RANK_HOST_GATES,     /* host_gate.c: work that waits for the host */
    CT_RANK_IPC_MEMORY,     /* ipc_memory.c: memory opened from other processes */
    CT_RANK_POOLS,          /* memory_pool.c: the pools of a device, and their blocks */
    CT_RANK_STREAM_ORDER,   /* ct_stream.order_lock */
    CT_RANK_ARENA,          /* memory_arena.h */
    CT_RANK_ADVICE,         /* advice.c */
    CT_RANK_VIRTUAL_MEMORY, /* vmm_*.c: reservations and their mappings */
    CT_RANK_OPENED_BACKING, /* opened_backing.c: memory of other processes */
    CT_RANK_SPARES,         /* memory_spares.c: also taken under the one above, when physical memory is freed */
    CT_RANK_ADDRESS_SPACE,  /* address_space.c: writers */
    CT_RANK_HOST_ALIASES,   /* host_aliases.c: host memory that other devices may import */
    CT_RANK_SHARES,         /* memory_share.c: memory shared with other processes */
    CT_RANK_HANDLES,        /* object.c */
    CT_RANK_RUNNING,        /* running.c: the kernels of a device that are not complete */
    CT_RANK_BACKEND,        /* all locks of backends: after those of core above */
    CT_RANK_SHUTDOWN_GUARD, /* shutdown_guard.c: driver calls of background threads */
    CT_RANK_ENVIRONMENT,    /* driver_environment.c */
    CT_RANK_KERNEL_FAULTS,  /* kernel_faults.c */
    CT_RANK_PRINT,          /* print.c: reading records; only the standard output is used under it */
    CT_RANK_COREDUMP,       /* coredump.c: its attributes, and the writing of a report */
    CT_RANK_PROGRESS,       /* progress.c: whether a compilation has ended */
    CT_RANK_COMPILE_AHEAD,  /* compile_ahead.c: the modules whose kernels are compiled ahead */
    CT_RANK_CHECK,          /* core/check: sites and reports */
    CT_RANK_SHADOWS,        /* shadows.c */
    CT_RANK_HISTORY,        /* address_history.c */
    CT_RANK_LOG,
};

struct ct_mutex {
    pthread_mutex_t mutex;
    int rank;
};
/* For locks that must work before any initialization has run. */
#define CT_MUTEX_INITIALIZER(rank) {PTHREAD_MUTEX_INITIALIZER, (rank)}
void ct_mutex_init(struct ct_mutex *mutex, enum ct_lock_rank rank);
void ct_mutex_finish(struct ct_mutex *mutex);
void ct_mutex_lock(struct ct_mutex *mutex);
void ct_mutex_unlock(struct ct_mutex *mutex);
/* Waits for `condition`. The mutex is the last one that the caller took, and is held again on return. */
void ct_mutex_wait(struct ct_mutex *mutex, pthread_cond_t *condition);
/* The same until `deadline` on the condition's clock. False: timeout. */
bool ct_mutex_wait_until(struct ct_mutex *mutex, pthread_cond_t *condition, const struct timespec *deadline);
bool ct_mutex_none_held(void); /* by the calling thread */
/* Calls `function` when the calling thread holds no lock: at once, or when it releases its last one. Only one such call can be pending,
 * since only log_callbacks.c uses this. */
void ct_mutex_when_none_held(void (*function)(void));
bool ct_mutex_held(const struct ct_mutex *mutex); /* debug builds; true in release */

#endif
