/* SPDX-License-Identifier: Apache-2.0 */
/* Physical memory without addresses (Driver API: Virtual Memory Management): cuMemCreate and the life of its handles. */
#include "vmm_handle.h"

#include "core/backing/device_open.h"
#include "core/device/device.h"
#include "core/base/log.h"
#include "core/backing/memory_budget.h"
#include "core/base/process.h"

#include <stdlib.h>

#define CT_CHANNEL "memory"

struct ct_mutex ct_vmm_lock = CT_MUTEX_INITIALIZER(CT_RANK_VIRTUAL_MEMORY);

/* ---- devices ---- */

CUresult ct_vmm_implementation_of(const struct ct_device *device, const struct ct_vmm_implementation **out)
{
    switch (device->info.virtual_memory) {
    case CT_VIRTUAL_PAGES:
        *out = &ct_vmm_pages;
        return CUDA_SUCCESS;
    case CT_VIRTUAL_SPARSE:
        *out = &ct_vmm_sparse;
        return CUDA_SUCCESS;
    case CT_VIRTUAL_NONE:
        break;
    }
    return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not support mappings in reservations", device->info.name);
}

bool ct_vmm_is_supported(void)
{
    for (unsigned i = 0; i < ct_process.n_devices; i++)
        if (ct_process.devices[i].info.virtual_memory != CT_VIRTUAL_NONE)
            return true;
    return false;
}

bool ct_vmm_driver_places(const struct ct_device *device)
{
    return device->info.virtual_memory == CT_VIRTUAL_SPARSE && !ct_address_is_placed(device->info.address_rule);
}

struct ct_device *ct_vmm_default_device(void)
{
    struct ct_context *context = ct_context_top_or_null();

    return context ? context->device : &ct_process.devices[0];
}

/* ---- properties ---- */

CUresult ct_vmm_check_handle_type(CUmemAllocationHandleType type)
{
    switch ((int)type) {
    case CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR:
        return CUDA_SUCCESS;
    case CU_MEM_HANDLE_TYPE_WIN32:
    case CU_MEM_HANDLE_TYPE_WIN32_KMT:
    case CU_MEM_HANDLE_TYPE_FABRIC:
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "handle type 0x%x is not supported: only file descriptors are", (unsigned)type);
    }
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "handle type 0x%x does not exist", (unsigned)type);
}

/* Validates the location of memory, which must be a device. The attributes report that no other location is supported. */
static CUresult check_location(const CUmemLocation *location, struct ct_device **out_device)
{
    switch ((int)location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return ct_device_lookup(location->id, out_device);
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "memory handles of host memory are not supported");
    }
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "memory location type %d does not exist", (int)location->type);
}

CUresult ct_vmm_check_handle_types(CUmemAllocationHandleType wanted, unsigned offered)
{
    const unsigned of_linux = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC;

    if ((unsigned)wanted & ~of_linux)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "handle types 0x%x do not exist", (unsigned)wanted);
    if ((unsigned)wanted & ~offered)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "handle types 0x%x are not supported: only 0x%x are", (unsigned)wanted, offered);
    return CUDA_SUCCESS;
}

/* Finds the implementation of memory: images for tile pools, otherwise addresses. */
static CUresult find_implementation(const CUmemAllocationProp *properties, const struct ct_device *device,
                                    const struct ct_vmm_implementation **out)
{
    if (!ct_vmm_is_tile_pool(properties))
        return ct_vmm_implementation_of(device, out);
    if (!device->info.sparse_images || properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s has no memory for sparse arrays, or cannot share it", device->info.name);
    *out = &ct_vmm_tiles;
    return CUDA_SUCCESS;
}

CUresult ct_vmm_check_properties(const CUmemAllocationProp *properties, struct ct_device **out_device)
{
    const struct ct_vmm_implementation *implementation;
    CUresult r;

    if (properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "allocation type %d does not exist", (int)properties->type);
    if (properties->allocFlags.compressionType > CU_MEM_ALLOCATION_COMP_GENERIC)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "compression type %d does not exist", (int)properties->allocFlags.compressionType);
    if ((r = check_location(&properties->location, out_device)) != CUDA_SUCCESS ||
        (r = ct_vmm_check_handle_types(properties->requestedHandleTypes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)) != CUDA_SUCCESS)
        return r;
    if (properties->allocFlags.gpuDirectRDMACapable) /* usages other than tile pools are ignored, as in NVIDIA's driver */
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "memory for GPUDirect RDMA is not supported");
    return find_implementation(properties, *out_device, &implementation);
}

/* ---- handles ---- */

CUmemGenericAllocationHandle ct_vmm_handle_of(const struct ct_allocated *allocated)
{
    return (CUmemGenericAllocationHandle)(uintptr_t)allocated->object.handle;
}

/* Freed memory is cached for reuse, unless it is shareable, imported, or a tile pool. */
static bool is_cacheable(const CUmemAllocationProp *properties)
{
    return properties->requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE && !ct_vmm_is_tile_pool(properties);
}

static void destroy(struct ct_object *object)
{
    struct ct_allocated *allocated = (struct ct_allocated *)object;

    if (is_cacheable(&allocated->properties) && allocated->device_bytes) {
        ct_vmm_memory_give(allocated->implementation, &allocated->memory);
    } else {
        ct_budget_give(allocated->memory.device, allocated->device_bytes);
        allocated->implementation->memory_finish(&allocated->memory);
    }
    free(allocated);
}

