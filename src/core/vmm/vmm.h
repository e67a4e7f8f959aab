/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management: reservations of addresses, physical memory, and mappings of memory in reservations. */
#ifndef CT_CORE_VMM_H
#define CT_CORE_VMM_H
/* Parts: vmm_mapping.c, vmm_query.c. */

#include "core/device/context.h"

#include <stddef.h>

/* The granularity of sizes and addresses of mappings: that of the native driver, which every implementation supports. */
#define CT_VMM_GRANULARITY ((uint64_t)2 << 20)

struct ct_allocated; /* the object of a CUmemGenericAllocationHandle */

/* ---- physical memory (vmm_handle.c) ---- */

/* Whether any device can map memory in reservations. */
bool ct_vmm_is_supported(void);
/* Whether memory and pools can be exported as this one handle type. NOT_SUPPORTED; INVALID_VALUE: it is not one type. */
CUresult ct_vmm_check_handle_type(CUmemAllocationHandleType type);
/* Whether memory can be created that is exportable as all types of `wanted`, if the types of `offered` are supported. NOT_SUPPORTED;
 * INVALID_VALUE: a type does not exist, or is of Windows. */
CUresult ct_vmm_check_handle_types(CUmemAllocationHandleType wanted, unsigned offered);
/* Validates the properties of cuMemCreate. INVALID_VALUE, INVALID_DEVICE, NOT_SUPPORTED. */
CUresult ct_vmm_check_properties(const CUmemAllocationProp *properties, struct ct_device **out_device);
CUresult ct_vmm_create(const CUmemAllocationProp *properties, uint64_t size_bytes, CUmemGenericAllocationHandle *out);
/* Imports the descriptor as memory of the current context's device, or of the first device. INVALID_VALUE, NOT_SUPPORTED. */
CUresult ct_vmm_import(int fd, CUmemGenericAllocationHandle *out);
CUresult ct_vmm_export(CUmemGenericAllocationHandle handle, int *out_fd);
CUresult ct_vmm_release(CUmemGenericAllocationHandle handle);
CUresult ct_vmm_properties(CUmemGenericAllocationHandle handle, CUmemAllocationProp *out);

/* ---- reservations and mappings (vmm_reservation.c, vmm_mapping.c, vmm_query.c); all return INVALID_VALUE, and the listed errors ---- */

/* Reserves at `hint` if that is free, else anywhere. OUT_OF_MEMORY, NOT_SUPPORTED. */
CUresult ct_vmm_reserve(uint64_t size_bytes, uint64_t align, uint64_t hint, uint64_t *out_address);
CUresult ct_vmm_unreserve(uint64_t address, uint64_t size_bytes);
/* offset: 0. NOT_SUPPORTED: another offset, or a size that exceeds the memory's. */
CUresult ct_vmm_map(uint64_t address, uint64_t size_bytes, uint64_t offset, CUmemGenericAllocationHandle handle);
CUresult ct_vmm_unmap(uint64_t address, uint64_t size_bytes);
/* INVALID_DEVICE: the memory belongs to another device. */
CUresult ct_vmm_set_access(uint64_t address, uint64_t size_bytes, const CUmemAccessDesc *descs, size_t count);
CUresult ct_vmm_retain_at(uint64_t address, CUmemGenericAllocationHandle *out);

/* The properties of a mapping, for queries of pointers. */
struct ct_vmm_mapping_info {
    uint64_t start, size_bytes;
    CUdevice device;
    CUmemAccess_flags access; /* of the memory's device */
    CUmemAllocationHandleType handle_types;
    unsigned long long block_id; /* of the memory */
};
/* INVALID_VALUE: nothing is mapped there. */
CUresult ct_vmm_mapping_at(uint64_t address, struct ct_vmm_mapping_info *out);

/* The first mapping that ends after an address in a reservation. INVALID_VALUE: there is none. */
CUresult ct_vmm_mapping_after(uint64_t address, struct ct_vmm_mapping_info *out);

/* Exports the mapping at the address as a dma-buf. NOT_SUPPORTED: the range has several mappings, does not start with the memory, or
 * cannot be shared. */
CUresult ct_vmm_export_dma_buf(uint64_t address, uint64_t size_bytes, int *out_fd);

/* A range of mapped memory, for copies and fills. */
struct ct_vmm_extent {
    struct ct_memory *memory;
    uint64_t offset; /* in memory */
    char *host;      /* NULL: the host cannot access it */
    bool read_only;
    CUcontext owner; /* a context in which work on the memory can be done */
};
/* Finds all of [address, address + size_bytes), which must be mapped, accessible, and memory of one device. */
CUresult ct_vmm_extent_at(uint64_t address, uint64_t size_bytes, struct ct_vmm_extent *out);

#endif
