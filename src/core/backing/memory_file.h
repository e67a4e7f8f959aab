/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of a file in memory (memfd), for devices that work in the host's memory: so every allocation can be had by another process, and all
 * of them together take one file descriptor. */
#ifndef CT_CORE_MEMORY_FILE_H
#define CT_CORE_MEMORY_FILE_H

#include "cuda.h"

#include <stdatomic.h>
#include <stdint.h>

struct ct_memory_file {
    int fd;
    uint64_t bytes;            /* its size, of which only what is in use has pages; 0: it is not open */
    atomic_uint_fast64_t next; /* nothing behind it was ever in use; relaxed: a counter */
};

/* OUT_OF_MEMORY: it is not open then. */
CUresult ct_memory_file_open(struct ct_memory_file *file);
void ct_memory_file_close(struct ct_memory_file *file); /* mappings stay; takes one that is not open */
/* Where `size_bytes` of fresh pages are. OUT_OF_MEMORY: the file is not open, or ends. */
CUresult ct_memory_file_claim(struct ct_memory_file *file, uint64_t size_bytes, uint64_t *out_offset);
/* They go, and whoever still has them mapped sees zeros. */
void ct_memory_file_drop(struct ct_memory_file *file, uint64_t offset, uint64_t size_bytes);

#endif
