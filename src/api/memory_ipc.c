/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Memory Management: what processes share. Events are shared on every device; memory where the driver exports it, or where the
 * device works in the host's memory. */
#include "entry_points.h"

#include "core/stream/event.h"
#include "core/share/ipc_memory.h"
#include "core/base/log.h"

#include <string.h>

#define CT_CHANNEL "ipc"

/* cuIpcGetEventHandle. A handle that other processes of the user open, as long as this process and the event live. INVALID_VALUE: pHandle
 * is NULL; INVALID_HANDLE: no event, or one that was created without CU_EVENT_INTERPROCESS. */
CUresult CUDAAPI cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event)
{
    struct ct_ipc_name name;
    struct ct_event *found;
    CUresult r = ct_event_lookup(event, &found);

    if (r != CUDA_SUCCESS)
        return r;
    r = pHandle ? ct_event_share(found, &name) : ct_fail(CUDA_ERROR_INVALID_VALUE, "pHandle is NULL");
    ct_event_release(found);
    if (r != CUDA_SUCCESS)
        return r;
    memset(pHandle, 0, sizeof *pHandle);
    memcpy(pHandle, &name, sizeof name);
    return CUDA_SUCCESS;
}

/* cuIpcOpenEventHandle. The event as one of the current context: what any process records, all of them see. INVALID_VALUE: phEvent is NULL;
 * INVALID_HANDLE: no such handle, or its process or event is gone; INVALID_CONTEXT: it is of this process; MAP_FAILED: of another user, or no
 * file descriptor is left. */
CUresult CUDAAPI cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle)
{
    struct ct_ipc_name name;
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    memcpy(&name, &handle, sizeof name);
    r = phEvent ? ct_event_open(context, &name, phEvent) : ct_fail(CUDA_ERROR_INVALID_VALUE, "phEvent is NULL");
    ct_context_release(context);
    return r;
}

/* cuIpcGetMemHandle. A handle of the allocation of cuMemAlloc that dptr is in, for other processes of the user, as long as this process and
 * the allocation live. INVALID_VALUE: pHandle is NULL, or dptr is not in such memory; NOT_SUPPORTED: the device's driver does not export
 * it; OUT_OF_MEMORY: also of file descriptors, or of threads to hand it out. */
CUresult CUDAAPI cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = pHandle ? ct_ipc_memory_share(dptr, pHandle) : ct_fail(CUDA_ERROR_INVALID_VALUE, "pHandle is NULL");
    ct_context_release(context);
    return r;
}

/* cuIpcOpenMemHandle_v2. The allocation of another process, at its beginning, in the current context; opened again there it is the same
 * pointer. Flags: CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS. INVALID_VALUE: pdptr is NULL, or other flags; INVALID_HANDLE: no such handle, its process or
 * memory is gone, or another context of the device has it open; INVALID_CONTEXT: it is of this process; MAP_FAILED: of another device or
 * user, its process does not answer, or there is no room for it: addresses, file descriptors. */
CUresult CUDAAPI cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    struct ct_context *context;
    uint64_t address;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    if (!pdptr || Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "pdptr %p, flags 0x%x", (void *)pdptr, Flags);
    else
        r = ct_ipc_memory_open(context, &handle, &address);
    ct_context_release(context);
    if (r == CUDA_SUCCESS)
        *pdptr = address;
    return r;
}

/* cuIpcOpenMemHandle, of CUDA 4.1. */
CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    return cuIpcOpenMemHandle_v2(pdptr, handle, Flags);
}

/* cuIpcCloseMemHandle. Once for each opening; with the last one the memory goes from this process, after the work of its context is done.
 * INVALID_VALUE: dptr is not what cuIpcOpenMemHandle gave, or closed as often. */
CUresult CUDAAPI cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_ipc_memory_close(context, dptr);
    ct_context_release(context);
    return r;
}
