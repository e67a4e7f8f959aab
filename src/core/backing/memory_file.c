/* SPDX-License-Identifier: Apache-2.0 */
/* The file is so large that no offset is ever reused: a claim increments a counter, and dropped pages become a hole. The file is sealed
 * against changes of its size, so that no process that receives it can remove pages that a kernel uses. */
#include "memory_file.h"

#include "core/base/log.h"
#include "core/base/resource_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CT_CHANNEL "memory"
#define FILE_BYTES ((uint64_t)1 << 62)
#define GRAIN_BYTES ((uint64_t)2 << 20) /* the alignment of claims, which suits huge pages */

CUresult ct_memory_file_open(struct ct_memory_file *file)
{
    const uint64_t allowed = ct_limit_of_files(), bytes = allowed < FILE_BYTES ? allowed : FILE_BYTES;
    int fd;
    CUresult r;

    *file = (struct ct_memory_file){.fd = -1};
    if (bytes < GRAIN_BYTES) /* nothing could be claimed */
        return CUDA_SUCCESS;
    fd = memfd_create("cuttle memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "cannot create a memory file: %s", strerror(errno));
    if (ftruncate(fd, (off_t)bytes) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        r = ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "cannot create a memory file of %llu bytes: %s", (unsigned long long)bytes, strerror(errno));
        close(fd);
        return r;
    }
    file->fd = fd;
    file->bytes = bytes;
    return CUDA_SUCCESS;
}

void ct_memory_file_close(struct ct_memory_file *file)
{
    if (file->bytes)
        close(file->fd);
    *file = (struct ct_memory_file){.fd = -1};
}

CUresult ct_memory_file_claim(struct ct_memory_file *file, uint64_t size_bytes, uint64_t *out_offset)
{
    uint64_t bytes = (size_bytes + GRAIN_BYTES - 1) & ~(GRAIN_BYTES - 1), offset = 0;
    bool fits = bytes >= size_bytes && bytes <= file->bytes;

    if (fits) {
        offset = atomic_fetch_add_explicit(&file->next, bytes, memory_order_relaxed);
        fits = offset <= file->bytes - bytes;
    }
    if (!fits)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "the memory file has no %llu bytes left", (unsigned long long)size_bytes);
    *out_offset = offset;
    return CUDA_SUCCESS;
}

void ct_memory_file_drop(struct ct_memory_file *file, uint64_t offset, uint64_t size_bytes)
{
    if (size_bytes && fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size_bytes) != 0)
        ct_log(CT_LOG_WARN, "%llu bytes of the memory file cannot be freed: %s", (unsigned long long)size_bytes, strerror(errno));
}
