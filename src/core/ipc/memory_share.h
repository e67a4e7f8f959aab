/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of this process that others may have: who has a name of it asks for it, and gets a file descriptor. */
#ifndef CT_CORE_MEMORY_SHARE_H
#define CT_CORE_MEMORY_SHARE_H

#include "core/device/backend.h"

enum ct_share_kind { CT_SHARE_MEMORY = 1, CT_SHARE_POOL };

/* What may be written into 64 bytes that an application sends to another process. Everything in it may be wrong. */
struct ct_share_name {
    char magic[8];
    uint64_t process; /* a number that no other process has */
    int32_t pid, kind;
    uint64_t id; /* of what is shared, in that process */
};

/* A name of this process that nothing stands behind. OPERATING_SYSTEM: there are no random numbers. */
CUresult ct_share_name_make(enum ct_share_kind kind, uint64_t id, struct ct_share_name *out);
/* INVALID_HANDLE: not a name of that kind. */
CUresult ct_share_name_check(enum ct_share_kind kind, const struct ct_share_name *name);
bool ct_share_name_is_own(const struct ct_share_name *name); /* of this process */

/* Memory in the form in which it goes to another process: parts that follow one another, most often a single one. */
struct ct_shared_memory {
    uint8_t uuid[16]; /* of its device */
    uint32_t n_parts;
    struct ct_memory_share *parts; /* the owner's, with their descriptors */
};
void ct_shared_memory_finish(struct ct_shared_memory *memory); /* takes a zeroed one */

/* Whoever asks for memory `id` (unique in this process, not 0) gets it from now on; takes what *memory owns, also on failure.
 * OUT_OF_MEMORY: nobody can be answered. */
CUresult ct_share_publish(uint64_t id, struct ct_shared_memory *memory);
void ct_share_retract(uint64_t id); /* 0: nothing is shared */

/* What `name` stands for in another process, which has to answer. INVALID_HANDLE: that process does not run any
 * more, or has freed the memory; OPERATING_SYSTEM: it is of another user, or does not answer; OUT_OF_MEMORY: also of file descriptors. */
CUresult ct_share_fetch(const struct ct_share_name *name, struct ct_shared_memory *out);

#endif
