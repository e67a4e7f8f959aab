/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of cuMemAlloc in other processes: cuIpcGetMemHandle and the use of its handles. */
#ifndef CT_CORE_IPC_MEMORY_H
#define CT_CORE_IPC_MEMORY_H

#include "core/device/context.h"

/* Returns a handle of the whole allocation that contains `address`. INVALID_VALUE: it is not an allocation of cuMemAlloc; NOT_SUPPORTED;
 * OUT_OF_MEMORY: also if no file descriptor or no thread for sending it is left. */
CUresult ct_ipc_memory_share(uint64_t address, CUipcMemHandle *out);
/* Returns the allocation's address in this process: the same for every opening by `context`, until it is closed as often.
 * INVALID_HANDLE: the handle is invalid, the memory was freed, or another context of the device has opened it; INVALID_CONTEXT: the
 * memory belongs to this process; MAP_FAILED: it belongs to another device or user, its process does not respond, or no addresses or
 * file descriptors are left. */
CUresult ct_ipc_memory_open(struct ct_context *context, const CUipcMemHandle *handle, uint64_t *out_address);
/* INVALID_VALUE: `address` is not the result of opening such a handle. */
CUresult ct_ipc_memory_close(struct ct_context *context, uint64_t address);

#endif
