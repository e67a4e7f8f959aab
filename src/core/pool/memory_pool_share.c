/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing of memory pools between processes (Driver API: Stream Ordered Memory Allocator).
 *
 * The descriptor of a pool refers to a small sealed file that identifies the pool and its process, so it can be sent, duplicated and
 * kept like any other. The export data of a pointer identifies its slab (memory_share.h) and its offset there. The importing process
 * maps the whole slab when the first pointer into it is imported, and takes the blocks of pointers out of it one by one; the slab is
 * unmapped when the last of them is freed. */
#include "memory_pool_blocks.h"

#include "core/backing/shadows.h"
#include "core/device/device.h"
#include "core/base/log.h"
#include "core/base/resource_limits.h"
#include "core/memory/memory.h"
#include "core/base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CT_CHANNEL "memory"
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

struct record {
    struct ct_share_name name;
    uint8_t uuid[16]; /* of the device */
};

struct pointer {
    struct ct_share_name slab;
    uint64_t pool; /* id in its process */
    uint64_t offset, size_bytes;
};
_Static_assert(sizeof(struct pointer) <= sizeof(CUmemPoolPtrExportData), "the data fits into the export data");

static struct ct_device *find_device(const uint8_t uuid[16])
{
    for (unsigned i = 0; i < ct_process.n_devices; i++)
        if (ct_process.devices[i].info.memory_fd && !memcmp(ct_process.devices[i].info.uuid, uuid, 16))
            return &ct_process.devices[i];
    return NULL;
}

/* ---- pools ---- */

static CUresult write_record(const struct record *record, int *out_fd)
{
    int fd;

    if (sizeof *record > ct_limit_of_files())
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "the limit on the size of files allows no file for a pool");
    if ((fd = memfd_create("cuttle memory pool", MFD_CLOEXEC | MFD_ALLOW_SEALING)) < 0)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no file descriptor for a pool: %s", strerror(errno));
    if (write(fd, record, sizeof *record) != (ssize_t)sizeof *record || fcntl(fd, F_ADD_SEALS, SEALS) != 0) {
        close(fd);
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "the file of a pool cannot be written: %s", strerror(errno));
    }
    *out_fd = fd;
    return CUDA_SUCCESS;
}

static CUresult check_shared(const struct ct_memory_pool *pool)
{
    if (pool->kind.handle_types & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_SUCCESS;
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "the pool was not created in this process to be shared by file descriptors");
}

static uint64_t id_of(struct ct_memory_pool *pool)
{
    ct_mutex_lock(&pool->device->pools->lock);
    if (!pool->id)
        pool->id = ct_process_new_id();
    ct_mutex_unlock(&pool->device->pools->lock);
    return pool->id;
}

CUresult ct_memory_pool_export(struct ct_memory_pool *pool, int *out_fd)
{
    struct record record = {0};
    CUresult r = check_shared(pool);

    if (r == CUDA_SUCCESS)
        r = ct_share_name_make(CT_SHARE_POOL, id_of(pool), &record.name);
    memcpy(record.uuid, pool->device->info.uuid, sizeof record.uuid);
    return r == CUDA_SUCCESS ? write_record(&record, out_fd) : r;
}

CUresult ct_memory_pool_import(int fd, CUmemoryPool *out)
{
    struct ct_pool_kind kind = {.imported = true};
    struct ct_memory_pool *pool;
    struct ct_device *device;
    struct record record;
    int seals = fcntl(fd, F_GET_SEALS);
    CUresult r;

    if (seals < 0 || (seals & SEALS) != SEALS || pread(fd, &record, sizeof record, 0) != (ssize_t)sizeof record ||
        ct_share_name_check(CT_SHARE_POOL, &record.name) != CUDA_SUCCESS)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "file descriptor %d is not that of a memory pool", fd);
    if (!(device = find_device(record.uuid)))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the pool belongs to a device that this process does not have");
    kind.origin = record.name;
    r = ct_memory_pool_make(device->pools, &kind, true, &pool);
    if (r == CUDA_SUCCESS)
        *out = pool->object.handle;
    return r;
}

/* ---- pointers out ---- */

static CUresult export_locked(uint64_t address, struct pointer *out)
{
    struct ct_memory_pool *pool;
    struct ct_pool_slab *slab;
    struct ct_range range;
    CUresult r = ct_address_find(address, 0, &range);

    if (r != CUDA_SUCCESS || range.kind != CT_RANGE_POOL || range.start != address)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "no memory of a pool begins at 0x%llx", (unsigned long long)address);
    /* stays valid: a thread that frees the block first removes it from the map, and then needs the lock that is held here */
    slab = range.block->slab;
    pool = slab->pool;
    if ((r = check_shared(pool)) != CUDA_SUCCESS)
        return r;
    if (!pool->id) /* no process can have imported it, and NVIDIA's driver refuses, too */
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the pool of 0x%llx must be exported first", (unsigned long long)address);
    if ((r = ct_backing_share(pool->device, &slab->backing, &slab->share_id, &out->slab)) != CUDA_SUCCESS)
        return r;
    out->pool = pool->id;
    out->offset = range.block->offset;
    out->size_bytes = range.size_bytes;
    return CUDA_SUCCESS;
}

CUresult ct_memory_pool_export_pointer(uint64_t address, CUmemPoolPtrExportData *out)
{
    struct ct_device_pools *pools;
    struct pointer pointer;
    struct ct_range range;
    CUresult r = ct_address_find(address, 0, &range);

    if (r != CUDA_SUCCESS || range.kind != CT_RANGE_POOL)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not in memory of a pool", (unsigned long long)address);
    ct_shadow_forget(address); /* other processes may write to it */
    memset(&pointer, 0, sizeof pointer);
    pools = ct_process.devices[range.device].pools;
    ct_mutex_lock(&pools->lock);
    r = export_locked(address, &pointer);
    ct_mutex_unlock(&pools->lock);
    if (r != CUDA_SUCCESS)
        return r;
    memset(out, 0, sizeof *out);
    memcpy(out, &pointer, sizeof pointer);
    return CUDA_SUCCESS;
}

