/* SPDX-License-Identifier: Apache-2.0 */
/* Results that are kept on disk for later processes, in $XDG_CACHE_HOME/cuttle: a number for each key. */
#ifndef CT_CORE_DISK_CACHE_H
#define CT_CORE_DISK_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CT_DISK_CACHE_PATH_BYTES 512
#define CT_HASH_SEED UINT64_C(0xcbf29ce484222325)

/* A key is a hash of all that the result depends on, which begins with CT_HASH_SEED. */
uint64_t ct_hash(uint64_t state, const void *data, size_t size);
/* The file of a result; `kind` begins its name. False: there is no usable folder. */
bool ct_disk_cache_path(const char *kind, uint64_t key, char out[CT_DISK_CACHE_PATH_BYTES]);
/* False: there is no such result, or its file is damaged. */
bool ct_disk_cache_read(const char *kind, uint64_t key, uint32_t *out);
void ct_disk_cache_write(const char *kind, uint64_t key, uint32_t value); /* does nothing where it cannot */

#endif
