/* SPDX-License-Identifier: Apache-2.0 */
/* Stream-ordered allocation and pools; managed memory. */
#include "rows.h"

#include <unistd.h>

/* ---- pools ---- */
static CUmemLocation of_device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};

static CUmemLocation some_location(struct calls *c)
{
    if (calls_chance(c, 70))
        return of_device;
    return (CUmemLocation){(CUmemLocationType)calls_number(c, 6), (int)CALLS_PICK(c, 0, 0, 0, 1, 99)};
}

/* One of the sequence's pools, the default pool, or null. */
static CUmemoryPool some_pool(struct calls *c, char name[16], bool may_be_default)
{
    const struct calls_object *o = calls_object(c, CALLS_POOL);
    CUmemoryPool pool = NULL;

    snprintf(name, 16, "null");
    if (o && calls_chance(c, 90)) {
        calls_object_name(name, o);
        return (CUmemoryPool)(uintptr_t)o->handle;
    }
    if (may_be_default && calls_chance(c, 90) && cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS)
        snprintf(name, 16, "default");
    return pool;
}

static void say_pool(struct calls *c, CUmemoryPool pool)
{
    CUmemoryPool of_all = NULL;

    if (cuDeviceGetDefaultMemPool(&of_all, 0) == CUDA_SUCCESS && pool == of_all)
        calls_append(c, " pool=default");
    else
        calls_append_handle(c, "pool", CALLS_POOL, (uintptr_t)pool);
}

void calls_pool_create(struct calls *c)
{
    CUmemPoolProps p = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = of_device};
    CUmemoryPool pool = NULL;

    if (calls_chance(c, 30))
        p.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (calls_chance(c, 15))
        p.maxSize = CALLS_PICK(c, 1, 100000, 32 * CALLS_MIB, 64 * CALLS_MIB);
    if (calls_chance(c, 6))
        p.allocType = (CUmemAllocationType)CALLS_PICK(c, 0, 2, 3);
    if (calls_chance(c, 6))
        p.handleTypes = (CUmemAllocationHandleType)CALLS_PICK(c, 2, 3, 4, 16);
    if (calls_chance(c, 6))
        p.location = some_location(c);
    if (calls_chance(c, 3))
        p.usage = (unsigned short)CALLS_PICK(c, 1, 2, 4);
    calls_begin(c, "cuMemPoolCreate(type %d, handles %#x, at %d:%d, most %zu, usage %u", (int)p.allocType, (unsigned)p.handleTypes,
                (int)p.location.type, p.location.id, p.maxSize, p.usage);
    if (calls_end(c, cuMemPoolCreate(&pool, &p)))
        calls_add(c, CALLS_POOL, 0, p.maxSize, (uintptr_t)pool);
}

/* Memory of a destroyed pool remains until it is freed. */
void calls_pool_destroy(struct calls *c)
{
    struct calls_object *o = calls_object(c, CALLS_POOL);
    char name[16];

    if (!o)
        return;
    calls_begin(c, "cuMemPoolDestroy(%s", calls_object_name(name, o));
    if (calls_end(c, cuMemPoolDestroy((CUmemoryPool)(uintptr_t)o->handle)))
        calls_mark_freed(c, o);
}

void calls_alloc_async(struct calls *c)
{
    const size_t size = CALLS_PICK(c, 0, 1, 100, 512, 4096, 65536, 100000, CALLS_MIB, 4 * CALLS_MIB, 33 * CALLS_MIB, (size_t)1 << 46);
    const CUstream stream = calls_stream(c);
    CUdeviceptr at = 0;
    CUmemoryPool pool;
    char name[16];
    CUresult r;

    pool = calls_chance(c, 50) ? some_pool(c, name, true) : NULL;
    if (pool) {
        calls_begin(c, "cuMemAllocFromPoolAsync(%zu, %s, %s", size, name, calls_stream_name(c, stream));
        r = cuMemAllocFromPoolAsync(&at, size, pool, stream);
    } else {
        calls_begin(c, "cuMemAllocAsync(%zu, %s", size, calls_stream_name(c, stream));
        r = cuMemAllocAsync(&at, size, stream);
    }
    if (calls_result(c, r)) {
        calls_wait(c, stream);
        if (at)
            calls_fill(c, calls_add(c, CALLS_POOLED, at, size, (uintptr_t)pool));
        else
            calls_append(c, " null");
    }
    calls_line(c);
}

void calls_free_async(struct calls *c)
{
    const struct calls_place p = calls_place(c, CALLS_POOLED | CALLS_DEVICE | CALLS_MANAGED, CALLS_ANYTHING);
    const CUstream stream = calls_stream(c);
    CUresult r;

    calls_begin(c, "cuMemFreeAsync(%s, %s", p.text, calls_stream_name(c, stream));
    if (calls_result(c, r = cuMemFreeAsync(p.at, stream)))
        calls_wait(c, stream);
    calls_line(c);
    if (r == CUDA_SUCCESS)
        calls_mark_freed_at(c, CALLS_ADDRESSED & ~(CALLS_RESERVED | CALLS_MAPPED), p.at);
}