CUresult ct_vmm_find_locked(CUmemGenericAllocationHandle handle, struct ct_allocated **out)
{
    struct ct_object *object = ct_object_find_or_null(CT_OBJECT_ALLOCATED, (const void *)(uintptr_t)handle);
    struct ct_allocated *allocated = (struct ct_allocated *)object;
    bool found = object && allocated->handles > 0;

    ct_object_release(object); /* the table's reference keeps the object alive while it has handles or mappings */
    if (!found)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not a memory handle", (unsigned long long)handle);
    *out = allocated;
    return CUDA_SUCCESS;
}

void ct_vmm_drop_if_unused_locked(struct ct_allocated *allocated)
{
    if (!allocated->handles && !allocated->mappings)
        (void)ct_object_unpublish(&allocated->object); /* releases the last reference */
}

/* Takes ownership of `memory` and its budget, also on failure. `wanted` has the handle types and the usage. */
static CUresult publish(const struct ct_vmm_implementation *implementation, struct ct_vmm_memory *memory, uint64_t device_bytes,
                        const CUmemAllocationProp *wanted, CUmemGenericAllocationHandle *out)
{
    struct ct_allocated *allocated = calloc(1, sizeof *allocated);
    CUresult r;

    if (!allocated) {
        ct_budget_give(memory->device, device_bytes);
        implementation->memory_finish(memory);
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a memory handle");
    }
    ct_object_init(&allocated->object, CT_OBJECT_ALLOCATED, destroy);
    allocated->implementation = implementation;
    allocated->memory = *memory;
    allocated->device_bytes = device_bytes;
    allocated->id = ct_process_new_id();
    allocated->handles = 1;
    allocated->properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    allocated->properties.requestedHandleTypes = wanted->requestedHandleTypes;
    allocated->properties.allocFlags.usage = wanted->allocFlags.usage;
    allocated->properties.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = memory->device->ordinal};
    r = ct_object_publish(&allocated->object);
    if (r == CUDA_SUCCESS)
        *out = ct_vmm_handle_of(allocated);
    ct_object_release(&allocated->object); /* the table owns the object from now on */
    return r;
}

/* ---- public ---- */

CUresult ct_vmm_create(const CUmemAllocationProp *properties, uint64_t size_bytes, CUmemGenericAllocationHandle *out)
{
    const struct ct_vmm_implementation *implementation;
    struct ct_vmm_memory memory;
    struct ct_device *device;
    CUresult r;

    if (size_bytes == 0 || size_bytes % CT_VMM_GRANULARITY)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%llu bytes are not a multiple of the granularity", (unsigned long long)size_bytes);
    if ((r = ct_vmm_check_properties(properties, &device)) != CUDA_SUCCESS ||
        (r = find_implementation(properties, device, &implementation)) != CUDA_SUCCESS || (r = ct_device_open(device)) != CUDA_SUCCESS)
        return r;
    r = is_cacheable(properties) ? ct_vmm_memory_take(device, implementation, size_bytes, &memory)
                                 : ct_vmm_memory_create(device, implementation, size_bytes,
                                                        properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE, &memory);
    return r == CUDA_SUCCESS ? publish(implementation, &memory, size_bytes, properties, out) : r;
}

CUresult ct_vmm_import(int fd, CUmemGenericAllocationHandle *out)
{
    static const CUmemAllocationProp imported; /* cannot be exported again, as in NVIDIA's driver */
    struct ct_device *device = ct_vmm_default_device();
    const struct ct_vmm_implementation *implementation;
    struct ct_vmm_memory memory;
    CUresult r;

    if ((r = ct_vmm_implementation_of(device, &implementation)) != CUDA_SUCCESS || (r = ct_device_open(device)) != CUDA_SUCCESS)
        return r;
    r = implementation->memory_import(device, fd, &memory);
    return r == CUDA_SUCCESS ? publish(implementation, &memory, 0, &imported, out) : r;
}

CUresult ct_vmm_export(CUmemGenericAllocationHandle handle, int *out_fd)
{
    struct ct_allocated *allocated;
    CUresult r;

    ct_mutex_lock(&ct_vmm_lock);
    r = ct_vmm_find_locked(handle, &allocated);
    if (r == CUDA_SUCCESS && !(allocated->properties.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "the handle was not created to be shared by file descriptors");
    if (r == CUDA_SUCCESS)
        r = allocated->implementation->memory_export(&allocated->memory, out_fd);
    ct_mutex_unlock(&ct_vmm_lock);
    return r;
}

CUresult ct_vmm_release(CUmemGenericAllocationHandle handle)
{
    struct ct_allocated *allocated;
    CUresult r;

    ct_mutex_lock(&ct_vmm_lock);
    r = ct_vmm_find_locked(handle, &allocated);
    if (r == CUDA_SUCCESS) {
        allocated->handles--;
        ct_vmm_drop_if_unused_locked(allocated);
    }
    ct_mutex_unlock(&ct_vmm_lock);
    return r;
}

CUresult ct_vmm_properties(CUmemGenericAllocationHandle handle, CUmemAllocationProp *out)
{
    struct ct_allocated *allocated;
    CUresult r;

    ct_mutex_lock(&ct_vmm_lock);
    r = ct_vmm_find_locked(handle, &allocated);
    if (r == CUDA_SUCCESS)
        *out = allocated->properties;
    ct_mutex_unlock(&ct_vmm_lock);
    return r;
}
