/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: CUDA Checkpointing. Cuttle checkpoints no process: its drivers cannot save the state of a device. The state of this process is that
 * it is running. Every function: NOT_INITIALIZED; OPERATING_SYSTEM: there is no such process. */
#include "entry_points.h"

#include "core/base/log.h"
#include "core/base/process.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#define CT_CHANNEL "api"

static CUresult check_process(int pid)
{
    CUresult r = ct_process_check();

    if (r == CUDA_SUCCESS && (pid <= 0 || (kill(pid, 0) != 0 && errno == ESRCH)))
        r = ct_fail(CUDA_ERROR_OPERATING_SYSTEM, "there is no process %d", pid);
    return r;
}

static CUresult refuse(int pid, const char *what)
{
    CUresult r = check_process(pid);

    return r == CUDA_SUCCESS ? ct_fail(CUDA_ERROR_NOT_SUPPORTED, "processes cannot be %s: drivers cannot save the state of a device", what)
                             : r;
}

/* cuCheckpointProcessGetState. INVALID_VALUE: state is NULL; NOT_INITIALIZED: another process, of which is not known whether it uses CUDA. */
CUresult CUDAAPI cuCheckpointProcessGetState(int pid, CUprocessState *state)
{
    CUresult r = check_process(pid);

    if (r != CUDA_SUCCESS)
        return r;
    if (!state)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "state is NULL");
    if (pid != getpid())
        return ct_fail(CUDA_ERROR_NOT_INITIALIZED, "process %d is not this one", pid);
    *state = CU_PROCESS_STATE_RUNNING;
    return CUDA_SUCCESS;
}

/* cuCheckpointProcessGetRestoreThreadId. NOT_SUPPORTED: no thread would restore the process. */
CUresult CUDAAPI cuCheckpointProcessGetRestoreThreadId(int pid, int *tid)
{
    (void)tid;
    return refuse(pid, "restored");
}

/* cuCheckpointProcessLock. NOT_SUPPORTED. */
CUresult CUDAAPI cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args)
{
    (void)args;
    return refuse(pid, "locked");
}

/* cuCheckpointProcessCheckpoint. NOT_SUPPORTED. */
CUresult CUDAAPI cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args)
{
    (void)args;
    return refuse(pid, "checkpointed");
}

/* cuCheckpointProcessRestore. NOT_SUPPORTED. */
CUresult CUDAAPI cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args)
{
    (void)args;
    return refuse(pid, "restored");
}

/* cuCheckpointProcessUnlock. NOT_SUPPORTED. */
CUresult CUDAAPI cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args)
{
    (void)args;
    return refuse(pid, "unlocked");
}
