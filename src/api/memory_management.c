/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Memory Management: allocation. memory_copies.c has the copies, memory_set.c memset.
 * Every function: NOT_INITIALIZED; INVALID_CONTEXT and CONTEXT_IS_DESTROYED according to the current context; and the error of a kernel
 * that failed in it. Sizes are in bytes. */
#include "entry_points.h"

#include "core/copy/copy.h"
#include "core/memory/host_memory.h"
#include "core/base/log.h"
#include "core/memory/managed.h"
#include "core/backing/memory_budget.h"
#include "core/base/process.h"
#include "core/pool/memory_pool.h"
#include "core/vmm/vmm.h"

#include <stdlib.h>

#define CT_CHANNEL "memory"
#define PITCH_ALIGN ((size_t)512)

/* cuMemGetInfo_v2. Returns the free and the total memory of the device; either pointer may be NULL. */
CUresult CUDAAPI cuMemGetInfo_v2(size_t *free, size_t *total)
{
    uint64_t free_bytes, total_bytes;
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_budget_info(context->device, &free_bytes, &total_bytes);
    ct_context_release(context);
    if (r != CUDA_SUCCESS)
        return r;
    if (free)
        *free = free_bytes;
    if (total)
        *total = total_bytes;
    return CUDA_SUCCESS;
}

/* cuMemAlloc_v2. The memory is aligned to 512 bytes and not cleared. INVALID_VALUE: dptr is NULL, or bytesize is 0; OUT_OF_MEMORY. */
CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    struct ct_context *context;
    uint64_t address;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = dptr ? ct_memory_alloc(context, bytesize, 1, CT_RANGE_DEVICE, &address) : ct_fail(CUDA_ERROR_INVALID_VALUE, "dptr is NULL");
    ct_context_release(context);
    if (r == CUDA_SUCCESS)
        *dptr = address;
    return r;
}

/* cuMemAllocManaged. Memory with one address for host and device that begins at a page, not cleared. Flags: CU_MEM_ATTACH_GLOBAL or
 * CU_MEM_ATTACH_HOST. INVALID_VALUE: dptr is NULL, bytesize is 0, or unknown flags; NOT_SUPPORTED: host and device have different
 * addresses (CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY is 0); OUT_OF_MEMORY. */
CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    struct ct_context *context;
    uint64_t address;
    CUresult r = ct_process_check();

    if (r == CUDA_SUCCESS)
        r = ct_managed_check_flags(flags); /* before the context is checked, as in NVIDIA's driver */
    if (r == CUDA_SUCCESS)
        r = ct_context_current(&context);
    if (r != CUDA_SUCCESS)
        return r;
    r = dptr ? ct_managed_alloc(context, bytesize, &address) : ct_fail(CUDA_ERROR_INVALID_VALUE, "dptr is NULL");
    ct_context_release(context);
    if (r == CUDA_SUCCESS)
        *dptr = address;
    return r;
}

/* cuMemAllocPitch_v2. Allocates Height rows of WidthInBytes, each of which begins at a multiple of 512; *pPitch is the distance between
 * rows. ElementSizeBytes: 4, 8 or 16. INVALID_VALUE; OUT_OF_MEMORY. */
CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height, unsigned int ElementSizeBytes)
{
    struct ct_context *context;
    size_t pitch, bytes;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    ct_context_release(context);
    if (!dptr || !pPitch || WidthInBytes == 0 || Height == 0)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "dptr %p, pPitch %p, %zu x %zu", (void *)dptr, (void *)pPitch, WidthInBytes, Height);
    if (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "elements of %u bytes", ElementSizeBytes);
    if (__builtin_add_overflow(WidthInBytes, PITCH_ALIGN - 1, &pitch))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for rows of %zu bytes", WidthInBytes);
    pitch &= ~(PITCH_ALIGN - 1);
    if (__builtin_mul_overflow(pitch, Height, &bytes))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for %zu rows of %zu bytes", Height, pitch);
    r = cuMemAlloc_v2(dptr, bytes);
    if (r == CUDA_SUCCESS)
        *pPitch = pitch;
    return r;
}

/* cuMemFree_v2. Waits for the work of the memory's context first, which need not be the current one. A dptr of 0 is a no-op.
 * INVALID_VALUE: dptr is not the start of an allocation of cuMemAlloc, cuMemAllocPitch or cuMemAllocManaged. */
CUresult CUDAAPI cuMemFree_v2(CUdeviceptr dptr)
{
    struct ct_context *context;
    CUresult r = ct_context_current_or_null(&context);

    if (r != CUDA_SUCCESS)
        return r;
    if (dptr)
        r = ct_managed_holds(dptr) ? ct_managed_free(context, dptr) : ct_memory_pool_free(context, dptr);
    else
        r = CUDA_SUCCESS;
    ct_context_release(context);
    return r;
}

/* cuMemGetAddressRange_v2. Returns the start and the size of the allocation, or of the accessible mapping in a reservation, that
 * contains dptr. Either pointer may be NULL; if both are, nothing is looked up. NOT_FOUND: there is none. */
