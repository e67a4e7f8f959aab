/* SPDX-License-Identifier: Apache-2.0 */
/* Export of memory as dma-bufs: allocations of cuMemAlloc and mappings. A dma-buf has no offset, so the range must start with the
 * driver's allocation: this holds for allocations of 1 MiB and more, while smaller ones are parts of a chunk (memory_chunks.c). */
#include "dma_buf.h"

#include "core/base/log.h"
#include "core/memory/memory_arena.h"
#include "core/vmm/vmm.h"

#define CT_CHANNEL "memory"

CUresult ct_dma_buf_export(uint64_t address, uint64_t size_bytes, int *out_fd)
{
    struct ct_range range;

    if (!ct_address_find_any(address, 1, &range))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "no memory is known at 0x%llx", (unsigned long long)address);
    switch (range.kind) {
    case CT_RANGE_DEVICE:
        if (!range.imported)
            return ct_allocation_export_dma_buf(address, size_bytes, out_fd);
        break;
    case CT_RANGE_VIRTUAL:
        return ct_vmm_export_dma_buf(address, size_bytes, out_fd);
    case CT_RANGE_POOL:
    case CT_RANGE_IPC:
    case CT_RANGE_MODULE:
        break;
    case CT_RANGE_HOST:
    case CT_RANGE_POOL_HOST:
    case CT_RANGE_POOL_MANAGED:
    case CT_RANGE_REGISTERED:
    case CT_RANGE_MANAGED:
    case CT_RANGE_MANAGED_VARIABLES:
    case CT_RANGE_SCRATCH:
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not device memory", (unsigned long long)address);
    }
    return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "memory of pools and modules, and imported memory, cannot be exported as a dma-buf");
}
