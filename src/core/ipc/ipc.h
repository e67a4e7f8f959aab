/* SPDX-License-Identifier: Apache-2.0 */
/* Names of what another process may open: the 64 bytes of a CUipc*Handle. */
#ifndef CT_CORE_IPC_H
#define CT_CORE_IPC_H

#include "cuda.h"

#include <stdint.h>

enum ct_ipc_kind { CT_IPC_EVENT = 1, CT_IPC_MEMORY };

/* A file of memory (memfd) of some process. Whoever may look at that process may open it, as long as it runs and keeps the file. */
struct ct_ipc_name {
    char magic[8];
    int32_t kind, pid, fd, device;
    uint64_t file_system, inode; /* of the file: tells whether the descriptor is still the same */
    uint64_t offset, size_bytes;
};

/* OPERATING_SYSTEM: fd is no file. */
CUresult ct_ipc_name_make(enum ct_ipc_kind kind, int fd, struct ct_ipc_name *out);
/* The file behind a name; the descriptor is the caller's. INVALID_HANDLE: no such name, or it is gone; INVALID_CONTEXT: it is of this
 * process; MAP_FAILED: this process may not open it. */
CUresult ct_ipc_name_open(enum ct_ipc_kind kind, const struct ct_ipc_name *name, int *out_fd);

#endif
