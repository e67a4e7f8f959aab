/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files that another process may open: the 64 bytes of a CUipc*Handle. */
#ifndef CT_CORE_IPC_H
#define CT_CORE_IPC_H

#include "cuda.h"

#include <stdint.h>

enum ct_ipc_kind { CT_IPC_EVENT = 1, CT_IPC_MEMORY };

/* A file in memory (memfd) of a process. Processes that may inspect that process may open it, as long as it runs and keeps the file
 * open. */
struct ct_ipc_name {
    char magic[8];
    int32_t kind, pid, fd, device;
    uint64_t file_system, inode; /* of the file: they detect that the descriptor was reused */
    uint64_t offset, size_bytes;
};

/* OPERATING_SYSTEM: fd is not a file. */
CUresult ct_ipc_name_make(enum ct_ipc_kind kind, int fd, struct ct_ipc_name *out);
/* Opens the file of a name; the caller owns the descriptor. INVALID_HANDLE: the name is invalid, or the file no longer exists;
 * INVALID_CONTEXT: it belongs to this process; MAP_FAILED: this process may not open it. */
CUresult ct_ipc_name_open(enum ct_ipc_kind kind, const struct ct_ipc_name *name, int *out_fd);

#endif
