/* SPDX-License-Identifier: Apache-2.0 */
/* The object of a CUmemGenericAllocationHandle. It lives as long as the application has the handle or the memory is mapped, and its
 * handle does not change meanwhile: cuMemRetainAllocationHandle returns a handle that was released. */
#ifndef CT_CORE_VMM_HANDLE_H
#define CT_CORE_VMM_HANDLE_H

#include "core/base/object.h"
#include "vmm.h"
#include "vmm_backing.h"

struct ct_allocated {
    struct ct_object object;
    const struct ct_vmm_implementation *implementation;
    struct ct_vmm_memory memory;
    uint64_t device_bytes; /* its charge in memory_budget.h; imported memory is charged where it was allocated */
    CUmemAllocationProp properties;
    unsigned long long id;
    unsigned handles, mappings; /* the number of references of the application, and of mappings; under ct_vmm_lock */
};

/* Guards the counts above, and everything in vmm_reservation.h. Rank CT_RANK_VIRTUAL_MEMORY. */
extern struct ct_mutex ct_vmm_lock;

/* Finds the object of a handle of the application; INVALID_VALUE if there is none. It is valid while the lock is held. */
CUresult ct_vmm_find_locked(CUmemGenericAllocationHandle handle, struct ct_allocated **out);
/* Called after a count was decremented: destroys the object if both are 0. */
void ct_vmm_drop_if_unused_locked(struct ct_allocated *allocated);
/* Memory of tile pools is bound to sparse arrays (array_tiles.c) and never mapped at addresses. */
static inline bool ct_vmm_is_tile_pool(const CUmemAllocationProp *properties)
{
    return properties->allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL;
}
CUmemGenericAllocationHandle ct_vmm_handle_of(const struct ct_allocated *allocated);
/* Returns the current context's device, or the first device. */
struct ct_device *ct_vmm_default_device(void);

#endif
