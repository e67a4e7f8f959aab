/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of other processes that a context has open, once for all that lies in it: some drivers (ANV with i915) map a buffer at one address only,
 * and reject a second import. */
#ifndef CT_CORE_OPENED_BACKING_H
#define CT_CORE_OPENED_BACKING_H

#include "core/ipc/memory_share.h"
#include "memory_backing.h"

struct ct_opened_backing {
    struct ct_opened_backing *next;
    CUcontext owner;
    uint64_t process, memory_id; /* ct_share_name.process, and the number of the memory in that process */
    unsigned references;
    bool is_ready; /* false: it is being opened or closed, by the thread that began to */
    /* Constant while there is a reference. */
    struct ct_backing backing;
    uint64_t lead_bytes, size_bytes; /* the memory's offset in the backing, and its size from there on */
};

/* Opens the memory of a name (ct_backing_open), or adds a reference if the context has the memory of that number open, perhaps by another name. A
 * thread that opens or closes it is waited for. Errors of ct_backing_open, in both cases: the name must be valid. */
CUresult ct_opened_backing_get(struct ct_context *context, const struct ct_share_name *name, uint64_t memory_id,
                               struct ct_opened_backing **out);
/* The last reference closes it: no work may use it any more. Accepts NULL. */
void ct_opened_backing_release(struct ct_context *context, struct ct_opened_backing *opened);

#endif
