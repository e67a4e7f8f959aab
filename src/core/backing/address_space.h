/* SPDX-License-Identifier: Apache-2.0 */
/* The map of every CUDA pointer of the process. */
#ifndef CT_CORE_ADDRESS_SPACE_H
#define CT_CORE_ADDRESS_SPACE_H

#include "core/device/context.h"

struct ct_allocation;
struct ct_reservation;

enum ct_range_kind {
    CT_RANGE_DEVICE,            /* cuMemAlloc */
    CT_RANGE_POOL,              /* cuMemAllocAsync, cuMemAllocFromPoolAsync */
    CT_RANGE_POOL_HOST,         /* cuMemAllocFromPoolAsync of a pool of host memory */
    CT_RANGE_POOL_MANAGED,      /* the same of a pool of managed memory */
    CT_RANGE_IPC,               /* cuIpcOpenMemHandle: memory of another process */
    CT_RANGE_HOST,              /* cuMemHostAlloc, cuMemAllocHost */
    CT_RANGE_REGISTERED,        /* cuMemHostRegister */
    CT_RANGE_MODULE,            /* the variables of a module */
    CT_RANGE_MANAGED,           /* cuMemAllocManaged */
    CT_RANGE_MANAGED_VARIABLES, /* of a library, or of a module that belongs to no library */
    CT_RANGE_VIRTUAL,           /* cuMemAddressReserve; vmm.h knows what is mapped there */
    CT_RANGE_SCRATCH,           /* internal: staging and parameters; the application has no pointer to it */
};

/* A range of CUDA addresses with one owner. Host memory whose device pointer differs from its host pointer has two ranges, one for each. */
struct ct_range {
    uint64_t start, size_bytes; /* CUDA addresses (H in docs/architecture.md) */
    enum ct_range_kind kind;
    CUdevice device;                    /* its device */
    struct ct_context *context;         /* borrowed: removes its ranges before it is freed. Callers without a use look up `owner` */
    CUcontext owner;                    /* its handle */
    struct ct_memory *memory;           /* borrowed: lives as long as the range is mapped */
    uint64_t memory_offset;             /* of `start` in memory */
    void *host;                         /* host pointer of `start`, or NULL */
    uint64_t device_pointer;            /* CUdeviceptr of `start`: equal to start except where unified addressing is absent */
    unsigned flags;                     /* as given at allocation or registration */
    bool imported;                      /* for DEVICE: another API allocated it (external_memory.c) */
    bool synchronous;                   /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: see struct ct_place */
    unsigned long long id;              /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
    struct ct_pool_block *block;        /* for POOL and POOL_*: the pool's block; guarded by the pool */
    CUmemoryPool pool;                  /* likewise: the pool's handle */
    struct ct_allocation *allocation;   /* the owning allocation (memory.c, host_memory.c); NULL for other ranges */
    struct ct_reservation *reservation; /* for VIRTUAL, which has no context and no memory; vmm_reservation.c */
};

/* Whether the range is memory of a pool. */
static inline bool ct_range_is_of_pool(const struct ct_range *range)
{
    return range->kind == CT_RANGE_POOL || range->kind == CT_RANGE_POOL_HOST || range->kind == CT_RANGE_POOL_MANAGED;
}

static inline bool ct_range_is_managed(const struct ct_range *range)
{
    return range->kind == CT_RANGE_MANAGED || range->kind == CT_RANGE_MANAGED_VARIABLES || range->kind == CT_RANGE_POOL_MANAGED;
}

/* Whether only the host may write the range. */
static inline bool ct_range_is_read_only(const struct ct_range *range)
{
    return range->kind == CT_RANGE_REGISTERED && (range->flags & CU_MEMHOSTREGISTER_READ_ONLY);
}

/* Whether the program accesses the range through pointers of the host, too, and may write there. */
static inline bool ct_range_is_of_host(const struct ct_range *range)
{
    return range->kind == CT_RANGE_HOST || range->kind == CT_RANGE_POOL_HOST || ct_range_is_managed(range) ||
           (range->kind == CT_RANGE_REGISTERED && !ct_range_is_read_only(range));
}

/* Whether the range is the device's view of host memory that is in the map at the host's address, too. */
static inline bool ct_range_is_second_address(const struct ct_range *range)
{
    return (range->kind == CT_RANGE_HOST || range->kind == CT_RANGE_REGISTERED) && (uint64_t)(uintptr_t)range->host != range->start;
}

/* The distance from the bytes [first, last] to a range: 0 if they overlap it, 1 if they are beside it. */
static inline uint64_t ct_range_distance(const struct ct_range *range, uint64_t first, uint64_t last)
{
    if (last < range->start)
        return range->start - last;
    return first < range->start || first - range->start < range->size_bytes ? 0 : first - range->start - (range->size_bytes - 1);
}

/* Copies the range that contains all of [address, address + size_bytes). INVALID_VALUE if there is none or it is too short.
 * Does not block. With size 0, finds the range that contains the byte at `address`. Here and below *out is undefined on failure. */
CUresult ct_address_find(uint64_t address, uint64_t size_bytes, struct ct_range *out);
/* The first range that overlaps [address, address + size_bytes); false: none. */
bool ct_address_find_any(uint64_t address, uint64_t size_bytes, struct ct_range *out);
/* The range that is nearest to [first, last], in bytes: one of those that overlap them or are at most about `reach` bytes away. False: there is none. */
bool ct_address_find_nearest(uint64_t first, uint64_t last, uint64_t reach, struct ct_range *out);
/* Checks that the range, which contains the byte at `address`, contains `size_bytes` bytes from there on. INVALID_VALUE. */
CUresult ct_range_check(const struct ct_range *range, uint64_t address, uint64_t size_bytes);
/* Adds a range; it must not overlap another (INVALID_VALUE). */
CUresult ct_address_insert(const struct ct_range *range);
/* Whether there has ever been a range of more than PTX2SPV_OBJECT_LIMIT bytes to which an application has a pointer. */
bool ct_address_has_large_objects(void);
/* Removes the range that starts at `start` and copies it to *out; INVALID_VALUE if there is none. */
CUresult ct_address_remove(uint64_t start, enum ct_range_kind kind, struct ct_range *out);
/* Sets `synchronous` of the range that `start` and `id` identify. INVALID_VALUE: the range no longer exists. */
CUresult ct_address_set_synchronous(uint64_t start, unsigned long long id, bool synchronous);

#endif
