/* SPDX-License-Identifier: Apache-2.0 */
/* What a CUmemGenericAllocationHandle stands for. It lives while the application has the handle or anything of it is mapped, and its
 * handle stays the same meanwhile: cuMemRetainAllocationHandle brings back a handle that was released. */
#ifndef CT_CORE_VMM_HANDLE_H
#define CT_CORE_VMM_HANDLE_H

#include "core/base/object.h"
#include "vmm.h"
#include "vmm_backing.h"

struct ct_allocated {
    struct ct_object object;
    const struct ct_vmm_way *way;
    struct ct_vmm_memory memory;
    uint64_t device_bytes; /* what it is counted for: memory_budget.h. Imported memory is counted where it was made */
    CUmemAllocationProp properties;
    unsigned long long id;
    unsigned handles, mappings; /* how often the application has it, and how often it is mapped; under ct_vmm_lock */
};

/* Guards the counts above, and all that vmm_reservation.h has. Rank CT_RANK_VIRTUAL_MEMORY. */
extern struct ct_mutex ct_vmm_lock;

/* What the application means by a handle; INVALID_VALUE if it has no such one. Lives while the lock is held. */
CUresult ct_vmm_find_locked(CUmemGenericAllocationHandle handle, struct ct_allocated **out);
/* After a count went down: ends it if it was the last. */
void ct_vmm_drop_if_unused_locked(struct ct_allocated *allocated);
/* Memory of tile pools goes to sparse arrays (array_tiles.c) and to no addresses. */
static inline bool ct_vmm_is_tile_pool(const CUmemAllocationProp *properties)
{
    return properties->allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL;
}
CUmemGenericAllocationHandle ct_vmm_handle_of(const struct ct_allocated *allocated);
/* The current context's device, or the first. */
struct ct_device *ct_vmm_default_device(void);

#endif
