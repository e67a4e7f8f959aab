/* SPDX-License-Identifier: Apache-2.0 */
/* Backend memory at a CUDA address: the implementation of each address rule. Used by memory.c and host_memory.c. */
#ifndef CT_CORE_MEMORY_BACKING_H
#define CT_CORE_MEMORY_BACKING_H

#include "core/device/backend.h"
#include "core/device/context.h"

struct ct_host_aliases;

/* A zeroed struct is no memory. */
struct ct_backing {
    struct ct_memory *memory;
    uint64_t address; /* CUDA address of its first byte */
    void *host;       /* host pointer of its first byte, or NULL */
    void *reserved;   /* host address space held at `address` (placed rules), or NULL */
    uint64_t reserved_bytes;
    uint64_t device_bytes, host_bytes; /* as counted by memory_budget.h */
    struct ct_host_aliases *aliases;   /* its aliases on other devices, or NULL: host_aliases.h */
};

/* Device memory, aligned to at least `align` (a power of two). OUT_OF_MEMORY. */
CUresult ct_backing_create_device(struct ct_context *context, uint64_t size_bytes, uint64_t align, struct ct_backing *out);
/* Page-locked host memory; kind HOST or HOST_WC. For HOST, address equals host wherever addressing is unified. */
CUresult ct_backing_create_host(struct ct_context *context, uint64_t size_bytes, enum ct_memory_kind kind, struct ct_backing *out);
/* The same for memory of the application: kernels of other devices can access it where possible (host_aliases.h). */
CUresult ct_backing_create_portable(struct ct_context *context, uint64_t size_bytes, enum ct_memory_kind kind, struct ct_backing *out);
/* Imports pages of the application, likewise; want_address is ignored. NOT_SUPPORTED: the device cannot import them. */
CUresult ct_backing_import(struct ct_context *context, const struct ct_host_import *pages, struct ct_backing *out);
/* Imports the memory of a file descriptor; tries all methods. import->method and want_address are ignored. NOT_SUPPORTED, MAP_FAILED. */
CUresult ct_backing_import_fd(struct ct_context *context, const struct ct_fd_import *import, struct ct_backing *out);
struct ct_share_name;
/* The name by which another process of the user can open the memory until *share_id is retracted (memory_share.h); a new id replaces 0.
 * The caller serializes calls for one backing. NOT_SUPPORTED: the memory cannot be shared. */
CUresult ct_backing_share(struct ct_device *device, const struct ct_backing *backing, uint64_t *share_id, struct ct_share_name *out);
/* Opens the memory of such a name from another process. *out_lead: its offset in the backing. MAP_FAILED: not for this device; also the
 * errors of ct_share_fetch. */
CUresult ct_backing_open(struct ct_context *context, const struct ct_share_name *name, struct ct_backing *out, uint64_t *out_lead,
                         uint64_t *out_bytes);
/* No work may use it any more. Accepts a zeroed one. */
void ct_backing_destroy(struct ct_context *context, struct ct_backing *backing);

#endif
