/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Memory Management: sharing between processes. Events can be shared on every device; memory can be if the driver exports
 * it, or if the device works in the host's memory. */
#include "entry_points.h"

#include "core/stream/event.h"
#include "core/share/ipc_memory.h"
#include "core/base/log.h"

#include <string.h>

#define CT_CHANNEL "ipc"

/* cuIpcGetEventHandle. Returns a handle that other processes of the same user can open, as long as this process and the event live.
 * INVALID_VALUE: pHandle is NULL; INVALID_HANDLE: the handle is not that of an event, or the event was created without
 * CU_EVENT_INTERPROCESS. */
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

/* cuIpcOpenEventHandle. Opens the event in the current context: a record by any process is visible to all of them. INVALID_VALUE:
 * phEvent is NULL; INVALID_HANDLE: the handle is invalid, or its process or event no longer exists; INVALID_CONTEXT: the event was
 * created by this process; MAP_FAILED: it belongs to another user, or no file descriptor is left. */
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

/* cuIpcGetMemHandle. Returns a handle of the cuMemAlloc allocation that contains dptr, for other processes of the same user, as long as
 * this process and the allocation live. INVALID_VALUE: pHandle is NULL, or dptr is not in such memory; NOT_SUPPORTED: the device's
 * driver does not export it; OUT_OF_MEMORY: also if no file descriptor or no thread for sending it is left. */
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

/* cuIpcOpenMemHandle_v2. Maps the allocation of another process in the current context and returns its start; opening it again there
 * returns the same pointer. Flags: CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS. INVALID_VALUE: pdptr is NULL, or unknown flags; INVALID_HANDLE:
 * the handle is invalid, its process or memory no longer exists, or another context of the device has opened it; INVALID_CONTEXT: the
 * memory belongs to this process; MAP_FAILED: it belongs to another device or user, its process does not respond, or no addresses or
 * file descriptors are left. */
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

/* cuIpcOpenMemHandle, the version of CUDA 4.1. */
CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    return cuIpcOpenMemHandle_v2(pdptr, handle, Flags);
}

/* cuIpcCloseMemHandle. Must be called once for each cuIpcOpenMemHandle; the last call unmaps the memory after the work of its context is
 * complete. INVALID_VALUE: dptr is not a result of cuIpcOpenMemHandle, or has been closed already. */
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
