/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the process: whether CUDA can be used in it. setup/startup.c initializes it. */
#include "process.h"

#include "log.h"
#include "log_history.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CT_CHANNEL "process"

struct ct_process ct_process = {
    .lock = CT_MUTEX_INITIALIZER(CT_RANK_PROCESS),
    .handles = CT_HANDLE_TABLE_INITIALIZER,
};

/* In the child the driver's threads do not exist and its device files are shared with the parent, so the driver cannot be used. Locks may
 * be held by threads that do not exist in the child, but the lock of the log history, which every failure takes, is not. */
static void note_fork(void)
{
    int ready = CT_PROCESS_READY;

    ct_log_history_unlock();
    atomic_compare_exchange_strong(&ct_process.state, &ready, CT_PROCESS_FORKED);
}

/* Threads may still run and make calls, so nothing is freed, and calls are refused. */
__attribute__((destructor)) static void note_exit(void)
{
    atomic_store_explicit(&ct_process.state, CT_PROCESS_ENDED, memory_order_release);
}

bool ct_process_is_child(void)
{
    return atomic_load_explicit(&ct_process.state, memory_order_acquire) == CT_PROCESS_FORKED;
}

void ct_process_end_child(int status)
{
    fflush(NULL);
    _exit(status);
}

/* At exit the state must change before the handlers run that were registered before the drivers were loaded, such as a libcudart's in the
 * program, which unloads its modules: drivers have their own handlers (NVIDIA's for Vulkan), which run in between, and a driver must not
 * be called after them. In a forked child those handlers wait for threads that do not exist, or crash (NVIDIA 580.159.04 does both), so the
 * child ends here; the handlers that the application registered since cuInit have run. */
static void end_process(int status, void *user)
{
    const bool is_child = ct_process_is_child();

    (void)user;
    note_exit();
    if (is_child)
        ct_process_end_child(status);
}

void ct_process_watch(void)
{
    if (on_exit(end_process, NULL) != 0)
        ct_log(CT_LOG_WARN, "the exit handler cannot be registered: out of memory");
    if (pthread_atfork(ct_log_history_lock, ct_log_history_unlock, note_fork) != 0)
        ct_log(CT_LOG_WARN, "the fork handler cannot be registered: out of memory");
}

static CUresult state_error(int state)
{
    switch ((enum ct_process_state)state) {
    case CT_PROCESS_READY:
        return CUDA_SUCCESS;
    case CT_PROCESS_NEW:
        return ct_fail(CUDA_ERROR_NOT_INITIALIZED, "cuInit was not called, or failed");
    case CT_PROCESS_FORKED:
        if (!atomic_exchange_explicit(&ct_process.fork_logged, true, memory_order_relaxed))
            ct_log(CT_LOG_ERROR, "CUDA was in use before this process was forked; it can only be used in the parent");
        return CUDA_ERROR_NOT_INITIALIZED;
    case CT_PROCESS_ENDED:
        return ct_fail(CUDA_ERROR_DEINITIALIZED, "the process is exiting");
    }
    return CUDA_ERROR_UNKNOWN;
}

CUresult ct_process_check(void)
{
    int state = atomic_load_explicit(&ct_process.state, memory_order_acquire);

    return state == CT_PROCESS_READY ? CUDA_SUCCESS : state_error(state);
}

unsigned long long ct_process_new_id(void)
{
    return atomic_fetch_add_explicit(&ct_process.next_id, 1, memory_order_relaxed) + 1; /* only uniqueness matters */
}
