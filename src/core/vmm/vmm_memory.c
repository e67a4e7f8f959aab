/* SPDX-License-Identifier: Apache-2.0 */
/* Physical memory with its charge in memory_budget.h. */
#include "vmm_backing.h"

#include "core/backing/memory_budget.h"
#include "core/backing/memory_spares.h"
#include "core/device/device.h"

CUresult ct_vmm_memory_create(struct ct_device *device, const struct ct_vmm_implementation *implementation, uint64_t size_bytes,
                              bool shareable, struct ct_vmm_memory *out)
{
    CUresult r = ct_budget_take(device, size_bytes);

    if (r != CUDA_SUCCESS)
        return r;
    r = implementation->memory_create(device, size_bytes, shareable, out);
    if (r == CUDA_ERROR_OUT_OF_MEMORY && ct_budget_reclaim(device))
        r = implementation->memory_create(device, size_bytes, shareable, out);
    if (r != CUDA_SUCCESS)
        ct_budget_give(device, size_bytes);
    return r;
}

CUresult ct_vmm_memory_take(struct ct_device *device, const struct ct_vmm_implementation *implementation, uint64_t size_bytes,
                            struct ct_vmm_memory *out)
{
    if (ct_spares_take_physical(device->spares, size_bytes, out))
        return CUDA_SUCCESS;
    return ct_vmm_memory_create(device, implementation, size_bytes, false, out);
}

void ct_vmm_memory_give(const struct ct_vmm_implementation *implementation, struct ct_vmm_memory *memory)
{
    if (ct_spares_put_physical(memory->device->spares, implementation, memory))
        return;
    ct_budget_give(memory->device, memory->size_bytes);
    implementation->memory_finish(memory);
}
