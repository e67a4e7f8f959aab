/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory on devices that bind memory to addresses themselves. A part without access is not bound at all, so cuMemSetAccess binds
 * and cuMemMap does not: one request to the driver for everything that a call makes accessible. The hardware has no read-only bindings;
 * copies and fills are checked for writes to read-only memory, kernels are not. */
#include "vmm_backing.h"

#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "memory"

/* ---- physical memory ---- */

static CUresult create(struct ct_device *device, uint64_t size_bytes, enum ct_physical_use use, struct ct_vmm_memory *out)
{
    struct ct_vmm_memory memory = {.device = device, .size_bytes = size_bytes, .fd = -1};
    CUresult r = device->backend->virtual_memory->physical_create(device->opened, size_bytes, use, &memory.physical);

    if (r == CUDA_SUCCESS)
        *out = memory;
    return r;
}

static CUresult memory_create(struct ct_device *device, uint64_t size_bytes, bool shareable, struct ct_vmm_memory *out)
{
    if (shareable && !device->info.virtual_memory_fd)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not export memory", device->info.name);
    return create(device, size_bytes, shareable ? CT_PHYSICAL_SHARED : CT_PHYSICAL_RANGES, out);
}

static CUresult tiles_create(struct ct_device *device, uint64_t size_bytes, bool shareable, struct ct_vmm_memory *out)
{
    (void)shareable; /* always false: vmm_handle.c refuses shareable tile pools */
    return create(device, size_bytes, CT_PHYSICAL_TILES, out);
}

static CUresult memory_import(struct ct_device *device, int fd, struct ct_vmm_memory *out)
{
    struct ct_vmm_memory memory = {.device = device, .fd = -1};
    CUresult r;

    if (!device->info.virtual_memory_fd)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not import memory", device->info.name);
    r = device->backend->virtual_memory->physical_import(device->opened, fd, &memory.physical, &memory.size_bytes);
    if (r == CUDA_SUCCESS)
        *out = memory;
    return r;
}

static CUresult memory_export(const struct ct_vmm_memory *memory, int *out_fd)
{
    return memory->device->backend->virtual_memory->physical_export(memory->physical, out_fd);
}

static CUresult memory_export_dma_buf(const struct ct_vmm_memory *memory, int *out_fd)
{
    return memory->device->backend->virtual_memory->physical_export_dma_buf(memory->physical, out_fd);
}

static void memory_finish(struct ct_vmm_memory *memory)
{
    if (memory->device)
        memory->device->backend->virtual_memory->physical_destroy(memory->physical);
    *memory = (struct ct_vmm_memory){.fd = -1};
}

/* ---- views ---- */

static CUresult view_create(struct ct_device *device, uint64_t address, uint64_t size_bytes, struct ct_vmm_view *out)
{
    struct ct_vmm_view view = {.device = device};
    CUresult r = device->backend->virtual_memory->range_create(device->opened, address, size_bytes, &view.memory);

    if (r == CUDA_SUCCESS)
        *out = view;
    return r;
}

/* Allocates enough to start at an aligned address. */
static CUresult view_create_aligned(struct ct_device *device, uint64_t align, uint64_t size_bytes, struct ct_vmm_view *out)
{
    struct ct_vmm_view view = {.device = device};
    uint64_t bytes;
    CUresult r;

    if (__builtin_add_overflow(size_bytes, align, &bytes))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no addresses for %llu bytes", (unsigned long long)size_bytes);
    if ((r = device->backend->virtual_memory->range_create(device->opened, 0, bytes, &view.memory)) != CUDA_SUCCESS)
        return r;
    view.offset = -view.memory->address.v & (align - 1);
    *out = view;
    return CUDA_SUCCESS;
}

static void view_finish(struct ct_vmm_view *view)
{
    if (view->memory)
        view->device->backend->memory->destroy(view->memory);
    *view = (struct ct_vmm_view){0};
}

static CUresult change(struct ct_vmm_view *view, const struct ct_vmm_change *changes, unsigned count)
{
    struct ct_range_bind *binds = calloc(count ? count : 1, sizeof *binds);
    unsigned n = 0;
    CUresult r;

    if (!binds)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a list of %u bindings", count);
    for (unsigned i = 0; i < count; i++) {
        bool bound = changes[i].was != CU_MEM_ACCESS_FLAGS_PROT_NONE, bind = changes[i].now != CU_MEM_ACCESS_FLAGS_PROT_NONE;

        if (bound != bind)
            binds[n++] = (struct ct_range_bind){.offset = view->offset + changes[i].offset,
                                                .size_bytes = changes[i].size_bytes,
                                                .physical = bind ? changes[i].memory->physical : NULL};
    }
    r = n ? view->device->backend->virtual_memory->range_bind(view->memory, binds, n) : CUDA_SUCCESS;
    free(binds);
    return r;
}

const struct ct_vmm_implementation ct_vmm_tiles = {.memory_create = tiles_create, .memory_finish = memory_finish};

const struct ct_vmm_implementation ct_vmm_sparse = {
    .memory_create = memory_create,
    .memory_import = memory_import,
    .memory_export = memory_export,
    .memory_export_dma_buf = memory_export_dma_buf,
    .memory_finish = memory_finish,
    .view_create = view_create,
    .view_create_aligned = view_create_aligned,
    .view_finish = view_finish,
    .change = change,
};
