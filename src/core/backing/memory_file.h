/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of a file in memory (memfd), for devices that use the host's memory: every allocation can be shared with another process, and all
 * of them together need one file descriptor. */
#ifndef CT_CORE_MEMORY_FILE_H
#define CT_CORE_MEMORY_FILE_H

#include "cuda.h"

#include <stdatomic.h>
#include <stdint.h>

struct ct_memory_file {
    int fd;
    uint64_t bytes;            /* its size; only the part in use has pages; 0: it is not open */
    atomic_uint_fast64_t next; /* the end of the part ever used; relaxed: a counter */
};

/* OUT_OF_MEMORY: the file is not open afterwards. Nor is it after success if the process may not have such files (RLIMIT_FSIZE). */
CUresult ct_memory_file_open(struct ct_memory_file *file);
void ct_memory_file_close(struct ct_memory_file *file); /* mappings remain valid; accepts a file that is not open */
/* Allocates `size_bytes` of new pages. OUT_OF_MEMORY: the file is not open, or exhausted. */
CUresult ct_memory_file_claim(struct ct_memory_file *file, uint64_t size_bytes, uint64_t *out_offset);
/* Frees the pages; existing mappings of them read as zeros. */
void ct_memory_file_drop(struct ct_memory_file *file, uint64_t offset, uint64_t size_bytes);

#endif
