/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of mappings by address, for the application and for copies, fills and launches (Driver API: Virtual Memory Management). */
#include "vmm_reservation.h"

#include "core/device/device.h"
#include "core/base/log.h"

#define CT_CHANNEL "memory"

CUresult ct_vmm_retain_at(uint64_t address, CUmemGenericAllocationHandle *out)
{
    struct ct_vmm_run run;
    CUresult r;

    ct_mutex_lock(&ct_vmm_lock);
    r = ct_vmm_find_mapped_locked(address, 1, &run);
    if (r == CUDA_SUCCESS) {
        run.mappings->allocated->handles++;
        *out = ct_vmm_handle_of(run.mappings->allocated);
    }
    ct_mutex_unlock(&ct_vmm_lock);
    return r;
}

static struct ct_vmm_mapping_info info_of(const struct ct_vmm_mapping *mapping)
{
    return (struct ct_vmm_mapping_info){.start = mapping->start,
                                        .size_bytes = mapping->size_bytes,
                                        .device = mapping->view->device->ordinal,
                                        .access = mapping->access,
                                        .handle_types = mapping->allocated->properties.requestedHandleTypes,
                                        .block_id = mapping->allocated->id};
}

CUresult ct_vmm_mapping_at(uint64_t address, struct ct_vmm_mapping_info *out)
{
    struct ct_vmm_run run;
    CUresult r;

    ct_mutex_lock(&ct_vmm_lock);
    r = ct_vmm_find_mapped_locked(address, 1, &run);
    if (r == CUDA_SUCCESS)
        *out = info_of(run.mappings);
    ct_mutex_unlock(&ct_vmm_lock);
    return r;
}

CUresult ct_vmm_mapping_after(uint64_t address, struct ct_vmm_mapping_info *out)
{
    struct ct_reservation *reservation;
    CUresult r;

    ct_mutex_lock(&ct_vmm_lock);
    r = ct_vmm_find_reservation_locked(address, 1, &reservation);
    if (r == CUDA_SUCCESS) {
        const size_t i = ct_vmm_first_ending_after_locked(reservation, address);

        if (i < reservation->n)
            *out = info_of(&reservation->mappings[i]);
        else
            r = CUDA_ERROR_INVALID_VALUE;
    }
    ct_mutex_unlock(&ct_vmm_lock);
    return r;
}

static CUresult export_dma_buf_locked(uint64_t address, uint64_t size_bytes, int *out_fd)
{
    const struct ct_vmm_mapping *mapping;
    struct ct_vmm_run run;
    CUresult r = ct_vmm_find_mapped_locked(address, size_bytes, &run);

    if (r != CUDA_SUCCESS)
        return r;
    mapping = run.mappings;
    if (run.count > 1 || mapping->start != address)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "a dma-buf needs one mapping, and must start with it");
    if (!mapping->view->device->info.exports_dma_bufs || !mapping->allocated->implementation->memory_export_dma_buf)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not export dma-bufs", mapping->view->device->info.name);
    return mapping->allocated->implementation->memory_export_dma_buf(&mapping->allocated->memory, out_fd);
}

CUresult ct_vmm_export_dma_buf(uint64_t address, uint64_t size_bytes, int *out_fd)
{
    CUresult r;

    ct_mutex_lock(&ct_vmm_lock);
    r = export_dma_buf_locked(address, size_bytes, out_fd);
    ct_mutex_unlock(&ct_vmm_lock);
    return r;
}

static CUresult spot_at_locked(uint64_t address, uint64_t size_bytes, struct ct_vmm_extent *out)
{
    struct ct_vmm_extent extent = {.read_only = false};
    const struct ct_vmm_view *view;
    struct ct_vmm_run run;
    uint64_t distance;
    CUresult r = ct_vmm_find_mapped_locked(address, size_bytes, &run);

    if (r != CUDA_SUCCESS)
        return r;
    view = run.mappings->view;
    distance = address - run.reservation->start;
    for (size_t i = 0; i < run.count; i++) {
        const struct ct_vmm_mapping *mapping = &run.mappings[i];

        if (mapping->access == CU_MEM_ACCESS_FLAGS_PROT_NONE || mapping->view != view)
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "device %d has no access to the mapping at 0x%llx", view->device->ordinal,
                           (unsigned long long)mapping->start);
        if (mapping->closer)
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "another thread unmaps 0x%llx or changes its access",
                           (unsigned long long)mapping->start);
        extent.read_only = extent.read_only || mapping->access == CU_MEM_ACCESS_FLAGS_PROT_READ;
    }
    extent.memory = view->memory;
    extent.offset = view->offset + distance;
    extent.host = view->pages ? view->pages + distance : NULL;
    extent.owner = view->device->primary->object.handle;
    *out = extent;
    return CUDA_SUCCESS;
}

CUresult ct_vmm_extent_at(uint64_t address, uint64_t size_bytes, struct ct_vmm_extent *out)
{
    CUresult r;

    ct_mutex_lock(&ct_vmm_lock);
    r = spot_at_locked(address, size_bytes ? size_bytes : 1, out);
    ct_mutex_unlock(&ct_vmm_lock);
    return r;
}