void calls_pool_trim(struct calls *c)
{
    char name[16];
    const CUmemoryPool pool = some_pool(c, name, true);
    const size_t keep = CALLS_PICK(c, 0, 0, 1, 100000, 33 * CALLS_MIB, SIZE_MAX);

    calls_begin(c, "cuMemPoolTrimTo(%s, %zu", name, keep);
    calls_end(c, cuMemPoolTrimTo(pool, keep));
}

void calls_pool_set_attribute(struct calls *c)
{
    char name[16];
    const CUmemoryPool pool = some_pool(c, name, false);
    const unsigned attribute = (unsigned)(calls_chance(c, 95) ? calls_number(c, 8) + 1 : CALLS_PICK(c, 0, 9, 99));
    cuuint64_t value = attribute <= 3 ? CALLS_PICK(c, 0, 1, 1, 2) : CALLS_PICK(c, 0, 0, 0, 1, CALLS_MIB, SIZE_MAX);

    calls_begin(c, "cuMemPoolSetAttribute(%s, %u, %llu", name, attribute, (unsigned long long)value);
    calls_end(c, cuMemPoolSetAttribute(pool, (CUmemPool_attribute)attribute, &value));
}

void calls_pool_get_attribute(struct calls *c)
{
    char name[16];
    const CUmemoryPool pool = some_pool(c, name, false);
    const unsigned attribute = (unsigned)(calls_chance(c, 95) ? calls_number(c, 8) + 1 : CALLS_PICK(c, 0, 9, 99));
    cuuint64_t value = 0;

    calls_begin(c, "cuMemPoolGetAttribute(%s, %u", name, attribute);
    if (calls_result(c, cuMemPoolGetAttribute(pool, (CUmemPool_attribute)attribute, &value)))
        calls_append(c, " value=%llu", (unsigned long long)(attribute <= 3 ? value & 0xffffffff : value));
    calls_line(c);
}

void calls_pool_set_access(struct calls *c)
{
    char name[16];
    const CUmemoryPool pool = some_pool(c, name, false);
    const CUmemLocation at = some_location(c);
    const CUmemAccess_flags access = (CUmemAccess_flags)CALLS_PICK(c, 3, 3, 3, 0, 1, 2, 4);
    const CUmemAccessDesc list[2] = {{at, access}, {at, access}};
    const size_t count = CALLS_PICK(c, 1, 1, 1, 1, 0, 2);

    calls_begin(c, "cuMemPoolSetAccess(%s, at %d:%d, access %d, count %zu", name, (int)at.type, at.id, (int)access, count);
    calls_end(c, cuMemPoolSetAccess(pool, list, count));
}

void calls_pool_get_access(struct calls *c)
{
    char name[16];
    const CUmemoryPool pool = some_pool(c, name, true);
    CUmemLocation at = some_location(c);
    CUmemAccess_flags flags = 0;

    calls_begin(c, "cuMemPoolGetAccess(%s, at %d:%d", name, (int)at.type, at.id);
    if (calls_result(c, cuMemPoolGetAccess(&flags, pool, &at)))
        calls_append(c, " access=%d", (int)flags);
    calls_line(c);
}

void calls_pool_of_location(struct calls *c)
{
    CUmemLocation at = some_location(c);
    const CUmemAllocationType type = (CUmemAllocationType)CALLS_PICK(c, 1, 1, 1, 2, 0, 3);
    const bool now = calls_chance(c, 50);
    CUmemoryPool pool = NULL;

    calls_begin(c, "%s(at %d:%d, type %d", now ? "cuMemGetMemPool" : "cuMemGetDefaultMemPool", (int)at.type, at.id, (int)type);
    if (calls_result(c, now ? cuMemGetMemPool(&pool, &at, type) : cuMemGetDefaultMemPool(&pool, &at, type)))
        say_pool(c, pool);
    calls_line(c);
}

/* Exports a pool as a file descriptor and imports it again; the same for a pointer. */
void calls_pool_export(struct calls *c)
{
    char name[16];
    const CUmemoryPool pool = some_pool(c, name, true);
    const unsigned type = (unsigned)CALLS_PICK(c, 1, 1, 1, 1, 0, 2, 4), flags = calls_chance(c, 4) ? 1 : 0;
    CUmemoryPool again = NULL;
    int file = -1;

    calls_begin(c, "cuMemPoolExportToShareableHandle(%s, type %u, flags %u", name, type, flags);
    if (!calls_end(c, cuMemPoolExportToShareableHandle(&file, pool, (CUmemAllocationHandleType)type, flags)))
        return;
    calls_begin(c, "cuMemPoolImportFromShareableHandle(file of %s, type 1, 0", name);
    if (calls_end(c, cuMemPoolImportFromShareableHandle(&again, (void *)(intptr_t)file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)))
        calls_add(c, CALLS_POOL, 0, 0, (uintptr_t)again);
    close(file);
}

