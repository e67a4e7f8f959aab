/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory: reservations, physical memory, mappings, access. */
#include "rows.h"

#include <unistd.h>

static CUmemLocation some_location(struct calls *c)
{
    if (calls_chance(c, 75))
        return (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 0};
    return (CUmemLocation){(CUmemLocationType)calls_number(c, 6), (int)CALLS_PICK(c, 0, 0, 1, 99)};
}

static CUmemAllocationProp some_properties(struct calls *c)
{
    CUmemAllocationProp p = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

    if (calls_chance(c, 30))
        p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (calls_chance(c, 80))
        return p;
    switch (calls_number(c, 5)) {
    case 0:
        p.type = (CUmemAllocationType)CALLS_PICK(c, 0, 2, 3, 99);
        break;
    case 1:
        p.location = some_location(c);
        break;
    case 2:
        p.requestedHandleTypes = (CUmemAllocationHandleType)CALLS_PICK(c, 2, 3, 4, 16, 0x100);
        break;
    case 3:
        p.allocFlags.compressionType = (unsigned char)CALLS_PICK(c, 1, 2);
        p.allocFlags.gpuDirectRDMACapable = (unsigned char)CALLS_PICK(c, 0, 1);
        break;
    default:
        p.allocFlags.usage = (unsigned short)CALLS_PICK(c, 1, 2, 4);
    }
    return p;
}

/* The flags and sizes that the calls have as their last arguments. */
#define PROPERTIES "type %d, handles %#x, at %d:%d, compression %d, rdma %d, usage %d"
#define PROPERTIES_OF(p)                                                                                                                   \
    (int)(p).type, (unsigned)(p).requestedHandleTypes, (int)(p).location.type, (p).location.id, (p).allocFlags.compressionType,            \
        (p).allocFlags.gpuDirectRDMACapable, (p).allocFlags.usage

static size_t some_size(struct calls *c)
{
    const size_t g = c->granule;

    return calls_chance(c, 88) ? CALLS_PICK(c, g, g, g, 2 * g) : CALLS_PICK(c, 0, 4096, g / 2, g + 1, g + 65536, (size_t)1 << 56);
}

void calls_mem_address_reserve(struct calls *c)
{
    const size_t size = some_size(c) * CALLS_PICK(c, 1, 2, 4), g = c->granule;
    const size_t alignment = calls_chance(c, 75) ? 0 : CALLS_PICK(c, g, 2 * g, 4096, 65536, 3, g + 4096, 512 * CALLS_MIB);
    const struct calls_object *there = calls_chance(c, 25) ? calls_object(c, CALLS_ADDRESSED) : NULL;
    const CUdeviceptr hint = there ? there->address : calls_chance(c, 8) ? CALLS_PICK(c, 1, 0x1000, 0x7000000001) : 0;
    const unsigned flags = calls_chance(c, 5) ? 1 : 0;
    CUdeviceptr at = 0;
    char name[24];

    snprintf(name, sizeof name, "%#llx", (unsigned long long)hint);
    calls_begin(c, "cuMemAddressReserve(%zu, alignment %zu, at %s, flags %u", size, alignment,
                there ? calls_object_name(name, there) : name, flags);
    if (calls_result(c, cuMemAddressReserve(&at, size, alignment, hint, flags))) {
        calls_append(c, "%s%s", alignment && at % alignment ? " misaligned" : "", there && at == hint ? " there" : "");
        calls_add(c, CALLS_RESERVED, at, size, 0);
    }
    calls_line(c);
}

void calls_mem_address_free(struct calls *c)
{
    const struct calls_place p = calls_place(c, CALLS_RESERVED, CALLS_ANYTHING);
    const size_t size = p.object && calls_chance(c, 85) ? p.object->size : some_size(c);

    calls_begin(c, "cuMemAddressFree(%s, %zu", p.text, size);
    if (calls_end(c, cuMemAddressFree(p.at, size)))
        calls_mark_freed_at(c, CALLS_RESERVED, p.at);
}