CUresult CUDAAPI cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    struct ct_vmm_mapping_info mapping;
    struct ct_context *context;
    struct ct_range range;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    ct_context_release(context);
    if (!pbase && !psize)
        return CUDA_SUCCESS;
    if (!ct_address_find_any(dptr, 1, &range))
        return ct_fail(CUDA_ERROR_NOT_FOUND, "0x%llx is in no allocation", (unsigned long long)dptr);
    if (range.kind == CT_RANGE_VIRTUAL) {
        if (ct_vmm_mapping_at(dptr, &mapping) != CUDA_SUCCESS || mapping.access == CU_MEM_ACCESS_FLAGS_PROT_NONE)
            return ct_fail(CUDA_ERROR_NOT_FOUND, "no device has access to the memory at 0x%llx", (unsigned long long)dptr);
        range.start = mapping.start;
        range.size_bytes = mapping.size_bytes;
    }
    if (pbase)
        *pbase = range.start;
    if (psize)
        *psize = range.size_bytes;
    return CUDA_SUCCESS;
}

/* cuMemHostAlloc. Page-locked host memory. Flags: CU_MEMHOSTALLOC_PORTABLE, _DEVICEMAP, _WRITECOMBINED; with unified addressing all
 * page-locked memory is portable and mapped. DEVICEMAP is ignored on a device that cannot map host memory. 0 bytes give NULL.
 * INVALID_VALUE: pp is NULL, or unknown flags; OUT_OF_MEMORY. */
CUresult CUDAAPI cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = pp ? ct_host_memory_alloc(context, bytesize, Flags, pp) : ct_fail(CUDA_ERROR_INVALID_VALUE, "pp is NULL");
    ct_context_release(context);
    return r;
}

/* cuMemAllocHost_v2. The same as cuMemHostAlloc without flags. */
CUresult CUDAAPI cuMemAllocHost_v2(void **pp, size_t bytesize)
{
    return cuMemHostAlloc(pp, bytesize, 0);
}

/* cuMemAllocHost, the version of CUDA 2.0. */
CUresult CUDAAPI cuMemAllocHost(void **pp, unsigned int bytesize)
{
    return cuMemHostAlloc(pp, bytesize, 0);
}

/* cuMemFreeHost. Waits for the work of the memory's context first. A pointer of NULL is a no-op. INVALID_VALUE: p is not the start of an
 * allocation of page-locked memory. */
CUresult CUDAAPI cuMemFreeHost(void *p)
{
    struct ct_context *context;
    CUresult r = ct_context_current_or_null(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_host_memory_free(context, p);
    ct_context_release(context);
    return r;
}

/* cuMemHostGetDevicePointer_v2. Returns the address of the byte at p in kernels. Flags must be 0. INVALID_VALUE: p is not in page-locked
 * memory, or the device cannot map host memory (CAN_MAP_HOST_MEMORY); NOT_SUPPORTED: the memory belongs to another device, and the
 * current one cannot access it. */
CUresult CUDAAPI cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    if (!pdptr || Flags != 0)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "pdptr %p, flags 0x%x", (void *)pdptr, Flags);
    else
        r = ct_host_memory_device_pointer(context, p, pdptr);
    ct_context_release(context);
    return r;
}

/* cuMemHostGetFlags. Returns the flags of the allocation that contains p; they include DEVICEMAP if the device maps page-locked memory,
 * since all of it is then mapped. INVALID_VALUE: pFlags is NULL, or p is not in memory of cuMemHostAlloc. */
CUresult CUDAAPI cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
    struct ct_context *context;
    struct ct_range range;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    ct_context_release(context);
    if (!pFlags)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pFlags is NULL");
    r = ct_host_memory_find(p, &range);
    if (r == CUDA_SUCCESS)
        *pFlags = ct_host_memory_flags(&range);
    return r;
}

/* cuMemHostRegister_v2. Page-locks memory of the application. Flags: CU_MEMHOSTREGISTER_PORTABLE, _DEVICEMAP, _IOMEMORY, _READ_ONLY.
 * INVALID_VALUE: p is NULL or not mapped, bytesize is 0, unknown flags, or pages that Linux locks for no driver, such as read-only pages
 * and pages of a file on a disk, unless the device uses the host's page tables; HOST_MEMORY_ALREADY_REGISTERED; NOT_SUPPORTED: the
 * device cannot use memory that it did not allocate, or does not support IOMEMORY or READ_ONLY; NOT_PERMITTED: its driver refuses pages
 * that Linux would lock; OUT_OF_MEMORY: the range is larger than the host's memory. */
CUresult CUDAAPI cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_host_memory_register(context, p, bytesize, Flags);
    ct_context_release(context);
    return r;
}

/* cuMemHostRegister, the version of CUDA 4.0. */
CUresult CUDAAPI cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
    return cuMemHostRegister_v2(p, bytesize, Flags);
}

/* cuMemHostUnregister. Waits for the work of the memory's context first. INVALID_VALUE: p is NULL, or in memory that CUDA knows but not
 * the start of a registration; HOST_MEMORY_NOT_REGISTERED. */
CUresult CUDAAPI cuMemHostUnregister(void *p)
{
    struct ct_context *context;
    CUresult r = ct_context_current_or_null(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = p ? ct_host_memory_unregister(context, p) : ct_fail(CUDA_ERROR_INVALID_VALUE, "p is NULL");
    ct_context_release(context);
    return r;
}
