/* SPDX-License-Identifier: Apache-2.0 */
/* Access to files of other processes through /proc/<pid>/fd. This needs no server, no privilege beyond being the same user, and no name
 * in a file system: nothing is left when a process dies, and files that others have opened stay open there. */
#include "ipc.h"

#include "core/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CT_CHANNEL "ipc"

static const char magic[8] = {'C', 'u', 't', 't', 'l', 'e', 'I', '1'};

_Static_assert(sizeof(struct ct_ipc_name) <= CU_IPC_HANDLE_SIZE, "a name fits into a handle");

CUresult ct_ipc_name_make(enum ct_ipc_kind kind, int fd, struct ct_ipc_name *out)
{
    struct stat status;

    if (fstat(fd, &status) != 0)
        return ct_fail(CUDA_ERROR_OPERATING_SYSTEM, "fstat: %s", strerror(errno));
    *out = (struct ct_ipc_name){.kind = (int32_t)kind, .pid = getpid(), .fd = fd, .file_system = status.st_dev, .inode = status.st_ino};
    memcpy(out->magic, magic, sizeof magic);
    return CUDA_SUCCESS;
}

static bool is_same_file(int fd, const struct ct_ipc_name *name)
{
    struct stat status;

    return fstat(fd, &status) == 0 && status.st_dev == name->file_system && status.st_ino == name->inode;
}

CUresult ct_ipc_name_open(enum ct_ipc_kind kind, const struct ct_ipc_name *name, int *out_fd)
{
    char path[64];
    int fd;

    if (memcmp(name->magic, magic, sizeof magic) || name->kind != (int32_t)kind || name->pid <= 0 || name->fd < 0)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "the handle is not of this kind, or invalid");
    if (name->pid == getpid())
        return ct_fail(CUDA_ERROR_INVALID_CONTEXT, "the handle was created by this process");
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)name->pid, (int)name->fd);
    fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return ct_fail(errno == ENOENT ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_MAP_FAILED, "%s: %s", path, strerror(errno));
    if (is_same_file(fd, name)) {
        *out_fd = fd;
        return CUDA_SUCCESS;
    }
    close(fd);
    return ct_fail(CUDA_ERROR_INVALID_HANDLE, "the object of the handle no longer exists");
}