/* The initial contents of memory are unspecified: here all memory is initialized with the same value, as far as that is possible. */
static void fill_physical(struct calls *c, CUmemGenericAllocationHandle handle, size_t size)
{
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUcontext current = NULL;
    CUdeviceptr at = 0;

    if (cuMemAddressReserve(&at, size, 0, 0, 0) != CUDA_SUCCESS)
        return;
    cuCtxGetCurrent(&current);
    cuCtxPushCurrent(c->contexts[0]);
    if (cuMemMap(at, size, 0, handle, 0) == CUDA_SUCCESS) {
        if (cuMemSetAccess(at, size, &access, 1) == CUDA_SUCCESS && cuMemsetD8(at, 0x5a, size) == CUDA_SUCCESS)
            cuStreamSynchronize(NULL);
        cuMemUnmap(at, size);
    }
    cuMemAddressFree(at, size);
    cuCtxPopCurrent(&current);
}

void calls_mem_create(struct calls *c)
{
    const CUmemAllocationProp p = some_properties(c);
    const size_t size = some_size(c);
    const unsigned flags = calls_chance(c, 4) ? 1 : 0;
    CUmemGenericAllocationHandle handle = 0;

    calls_begin(c, "cuMemCreate(%zu, " PROPERTIES ", flags %u", size, PROPERTIES_OF(p), flags);
    if (!calls_end(c, cuMemCreate(&handle, size, &p, flags)))
        return;
    calls_add(c, CALLS_PHYSICAL, 0, size, handle);
    fill_physical(c, handle, size);
}

static const struct calls_object *some_physical(struct calls *c, char name[16])
{
    const struct calls_object *o = calls_chance(c, 96) ? calls_object(c, CALLS_PHYSICAL) : NULL;

    snprintf(name, 16, "0");
    if (o)
        calls_object_name(name, o);
    return o;
}

void calls_mem_release(struct calls *c)
{
    char name[16];
    struct calls_object *o = (struct calls_object *)some_physical(c, name);

    calls_begin(c, "cuMemRelease(%s", name);
    if (calls_end(c, cuMemRelease(o ? o->handle : 0)) && o)
        calls_mark_freed(c, o);
}

/* An offset that is a multiple of half a granule, or arbitrary. */
static struct calls_place some_part(struct calls *c, unsigned kinds)
{
    struct calls_place p = {0};
    const struct calls_object *o = calls_object(c, kinds);
    char name[16];
    size_t offset;

    if (!o || calls_chance(c, 8))
        return calls_place(c, kinds, CALLS_ANYTHING);
    offset = calls_chance(c, 60) ? 0 : calls_number(c, 1 + o->size / c->granule) * c->granule + (calls_chance(c, 10) ? c->granule / 2 : 0);
    p.at = o->address + offset, p.object = o, p.room = offset < o->size ? o->size - offset : 0;
    snprintf(p.text, sizeof p.text, offset < o->size ? "%s+%zu" : "%s+end", calls_object_name(name, o), offset);
    return p;
}

/* A place with enough room, as far as sizes show. */
static struct calls_place room_for(struct calls *c, size_t size)
{
    const struct calls_object *o = calls_object(c, CALLS_RESERVED);
    struct calls_place p = {.object = o};
    size_t offset;
    char name[16];

    if (!o || o->size < size || calls_chance(c, 20))
        return some_part(c, CALLS_RESERVED);
    offset = calls_chance(c, 60) ? 0 : calls_number(c, 1 + (o->size - size) / c->granule) * c->granule;
    p.at = o->address + offset, p.room = o->size - offset;
    snprintf(p.text, sizeof p.text, "%s+%zu", calls_object_name(name, o), offset);
    return p;
}

void calls_mem_map(struct calls *c)
{
    char name[16];
    const struct calls_object *o = some_physical(c, name);
    const struct calls_place p = room_for(c, o ? o->size : c->granule);
    const size_t size = o && calls_chance(c, 80) ? o->size : some_size(c),
                 offset = calls_chance(c, 90) ? 0 : CALLS_PICK(c, c->granule, 4096, 1);
    const unsigned flags = calls_chance(c, 4) ? 1 : 0;

    calls_begin(c, "cuMemMap(%s, %zu, offset %zu, %s, flags %u", p.text, size, offset, name, flags);
    if (calls_end(c, cuMemMap(p.at, size, offset, o ? o->handle : 0, flags)))
        calls_add(c, CALLS_MAPPED, p.at, size, o ? o->handle : 0);
}

