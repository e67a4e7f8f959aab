/* SPDX-License-Identifier: Apache-2.0 */
/* The two implementations of virtual memory (enum ct_virtual_memory). A handle refers to physical memory; a view is a reserved range of
 * addresses as one device sees it, in which physical memory is mapped and unmapped. */
#ifndef CT_CORE_VMM_BACKING_H
#define CT_CORE_VMM_BACKING_H
/* Parts: vmm_memory.c, vmm_pages.c, vmm_sparse.c. */

#include "core/device/backend.h"
#include "core/device/context.h"

struct ct_vmm_memory {
    struct ct_device *device; /* borrowed: it outlives the memory */
    uint64_t size_bytes;
    int fd;                       /* pages: the descriptor to export; -1: none */
    struct ct_physical *physical; /* the backend's object: sparse memory, and pages that the driver shares */
    void *pages;                  /* of such pages: the driver's mapping; NULL: the pages belong to the file */
};

struct ct_vmm_view {
    struct ct_device *device;
    struct ct_memory *memory; /* the whole range, for copies and fills */
    uint64_t offset;          /* of the range in `memory` */
    char *pages;              /* pages: the range as the device sees it; NULL if the host cannot access it */
    uint64_t pages_bytes;     /* the size of the view's own reservation; 0: the caller reserved it */
};

/* A change of a part of a view. */
struct ct_vmm_change {
    uint64_t offset, size_bytes;        /* in the range */
    const struct ct_vmm_memory *memory; /* the memory that is mapped there, from its start on; also given when it is unmapped */
    CUmemAccess_flags was, now;         /* the access before and after; PROT_NONE: the device has no mapping there */
};

/* One implementation. Arguments have been validated; devices are open. */
struct ct_vmm_implementation {
    /* Allocates memory without addresses. `shareable`: other processes can import it. OUT_OF_MEMORY. */
    CUresult (*memory_create)(struct ct_device *device, uint64_t size_bytes, bool shareable, struct ct_vmm_memory *out);
    /* Imports memory that this or another process exported. The caller continues to own `fd`. INVALID_VALUE: it does not refer to such
     * memory. */
    CUresult (*memory_import)(struct ct_device *device, int fd, struct ct_vmm_memory *out);
    CUresult (*memory_export)(const struct ct_vmm_memory *memory, int *out_fd);
    /* Requires info.exports_dma_bufs. NULL: never supported. */
    CUresult (*memory_export_dma_buf)(const struct ct_vmm_memory *memory, int *out_fd);
    void (*memory_finish)(struct ct_vmm_memory *memory); /* a zeroed struct is a no-op */
    /* Creates a view of [address, address + size_bytes), which the caller has reserved. */
    CUresult (*view_create)(struct ct_device *device, uint64_t address, uint64_t size_bytes, struct ct_vmm_view *out);
    /* Used if ct_vmm_driver_places: at a multiple of `align` (a power of two), see `memory`. NULL: never supported. */
    CUresult (*view_create_aligned)(struct ct_device *device, uint64_t align, uint64_t size_bytes, struct ct_vmm_view *out);
    void (*view_finish)(struct ct_vmm_view *view); /* nothing may be mapped in it; a zeroed struct is a no-op */
    CUresult (*change)(struct ct_vmm_view *view, const struct ct_vmm_change *changes, unsigned count);
};
extern const struct ct_vmm_implementation ct_vmm_pages, ct_vmm_sparse;
extern const struct ct_vmm_implementation ct_vmm_tiles; /* for tile pools: memory without views, which is bound to images (array_tiles.c) */

/* NOT_SUPPORTED: the device has no implementation. */
CUresult ct_vmm_implementation_of(const struct ct_device *device, const struct ct_vmm_implementation **out);
/* Memory that is charged to the device's budget. OUT_OF_MEMORY. */
CUresult ct_vmm_memory_create(struct ct_device *device, const struct ct_vmm_implementation *implementation, uint64_t size_bytes,
                              bool shareable, struct ct_vmm_memory *out);
/* The same, or spare memory, which is not shareable; and its return to the spares, or to the driver. */
CUresult ct_vmm_memory_take(struct ct_device *device, const struct ct_vmm_implementation *implementation, uint64_t size_bytes,
                            struct ct_vmm_memory *out);
void ct_vmm_memory_give(const struct ct_vmm_implementation *implementation, struct ct_vmm_memory *memory);
/* Whether the driver chooses the addresses, with the view: CPU devices that are configured to bind sparse memory, for tests. */
bool ct_vmm_driver_places(const struct ct_device *device);

#endif