/* ---- pointers in ---- */

static struct ct_pool_slab *find_slab_locked(struct ct_memory_pool *pool, uint64_t origin_id)
{
    for (struct ct_pool_slab *slab = pool->slabs; slab; slab = slab->next)
        if (slab->origin_id == origin_id)
            return slab;
    return NULL;
}

static void add_slab_locked(struct ct_memory_pool *pool, struct ct_pool_slab *slab)
{
    slab->next = pool->slabs;
    pool->slabs = slab;
    pool->reserved += slab->size_bytes;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    atomic_store_explicit(&pool->device->pools->needs_reclaim, true, memory_order_release); /* pairs with the exchange in observe */
}

struct import {
    struct ct_memory_pool *pool;
    struct ct_context *owner;
    struct pointer pointer;
    struct ct_pool_block *spares[2]; /* NULL once they are in use */
    struct ct_pool_slab *mapped;     /* a slab that this thread has mapped and that is in no pool; NULL: none */
    uint64_t address;
};

static bool is_imported(const struct import *import)
{
    struct ct_range range;

    return ct_address_find(import->address, 0, &range) == CUDA_SUCCESS && range.kind == CT_RANGE_POOL && range.start == import->address &&
           range.size_bytes == import->pointer.size_bytes;
}

/* Takes the block of the pointer and makes its address known. Importing a pointer again returns the same address, without a count, as in
 * NVIDIA's driver; both steps are under one lock, so that another thread that imports it finds either none or both. */
static CUresult take_locked(struct import *import, struct ct_pool_slab *slab)
{
    const uint64_t offset = slab->lead_bytes + import->pointer.offset;
    struct ct_pool_block *block;
    CUresult r;

    if (import->pool->destroyed)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the pool was destroyed");
    import->address = slab->backing.address + offset;
    block = ct_pool_take_at_locked(slab, offset, import->pointer.size_bytes, import->spares);
    if (!block)
        return is_imported(import) ? CUDA_SUCCESS
                                   : ct_fail(CUDA_ERROR_INVALID_VALUE, "the pointer exceeds its memory, or overlaps another");
    import->spares[0] = import->spares[1] = NULL;
    r = ct_pool_block_publish(block, import->owner, import->pointer.size_bytes, &import->address);
    if (r != CUDA_SUCCESS)
        ct_pool_free_locked(block, NULL, 0);
    return r;
}

/* Takes the block if its slab is in the pool, or is mapped, which may have happened in another thread first. Otherwise *out_found is false. */
static CUresult take(struct import *import, bool *out_found)
{
    struct ct_device_pools *pools = import->pool->device->pools;
    CUresult r = CUDA_SUCCESS;
    struct ct_pool_slab *slab;

    ct_mutex_lock(&pools->lock);
    slab = find_slab_locked(import->pool, import->pointer.slab.id);
    if (!slab && import->mapped) {
        slab = import->mapped;
        import->mapped = NULL;
        add_slab_locked(import->pool, slab);
    }
    if (slab)
        r = take_locked(import, slab); /* at once: a slab without blocks in use may be released */
    ct_mutex_unlock(&pools->lock);
    *out_found = slab != NULL;
    return r;
}

/* Maps the slab without a lock, since its owner has to answer. */
static CUresult map_and_take(struct import *import)
{
    bool found;
    CUresult r = take(import, &found);

    if (found)
        return r;
    r = ct_pool_slab_import(import->pool, &import->pointer.slab, &import->mapped);
    return r == CUDA_SUCCESS ? take(import, &found) : r;
}

static CUresult check_pointer(const struct ct_memory_pool *pool, const struct pointer *pointer)
{
    const struct ct_share_name *origin = &pool->kind.origin;

    if (!pool->kind.imported)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the pool is not imported");
    if (ct_share_name_check(CT_SHARE_MEMORY, &pointer->slab) != CUDA_SUCCESS || pointer->slab.process != origin->process ||
        pointer->slab.pid != origin->pid || pointer->pool != origin->id || !pointer->size_bytes || pointer->size_bytes > INT64_MAX ||
        pointer->offset > INT64_MAX)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the export data is not of a pointer in that pool");
    return CUDA_SUCCESS;
}

CUresult ct_memory_pool_import_pointer(struct ct_memory_pool *pool, struct ct_context *context, const CUmemPoolPtrExportData *data,
                                       uint64_t *out_address)
{
    struct import import = {.pool = pool, .owner = context->device == pool->device ? context : pool->device->primary};
    struct ct_pool_garbage garbage = {0};
    CUresult r;

    memcpy(&import.pointer, data, sizeof import.pointer);
    if ((r = check_pointer(pool, &import.pointer)) != CUDA_SUCCESS)
        return r;
    for (int i = 0; i < 2; i++)
        if (!(import.spares[i] = calloc(1, sizeof *import.spares[i])))
            r = ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a block of a memory pool");
    if (r == CUDA_SUCCESS)
        r = map_and_take(&import);
    if (r == CUDA_SUCCESS) {
        ct_shadow_forget(import.address); /* the other process writes to it */
        *out_address = import.address;
    }
    garbage.slabs = import.mapped;
    ct_pool_garbage_free(pool->device->pools, &garbage);
    free(import.spares[0]);
    free(import.spares[1]);
    return r;
}