/* All steps that are necessary to map memory, mostly without an error. */
void calls_mem_make_mapping(struct calls *c)
{
    const size_t size = CALLS_PICK(c, c->granule, c->granule, 2 * c->granule), room = size * CALLS_PICK(c, 1, 1, 2);
    const CUmemAllocationProp p = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const CUmemAccessDesc access = {p.location, calls_chance(c, 85) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_READ};
    const bool has_access = calls_chance(c, 75);
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr at = 0;

    calls_begin(c, "cuMemAddressReserve(%zu", room);
    if (!calls_end(c, cuMemAddressReserve(&at, room, 0, 0, 0)))
        return;
    calls_add(c, CALLS_RESERVED, at, room, 0);
    calls_begin(c, "cuMemCreate(%zu", size);
    if (!calls_end(c, cuMemCreate(&handle, size, &p, 0)))
        return;
    calls_add(c, CALLS_PHYSICAL, 0, size, handle);
    fill_physical(c, handle, size);
    calls_begin(c, "cuMemMap(%zu", size);
    if (!calls_end(c, cuMemMap(at, size, 0, handle, 0)))
        return;
    calls_add(c, CALLS_MAPPED, at, size, handle);
    if (!has_access)
        return;
    calls_begin(c, "cuMemSetAccess(%zu, %d", size, (int)access.flags);
    calls_end(c, cuMemSetAccess(at, size, &access, 1));
}

void calls_mem_unmap(struct calls *c)
{
    const struct calls_place p = some_part(c, calls_chance(c, 75) ? CALLS_MAPPED : CALLS_RESERVED);
    const size_t size = p.object && calls_chance(c, 70) ? p.object->size : some_size(c);

    calls_begin(c, "cuMemUnmap(%s, %zu", p.text, size);
    if (!calls_end(c, cuMemUnmap(p.at, size)))
        return;
    for (unsigned i = 0; i < c->n_objects; i++)
        if (c->objects[i].live && c->objects[i].kind == CALLS_MAPPED && c->objects[i].address - p.at < size)
            calls_mark_freed(c, &c->objects[i]);
}

void calls_mem_set_access(struct calls *c)
{
    const struct calls_place p = some_part(c, calls_chance(c, 75) ? CALLS_MAPPED : CALLS_RESERVED);
    const size_t size = p.object && calls_chance(c, 80) ? p.object->size : some_size(c),
                 count = calls_chance(c, 92) ? 1 : CALLS_PICK(c, 0, 2);
    const CUmemAccess_flags access = (CUmemAccess_flags)(calls_chance(c, 65) ? 3 : CALLS_PICK(c, 0, 1, 2, 4));
    const CUmemLocation at = some_location(c);
    const CUmemAccessDesc list[2] = {{at, access}, {at, access}};

    calls_begin(c, "cuMemSetAccess(%s, %zu, at %d:%d, access %d, count %zu", p.text, size, (int)at.type, at.id, (int)access, count);
    calls_end(c, cuMemSetAccess(p.at, size, list, count));
}

void calls_mem_get_access(struct calls *c)
{
    const struct calls_place p = some_part(c, calls_chance(c, 75) ? CALLS_MAPPED : CALLS_ADDRESSED);
    const CUmemLocation at = some_location(c);
    unsigned long long flags = 0;

    calls_begin(c, "cuMemGetAccess(at %d:%d, %s", (int)at.type, at.id, p.text);
    if (calls_result(c, cuMemGetAccess(&flags, &at, p.at)))
        calls_append(c, " access=%llu", flags);
    calls_line(c);
}

void calls_mem_get_allocation_granularity(struct calls *c)
{
    const CUmemAllocationProp p = some_properties(c);
    const unsigned which = (unsigned)(calls_chance(c, 10) ? 2 : calls_number(c, 2));
    size_t size = 0;

    calls_begin(c, "cuMemGetAllocationGranularity(" PROPERTIES ", %u", PROPERTIES_OF(p), which);
    if (calls_result(c, cuMemGetAllocationGranularity(&size, &p, (CUmemAllocationGranularity_flags)which)))
        calls_append(c, " size=%zu", size);
    calls_line(c);
}

