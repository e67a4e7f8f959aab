/* SPDX-License-Identifier: Apache-2.0 */
/* Results that are kept on disk for later processes: a file for each key, in the folder CUDA_CACHE_PATH, or $XDG_CACHE_HOME/cuttle, or
 * ~/.cache/cuttle.
 *
 * Any number of processes may use the folder at once, and may be killed at any time. Nothing here fails: what cannot be stored is not stored, and
 * an entry that is damaged, or that another user could have written, is treated as missing. */
#ifndef CT_CORE_DISK_CACHE_H
#define CT_CORE_DISK_CACHE_H

#include "hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CT_DISK_CACHE_PATH_BYTES 512

enum ct_disk_kind {
#define KIND(id, name, is_optional) CT_DISK_##id,
#include "disk_cache_kinds.def"
    CT_DISK_KINDS
};

struct ct_disk_key {
    enum ct_disk_kind kind;
    struct ct_hash hash;
};

/* The key of a result: the parts are all that it depends on. */
struct ct_disk_key ct_disk_key_make(enum ct_disk_kind kind, const struct ct_bytes *parts, size_t n_parts);
/* Whether compiled code is stored and loaded: CUDA_CACHE_DISABLE is not set. Without it, making keys and contents for nothing can be avoided. */
bool ct_disk_cache_takes_code(void);
/* The file of a result. False: there is no usable folder. */
bool ct_disk_cache_path(const struct ct_disk_key *key, char out[CT_DISK_CACHE_PATH_BYTES]);
/* The folder, which need not exist. False: no variable names one. */
bool ct_disk_cache_folder(char out[CT_DISK_CACHE_PATH_BYTES]);
/* Opens the folder, which the caller closes. Negative: it does not exist, or it does not belong to this user alone. */
int ct_disk_cache_open_folder(void);
/* The beginning of the names of a kind's files, before a '-'. */
const char *ct_disk_kind_name(enum ct_disk_kind kind);
/* On success *out_data, which may be of size 0, is to be freed. False: there is no such result, or its file is damaged. */
bool ct_disk_cache_load(const struct ct_disk_key *key, void **out_data, size_t *out_size);
/* Stores the parts' bytes, one after the other. */
void ct_disk_cache_store(const struct ct_disk_key *key, const struct ct_bytes *parts, size_t n_parts);
/* The same for results that are a number. */
bool ct_disk_cache_load_number(const struct ct_disk_key *key, uint32_t *out);
void ct_disk_cache_store_number(const struct ct_disk_key *key, uint32_t number);

#endif
