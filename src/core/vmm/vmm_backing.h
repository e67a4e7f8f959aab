/* SPDX-License-Identifier: Apache-2.0 */
/* The two ways in which a device has memory apart from addresses (enum ct_virtual_memory). Physical memory is what a handle stands for; a
 * view is a reserved range of addresses as one device sees it, into which physical memory is put and out of which it is taken. */
#ifndef CT_CORE_VMM_BACKING_H
#define CT_CORE_VMM_BACKING_H
/* Parts: vmm_pages.c, vmm_sparse.c. */

#include "core/device/backend.h"
#include "core/device/context.h"

struct ct_vmm_memory {
    struct ct_device *device; /* borrowed: outlives us */
    uint64_t size_bytes;
    int fd;                       /* pages: what to export; -1 none */
    struct ct_physical *physical; /* the backend's: sparse, and pages that the driver shares */
    void *pages;                  /* of such pages: where the driver has them mapped; else they are those of the file */
};

struct ct_vmm_view {
    struct ct_device *device;
    struct ct_memory *memory; /* all of the range: copies and fills work on it */
    uint64_t offset;          /* of the range in `memory` */
    char *pages;              /* pages: where the device sees the range; NULL where the host cannot reach it */
    uint64_t pages_bytes;     /* what of it is our own reservation; 0: it is the caller's */
};

/* What a part of a view is to become. */
struct ct_vmm_change {
    uint64_t offset, size_bytes;        /* in the range */
    const struct ct_vmm_memory *memory; /* what is mapped there, from its beginning; also when it is taken out */
    CUmemAccess_flags was, now;         /* PROT_NONE: not there at all, for the device */
};

/* One way. Arguments have been checked; devices are open. */
struct ct_vmm_way {
    /* Without addresses. `shareable`: other processes are to have it, too. OUT_OF_MEMORY. */
    CUresult (*memory_create)(struct ct_device *device, uint64_t size_bytes, bool shareable, struct ct_vmm_memory *out);
    /* What another handle, of this or another process, was exported as. `fd` stays the caller's. INVALID_VALUE: it is no such thing. */
    CUresult (*memory_import)(struct ct_device *device, int fd, struct ct_vmm_memory *out);
    CUresult (*memory_export)(const struct ct_vmm_memory *memory, int *out_fd);
    /* Where info.exports_dma_bufs. NULL: never so. */
    CUresult (*memory_export_dma_buf)(const struct ct_vmm_memory *memory, int *out_fd);
    void (*memory_finish)(struct ct_vmm_memory *memory); /* takes a zeroed one */
    /* A view of [address, address + size_bytes), which the caller holds. */
    CUresult (*view_create)(struct ct_device *device, uint64_t address, uint64_t size_bytes, struct ct_vmm_view *out);
    /* Where ct_vmm_driver_places: at a multiple of `align` (a power of two), see `memory`. NULL: never so. */
    CUresult (*view_create_aligned)(struct ct_device *device, uint64_t align, uint64_t size_bytes, struct ct_vmm_view *out);
    void (*view_finish)(struct ct_vmm_view *view); /* nothing is mapped there any more; takes a zeroed one */
    CUresult (*change)(struct ct_vmm_view *view, const struct ct_vmm_change *changes, unsigned count);
};
extern const struct ct_vmm_way ct_vmm_pages, ct_vmm_sparse;
extern const struct ct_vmm_way ct_vmm_tiles; /* of tile pools: memory without views; it goes into images (array_tiles.c) */

/* NOT_SUPPORTED: the device has neither. */
CUresult ct_vmm_way_of(const struct ct_device *device, const struct ct_vmm_way **out);
/* Addresses are the driver's, and come with the view: CPU devices that are made to bind sparse memory, for tests. */
bool ct_vmm_driver_places(const struct ct_device *device);

#endif
