/* SPDX-License-Identifier: Apache-2.0 */
/* The map of every CUDA pointer of the process. */
#ifndef CT_CORE_ADDRESS_SPACE_H
#define CT_CORE_ADDRESS_SPACE_H

#include "core/device/context.h"

struct ct_allocation;
struct ct_reservation;

enum ct_range_kind {
    CT_RANGE_DEVICE,     /* cuMemAlloc */
    CT_RANGE_POOL,       /* cuMemAllocAsync */
    CT_RANGE_IPC,        /* cuIpcOpenMemHandle: of another process */
    CT_RANGE_HOST,       /* cuMemHostAlloc, cuMemAllocHost */
    CT_RANGE_REGISTERED, /* cuMemHostRegister */
    CT_RANGE_MODULE,     /* the variables of a module */
    CT_RANGE_MANAGED,    /* cuMemAllocManaged */
    CT_RANGE_MANAGED_VARIABLES, /* of a library, or of a module that belongs to none */
    CT_RANGE_VIRTUAL,    /* cuMemAddressReserve; what is there is asked of vmm.h */
    CT_RANGE_SCRATCH,    /* ours: staging and parameters; no application pointer */
};

/* A range of CUDA addresses with one owner. Host memory whose device pointer is another one stands in the map twice, once for each. */
struct ct_range {
    uint64_t start, size_bytes; /* CUDA addresses H */
    enum ct_range_kind kind;
    CUdevice device;                  /* its device */
    struct ct_context *context;       /* borrowed: unmaps its ranges before it goes. Who has no use of it asks by `owner` first */
    CUcontext owner;                  /* its handle */
    struct ct_memory *memory;         /* borrowed: lives as long as the range is mapped */
    uint64_t memory_offset;           /* of `start` in memory */
    void *host;                       /* host pointer of `start`, or NULL */
    uint64_t device_pointer;          /* CUdeviceptr of `start`: equal to start except where unified addressing is absent */
    unsigned flags;                   /* as given at allocation or registration */
    bool imported;                    /* of DEVICE: another API made it (external_memory.c) */
    bool synchronous;                 /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: see struct ct_place */
    unsigned long long id;            /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
    struct ct_pool_block *block;      /* of POOL: what it is in its pool; guarded by the pool */
    CUmemoryPool pool;                /* the same: the pool's handle */
    struct ct_allocation *allocation; /* who owns it: memory.c, host_memory.c; NULL for ranges of others */
    struct ct_reservation *reservation; /* of CT_RANGE_VIRTUAL, which has no context and no memory; vmm_reservation.c */
};

/* Whether nothing may write it but the host. */
static inline bool ct_range_is_read_only(const struct ct_range *range)
{
    return range->kind == CT_RANGE_REGISTERED && (range->flags & CU_MEMHOSTREGISTER_READ_ONLY);
}

/* The range that holds [address, address + size_bytes), whole; copied out. INVALID_VALUE if there is none or it is too short.
 * Waits for nobody; size 0 asks for the range that holds the byte at `address`. Here and below *out is undefined if nothing is found. */
CUresult ct_address_find(uint64_t address, uint64_t size_bytes, struct ct_range *out);
/* The first range that has a byte in [address, address + size_bytes); false: none. */
bool ct_address_find_any(uint64_t address, uint64_t size_bytes, struct ct_range *out);
/* Whether the range, which holds the byte at `address`, holds as many from there on. INVALID_VALUE. */
CUresult ct_range_check(const struct ct_range *range, uint64_t address, uint64_t size_bytes);
/* Adds a range; it must not overlap another (INVALID_VALUE). Removes the one that starts at `start` (copied out; INVALID_VALUE if none). */
CUresult ct_address_insert(const struct ct_range *range);
CUresult ct_address_remove(uint64_t start, enum ct_range_kind kind, struct ct_range *out);
/* Changes the `synchronous` of a range, which `start` and `id` name. INVALID_VALUE: it is gone. */
CUresult ct_address_set_synchronous(uint64_t start, unsigned long long id, bool synchronous);

#endif
