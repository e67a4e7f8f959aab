/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of cuMemAlloc in other processes: cuIpcGetMemHandle and what becomes of it. */
#ifndef CT_CORE_IPC_MEMORY_H
#define CT_CORE_IPC_MEMORY_H

#include "core/device/context.h"

/* A handle of all of the allocation that `address` is in. INVALID_VALUE: none of cuMemAlloc; NOT_SUPPORTED; OUT_OF_MEMORY: also of file
 * descriptors, or of threads to hand it out. */
CUresult ct_ipc_memory_share(uint64_t address, CUipcMemHandle *out);
/* The allocation's address in this process: the same for every opening by `context` until it is closed as often. INVALID_HANDLE: no such
 * handle, the memory is gone, or another context of the device has it; INVALID_CONTEXT: it is of this process; MAP_FAILED: of another
 * device or user, its process does not answer, or there is no room for it: addresses, file descriptors. */
CUresult ct_ipc_memory_open(struct ct_context *context, const CUipcMemHandle *handle, uint64_t *out_address);
/* INVALID_VALUE: `address` is not what such a handle was opened as. */
CUresult ct_ipc_memory_close(struct ct_context *context, uint64_t address);

#endif
