/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management: addresses, memory, and the mappings that bring them together. */
#ifndef CT_CORE_VMM_H
#define CT_CORE_VMM_H
/* Parts: vmm_mapping.c, vmm_query.c. */

#include "core/device/context.h"

#include <stddef.h>

/* What sizes and addresses of mappings are multiples of: what the native driver answers, and what every way can do. */
#define CT_VMM_GRANULARITY ((uint64_t)2 << 20)

struct ct_allocated; /* what a CUmemGenericAllocationHandle stands for */

/* ---- memory (vmm_handle.c) ---- */

/* Whether any device can map memory at addresses that were reserved. */
bool ct_vmm_is_there(void);
/* Whether memory and pools go to other processes in that form. NOT_SUPPORTED; INVALID_VALUE: it is none, or several. */
CUresult ct_vmm_check_handle_type(CUmemAllocationHandleType type);
/* Whether they can be made so that they go there in all the forms of `wanted`, of which there are those of `offered`. NOT_SUPPORTED;
 * INVALID_VALUE: no such forms, or those of Windows. */
CUresult ct_vmm_check_handle_types(CUmemAllocationHandleType wanted, unsigned offered);
/* What cuMemCreate takes. INVALID_VALUE, INVALID_DEVICE, NOT_SUPPORTED. */
CUresult ct_vmm_check_properties(const CUmemAllocationProp *properties, struct ct_device **out_device);
CUresult ct_vmm_create(const CUmemAllocationProp *properties, uint64_t size_bytes, CUmemGenericAllocationHandle *out);
/* As memory of the current context's device, or of the first. INVALID_VALUE, NOT_SUPPORTED. */
CUresult ct_vmm_import(int fd, CUmemGenericAllocationHandle *out);
CUresult ct_vmm_export(CUmemGenericAllocationHandle handle, int *out_fd);
CUresult ct_vmm_release(CUmemGenericAllocationHandle handle);
CUresult ct_vmm_properties(CUmemGenericAllocationHandle handle, CUmemAllocationProp *out);

/* ---- addresses and mappings (vmm_reservation.c, vmm_mapping.c, vmm_query.c); INVALID_VALUE, and what is said here ---- */

/* At `hint` if that is free, else anywhere. OUT_OF_MEMORY, NOT_SUPPORTED. */
CUresult ct_vmm_reserve(uint64_t size_bytes, uint64_t align, uint64_t hint, uint64_t *out_address);
CUresult ct_vmm_unreserve(uint64_t address, uint64_t size_bytes);
/* offset: 0. NOT_SUPPORTED: that, or not a size of which the memory has as much. */
CUresult ct_vmm_map(uint64_t address, uint64_t size_bytes, uint64_t offset, CUmemGenericAllocationHandle handle);
CUresult ct_vmm_unmap(uint64_t address, uint64_t size_bytes);
/* INVALID_DEVICE: the memory is another device's. */
CUresult ct_vmm_set_access(uint64_t address, uint64_t size_bytes, const CUmemAccessDesc *descs, size_t count);
CUresult ct_vmm_retain_at(uint64_t address, CUmemGenericAllocationHandle *out);

/* A mapping, for those who ask about a pointer. */
struct ct_vmm_mapping_info {
    uint64_t start, size_bytes;
    CUdevice device;
    CUmemAccess_flags access; /* of that device */
    CUmemAllocationHandleType handle_types;
    unsigned long long block_id; /* of the memory */
};
/* INVALID_VALUE: nothing is mapped there. */
CUresult ct_vmm_mapping_at(uint64_t address, struct ct_vmm_mapping_info *out);

/* A dma-buf of what is mapped there. NOT_SUPPORTED: it is in several mappings, not the beginning of its memory, or cannot be shared. */
CUresult ct_vmm_export_dma_buf(uint64_t address, uint64_t size_bytes, int *out_fd);

/* What copies and fills work on. */
struct ct_vmm_spot {
    struct ct_memory *memory;
    uint64_t offset; /* in memory */
    char *host;      /* NULL: the host cannot reach it */
    bool read_only;
    CUcontext owner; /* a context that can work on it */
};
/* All of [address, address + size_bytes): mapped and accessible, of one device. */
CUresult ct_vmm_spot_at(uint64_t address, uint64_t size_bytes, struct ct_vmm_spot *out);

#endif
