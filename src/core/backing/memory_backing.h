/* SPDX-License-Identifier: Apache-2.0 */
/* Backend memory at a CUDA address: how each address rule of the design gets one. Used by memory.c and host_memory.c. */
#ifndef CT_CORE_MEMORY_BACKING_H
#define CT_CORE_MEMORY_BACKING_H

#include "core/device/backend.h"
#include "core/device/context.h"

struct ct_host_aliases;

/* Zero is none. */
struct ct_backing {
    struct ct_memory *memory;
    uint64_t address; /* CUDA address of its first byte */
    void *host;       /* host pointer of its first byte, or NULL */
    void *reserved;   /* host address space held at `address` (placed rules), or NULL */
    uint64_t reserved_bytes;
    uint64_t device_bytes, host_bytes; /* what it is counted for: memory_budget.h */
    struct ct_host_aliases *aliases;   /* where other devices may have it, too, or NULL: host_aliases.h */
};

/* Device memory, of at least `align` (a power of two). OUT_OF_MEMORY. */
CUresult ct_backing_create_device(struct ct_context *context, uint64_t size_bytes, uint64_t align, struct ct_backing *out);
/* Page-locked host memory; kind HOST or HOST_WC. For HOST, address equals host wherever addressing is unified. */
CUresult ct_backing_create_host(struct ct_context *context, uint64_t size_bytes, enum ct_memory_kind kind, struct ct_backing *out);
/* The same for memory of the application: kernels of other devices reach it where they can (host_aliases.h). */
CUresult ct_backing_create_portable(struct ct_context *context, uint64_t size_bytes, enum ct_memory_kind kind, struct ct_backing *out);
/* Pages of the application, likewise; want_address is not looked at. NOT_SUPPORTED: the device cannot. */
CUresult ct_backing_import(struct ct_context *context, const struct ct_host_import *pages, struct ct_backing *out);
/* What is behind a file descriptor; tries all ways. import->way and want_address are not looked at. NOT_SUPPORTED, MAP_FAILED. */
CUresult ct_backing_import_fd(struct ct_context *context, const struct ct_fd_import *import, struct ct_backing *out);
struct ct_share_name;
/* The name under which another process of the user gets all of it, as long as *share_id is not retracted (memory_share.h); 0 becomes a new
 * one. The caller sees to it that two do not meet here. NOT_SUPPORTED: memory that nobody else can have. */
CUresult ct_backing_share(struct ct_device *device, const struct ct_backing *backing, uint64_t *share_id, struct ct_share_name *out);
/* The memory of such a name, which is of another process. *out_lead: where in the backing it begins. MAP_FAILED: not for this device;
 * and what ct_share_fetch gives. */
CUresult ct_backing_open(struct ct_context *context, const struct ct_share_name *name, struct ct_backing *out, uint64_t *out_lead,
                         uint64_t *out_bytes);
/* No work uses it any more. Takes a zeroed one. */
void ct_backing_destroy(struct ct_context *context, struct ct_backing *backing);

#endif