void calls_pool_export_pointer(struct calls *c)
{
    const struct calls_place p = calls_place(c, CALLS_POOLED, CALLS_ANYTHING);
    CUmemPoolPtrExportData data;

    calls_begin(c, "cuMemPoolExportPointer(%s", p.text);
    calls_end(c, cuMemPoolExportPointer(&data, p.at));
}

/* ---- managed memory ---- */
void calls_alloc_managed(struct calls *c)
{
    const size_t size = CALLS_PICK(c, 0, 1, 100, 4096, 65536, 100000, 2 * CALLS_MIB, 3 * CALLS_MIB + 4);
    const unsigned flags = (unsigned)CALLS_PICK(c, 1, 1, 1, 1, 2, 2, 0, 3, 4, 5, 8);
    CUdeviceptr at = 0;

    calls_begin(c, "cuMemAllocManaged(%zu, flags %u", size, flags);
    if (calls_result(c, cuMemAllocManaged(&at, size, flags)))
        calls_fill(c, calls_add(c, CALLS_MANAGED, at, size, 0));
    calls_line(c);
}

void calls_stream_attach(struct calls *c)
{
    const struct calls_place p = calls_place(c, CALLS_MANAGED, CALLS_ANYTHING);
    const size_t bytes = calls_chance(c, 60) ? 0 : calls_bytes(c, p.room);
    const unsigned flags = (unsigned)CALLS_PICK(c, 1, 2, 4, 4, 0, 3, 8);
    const CUstream stream = calls_stream(c);

    calls_begin(c, "cuStreamAttachMemAsync(%s, %s, %zu, flags %u", calls_stream_name(c, stream), p.text, bytes, flags);
    if (calls_result(c, cuStreamAttachMemAsync(stream, p.at, bytes, flags)))
        calls_wait(c, stream);
    calls_line(c);
}

void calls_advise(struct calls *c)
{
    const struct calls_place p = calls_place(c, CALLS_MANAGED, CALLS_ANYTHING);
    const size_t bytes = calls_bytes(c, p.room);
    const unsigned advice = (unsigned)(calls_chance(c, 95) ? calls_number(c, 6) + 1 : CALLS_PICK(c, 0, 7, 99));
    const CUmemLocation at = some_location(c);

    calls_begin(c, "cuMemAdvise(%s, %zu, advice %u, at %d:%d", p.text, bytes, advice, (int)at.type, at.id);
    calls_end(c, cuMemAdvise(p.at, bytes, (CUmem_advise)advice, at));
}

void calls_prefetch(struct calls *c)
{
    const struct calls_place p = calls_place(c, CALLS_MANAGED, CALLS_ANYTHING);
    const size_t bytes = calls_bytes(c, p.room);
    const CUmemLocation at = some_location(c);
    const unsigned flags = calls_chance(c, 5) ? 1 : 0;
    const CUstream stream = calls_stream(c);

    calls_begin(c, "cuMemPrefetchAsync(%s, %zu, at %d:%d, flags %u, %s", p.text, bytes, (int)at.type, at.id, flags,
                calls_stream_name(c, stream));
    if (calls_result(c, cuMemPrefetchAsync(p.at, bytes, at, flags, stream)))
        calls_wait(c, stream);
    calls_line(c);
}

/* Numbers of 4 bytes; as many accessors as there is room for. */
void calls_range_attribute(struct calls *c)
{
    const struct calls_place p = calls_place(c, CALLS_MANAGED, CALLS_ANYTHING);
    const size_t bytes = calls_bytes(c, p.room);
    unsigned attribute = (unsigned)(calls_chance(c, 95) ? calls_number(c, 8) + 1 : CALLS_PICK(c, 0, 9, 99));
    size_t size = calls_chance(c, 85) ? (attribute == 3 ? 8 : 4) : CALLS_PICK(c, 0, 1, 3, 8, 12);
    const bool plural = calls_chance(c, 30);
    int values[4] = {-77, -77, -77, -77};
    void *to = values;
    CUmem_range_attribute list = (CUmem_range_attribute)attribute;

    calls_begin(c, "%s(%u, %zu bytes, %s, %zu", plural ? "cuMemRangeGetAttributes" : "cuMemRangeGetAttribute", attribute, size, p.text,
                bytes);
    if (calls_result(c, plural ? cuMemRangeGetAttributes(&to, &size, &list, 1, p.at, bytes)
                               : cuMemRangeGetAttribute(values, size, list, p.at, bytes)))
        for (size_t i = 0; i < size / 4; i++)
            calls_append(c, " %d", values[i]);
    calls_line(c);
}
