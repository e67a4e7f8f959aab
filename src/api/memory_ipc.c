/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Memory Management: what processes share. Events are shared on every device. */
#include "entry_points.h"

#include "core/event.h"
#include "core/log.h"

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
 * INVALID_HANDLE: no such handle, or its process or event is gone; INVALID_CONTEXT: it is of this process; MAP_FAILED: of another user. */
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