void calls_mem_get_allocation_properties(struct calls *c)
{
    char name[16];
    const struct calls_object *o = some_physical(c, name);
    CUmemAllocationProp p = {0};

    calls_begin(c, "cuMemGetAllocationPropertiesFromHandle(%s", name);
    if (calls_result(c, cuMemGetAllocationPropertiesFromHandle(&p, o ? o->handle : 0)))
        calls_append(c, " " PROPERTIES, PROPERTIES_OF(p));
    calls_line(c);
}

void calls_mem_retain_allocation_handle(struct calls *c)
{
    const struct calls_place p = calls_place(c, CALLS_MAPPED, CALLS_ANYTHING);
    CUmemGenericAllocationHandle handle = 0;

    calls_begin(c, "cuMemRetainAllocationHandle(%s", p.text);
    if (calls_result(c, cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)p.at))) {
        calls_append_handle(c, "handle", CALLS_PHYSICAL, handle);
        calls_add(c, CALLS_PHYSICAL, 0, p.object ? p.object->size : c->granule, handle);
    }
    calls_line(c);
}

/* Exports a handle as a file descriptor and imports it again. */
void calls_mem_export(struct calls *c)
{
    char name[16];
    const struct calls_object *o = some_physical(c, name);
    const CUmemAllocationHandleType type = (CUmemAllocationHandleType)(calls_chance(c, 85) ? 1 : CALLS_PICK(c, 0, 2, 3, 4));
    const unsigned flags = calls_chance(c, 4) ? 1 : 0;
    CUmemGenericAllocationHandle handle = 0;
    int file = -1;

    calls_begin(c, "cuMemExportToShareableHandle(%s, type %u, flags %u", name, (unsigned)type, flags);
    if (!calls_end(c, cuMemExportToShareableHandle(&file, o ? o->handle : 0, type, flags)))
        return;
    calls_begin(c, "cuMemImportFromShareableHandle(file of %s, type 1", name);
    if (calls_result(c, cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))) {
        calls_append_handle(c, "handle", CALLS_PHYSICAL, handle);
        calls_add(c, CALLS_PHYSICAL, 0, o ? o->size : c->granule, handle);
    }
    calls_line(c);
    close(file);
}

void calls_mem_range_handle(struct calls *c)
{
    const struct calls_place p = calls_place(c, CALLS_DEVICE | CALLS_MAPPED, CALLS_ANYTHING);
    const size_t bytes = CALLS_PICK(c, 0, 1, 4096, 65536, 2 * CALLS_MIB, p.room, p.room, p.room);
    const unsigned type = calls_chance(c, 90) ? 1 : 0, flags = calls_chance(c, 6) ? 8 : 0;
    int file = -1;

    calls_begin(c, "cuMemGetHandleForAddressRange(%s, %zu, type %u, flags %u", p.text, bytes, type, flags);
    if (calls_end(c, cuMemGetHandleForAddressRange(&file, p.at, bytes, (CUmemRangeHandleType)type, flags)))
        close(file);
}

/* ---- between processes; the exporting process cannot open its own handle ---- */
void calls_ipc(struct calls *c)
{
    const struct calls_place p = calls_place(c, CALLS_DEVICE, CALLS_ANYTHING);
    const unsigned flags = (unsigned)CALLS_PICK(c, 1, 1, 0, 2);
    CUipcMemHandle handle;
    CUdeviceptr at = 0;

    calls_begin(c, "cuIpcGetMemHandle(%s", p.text);
    if (!calls_end(c, cuIpcGetMemHandle(&handle, p.at)))
        return;
    calls_begin(c, "cuIpcOpenMemHandle(of %s, flags %u", p.text, flags);
    if (calls_result(c, cuIpcOpenMemHandle(&at, handle, flags)))
        calls_append_address(c, "at", at);
    calls_line(c);
}

void calls_ipc_close(struct calls *c)
{
    const struct calls_place p = calls_place(c, CALLS_ADDRESSED, CALLS_ANYTHING);

    calls_begin(c, "cuIpcCloseMemHandle(%s", p.text);
    calls_end(c, cuIpcCloseMemHandle(p.at));
}
