/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of this process that others may import: a process that has its name requests and receives a file descriptor. */
#ifndef CT_CORE_MEMORY_SHARE_H
#define CT_CORE_MEMORY_SHARE_H

#include "core/device/backend.h"

enum ct_share_kind { CT_SHARE_MEMORY = 1, CT_SHARE_POOL };

/* A name that fits into the 64 bytes that an application sends to another process. Its contents are untrusted. */
struct ct_share_name {
    char magic[8];
    uint64_t process; /* a random number that is unique to the process */
    int32_t pid, kind;
    uint64_t id; /* of the shared object in that process */
};

/* Creates a name of this process without a shared object. OPERATING_SYSTEM: no random numbers are available. */
CUresult ct_share_name_make(enum ct_share_kind kind, uint64_t id, struct ct_share_name *out);
/* INVALID_HANDLE: the name is not of that kind. */
CUresult ct_share_name_check(enum ct_share_kind kind, const struct ct_share_name *name);
bool ct_share_name_is_own(const struct ct_share_name *name); /* whether it belongs to this process */

/* Memory in the form in which it is sent to another process: consecutive parts, most often a single one. */
struct ct_shared_memory {
    uint8_t uuid[16]; /* of its device */
    uint32_t n_parts;
    struct ct_memory_share *parts; /* the owner's parts, with their descriptors */
};
void ct_shared_memory_finish(struct ct_shared_memory *memory); /* a zeroed struct is a no-op */

/* Shares memory under `id` (unique in this process, not 0) from now on; takes ownership of the contents of *memory, also on failure.
 * OUT_OF_MEMORY: the server cannot be started. */
CUresult ct_share_publish(uint64_t id, struct ct_shared_memory *memory);
void ct_share_retract(uint64_t id); /* 0: no-op */

/* Imports the object of `name` from another process, which must respond. INVALID_HANDLE: that process has ended, or has freed the
 * memory; OPERATING_SYSTEM: it belongs to another user, or does not respond; OUT_OF_MEMORY: also if no file descriptor is left. */
CUresult ct_share_fetch(const struct ct_share_name *name, struct ct_shared_memory *out);

#endif
