/* SPDX-License-Identifier: Apache-2.0 */
/* External memory (Driver API: External Resource Interoperability).
 *
 * The object consists of a file descriptor and its properties. Each mapped buffer imports the descriptor again, up to the buffer's last
 * byte: so buffers may overlap although ranges of the map of addresses never do, and they stay valid when the object is destroyed. */
#include "external_memory.h"

#include "core/array/array.h"
#include "core/base/log.h"
#include "core/memory/memory_arena.h"
#include "core/base/process.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define CT_CHANNEL "memory"

struct ct_external_memory {
    struct ct_object object;
    struct ct_context *context; /* a reference, which keeps the struct alive */
    struct ct_fd_import import; /* it owns fd */
};

/* ---- import ---- */

static void free_memory(struct ct_object *object)
{
    struct ct_external_memory *memory = (struct ct_external_memory *)object;

    if (memory->import.fd >= 0)
        close(memory->import.fd);
    ct_object_release(&memory->context->object);
    free(memory);
}

/* Returns 0 if handles of the type are file descriptors that the device imports, else the error. */
static CUresult check_type(const struct ct_device_info *info, CUexternalMemoryHandleType type)
{
    switch (type) {
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD:
        return info->external_memory_fd ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not import memory", info->name);
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD:
        return info->external_memory_fd && info->dma_buf ? CUDA_SUCCESS
                                                         : ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not import dma-bufs", info->name);
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF:
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "NvSciBuf exists on NVIDIA's embedded systems only");
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32:
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_KMT:
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP:
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE:
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE:
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE_KMT:
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "memory handles of type %d exist on Windows only", (int)type);
    }
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "external memory type %d does not exist", (int)type);
}

static CUresult check_desc(const struct ct_device_info *info, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc)
{
    bool dma_buf = desc->type == CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD;
    CUresult r = check_type(info, desc->type);

    if (r != CUDA_SUCCESS)
        return r;
    if (!desc->size || desc->flags & ~(unsigned)(dma_buf ? 0 : CUDA_EXTERNAL_MEMORY_DEDICATED))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "invalid size %llu or flags 0x%x of external memory", desc->size, desc->flags);
    if (fcntl(desc->handle.fd, F_GETFD) < 0)
        return ct_fail(CUDA_ERROR_OPERATING_SYSTEM, "%d is not an open file descriptor", desc->handle.fd);
    return CUDA_SUCCESS;
}

static CUresult make(struct ct_context *context, const struct ct_fd_import *import, struct ct_external_memory **out)
{
    struct ct_external_memory *memory = calloc(1, sizeof *memory);

    if (!memory)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for an external memory object");
    ct_object_init(&memory->object, CT_OBJECT_EXTERNAL_MEMORY, free_memory);
    ct_object_retain(&context->object);
    memory->context = context;
    memory->import = *import;
    *out = memory;
    return CUDA_SUCCESS;
}

CUresult ct_external_memory_import(struct ct_context *context, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc, CUexternalMemory *out)
{
    struct ct_fd_import import = {
        .dma_buf = desc->type == CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD,
        .dedicated = desc->flags & CUDA_EXTERNAL_MEMORY_DEDICATED,
        .total_bytes = desc->size,
    };
    struct ct_external_memory *memory;
    CUresult r = check_desc(&context->device->info, desc);

    if (r != CUDA_SUCCESS)
        return r;
    import.fd = desc->handle.fd;
    if ((r = context->backend->sharing->check_fd(context->backend_device, &import)) != CUDA_SUCCESS ||
        (r = make(context, &import, &memory)) != CUDA_SUCCESS)
        return r;
    r = ct_object_publish(&memory->object);
    if (r == CUDA_SUCCESS)
        *out = memory->object.handle;
    else
        memory->import.fd = -1; /* the caller continues to own it */
    ct_object_release(&memory->object);
    return r;
}

/* ---- buffers ---- */

static CUresult publish(struct ct_context *context, struct ct_allocation *allocation, uint64_t offset, uint64_t size_bytes,
                        CUdeviceptr *out)
{
    struct ct_range range = ct_range_of_backing(context, &allocation->backing, offset, size_bytes, CT_RANGE_DEVICE);
    CUresult r;

    range.imported = true;
    range.allocation = allocation;
    r = ct_allocation_publish(context, &range);
    if (r == CUDA_SUCCESS)
        *out = range.start;
    return r;
}

static CUresult map_buffer(struct ct_context *context, const struct ct_external_memory *memory,
                           const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc, CUdeviceptr *out)
{
    struct ct_fd_import import = memory->import;
    struct ct_allocation *allocation;
    CUresult r;

    if (desc->flags || !desc->size || __builtin_add_overflow(desc->offset, desc->size, &import.size_bytes) ||
        import.size_bytes > import.total_bytes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "invalid buffer of %llu bytes at %llu with flags 0x%x in external memory of %llu",
                       desc->size, desc->offset, desc->flags, (unsigned long long)import.total_bytes);
    allocation = calloc(1, sizeof *allocation);
    if (!allocation)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a mapped buffer");
    r = ct_backing_import_fd(context, &import, &allocation->backing);
    if (r == CUDA_SUCCESS)
        r = publish(context, allocation, desc->offset, desc->size, out);
    if (r != CUDA_SUCCESS)
        ct_allocation_destroy(context, allocation);
    return r;
}

static CUresult lookup(CUexternalMemory handle, struct ct_external_memory **out)
{
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    *out = (struct ct_external_memory *)ct_object_find_or_null(CT_OBJECT_EXTERNAL_MEMORY, handle);
    return *out ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_INVALID_HANDLE, "%p is not an external memory object", (void *)handle);
}

CUresult ct_external_memory_map_buffer(CUexternalMemory handle, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc, CUdeviceptr *out)
{
    struct ct_external_memory *memory;
    CUresult r = lookup(handle, &memory);

    if (r != CUDA_SUCCESS)
        return r;
    if ((r = ct_context_enter(memory->context)) == CUDA_SUCCESS) {
        r = map_buffer(memory->context, memory, desc, out);
        ct_context_release(memory->context);
    }
    ct_object_release(&memory->object);
    return r;
}

CUresult ct_external_memory_map_array(CUexternalMemory handle, const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *desc, CUmipmappedArray *out)
{
    struct ct_external_memory *memory;
    CUresult r = lookup(handle, &memory);

    if (r != CUDA_SUCCESS)
        return r;
    if ((r = ct_context_enter(memory->context)) == CUDA_SUCCESS) {
        r = ct_mipmapped_array_import(memory->context, desc, &memory->import, out);
        ct_context_release(memory->context);
    }
    ct_object_release(&memory->object);
    return r;
}

/* ---- the object ---- */

CUresult ct_external_memory_check(CUexternalMemory handle)
{
    struct ct_external_memory *memory;
    CUresult r = lookup(handle, &memory);

    if (r == CUDA_SUCCESS)
        ct_object_release(&memory->object);
    return r;
}

CUresult ct_external_memory_destroy(CUexternalMemory handle)
{
    struct ct_external_memory *memory;
    CUresult r = lookup(handle, &memory);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_object_unpublish(&memory->object);
    ct_object_release(&memory->object);
    return r;
}

void ct_external_memories_destroy_all(const struct ct_context *context)
{
    uint32_t cursor = 0;
    struct ct_object *object;

    while ((object = ct_object_next_or_null(CT_OBJECT_EXTERNAL_MEMORY, &cursor))) {
        if (((struct ct_external_memory *)object)->context == context)
            (void)ct_object_unpublish(object);
        ct_object_release(object);
    }
}
