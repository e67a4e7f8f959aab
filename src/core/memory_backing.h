/* SPDX-License-Identifier: Apache-2.0 */
/* Backend memory at a CUDA address: how each address rule of the design gets one. Used by memory.c and host_memory.c. */
#ifndef CT_CORE_MEMORY_BACKING_H
#define CT_CORE_MEMORY_BACKING_H

#include "backend.h"
#include "context.h"

/* Zero is none. */
struct ct_backing {
    struct ct_memory *memory;
    uint64_t address; /* CUDA address of its first byte */
    void *host;       /* host pointer of its first byte, or NULL */
    void *reserved;   /* host address space held at `address` (CHOSEN rules), or NULL */
    uint64_t reserved_bytes;
    void *pages; /* anonymous pages of ours that were imported, or NULL */
    uint64_t pages_bytes;
};

/* Device memory, of at least `align` (a power of two). OUT_OF_MEMORY; NOT_SUPPORTED: the device's address rule is not. */
CUresult ct_backing_create_device(struct ct_context *context, uint64_t size_bytes, uint64_t align, struct ct_backing *out);
/* Page-locked host memory; kind HOST or HOST_WC. address equals host wherever the device can do that. */
CUresult ct_backing_create_host(struct ct_context *context, uint64_t size_bytes, enum ct_memory_kind kind, struct ct_backing *out);
/* Pages of the application. `pages` and `size_bytes` are multiples of the page size. NOT_SUPPORTED: the device cannot. */
CUresult ct_backing_import(struct ct_context *context, void *pages, uint64_t size_bytes, struct ct_backing *out);
/* No work uses it any more. Takes a zeroed one. */
void ct_backing_destroy(struct ct_context *context, struct ct_backing *backing);

#endif
